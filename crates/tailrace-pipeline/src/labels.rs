//! Labels of the own metrics: names of pipelines and outputs, and closed enums; never a path.

use std::collections::BTreeMap;

use prometheus_client::encoding::EncodeLabelSet;

/// Bytes or files by reason.
pub(crate) type Reasons = BTreeMap<&'static str, u64>;

/// Of a pipeline.
#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct PipelineLabels {
    pub(crate) pipeline: String,
}

/// Of a pipeline, by reason.
#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct ReasonLabels {
    pub(crate) pipeline: String,
    pub(crate) reason: &'static str,
}

/// Of a pipeline: whether a bound is known.
#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct BoundLabels {
    pub(crate) pipeline: String,
    pub(crate) bound: &'static str,
}

/// Of a pipeline, by cause.
#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct CauseLabels {
    pub(crate) pipeline: String,
    pub(crate) cause: &'static str,
}

/// Of an output.
#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct OutputLabels {
    pub(crate) pipeline: String,
    pub(crate) output: String,
}

/// Of an output, by reason.
#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct OutputReasonLabels {
    pub(crate) pipeline: String,
    pub(crate) output: String,
    pub(crate) reason: &'static str,
}

/// Of an output, by cause.
#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct OutputCauseLabels {
    pub(crate) pipeline: String,
    pub(crate) output: String,
    pub(crate) cause: &'static str,
}
