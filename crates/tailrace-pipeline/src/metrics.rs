//! Own metrics: counters of one pipeline, as handles held beside the code that counts, and the
//! ledger that is read from them. The names are those of the glossary; labels are the names of
//! pipelines, inputs and outputs and closed enums, never a path. Formats nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use tailrace_scan::Stats;

use crate::delivery::delay::{self, Delays};

/// The metric families of all pipelines.
#[derive(Debug, Clone, Default)]
pub(crate) struct Metrics {
    read_bytes: Family<PipelineLabels, Counter>,
    lost_bytes: Family<ReasonLabels, Counter>,
    lost_files: Family<ReasonLabels, Counter>,
    truncations: Family<BoundLabels, Counter>,
    truncated_unread: Family<PipelineLabels, Counter>,
    skipped_bytes: Family<ReasonLabels, Counter>,
    files_open: Family<PipelineLabels, Gauge>,
    denied_paths: Family<PipelineLabels, Gauge>,
    stalled: Family<PipelineLabels, Gauge>,
    unread_bytes: Family<PipelineLabels, Gauge>,
    oldest_unread: Family<PipelineLabels, Gauge>,
    pods: Family<PipelineLabels, Gauge>,
    pods_awaited: Family<PipelineLabels, Gauge>,
    metadata_errors: Family<PipelineLabels, Counter>,
    metadata_missing: Family<PipelineLabels, Counter>,
    records: Family<PipelineLabels, Counter>,
    replayed: Family<PipelineLabels, Counter>,
    malformed: Family<CauseLabels, Counter>,
    truncated: Family<PipelineLabels, Counter>,
    repaired: Family<PipelineLabels, Counter>,
    type_mismatch: Family<PipelineLabels, Counter>,
    bad_values: Family<PipelineLabels, Counter>,
    overflow_values: Family<PipelineLabels, Counter>,
    failed_rows: Family<PipelineLabels, Counter>,
    crashed: Family<CauseLabels, Counter>,
    filtered: Family<PipelineLabels, Counter>,
    queue_size: Family<PipelineLabels, Gauge>,
    queue_capacity: Family<PipelineLabels, Gauge>,
    in_flight: Family<OutputLabels, Gauge>,
    delivered: Family<OutputLabels, Counter>,
    rejected: Family<OutputReasonLabels, Counter>,
    dead_lettered: Family<OutputLabels, Counter>,
    dropped: Family<OutputReasonLabels, Counter>,
    retries: Family<OutputCauseLabels, Counter>,
    holding: Family<OutputLabels, Gauge>,
    detached: Family<OutputLabels, Gauge>,
    payload_bytes: Family<OutputLabels, Counter>,
    requests: Family<OutputLabels, Counter>,
    odd_responses: Family<OutputLabels, Counter>,
    delay: DelayFamily,
    checkpoint_age: Gauge,
    safe_mode: Gauge,
    // For the ledger alone; here, so that a pipeline goes on with them that takes another's place.
    acked_before: Family<OutputLabels, Counter>,
    sent_again: Family<OutputLabels, Counter>,
    earlier: Family<OutputLabels, Counter>,
    lost_reasons: Family<PipelineLabels, Arc<Mutex<Reasons>>>,
    lost_file_reasons: Family<PipelineLabels, Arc<Mutex<Reasons>>>,
    skipped_reasons: Family<PipelineLabels, Arc<Mutex<Reasons>>>,
}

/// Histograms have no default.
#[derive(Debug, Clone)]
struct DelayFamily(Family<OutputLabels, Histogram>);

impl Default for DelayFamily {
    fn default() -> Self {
        Self(Family::new_with_constructor(delay::histogram))
    }
}

/// Counters of one pipeline.
#[derive(Debug, Clone)]
pub(crate) struct PipelineMetrics {
    families: Metrics,
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

/// Counters of one output.
#[derive(Debug, Clone)]
pub(crate) struct OutputMetrics {
    families: Metrics,
    labels: OutputLabels,
    /// Name of the output.
    pub name: String,
    /// Requests handed over and not resolved.
    pub in_flight: Gauge,
    /// Records accepted.
    pub delivered: Counter,
    /// Records the server rejected in a partial success.
    pub rejected: Counter,
    /// Records set aside in the dead-letter file.
    pub dead_lettered: Counter,
    /// Records dropped because the server refused everything.
    pub dropped_refused: Counter,
    /// Records dropped because the dead-letter file was full.
    pub dropped_full: Counter,
    /// Records dropped because the output is not required and the file is gone.
    pub dropped_not_required: Counter,
    /// Records dropped because the file is gone that a detached output was to read.
    pub dropped_gone: Counter,
    /// Records read again after a restart that this output had acknowledged before; for the ledger.
    pub acked_before: Counter,
    /// Records that this output was sent twice, because it was detached within an unfinished record; likewise.
    pub sent_again: Counter,
    /// Records framed by an earlier pipeline of this name in this process that have no outcome at this output:
    /// they were read again after it, or the output was not there; likewise.
    pub earlier: Counter,
    /// 1 while the output is behind the shared reading and reads by itself.
    pub detached: Gauge,
    /// 1 while the output holds because the server refuses it.
    pub holding: Gauge,
    /// Compressed bytes of accepted requests.
    pub payload_bytes: Counter,
    /// Accepted requests.
    pub requests: Counter,
    /// Accepted requests that were answered with something that is no OTLP response.
    pub odd_responses: Counter,
    /// From reading a batch to its acknowledgement.
    pub delay: Delays,
}

/// What a detached output misses because it cannot be read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Miss {
    /// The file was deleted, or is no file, and the output is not required.
    NotRequired,
    /// The file was truncated, or deleted files held more than they may.
    Gone,
}

/// Bytes or files by reason.
type Reasons = BTreeMap<&'static str, u64>;

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct PipelineLabels {
    pipeline: String,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ReasonLabels {
    pipeline: String,
    reason: &'static str,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct BoundLabels {
    pipeline: String,
    bound: &'static str,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CauseLabels {
    pipeline: String,
    cause: &'static str,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OutputLabels {
    pipeline: String,
    output: String,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OutputReasonLabels {
    pipeline: String,
    output: String,
    reason: &'static str,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OutputCauseLabels {
    pipeline: String,
    output: String,
    cause: &'static str,
}

impl Metrics {
    /// Registers all families under their names of the glossary.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let m = metrics.clone();
        let r = registry.sub_registry_with_prefix("tailrace");
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
            "bytes left out, as configured or because they are NULs",
            bytes(),
            m.skipped_bytes,
        );
        r.register("input_files_open", "files held open", m.files_open);
        r.register(
            "input_denied_paths",
            "files and directories that the agent may not read",
            m.denied_paths,
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
        r.register_with_unit("queue_size", "bytes in flight", bytes(), m.queue_size);
        r.register_with_unit(
            "queue_capacity",
            "bound on bytes in flight",
            bytes(),
            m.queue_capacity,
        );
        r.register(
            "output_in_flight_requests",
            "requests not resolved",
            m.in_flight,
        );
        r.register(
            "output_delivered_records",
            "records accepted by the output",
            m.delivered,
        );
        r.register(
            "output_rejected_records",
            "records refused by the output",
            m.rejected,
        );
        r.register(
            "output_dead_lettered_records",
            "records set aside in the dead-letter file",
            m.dead_lettered,
        );
        r.register(
            "output_dropped_records",
            "records given up, as configured",
            m.dropped,
        );
        r.register("output_retries", "attempts that were repeated", m.retries);
        r.register(
            "output_holding",
            "1 while the server refuses this output",
            m.holding,
        );
        r.register(
            "output_detached",
            "inputs that the output reads by itself because it is behind the others",
            m.detached,
        );
        r.register_with_unit(
            "output_sent",
            "compressed bytes accepted",
            bytes(),
            m.payload_bytes,
        );
        r.register("output_requests", "requests accepted", m.requests);
        r.register(
            "output_odd_responses",
            "requests accepted with an answer that is no OTLP response in protobuf",
            m.odd_responses,
        );
        r.register_with_unit(
            "output_delivery_delay",
            "time from reading a batch to its acknowledgement",
            Unit::Seconds,
            m.delay.0,
        );
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
        PipelineMetrics {
            families: self.clone(),
            lost: self.lost_reasons.get_or_create_owned(&labels),
            lost_files: self.lost_file_reasons.get_or_create_owned(&labels),
            truncations: self.truncations.get_or_create_owned(&bound("known")),
            truncations_unbounded: self.truncations.get_or_create_owned(&bound("unknown")),
            truncated_unread: self.truncated_unread.get_or_create_owned(&labels),
            skipped: self.skipped_reasons.get_or_create_owned(&labels),
            read_bytes: self.read_bytes.get_or_create_owned(&labels),
            files_open: self.files_open.get_or_create_owned(&labels),
            denied_paths: self.denied_paths.get_or_create_owned(&labels),
            stalled: self.stalled.get_or_create_owned(&labels),
            unread_bytes: self.unread_bytes.get_or_create_owned(&labels),
            oldest_unread: self.oldest_unread.get_or_create_owned(&labels),
            pods: self.pods.get_or_create_owned(&labels),
            pods_awaited: self.pods_awaited.get_or_create_owned(&labels),
            metadata_errors: self.metadata_errors.get_or_create_owned(&labels),
            metadata_missing: self.metadata_missing.get_or_create_owned(&labels),
            records: self.records.get_or_create_owned(&labels),
            replayed: self.replayed.get_or_create_owned(&labels),
            malformed: self.malformed.get_or_create_owned(&cause("json")),
            malformed_lines: self.malformed.get_or_create_owned(&cause("line")),
            truncated: self.truncated.get_or_create_owned(&labels),
            repaired: self.repaired.get_or_create_owned(&labels),
            type_mismatch: self.type_mismatch.get_or_create_owned(&labels),
            bad_values: self.bad_values.get_or_create_owned(&labels),
            overflow_values: self.overflow_values.get_or_create_owned(&labels),
            failed_rows: self.failed_rows.get_or_create_owned(&labels),
            panicked: self.crashed.get_or_create_owned(&cause("panic")),
            aborted: self.crashed.get_or_create_owned(&cause("abort")),
            filtered: self.filtered.get_or_create_owned(&labels),
            queue_size: self.queue_size.get_or_create_owned(&labels),
            queue_capacity: self.queue_capacity.get_or_create_owned(&labels),
            outputs: outputs
                .iter()
                .map(|output| self.output(name, output))
                .collect(),
            labels,
        }
    }

    fn output(&self, pipeline: &str, name: &str) -> OutputMetrics {
        let labels = OutputLabels {
            pipeline: pipeline.to_owned(),
            output: name.to_owned(),
        };
        let of = |reason| OutputReasonLabels {
            pipeline: pipeline.to_owned(),
            output: name.to_owned(),
            reason,
        };
        let dropped = |reason| self.dropped.get_or_create_owned(&of(reason));
        OutputMetrics {
            families: self.clone(),
            name: name.to_owned(),
            in_flight: self.in_flight.get_or_create_owned(&labels),
            delivered: self.delivered.get_or_create_owned(&labels),
            rejected: self.rejected.get_or_create_owned(&of("partial_success")),
            dead_lettered: self.dead_lettered.get_or_create_owned(&labels),
            dropped_refused: dropped("refused"),
            dropped_full: dropped("dead_letter_full"),
            dropped_not_required: dropped("not_required"),
            dropped_gone: dropped("gone"),
            acked_before: self.acked_before.get_or_create_owned(&labels),
            sent_again: self.sent_again.get_or_create_owned(&labels),
            earlier: self.earlier.get_or_create_owned(&labels),
            detached: self.detached.get_or_create_owned(&labels),
            holding: self.holding.get_or_create_owned(&labels),
            payload_bytes: self.payload_bytes.get_or_create_owned(&labels),
            requests: self.requests.get_or_create_owned(&labels),
            odd_responses: self.odd_responses.get_or_create_owned(&labels),
            delay: Delays::new(self.delay.0.get_or_create_owned(&labels)),
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
            &self.queue_size,
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

impl OutputMetrics {
    /// Counts records that cannot be read again for this output.
    pub(crate) fn missed(&self, miss: Miss, records: u64) {
        match miss {
            Miss::NotRequired => self.dropped_not_required.inc_by(records),
            Miss::Gone => self.dropped_gone.inc_by(records),
        };
    }

    /// Counts an attempt that will be repeated.
    pub(crate) fn retried(&self, cause: &'static str) {
        let OutputLabels { pipeline, output } = self.labels.clone();
        let labels = OutputCauseLabels {
            pipeline,
            output,
            cause,
        };
        self.families.retries.get_or_create(&labels).inc();
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
