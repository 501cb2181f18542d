//! Metrics of what is in flight, and of what became of it at each output.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::delivery::delay::{DelayFamily, Delays};
use crate::delivery::failures::Failures;
use crate::labels::{OutputCauseLabels, OutputLabels, OutputReasonLabels, PipelineLabels};

/// The families of all outputs.
#[derive(Debug, Clone, Default)]
pub(crate) struct OutputFamilies {
    pub(crate) queue_size: Family<PipelineLabels, Gauge>,
    pub(crate) queue_capacity: Family<PipelineLabels, Gauge>,
    pub(crate) in_flight: Family<OutputLabels, Gauge>,
    pub(crate) delivered: Family<OutputLabels, Counter>,
    pub(crate) rejected: Family<OutputReasonLabels, Counter>,
    pub(crate) dead_lettered: Family<OutputLabels, Counter>,
    pub(crate) dropped: Family<OutputReasonLabels, Counter>,
    pub(crate) retries: Family<OutputCauseLabels, Counter>,
    pub(crate) holding: Family<OutputLabels, Gauge>,
    pub(crate) detached: Family<OutputLabels, Gauge>,
    pub(crate) payload_bytes: Family<OutputLabels, Counter>,
    pub(crate) encoded_bytes: Family<OutputLabels, Counter>,
    pub(crate) requests: Family<OutputLabels, Counter>,
    pub(crate) duration: DurationFamily,
    pub(crate) odd_responses: Family<OutputLabels, Counter>,
    pub(crate) delay: DelayFamily,
    // For the ledger alone; here, so that a pipeline goes on with them that takes another's place.
    pub(crate) acked_before: Family<OutputLabels, Counter>,
    pub(crate) sent_again: Family<OutputLabels, Counter>,
    pub(crate) earlier: Family<OutputLabels, Counter>,
}

/// Histograms have no default.
#[derive(Debug, Clone)]
pub(crate) struct DurationFamily(Family<OutputLabels, Histogram>);

impl Default for DurationFamily {
    fn default() -> Self {
        Self(Family::new_with_constructor(|| {
            Histogram::new(DURATION_BOUNDS)
        }))
    }
}

/// Seconds that an attempt takes: from a server on this machine to the longest timeout that is usual.
const DURATION_BOUNDS: [f64; 11] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0,
];

/// Counters of one output.
#[derive(Debug, Clone)]
pub(crate) struct OutputMetrics {
    families: OutputFamilies,
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
    /// The last failed attempt, and when the next one is due.
    pub failures: Failures,
    /// Compressed bytes of accepted requests.
    pub payload_bytes: Counter,
    /// The same bytes before compression.
    pub encoded_bytes: Counter,
    /// Accepted requests.
    pub requests: Counter,
    /// How long each attempt took, whatever came of it.
    pub duration: Histogram,
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

impl OutputFamilies {
    /// Registers them under their names of the glossary.
    pub(crate) fn register(&self, r: &mut Registry) {
        let m = self.clone();
        let bytes = || Unit::Bytes;
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
        r.register_with_unit(
            "output_encoded",
            "bytes accepted, before compression",
            bytes(),
            m.encoded_bytes,
        );
        r.register("output_requests", "requests accepted", m.requests);
        r.register_with_unit(
            "output_request_duration",
            "time of one attempt to send a request, whatever came of it",
            Unit::Seconds,
            m.duration.0,
        );
        r.register(
            "output_odd_responses",
            "requests accepted with an answer that is no OTLP response in protobuf",
            m.odd_responses,
        );
        r.register_with_unit(
            "output_delivery_delay",
            "time from reading a batch to its acknowledgement",
            Unit::Seconds,
            m.delay.histograms,
        );
    }

    /// Handles for one output.
    pub(crate) fn of(&self, pipeline: &str, name: &str) -> OutputMetrics {
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
            failures: Failures::default(),
            payload_bytes: self.payload_bytes.get_or_create_owned(&labels),
            encoded_bytes: self.encoded_bytes.get_or_create_owned(&labels),
            requests: self.requests.get_or_create_owned(&labels),
            duration: self.duration.0.get_or_create_owned(&labels),
            odd_responses: self.odd_responses.get_or_create_owned(&labels),
            delay: self.delay.of(&labels),
            labels,
        }
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
