//! Own metrics: counters of one pipeline, as handles held beside the code that counts, and the
//! ledger that is read from them. The names are those of the glossary; labels are the names of
//! pipelines, inputs and outputs and closed enums, never a path. Formats nothing.

use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use tailrace_scan::Stats;

use crate::delivery::metrics::{OutputFamilies, OutputMetrics};
use crate::input::metrics::InputFamilies;
use crate::labels::{BoundLabels, CauseLabels, PipelineLabels, ReasonLabels, Reasons};
use crate::process::metrics::ProcessFamilies;

/// The metric families of all pipelines.
#[derive(Debug, Clone, Default)]
pub(crate) struct Metrics {
    input: InputFamilies,
    process: ProcessFamilies,
    output: OutputFamilies,
    checkpoint_age: Gauge,
    safe_mode: Gauge,
}

/// Counters of one pipeline.
#[derive(Debug, Clone)]
pub(crate) struct PipelineMetrics {
    families: InputFamilies,
    labels: PipelineLabels,
    lost: Arc<Mutex<Reasons>>,
    lost_files: Arc<Mutex<Reasons>>,
    skipped: Arc<Mutex<Reasons>>,
    /// Bytes read from the inputs.
    pub read_bytes: Counter,
    /// Times a file was truncated where a bound is known of what was written to it unseen before.
    pub truncations: Counter,
    /// Times a file was truncated where none is known.
    pub truncations_unbounded: Counter,
    /// That bound, in bytes.
    pub truncated_unread: Counter,
    /// Files held open.
    pub files_open: Gauge,
    /// Files and directories that may not be read.
    pub denied_paths: Gauge,
    /// Paths that were found not to be readable for want of a permission.
    pub permission_errors: Counter,
    /// Paths that were found not to be readable for another reason.
    pub read_errors: Counter,
    /// 1 while something waits and nothing moves.
    pub stalled: Gauge,
    /// Bytes of known files not read yet.
    pub unread_bytes: Gauge,
    /// Age of the oldest of them, in seconds.
    pub oldest_unread: Gauge,
    /// Pods of this node that are known.
    pub pods: Gauge,
    /// Logs whose pod's metadata is awaited.
    pub pods_awaited: Gauge,
    /// Attempts to get metadata that failed.
    pub metadata_errors: Counter,
    /// Logs that were read without their pod's metadata.
    pub metadata_missing: Counter,
    /// Annotations of pods that are not valid: `format` and `multiline`.
    pub invalid_annotations: [Counter; 2],
    /// Records framed.
    pub records: Counter,
    /// Records read again after a restart; they are counted as records too.
    pub replayed: Counter,
    /// Records that are not JSON as far as the query reads them.
    pub malformed: Counter,
    /// Container lines that do not have their format's shape.
    pub malformed_lines: Counter,
    /// Records cut at the maximum size.
    pub truncated: Counter,
    /// Blank lines, which are no records.
    pub blank_lines: Counter,
    /// Records whose invalid UTF-8 or surrogates were replaced.
    pub repaired: Counter,
    /// Values that did not fit the type of their column.
    pub type_mismatch: Counter,
    /// Values that are no JSON, where they were wanted.
    pub bad_values: Counter,
    /// Values of keys beyond `limits.columns`, kept together in one column.
    pub overflow_values: Counter,
    /// Rows whose expression failed and gave NULL.
    pub failed_rows: Counter,
    /// Records that made a worker panic.
    pub panicked: Counter,
    /// Records at which the process died.
    pub aborted: Counter,
    /// Records removed by `WHERE`.
    pub filtered: Counter,
    /// Bytes in flight.
    pub queue_size: Gauge,
    /// Bound on bytes in flight.
    pub queue_capacity: Gauge,
    /// One per output.
    pub outputs: Vec<OutputMetrics>,
}

impl Metrics {
    /// Registers all families under their names of the glossary.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let m = metrics.clone();
        let r = registry.sub_registry_with_prefix("tailrace");
        m.input.register(r);
        m.process.register(r);
        m.output.register(r);
        r.register_with_unit(
            "checkpoint_age",
            "time since the checkpoint was written",
            Unit::Seconds,
            m.checkpoint_age,
        );
        r.register(
            "safe_mode",
            "1 while the agent needs as little as it can, because its last starts ended soon or without progress",
            m.safe_mode,
        );
        metrics
    }

    /// Handles for one pipeline and its outputs.
    pub(crate) fn pipeline(&self, name: &str, outputs: &[String]) -> PipelineMetrics {
        let labels = PipelineLabels {
            pipeline: name.to_owned(),
        };
        let cause = |cause| CauseLabels {
            pipeline: name.to_owned(),
            cause,
        };
        let bound = |bound| BoundLabels {
            pipeline: name.to_owned(),
            bound,
        };
        let Self {
            input,
            process,
            output,
            ..
        } = self;
        PipelineMetrics {
            families: input.clone(),
            lost: input.lost_reasons.get_or_create_owned(&labels),
            lost_files: input.lost_file_reasons.get_or_create_owned(&labels),
            truncations: input.truncations.get_or_create_owned(&bound("known")),
            truncations_unbounded: input.truncations.get_or_create_owned(&bound("unknown")),
            truncated_unread: input.truncated_unread.get_or_create_owned(&labels),
            skipped: input.skipped_reasons.get_or_create_owned(&labels),
            read_bytes: input.read_bytes.get_or_create_owned(&labels),
            files_open: input.files_open.get_or_create_owned(&labels),
            denied_paths: input.denied_paths.get_or_create_owned(&labels),
            permission_errors: input.errors.get_or_create_owned(&cause("permission")),
            read_errors: input.errors.get_or_create_owned(&cause("read")),
            stalled: input.stalled.get_or_create_owned(&labels),
            unread_bytes: input.unread_bytes.get_or_create_owned(&labels),
            oldest_unread: input.oldest_unread.get_or_create_owned(&labels),
            pods: input.pods.get_or_create_owned(&labels),
            pods_awaited: input.pods_awaited.get_or_create_owned(&labels),
            metadata_errors: input.metadata_errors.get_or_create_owned(&labels),
            metadata_missing: input.metadata_missing.get_or_create_owned(&labels),
            invalid_annotations: ["format", "multiline"]
                .map(|kind| input.invalid_annotations.get_or_create_owned(&cause(kind))),
            records: process.records.get_or_create_owned(&labels),
            replayed: process.replayed.get_or_create_owned(&labels),
            malformed: process.malformed.get_or_create_owned(&cause("json")),
            malformed_lines: process.malformed.get_or_create_owned(&cause("line")),
            truncated: process.truncated.get_or_create_owned(&labels),
            blank_lines: process.blank_lines.get_or_create_owned(&labels),
            repaired: process.repaired.get_or_create_owned(&labels),
            type_mismatch: process.type_mismatch.get_or_create_owned(&labels),
            bad_values: process.bad_values.get_or_create_owned(&labels),
            overflow_values: process.overflow_values.get_or_create_owned(&labels),
            failed_rows: process.failed_rows.get_or_create_owned(&labels),
            panicked: process.crashed.get_or_create_owned(&cause("panic")),
            aborted: process.crashed.get_or_create_owned(&cause("abort")),
            filtered: process.filtered.get_or_create_owned(&labels),
            queue_size: output.queue_size.get_or_create_owned(&labels),
            queue_capacity: output.queue_capacity.get_or_create_owned(&labels),
            outputs: outputs
                .iter()
                .map(|name_of| output.of(name, name_of))
                .collect(),
            labels,
        }
    }

    /// Sets whether the agent is in safe mode.
    pub(crate) fn set_safe_mode(&self, is_active: bool) {
        self.safe_mode.set(is_active.into());
    }

    /// Sets the seconds since the checkpoint was last written.
    pub(crate) fn set_checkpoint_age(&self, seconds: i64) {
        self.checkpoint_age.set(seconds);
    }
}

impl PipelineMetrics {
    /// The pipeline has ended: nothing of it is read or in flight.
    pub(crate) fn ended(&self) {
        for gauge in [
            &self.files_open,
            &self.denied_paths,
            &self.stalled,
            &self.unread_bytes,
            &self.oldest_unread,
        ] {
            gauge.set(0);
        }
    }

    /// Counts what the scanner and the query made of one batch.
    pub(crate) fn scanned(&self, stats: &Stats, broken: u64, failed_rows: u64, filtered: u64) {
        // A broken container line is malformed as a record, too: it is counted as a line.
        self.malformed
            .inc_by(stats.malformed.saturating_sub(broken));
        self.overflow_values.inc_by(stats.overflow_members);
        self.bad_values.inc_by(stats.bad_values + stats.bad_members);
        self.repaired.inc_by(stats.repaired);
        self.type_mismatch.inc_by(stats.type_mismatches);
        self.failed_rows.inc_by(failed_rows);
        self.filtered.inc_by(filtered);
    }

    /// Counts records that could not be processed: those that made a worker panic, and those at which the process died.
    pub(crate) fn crashed(&self, panicked: u64, aborted: u64) {
        self.aborted.inc_by(aborted);
        self.panicked.inc_by(panicked);
    }

    /// Counts bytes that are lost for a reason, and that something of a file is: nobody may know how much.
    pub(crate) fn lost(&self, reason: &'static str, bytes: u64) {
        add(&self.lost, reason, bytes);
        add(&self.lost_files, reason, 1);
        let labels = ReasonLabels {
            pipeline: self.labels.pipeline.clone(),
            reason,
        };
        self.families
            .lost_bytes
            .get_or_create(&labels)
            .inc_by(bytes);
        self.families.lost_files.get_or_create(&labels).inc();
    }

    /// Counts a file that was truncated, and how much of it nobody saw at most.
    pub(crate) fn truncation(&self, bytes_max: Option<u64>) {
        match bytes_max {
            Some(bytes) => {
                self.truncations.inc();
                self.truncated_unread.inc_by(bytes);
            }
            None => {
                self.truncations_unbounded.inc();
            }
        }
    }

    /// Counts bytes that are left out.
    pub(crate) fn skipped(&self, reason: &'static str, bytes: u64) {
        add(&self.skipped, reason, bytes);
        let labels = ReasonLabels {
            pipeline: self.labels.pipeline.clone(),
            reason,
        };
        self.families
            .skipped_bytes
            .get_or_create(&labels)
            .inc_by(bytes);
    }

    /// Bytes that are lost, by reason.
    pub(crate) fn lost_by_reason(&self) -> Vec<(&'static str, u64)> {
        list(&self.lost)
    }

    /// Files that are lost, in whole or in part, by reason.
    pub(crate) fn lost_files_by_reason(&self) -> Vec<(&'static str, u64)> {
        list(&self.lost_files)
    }

    /// Bytes that were left out, by reason.
    pub(crate) fn skipped_by_reason(&self) -> Vec<(&'static str, u64)> {
        list(&self.skipped)
    }

    /// Name of the pipeline.
    pub(crate) fn name(&self) -> &str {
        &self.labels.pipeline
    }
}

fn add(reasons: &Mutex<Reasons>, reason: &'static str, bytes: u64) {
    let mut reasons = reasons.lock().unwrap_or_else(PoisonError::into_inner);
    *reasons.entry(reason).or_default() += bytes;
}

fn list(reasons: &Mutex<Reasons>) -> Vec<(&'static str, u64)> {
    let reasons = reasons.lock().unwrap_or_else(PoisonError::into_inner);
    reasons
        .iter()
        .map(|(&reason, &bytes)| (reason, bytes))
        .collect()
}
