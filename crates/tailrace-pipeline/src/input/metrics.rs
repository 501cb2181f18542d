//! Metrics of what is read: of files, pods and what is lost.

use std::sync::{Arc, Mutex};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::labels::{BoundLabels, CauseLabels, PipelineLabels, ReasonLabels, Reasons};

/// The families of all inputs.
#[derive(Debug, Clone, Default)]
pub(crate) struct InputFamilies {
    pub(crate) read_bytes: Family<PipelineLabels, Counter>,
    pub(crate) lost_bytes: Family<ReasonLabels, Counter>,
    pub(crate) lost_files: Family<ReasonLabels, Counter>,
    pub(crate) truncations: Family<BoundLabels, Counter>,
    pub(crate) truncated_unread: Family<PipelineLabels, Counter>,
    pub(crate) skipped_bytes: Family<ReasonLabels, Counter>,
    pub(crate) files_open: Family<PipelineLabels, Gauge>,
    pub(crate) denied_paths: Family<PipelineLabels, Gauge>,
    pub(crate) errors: Family<CauseLabels, Counter>,
    pub(crate) stalled: Family<PipelineLabels, Gauge>,
    pub(crate) unread_bytes: Family<PipelineLabels, Gauge>,
    pub(crate) oldest_unread: Family<PipelineLabels, Gauge>,
    pub(crate) pods: Family<PipelineLabels, Gauge>,
    pub(crate) pods_awaited: Family<PipelineLabels, Gauge>,
    pub(crate) metadata_errors: Family<PipelineLabels, Counter>,
    pub(crate) metadata_missing: Family<PipelineLabels, Counter>,
    pub(crate) invalid_annotations: Family<CauseLabels, Counter>,
    // For the ledger alone; here, so that a pipeline goes on with them that takes another's place.
    pub(crate) lost_reasons: Family<PipelineLabels, Arc<Mutex<Reasons>>>,
    pub(crate) lost_file_reasons: Family<PipelineLabels, Arc<Mutex<Reasons>>>,
    pub(crate) skipped_reasons: Family<PipelineLabels, Arc<Mutex<Reasons>>>,
}

impl InputFamilies {
    /// Registers them under their names of the glossary.
    pub(crate) fn register(&self, r: &mut Registry) {
        let m = self.clone();
        let bytes = || Unit::Bytes;
        r.register_with_unit(
            "input_read",
            "bytes read from the inputs",
            bytes(),
            m.read_bytes,
        );
        r.register_with_unit(
            "input_lost",
            "bytes that could not be read",
            bytes(),
            m.lost_bytes,
        );
        r.register(
            "input_lost_files",
            "files that were lost, in whole or in part",
            m.lost_files,
        );
        r.register(
            "input_truncations",
            "files that were truncated or replaced in place",
            m.truncations,
        );
        r.register_with_unit(
            "input_truncated_unread",
            "upper bound of the bytes that were written to files unseen before they were truncated",
            bytes(),
            m.truncated_unread,
        );
        r.register_with_unit(
            "input_skipped",
            "bytes left out: as configured, NULs, or what is beyond the longest record",
            bytes(),
            m.skipped_bytes,
        );
        r.register("input_files_open", "files held open", m.files_open);
        r.register(
            "input_denied_paths",
            "files and directories that the agent may not read, and disk queues that cannot be written",
            m.denied_paths,
        );
        r.register(
            "input_errors",
            "files and directories that could not be read; each counts once until it could be",
            m.errors,
        );
        r.register(
            "pipeline_stalled",
            "1 while something waits and nothing moves",
            m.stalled,
        );
        r.register_with_unit(
            "input_unread",
            "bytes of known files not read",
            bytes(),
            m.unread_bytes,
        );
        r.register_with_unit(
            "input_oldest_unread",
            "how long ago the oldest byte not read was first seen",
            Unit::Seconds,
            m.oldest_unread,
        );
        r.register(
            "k8s_pods_tracked",
            "pods of this node that are known",
            m.pods,
        );
        r.register(
            "k8s_logs_awaiting_metadata",
            "logs that wait for metadata",
            m.pods_awaited,
        );
        r.register(
            "k8s_watch_errors",
            "failed requests for metadata",
            m.metadata_errors,
        );
        r.register(
            "k8s_metadata_misses",
            "logs read without metadata",
            m.metadata_missing,
        );
        r.register(
            "k8s_invalid_annotations",
            "annotations of pods about their lines that are not valid, for each log",
            m.invalid_annotations,
        );
    }
}
