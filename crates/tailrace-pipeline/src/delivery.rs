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
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tailrace_input::checkpoint::Counts;

use crate::credit::{Reserved, Share, Shares};
use crate::input_queue::common;
use crate::metrics::OutputMetrics;
use crate::watermark::{Slot, Span, Tracker};

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
    /// What it holds in memory, until its last ticket is resolved.
    share: Mutex<Option<Share>>,
    nacked: AtomicBool,
    rejected: AtomicU64,
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

/// Where the records of a batch were read, for dead-letter entries, and when.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordLocations {
    read_at: Option<Instant>,
    /// Records of one source, and the offset that its bytes are counted from.
    runs: Vec<(Range<u32>, Slot, u64)>,
    /// Per record: its first byte and the one behind its last, from its run's offset.
    bytes: Vec<(u32, u32)>,
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

/// A batch whose requests are handed over in parts: it is acknowledged when all of them are resolved and no more will come.
/// Dropping it is a nack.
#[derive(Debug)]
pub(crate) struct OpenBatch {
    batch: Arc<BatchInFlight>,
    /// One for each output that wants the batch.
    guards: Vec<Ticket>,
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
    /// A batch with so many requests per output; `requests` and `wanted` have one entry per output. A batch
    /// without requests for an output that wants it is acknowledged for it at once.
    pub(crate) fn start(
        tracker: Arc<Tracker>,
        metrics: Vec<OutputMetrics>,
        (spans, locations): (Vec<Span>, RecordLocations),
        filtered: u64,
        (wanted, requests): (&[bool], &[u32]),
        credit: Option<Reserved>,
    ) -> (Arc<Self>, Vec<Vec<Ticket>>) {
        let output = |&count: &u32| OutputInFlight {
            unresolved: AtomicU32::new(count),
            share: Mutex::default(),
            nacked: AtomicBool::new(false),
            rejected: AtomicU64::new(0),
            outcomes: Mutex::default(),
        };
        let outputs = requests.iter().map(output).collect();
        let batch = Arc::new(Self {
            tracker,
            metrics,
            spans,
            locations,
            filtered: AtomicU64::new(filtered),
            outputs,
            credit: Mutex::new(credit),
        });
        let ticket = |output| Ticket::new(&batch, output, None);
        let tickets = requests
            .iter()
            .enumerate()
            .map(|(output, &count)| (0..count).map(|_| ticket(output)).collect())
            .collect();
        for (output, &count) in requests.iter().enumerate() {
            if count == 0 && wanted[output] {
                batch.ack(output);
            }
        }
        (batch, tickets)
    }

    /// Keeps credit for this many bytes only.
    pub(crate) fn shrink_credit(&self, bytes: u64) {
        if let Some(credit) = &mut *self.credit.lock().unwrap_or_else(PoisonError::into_inner) {
            credit.adjust_to(bytes);
        }
    }

    /// Counts so many bytes as held by each output that has tickets.
    pub(crate) fn share(&self, shares: &Arc<Shares>, bytes: u64) {
        for (n, output) in self.outputs.iter().enumerate() {
            if output.unresolved.load(Ordering::Relaxed) > 0 {
                *output.share() = Some(shares.hold(n, bytes));
            }
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
        if last {
            state.share().take();
        }
        if last && !state.nacked.load(Ordering::Relaxed) {
            if let (Some(metrics), Some(at)) = (self.metrics.get(output), self.locations.read_at) {
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
            for (_, counts) in &acked {
                metrics.delivered.inc_by(counts.delivered);
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
    /// A batch for the outputs that want it.
    pub(crate) fn start(
        tracker: Arc<Tracker>,
        metrics: Vec<OutputMetrics>,
        read: (Vec<Span>, RecordLocations),
        wanted: &[bool],
        credit: Option<Reserved>,
    ) -> Self {
        let guards: Vec<u32> = wanted.iter().map(|&wanted| u32::from(wanted)).collect();
        let (batch, guards) =
            BatchInFlight::start(tracker, metrics, read, 0, (wanted, &guards), credit);
        Self {
            batch,
            guards: guards.into_iter().flatten().collect(),
        }
    }

    /// Tickets for more requests to an output that wants the batch.
    pub(crate) fn tickets(&self, output: usize, count: usize, held: HeldMemory) -> Vec<Ticket> {
        let (held, tickets) = (Arc::new(held), count);
        let count = u32::try_from(count).expect("requests of a batch fit u32");
        // No one acknowledges it meanwhile: its guard is not resolved.
        let unresolved = &self.batch.outputs[output].unresolved;
        unresolved.fetch_add(count, Ordering::Relaxed);
        let ticket = |_| Ticket::new(&self.batch, output, Some(Arc::clone(&held)));
        (0..tickets).map(ticket).collect()
    }

    /// Keeps credit for this many bytes of the batch itself only.
    pub(crate) fn shrink_credit(&self, bytes: u64) {
        self.batch.shrink_credit(bytes);
    }

    /// Whether every request so far is resolved.
    pub(crate) fn is_drained(&self) -> bool {
        let mut outputs = self.batch.outputs.iter();
        // Acquire: what its requests held was given back, or is in a moment.
        outputs.all(|output| output.unresolved.load(Ordering::Acquire) <= 1)
    }

    /// No request will follow; so many records were removed by the query.
    pub(crate) fn finish(self, filtered: u64) {
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

impl RecordLocations {
    /// When the bytes were read.
    pub(crate) fn read_at(&mut self, at: Instant) {
        self.read_at = Some(at);
    }

    /// Adds the records that follow: the source and the bytes of each.
    #[inline]
    pub(crate) fn add(&mut self, records: impl Iterator<Item = (Slot, (u64, u64))>) {
        let (least, most) = records.size_hint();
        self.bytes.reserve(most.unwrap_or(least));
        let mut source = None;
        for (slot, (first, end)) in records {
            let base = match source {
                Some((same, base)) if same == slot => base,
                _ => {
                    self.end_run();
                    self.runs.push((self.len()..self.len(), slot, first));
                    source = Some((slot, first));
                    first
                }
            };
            // A chain of partial lines may begin before the record that came first; then only its end is known well.
            let from_base =
                |offset: u64| u32::try_from(offset.saturating_sub(base)).unwrap_or(u32::MAX);
            self.bytes.push((from_base(first), from_base(end)));
        }
        self.end_run();
    }

    /// The records so far that are in no run are in the last one.
    fn end_run(&mut self) {
        let len = self.len();
        if let Some((run, ..)) = self.runs.last_mut() {
            run.end = len;
        }
    }

    /// Which records each source gave, in order, and the offset behind the last byte of each.
    pub(crate) fn ends(&self) -> impl Iterator<Item = (Slot, impl Iterator<Item = u64>)> {
        self.runs.iter().map(|(records, slot, base)| {
            let bytes = &self.bytes[records.start as usize..records.end as usize];
            (
                *slot,
                bytes.iter().map(move |(_, end)| base + u64::from(*end)),
            )
        })
    }

    /// Those of some of the records.
    pub(crate) fn part(&self, records: Range<u32>) -> Self {
        let runs = self.runs.iter().filter_map(|(run, slot, base)| {
            let run = common(run, &records)?;
            Some((run, *slot, *base))
        });
        Self {
            read_at: self.read_at,
            runs: runs.collect(),
            bytes: self
                .bytes
                .get(records.start as usize..records.end as usize)
                .unwrap_or_default()
                .to_vec(),
        }
    }

    /// Which records each source gave, in order, and the bytes of the first one and up to the last one's end.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (Range<u32>, Slot, (u64, u64))> {
        self.runs.iter().filter_map(|(records, slot, base)| {
            let (first, _) = self.bytes.get(records.start as usize)?;
            let (_, end) = self.bytes.get(records.end.checked_sub(1)? as usize)?;
            let bytes = (base + u64::from(*first), base + u64::from(*end));
            Some((records.clone(), *slot, bytes))
        })
    }

    /// Bytes held in memory.
    pub(crate) fn held_bytes(&self) -> usize {
        8 * self.bytes.len()
    }

    fn len(&self) -> u32 {
        u32::try_from(self.bytes.len()).unwrap_or(u32::MAX)
    }

    /// Where a record was read.
    pub(crate) fn of(&self, record: u32) -> Option<(Slot, (u64, u64))> {
        let (_, slot, base) = self.runs.iter().find(|(run, ..)| run.contains(&record))?;
        let (first, end) = self.bytes.get(record as usize)?;
        Some((*slot, (base + u64::from(*first), base + u64::from(*end))))
    }
}

impl RequestTable {
    /// Number of LogRecords.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }
}

#[cfg(test)]
#[path = "delivery/tests.rs"]
mod tests;

#[cfg(test)]
#[path = "delivery/model.rs"]
mod model;
