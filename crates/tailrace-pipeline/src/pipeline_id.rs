//! The number that distinguishes a pipeline from an earlier one of the same name.

/// Number of a pipeline that was built; given once, never again while the agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PipelineId(pub u64);
