//! The ledger of one pipeline (D9): what became of every byte and record, read from the counters
//! that the stages keep, and the check that they agree. Counts nothing itself.

use std::time::SystemTime;

use tracing::error;

use crate::delivery::delay::DelaySums;
use crate::delivery::metrics::OutputMetrics;
use crate::metrics::PipelineMetrics;

/// What became of a pipeline's bytes and records since this process started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PipelineLedger {
    /// Name of the pipeline.
    pub pipeline: String,
    /// Bytes read from the inputs.
    pub read_bytes: u64,
    /// Bytes of known files not read yet.
    pub unread_bytes: u64,
    /// How many seconds ago the oldest of them was first seen.
    pub oldest_unread_s: u64,
    /// Bytes that could not be read, by reason.
    pub lost_bytes: Vec<(&'static str, u64)>,
    /// Files of which such bytes were, or that nobody saw before they were gone, by reason.
    pub lost_files: Vec<(&'static str, u64)>,
    /// What nobody saw of files before they were truncated.
    pub truncated_unread: TruncatedUnread,
    /// Bytes left out, as configured or because they are NULs, by reason.
    pub skipped_bytes: Vec<(&'static str, u64)>,
    /// Bytes in flight: chunk buffers and requests.
    pub in_flight_bytes: u64,
    /// Records framed.
    pub records: u64,
    /// Of these, records an earlier run had read already.
    pub replayed: u64,
    /// Of these, records that are not JSON as far as the query reads them.
    pub malformed: u64,
    /// Of these, records that were cut.
    pub truncated: u64,
    /// Records removed by `WHERE`.
    pub filtered: u64,
    /// One per output.
    pub outputs: Vec<OutputLedger>,
}

/// Files that were truncated: what was written to them after the last look is gone, and only a bound is known of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TruncatedUnread {
    /// Times a file was truncated.
    pub truncations: u64,
    /// How many bytes nobody saw at most, as far as a bound is known.
    pub bytes_max: u64,
    /// Of these times, those of which no bound is known.
    pub unbounded: u64,
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
    /// Records set aside in the dead-letter file.
    pub dead_lettered: u64,
    /// Of the pipeline's records, those that this output had acknowledged before a restart, less those
    /// that it was sent twice.
    pub acked_before: i64,
    /// Records of an earlier pipeline of this name in this process that have no outcome here: they were read
    /// again after a reload, or the output was not there.
    pub earlier: u64,
    /// Of the dropped records, those that were not read for this output; the query may have removed some.
    pub missed: u64,
    /// Inputs that the output reads by itself because it is behind the others.
    pub detached: u64,
    /// Records given up because the output was behind and the file is gone, because the server refused everything and `on_refused` is `drop`, or the
    /// dead-letter file was full and `dead_letter.on_full` is `drop`.
    pub dropped: u64,
    /// Requests accepted.
    pub requests: u64,
    /// Compressed bytes of accepted requests.
    pub payload_bytes: u64,
    /// The same bytes before compression.
    pub encoded_bytes: u64,
    /// Requests not resolved.
    pub in_flight_requests: u64,
    /// The server refuses this output.
    pub holding: bool,
    /// When an attempt last failed, and why. It stays after a success. The text quotes the server.
    pub last_error: Option<(SystemTime, String)>,
    /// When the next attempt is due, if the output waits for one.
    pub retry_at: Option<SystemTime>,
    /// Refused records that wait to be compared with more, while everything else is accepted.
    pub compared: u64,
    /// From reading a batch to its acknowledgement.
    pub delay: DelaySums,
}

impl PipelineLedger {
    pub(crate) fn of(metrics: &PipelineMetrics, in_flight_bytes: u64) -> Self {
        let gauge = |n: i64| u64::try_from(n).unwrap_or(0);
        let missed =
            |output: &OutputMetrics| output.dropped_not_required.get() + output.dropped_gone.get();
        let output = |output: &OutputMetrics| OutputLedger {
            output: output.name.clone(),
            delivered: output.delivered.get(),
            rejected: output.rejected.get(),
            dead_lettered: output.dead_lettered.get(),
            missed: missed(output),
            acked_before: output.acked_before.get().cast_signed()
                - output.sent_again.get().cast_signed(),
            earlier: output.earlier.get(),
            detached: gauge(output.detached.get()),
            dropped: output.dropped_refused.get() + output.dropped_full.get() + missed(output),
            requests: output.requests.get(),
            payload_bytes: output.payload_bytes.get(),
            encoded_bytes: output.encoded_bytes.get(),
            in_flight_requests: gauge(output.in_flight.get()),
            holding: output.holding.get() != 0,
            last_error: output.failures.last(),
            retry_at: output.failures.retry_at(),
            compared: output.failures.records_compared(),
            delay: output.delay.sums(),
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
            in_flight_bytes,
            read_bytes: metrics.read_bytes.get(),
            unread_bytes: gauge(metrics.unread_bytes.get()),
            oldest_unread_s: gauge(metrics.oldest_unread.get()),
            lost_bytes: metrics.lost_by_reason(),
            lost_files: metrics.lost_files_by_reason(),
            truncated_unread: TruncatedUnread {
                truncations: metrics.truncations.get() + metrics.truncations_unbounded.get(),
                bytes_max: metrics.truncated_unread.get(),
                unbounded: metrics.truncations_unbounded.get(),
            },
            skipped_bytes: metrics.skipped_by_reason(),
        }
    }

    /// Counts what has no outcome as an earlier pipeline's. Nothing may be in flight: the pipeline has ended, or
    /// has not begun.
    pub(crate) fn count_earlier(&self, outputs: &[OutputMetrics]) {
        for (output, metrics) in self.outputs.iter().zip(outputs) {
            metrics.earlier.inc_by(self.in_flight(output));
        }
    }

    /// Records framed that have no final outcome yet at an output: they are in flight.
    pub fn in_flight(&self, output: &OutputLedger) -> u64 {
        self.records.saturating_sub(self.resolved(output))
    }

    /// Records that have their final outcome at an output.
    fn resolved(&self, output: &OutputLedger) -> u64 {
        let refused = output.rejected + output.dead_lettered + output.dropped;
        let resolved = self.filtered + output.delivered + refused + output.earlier;
        resolved.saturating_add_signed(output.acked_before)
    }

    /// The outputs whose records do not add up although nothing is in flight: how many records
    /// have no outcome, or (negative) have one too many.
    fn imbalances(&self) -> impl Iterator<Item = (&str, i128)> {
        let quiet = self.in_flight_bytes == 0;
        let missing = |output| i128::from(self.records) - i128::from(self.resolved(output));
        let is_quiet = move |output: &&OutputLedger| quiet && output.detached == 0;
        let outputs = self.outputs.iter().filter(is_quiet);
        outputs
            .map(move |output| (output, missing(output)))
            .filter(|(output, missing)| !(-i128::from(output.missed)..=0).contains(missing))
            .map(|(output, missing)| (output.output.as_str(), missing))
    }
}

/// Looks again and again whether the ledger of each pipeline balances.
#[derive(Debug, Default)]
pub(crate) struct SelfCheck {
    last: Vec<PipelineLedger>,
    reported: Vec<PipelineLedger>,
}

impl SelfCheck {
    /// Logs an error for each pipeline in which nothing has moved since the last look, nothing is
    /// in flight, and a record has no outcome or two. Each such state is reported once.
    pub(crate) fn look(&mut self, mut now: Vec<PipelineLedger>) {
        // What may change while nothing moves.
        for ledger in &mut now {
            ledger.oldest_unread_s = 0;
            for output in &mut ledger.outputs {
                (output.last_error, output.retry_at, output.compared) = (None, None, 0);
            }
        }
        for ledger in now.iter().filter(|ledger| self.last.contains(ledger)) {
            if self.reported.contains(ledger) {
                continue;
            }
            for (output, missing) in ledger.imbalances() {
                error!(
                    pipeline = ledger.pipeline,
                    output,
                    records = ledger.records,
                    filtered = ledger.filtered,
                    missing = i64::try_from(missing).unwrap_or(i64::MAX),
                    "the ledger does not balance: this is a bug in the agent, please report it \
                     with this line"
                );
                self.reported
                    .retain(|other| other.pipeline != ledger.pipeline);
                self.reported.push(ledger.clone());
            }
        }
        self.last = now;
    }

    /// The pipelines whose ledger was found not to balance.
    #[cfg(test)]
    fn reported(&self) -> Vec<&str> {
        self.reported
            .iter()
            .map(|ledger| ledger.pipeline.as_str())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(records: u64, delivered: u64, in_flight_bytes: u64) -> PipelineLedger {
        let output = OutputLedger {
            output: "otlp".to_owned(),
            delivered,
            ..OutputLedger::default()
        };
        PipelineLedger {
            pipeline: "app".to_owned(),
            records,
            filtered: 1,
            in_flight_bytes,
            outputs: vec![output],
            ..PipelineLedger::default()
        }
    }

    fn looked(states: &[PipelineLedger]) -> usize {
        let mut check = SelfCheck::default();
        for state in states {
            check.look(vec![state.clone()]);
        }
        check.reported().len()
    }

    #[test]
    fn a_balance_that_stays_wrong_is_reported() {
        let (missing, twice) = (ledger(10, 8, 0), ledger(10, 10, 0));
        assert_eq!(looked(&[missing.clone(), missing]), 1);
        assert_eq!(looked(&[twice.clone(), twice]), 1);
    }

    #[test]
    fn a_balance_that_is_right_or_in_flight_or_moving_is_not() {
        let right = ledger(10, 9, 0);
        assert_eq!(looked(&[right.clone(), right]), 0);
        let in_flight = ledger(10, 8, 4096);
        assert_eq!(looked(&[in_flight.clone(), in_flight]), 0);
        assert_eq!(looked(&[ledger(10, 7, 0), ledger(10, 8, 0)]), 0);
    }
}
