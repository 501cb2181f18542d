//! Metrics of what is framed, scanned and transformed.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use crate::labels::{CauseLabels, PipelineLabels};

/// The families of all workers.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProcessFamilies {
    pub(crate) records: Family<PipelineLabels, Counter>,
    pub(crate) replayed: Family<PipelineLabels, Counter>,
    pub(crate) malformed: Family<CauseLabels, Counter>,
    pub(crate) truncated: Family<PipelineLabels, Counter>,
    pub(crate) blank_lines: Family<PipelineLabels, Counter>,
    pub(crate) repaired: Family<PipelineLabels, Counter>,
    pub(crate) type_mismatch: Family<PipelineLabels, Counter>,
    pub(crate) bad_values: Family<PipelineLabels, Counter>,
    pub(crate) overflow_values: Family<PipelineLabels, Counter>,
    pub(crate) failed_rows: Family<PipelineLabels, Counter>,
    pub(crate) crashed: Family<CauseLabels, Counter>,
    pub(crate) filtered: Family<PipelineLabels, Counter>,
}

impl ProcessFamilies {
    /// Registers them under their names of the glossary.
    pub(crate) fn register(&self, r: &mut Registry) {
        let m = self.clone();
        r.register("frame_records", "records framed", m.records);
        r.register(
            "frame_replayed_records",
            "records read again after a restart",
            m.replayed,
        );
        r.register(
            "frame_truncated_records",
            "records cut at the maximum size",
            m.truncated,
        );
        r.register(
            "frame_blank_lines",
            "lines that are empty or hold only spaces, tabs and carriage returns, and so are no records",
            m.blank_lines,
        );
        r.register(
            "scan_malformed_records",
            "records that are not JSON as far as the query reads them, and container lines without their envelope",
            m.malformed,
        );
        r.register(
            "scan_repaired_records",
            "records with invalid UTF-8 replaced",
            m.repaired,
        );
        r.register(
            "scan_type_mismatch_values",
            "values that did not fit their type",
            m.type_mismatch,
        );
        r.register("scan_bad_values", "values that are no JSON", m.bad_values);
        r.register(
            "scan_overflow_values",
            "values of keys beyond limits.columns",
            m.overflow_values,
        );
        r.register(
            "transform_failed_rows",
            "rows whose expression failed",
            m.failed_rows,
        );
        r.register(
            "transform_crashed_records",
            "records set aside because the agent panicked or died at them",
            m.crashed,
        );
        r.register(
            "transform_filtered_records",
            "records removed by WHERE",
            m.filtered,
        );
    }
}
