//! Who is in flight: tickets, and the argument that nothing is lost.
//!
//! *At least once.* A span is registered with the [`Tracker`] when it is framed, before any
//! request is made from it. It settles for an output only in [`BatchInFlight`]'s last step:
//! every ticket of that output for that batch was acked. A ticket that is dropped unresolved (a
//! panic, an aborted task, a shutdown that ran out of time) is a nack: its batch never settles
//! for that output, the watermark stays below it, and the next start reads it again. So a
//! checkpoint can only lag behind the truth, never run ahead of it.
//!
//! Takes spans and outcomes, gives settlements. Never sends, never encodes.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::credit::Reserved;
use crate::metrics::OutputMetrics;
use crate::watermark::{Counts, Span, Tracker};

/// What is shared by all tickets of one batch.
#[derive(Debug)]
pub(crate) struct BatchInFlight {
    tracker: Arc<Tracker>,
    /// One per output, or none.
    metrics: Vec<OutputMetrics>,
    spans: Vec<Span>,
    /// Records that no branch of the query kept.
    filtered: u64,
    outputs: Vec<OutputInFlight>,
    /// Freed with the last ticket.
    credit: Mutex<Option<Reserved>>,
}

#[derive(Debug)]
struct OutputInFlight {
    unresolved: AtomicU32,
    nacked: AtomicBool,
    rejected: AtomicU64,
}

/// The duty to resolve one request of one batch for one output. Dropping it is a nack.
#[must_use = "a ticket that is dropped unresolved is a nack"]
#[derive(Debug)]
pub(crate) struct Ticket {
    batch: Arc<BatchInFlight>,
    output: usize,
    resolved: bool,
}

/// Where the LogRecords of a request end and which record each came from, so that a request can
/// be cut, and a refusal be traced to its source, without scanning anything twice.
#[derive(Debug, Default)]
pub(crate) struct RequestTable {
    /// End offset of each LogRecord in the uncompressed request.
    pub ends: Vec<u32>,
    /// Index in the batch of the record each LogRecord came from, ascending.
    pub records: Vec<u32>,
}

impl BatchInFlight {
    /// A batch with so many requests per output; `requests` has one entry per output. A batch
    /// without requests for an output settles for it at once.
    pub(crate) fn start(
        tracker: Arc<Tracker>,
        metrics: Vec<OutputMetrics>,
        spans: Vec<Span>,
        filtered: u64,
        requests: &[u32],
        credit: Option<Reserved>,
    ) -> (Arc<Self>, Vec<Vec<Ticket>>) {
        let output = |&count: &u32| OutputInFlight {
            unresolved: AtomicU32::new(count),
            nacked: AtomicBool::new(false),
            rejected: AtomicU64::new(0),
        };
        let outputs = requests.iter().map(output).collect();
        let batch = Arc::new(Self {
            tracker,
            metrics,
            spans,
            filtered,
            outputs,
            credit: Mutex::new(credit),
        });
        let ticket = |output| Ticket {
            batch: Arc::clone(&batch),
            output,
            resolved: false,
        };
        let tickets = requests
            .iter()
            .enumerate()
            .map(|(output, &count)| (0..count).map(|_| ticket(output)).collect())
            .collect();
        for (output, &count) in requests.iter().enumerate() {
            if count == 0 {
                batch.settle(output);
            }
        }
        (batch, tickets)
    }

    /// Keeps credit for this many bytes only.
    pub(crate) fn shrink_credit(&self, bytes: u64) {
        if let Some(credit) = &mut *self.credit.lock().unwrap_or_else(PoisonError::into_inner) {
            credit.shrink(bytes);
        }
    }

    fn resolve(&self, output: usize, acked: bool, rejected: u64) {
        let state = &self.outputs[output];
        state.rejected.fetch_add(rejected, Ordering::Relaxed);
        if !acked {
            state.nacked.store(true, Ordering::Relaxed);
        }
        // AcqRel: the last resolver sees what all the others wrote.
        let last = state.unresolved.fetch_sub(1, Ordering::AcqRel) == 1;
        if last && !state.nacked.load(Ordering::Relaxed) {
            self.settle(output);
        }
    }

    fn settle(&self, output: usize) {
        let mut rejected = self.outputs[output].rejected.load(Ordering::Relaxed);
        let mut filtered = self.filtered;
        // Only sums reach the checkpoint, and a partial success does not say which records it
        // rejected: outcomes are charged to the spans in order, so that the sums are exact.
        let outcome = |span: &Span| {
            let filtered_here = filtered.min(span.records);
            filtered -= filtered_here;
            let rejected_here = rejected.min(span.records - filtered_here);
            rejected -= rejected_here;
            let delivered = span.records - filtered_here - rejected_here;
            let counts = Counts {
                delivered,
                filtered: filtered_here,
                rejected: rejected_here,
            };
            (*span, counts)
        };
        let settled: Vec<(Span, Counts)> = self.spans.iter().map(outcome).collect();
        if let Some(metrics) = self.metrics.get(output) {
            for (_, counts) in &settled {
                metrics.delivered.inc_by(counts.delivered);
                metrics.rejected.inc_by(counts.rejected);
            }
        }
        self.tracker.settle(output, &settled);
    }
}

impl Ticket {
    /// The request was accepted, but for `rejected` of its records.
    pub(crate) fn ack(mut self, rejected: u64) {
        self.resolved = true;
        self.batch.resolve(self.output, true, rejected);
    }

    /// Where the records of this ticket's batch came from, for people.
    pub(crate) fn origin(&self) -> String {
        let bytes: u64 = self
            .batch
            .spans
            .iter()
            .map(|span| span.end - span.start)
            .sum();
        let place = |span: &Span| {
            let path = self.batch.tracker.path(span.slot).unwrap_or_default();
            format!("{}:{}-{}", path.display(), span.start, span.end)
        };
        match self.batch.spans.as_slice() {
            [] => "nowhere".to_owned(),
            [span] => place(span),
            [first, rest @ ..] => {
                format!("{} and {} more, {bytes} bytes", place(first), rest.len())
            }
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.resolved {
            self.batch.resolve(self.output, false, 0);
        }
    }
}

impl RequestTable {
    /// The records of the batch that it holds rows of: first and last.
    pub(crate) fn record_range(&self) -> (u32, u32) {
        let first = self.records.first().copied().unwrap_or(0);
        (first, self.records.last().copied().unwrap_or(first))
    }

    /// Number of LogRecords.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }
}

#[cfg(test)]
#[path = "delivery/tests.rs"]
mod tests;
