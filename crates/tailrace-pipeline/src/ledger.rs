//! The ledger of one pipeline (D9): what became of every byte and record, read from the counters
//! that the stages keep. Counts nothing itself.

use crate::pipeline::Pipeline;

/// What became of a pipeline's bytes and records since this process started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PipelineLedger {
    /// Name of the pipeline.
    pub pipeline: String,
    /// Bytes read from the inputs.
    pub read_bytes: u64,
    /// Bytes of known files not read yet.
    pub unread_bytes: u64,
    /// Records framed.
    pub records: u64,
    /// Of these, records an earlier run had read already.
    pub replayed: u64,
    /// Of these, records that are not JSON objects.
    pub malformed: u64,
    /// Of these, records that were cut.
    pub truncated: u64,
    /// Records removed by `WHERE`.
    pub filtered: u64,
    /// One per output.
    pub outputs: Vec<OutputLedger>,
}

/// What became of a pipeline's records at one output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputLedger {
    /// Name of the output.
    pub output: String,
    /// Records accepted.
    pub delivered: u64,
    /// Records the server rejected for good.
    pub rejected: u64,
    /// Requests accepted.
    pub requests: u64,
    /// Compressed bytes of accepted requests.
    pub payload_bytes: u64,
    /// Requests not resolved.
    pub in_flight_requests: u64,
    /// The server refuses this output.
    pub holding: bool,
}

impl PipelineLedger {
    pub(crate) fn of(pipeline: &Pipeline) -> Self {
        let metrics = &pipeline.metrics;
        let gauge = |n: i64| u64::try_from(n).unwrap_or(0);
        let output = |output: &crate::metrics::OutputMetrics| OutputLedger {
            output: output.name.clone(),
            delivered: output.delivered.get(),
            rejected: output.rejected.get(),
            requests: output.requests.get(),
            payload_bytes: output.payload_bytes.get(),
            in_flight_requests: gauge(output.in_flight.get()),
            holding: output.holding.get() != 0,
        };
        // Outcomes before records: what is counted in between shows as in flight, never as a
        // record that nobody can explain.
        let outputs = metrics.outputs.iter().map(output).collect();
        Self {
            pipeline: metrics.name().to_owned(),
            outputs,
            filtered: metrics.filtered.get(),
            malformed: metrics.malformed.get() + metrics.malformed_lines.get(),
            truncated: metrics.truncated.get(),
            replayed: metrics.replayed.get(),
            records: metrics.records.get(),
            read_bytes: metrics.read_bytes.get(),
            unread_bytes: gauge(metrics.unread_bytes.get()),
        }
    }

    /// Records framed that have no final outcome yet at an output: they are in flight.
    pub fn in_flight(&self, output: &OutputLedger) -> u64 {
        self.records
            .saturating_sub(self.filtered + output.delivered + output.rejected)
    }
}
