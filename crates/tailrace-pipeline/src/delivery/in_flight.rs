//! Who is in flight: tickets, and the argument that nothing is lost.
//!
//! *At least once.* A span is registered with the [`Tracker`] when it is framed, before any
//! request is made from it. It is acknowledged for an output only in [`BatchInFlight`]'s last step:
//! every ticket of that output for that batch was acked. A ticket that is dropped unresolved (a
//! panic, an aborted task, a shutdown that ran out of time) is a nack: its batch is never acknowledged
//! for that output, the watermark stays below it, and the next start reads it again. So a
//! checkpoint can only lag behind the truth, never run ahead of it.
//!
//! Takes spans and outcomes, gives acknowledgements. Never sends, never encodes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tailrace_inputs::checkpoint::Counts;

use crate::delivery::credit::{Reserved, Share, Shares};
use crate::delivery::encoding::EncodedRequest;
use crate::delivery::metrics::OutputMetrics;
use crate::delivery::record_locations::RecordLocations;
use crate::watermark::{Span, Tracker};

/// What is shared by all tickets of one batch.
#[derive(Debug)]
pub(crate) struct BatchInFlight {
    tracker: Arc<Tracker>,
    /// One per output, or none.
    metrics: Vec<OutputMetrics>,
    spans: Vec<Span>,
    locations: RecordLocations,
    /// Records that no branch of the query kept.
    filtered: AtomicU64,
    outputs: Vec<OutputInFlight>,
    /// Freed with the last ticket.
    credit: Mutex<Option<Reserved>>,
}

#[derive(Debug)]
struct OutputInFlight {
    unresolved: AtomicU32,
    has_requests: AtomicBool,
    /// What it holds in memory, until its last ticket is resolved.
    share: Mutex<Option<Share>>,
    nacked: AtomicBool,
    rejected: AtomicU64,
    /// Records that were counted as delivered before all of the batch is resolved.
    accepted: AtomicU64,
    /// The records that were neither delivered nor rejected in a partial success; a record has the
    /// worst outcome of its rows.
    outcomes: Mutex<BTreeMap<u32, RecordOutcome>>,
}

/// What became of a record that is not delivered; the worse, the later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RecordOutcome {
    /// It is in the dead-letter file.
    DeadLettered,
    /// The server refused everything, and `on_refused` is `drop`.
    Refused,
    /// The dead-letter file was full, and `on_full` is `drop`.
    DeadLetterFull,
}

/// The duty to resolve one request of one batch for one output. Dropping it is a nack.
#[must_use = "a ticket that is dropped unresolved is a nack"]
#[derive(Debug)]
pub(crate) struct Ticket {
    batch: Arc<BatchInFlight>,
    output: usize,
    resolved: bool,
    /// Of a part of the batch: freed with its last ticket.
    _held: Option<Arc<HeldMemory>>,
}

/// What a part of a batch holds in memory, for one output.
#[derive(Debug)]
pub(crate) struct HeldMemory {
    /// Given back when every output has resolved the part.
    pub(crate) _credit: Arc<Reserved>,
    pub(crate) _share: Option<Share>,
}

/// A batch of which requests may still be made, in parts or by a stage that holds it. It is acknowledged when it is sealed
/// and all of them are resolved; dropping it is a nack.
#[derive(Debug)]
pub(crate) struct OpenBatch {
    batch: Arc<BatchInFlight>,
    /// One for each output that wants the batch.
    guards: Vec<Ticket>,
}

/// A request to submit.
pub(crate) type Ready = (EncodedRequest, Ticket);

impl BatchInFlight {
    /// A batch that is open: requests may be made of it until it is sealed, however long that takes. `wanted` has one entry
    /// per output.
    pub(crate) fn open(
        tracker: Arc<Tracker>,
        metrics: Vec<OutputMetrics>,
        (spans, locations): (Vec<Span>, RecordLocations),
        wanted: &[bool],
        credit: Option<Reserved>,
    ) -> OpenBatch {
        let output = |&wanted: &bool| OutputInFlight {
            // The guard of an open batch counts as a request.
            unresolved: AtomicU32::new(u32::from(wanted)),
            has_requests: AtomicBool::new(false),
            share: Mutex::default(),
            nacked: AtomicBool::new(false),
            rejected: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            outcomes: Mutex::default(),
        };
        let batch = Arc::new(Self {
            tracker,
            metrics,
            spans,
            locations,
            filtered: AtomicU64::new(0),
            outputs: wanted.iter().map(output).collect(),
            credit: Mutex::new(credit),
        });
        let wanted = wanted.iter().enumerate().filter(|(_, wanted)| **wanted);
        let guards = wanted.map(|(output, _)| Ticket::new(&batch, output, None));
        let guards = guards.collect();
        OpenBatch { batch, guards }
    }

    fn resolve(&self, output: usize, acked: bool, rejected: u64) {
        let state = &self.outputs[output];
        state.rejected.fetch_add(rejected, Ordering::Relaxed);
        if !acked {
            state.nacked.store(true, Ordering::Relaxed);
        }
        // AcqRel: the last resolver sees what all the others wrote.
        let last = state.unresolved.fetch_sub(1, Ordering::AcqRel) == 1;
        if last {
            state.share().take();
        }
        if last && !state.nacked.load(Ordering::Relaxed) {
            let metrics = self.metrics.get(output);
            let metrics = metrics.filter(|_| state.has_requests.load(Ordering::Relaxed));
            if let (Some(metrics), Some(at)) = (metrics, self.locations.read_at) {
                metrics.delay.observe(at.elapsed());
            }
            self.ack(output);
        }
    }

    fn ack(&self, output: usize) {
        let mut rejected = self.outputs[output].rejected.load(Ordering::Relaxed);
        let outcomes = self.outputs[output].outcomes();
        let of = |outcome| outcomes.values().filter(|known| **known == outcome).count() as u64;
        let refused = of(RecordOutcome::Refused);
        let full = of(RecordOutcome::DeadLetterFull);
        let (mut dead_lettered, mut dropped) = (of(RecordOutcome::DeadLettered), refused + full);
        drop(outcomes);
        let mut filtered = self.filtered.load(Ordering::Relaxed);
        // Only sums reach the checkpoint, and a partial success does not say which records it
        // rejected: outcomes are charged to the spans in order, so that the sums are exact.
        let charged = |span: &Span| {
            let filtered_here = filtered.min(span.records);
            filtered -= filtered_here;
            let mut delivered = span.records - filtered_here;
            let mut charge = |left: &mut u64| {
                let here = (*left).min(delivered);
                (*left, delivered) = (*left - here, delivered - here);
                here
            };
            let counts = Counts {
                filtered: filtered_here,
                dropped: charge(&mut dropped),
                dead_lettered: charge(&mut dead_lettered),
                rejected: charge(&mut rejected),
                delivered,
            };
            (*span, counts)
        };
        let acked: Vec<(Span, Counts)> = self.spans.iter().map(charged).collect();
        if let Some(metrics) = self.metrics.get(output) {
            let delivered: u64 = acked.iter().map(|(_, counts)| counts.delivered).sum();
            let counted = self.outputs[output].accepted.load(Ordering::Relaxed);
            metrics.delivered.inc_by(delivered.saturating_sub(counted));
            for (_, counts) in &acked {
                metrics.rejected.inc_by(counts.rejected);
                metrics.dead_lettered.inc_by(counts.dead_lettered);
            }
            metrics.dropped_refused.inc_by(refused);
            metrics.dropped_full.inc_by(full);
        }
        self.tracker.ack(output, &acked);
    }
}

impl OpenBatch {
    /// Tickets for more requests to an output that wants the batch; `held` is given back with the last of them.
    pub(crate) fn tickets(
        &self,
        output: usize,
        count: usize,
        held: Option<HeldMemory>,
    ) -> Vec<Ticket> {
        let (held, tickets) = (held.map(Arc::new), count);
        let count = u32::try_from(count).expect("requests of a batch fit u32");
        let state = &self.batch.outputs[output];
        // No one acknowledges it meanwhile: its guard is not resolved.
        state.unresolved.fetch_add(count, Ordering::Relaxed);
        if count > 0 {
            state.has_requests.store(true, Ordering::Relaxed);
        }
        let ticket = |_| Ticket::new(&self.batch, output, held.clone());
        (0..tickets).map(ticket).collect()
    }

    /// Keeps credit for this many bytes of the batch itself only.
    pub(crate) fn shrink_credit(&self, bytes: u64) {
        let credit = self.batch.credit.lock();
        if let Some(credit) = &mut *credit.unwrap_or_else(PoisonError::into_inner) {
            credit.adjust_to(bytes);
        }
    }

    /// Counts so many bytes as held by each output that wants the batch.
    pub(crate) fn share(&self, shares: &Arc<Shares>, bytes: u64) {
        for guard in &self.guards {
            let held = shares.hold(guard.output, bytes);
            *self.batch.outputs[guard.output].share() = Some(held);
        }
    }

    /// Whether every request so far is resolved.
    pub(crate) fn is_drained(&self) -> bool {
        let mut outputs = self.batch.outputs.iter();
        // Acquire: what its requests held was given back, or is in a moment.
        outputs.all(|output| output.unresolved.load(Ordering::Acquire) <= 1)
    }

    /// No request will follow; so many records were removed by the query. For an output without requests the batch is
    /// acknowledged at once.
    pub(crate) fn seal(self, filtered: u64) {
        self.batch.filtered.store(filtered, Ordering::Relaxed);
        for guard in self.guards {
            guard.ack(0);
        }
    }
}

impl Ticket {
    fn new(batch: &Arc<BatchInFlight>, output: usize, held: Option<Arc<HeldMemory>>) -> Self {
        Self {
            batch: Arc::clone(batch),
            output,
            resolved: false,
            _held: held,
        }
    }

    /// So many records of the batch are delivered, whatever becomes of the others: they are counted at once. Each may be
    /// named once, and none with another outcome.
    pub(crate) fn accepted(&self, records: u64) {
        let state = &self.batch.outputs[self.output];
        state.accepted.fetch_add(records, Ordering::Relaxed);
        if let Some(metrics) = self.batch.metrics.get(self.output) {
            metrics.delivered.inc_by(records);
        }
    }

    /// The request was accepted, but for `rejected` of its records.
    pub(crate) fn ack(mut self, rejected: u64) {
        self.resolved = true;
        self.batch.resolve(self.output, true, rejected);
    }

    /// A record of the batch is not delivered.
    pub(crate) fn note(&self, record: u32, outcome: RecordOutcome) {
        let mut outcomes = self.batch.outputs[self.output].outcomes();
        let worst = outcomes.entry(record).or_insert(outcome);
        *worst = outcome.max(*worst);
    }

    /// Where a record was read: the file, and its bytes there.
    pub(crate) fn location(&self, record: u32) -> Option<(PathBuf, (u64, u64))> {
        let (slot, bytes) = self.batch.locations.of(record)?;
        Some((self.batch.tracker.path(slot)?, bytes))
    }

    /// Where the records of this ticket's batch came from, for people.
    pub(crate) fn origin(&self) -> String {
        let bytes: u64 = self
            .batch
            .spans
            .iter()
            .map(|span| span.end - span.start)
            .sum();
        let source_range = |span: &Span| {
            let path = self.batch.tracker.path(span.slot).unwrap_or_default();
            format!("{}:{}-{}", path.display(), span.start, span.end)
        };
        match self.batch.spans.as_slice() {
            [] => "nowhere".to_owned(),
            [span] => source_range(span),
            [first, rest @ ..] => {
                format!(
                    "{} and {} more, {bytes} bytes",
                    source_range(first),
                    rest.len()
                )
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

impl OutputInFlight {
    fn share(&self) -> MutexGuard<'_, Option<Share>> {
        self.share.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn outcomes(&self) -> MutexGuard<'_, BTreeMap<u32, RecordOutcome>> {
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod model;
