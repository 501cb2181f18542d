//! One input's way from bytes to records: its batches in order, and a framer for each of its
//! sources. Framing is sequential in an input (a partial chain goes on in the next batch), so a
//! worker frames under the queue's lock, and looks for the prefilter's texts while it has the lines at hand; the rest, the bulk
//! of the work, it does without.

mod for_whom;
mod overflow;
mod part;
mod sources;
mod spans;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tailrace_frame::{Framer, Frames, Stream};
use tailrace_scan::{NewlineSearcher, Searched};

use crate::delivery::credit::Reserved;
use crate::delivery::in_flight::Ready;
use crate::delivery::order::{Orders, Turns};
use crate::delivery::record_locations::RecordLocations;
use crate::input::batch::{BatchQueue, RawBatch, SourceEvent};
use crate::input::facts::{Facts, FactsConfig};
use crate::metrics::PipelineMetrics;
use crate::watermark::{Parted, Reading, Slot, SourceHead, Span, Tracker};
use for_whom::ForWhom;
pub(crate) use overflow::Overflow;
use sources::{FramedSource, RestEnds, Sources};

/// Why framing leaves bytes out, besides what inputs say: what is beyond the longest record, and streams that are not wanted.
pub(crate) const OVERSIZE: &str = "oversize";
pub(crate) const EXCLUDED: &str = "excluded";

/// Bytes that records put together from pieces may take in one framed batch, but for the last one: what many sources hold
/// of unfinished records may end in the same batch.
const SIDE_BYTES_MAX: usize = 2 * 1024 * 1024;

/// One input of a pipeline, as the workers see it.
#[derive(Debug)]
pub(crate) struct InputQueue {
    /// Batches that wait for a worker.
    pub batches: BatchQueue,
    frame: Arc<tailrace_frame::Config>,
    facts: FactsConfig,
    tracker: Arc<Tracker>,
    sources: Mutex<Sources>,
    orders: Arc<Orders<Ready>>,
    mode: QueueMode,
    /// How many records a framed batch has at most, but for the last lines' more: what is made of them takes memory by the
    /// record, however short they are.
    records_max: usize,
}

/// Whose records an input queue frames.
#[derive(Debug)]
enum QueueMode {
    /// Those of the outputs that take part in the shared reading; changes under the lock of the sources.
    Shared(Vec<AtomicBool>),
    /// Those of one output, which is behind.
    CatchUp(usize),
}

/// Consecutive records of one source.
#[derive(Debug)]
pub(crate) struct SourceRun {
    /// Indices of the records.
    pub records: Range<u32>,
    /// What is known of their source.
    pub facts: Arc<Facts>,
}

/// A framed batch: records as ranges of two buffers, and where they came from.
#[derive(Debug, Default)]
pub(crate) struct Framed {
    /// Records and their pieces; its side buffer has moved to `buffers`.
    pub frames: Frames,
    /// The chunk buffer and the side buffer.
    pub buffers: Vec<Bytes>,
    /// What the newline search over the chunk buffer found besides newlines.
    pub searched: Option<Searched>,
    /// Source runs, covering all records in order.
    pub runs: Vec<SourceRun>,
    /// Byte spans of the batch, registered with the tracker.
    pub spans: Vec<Span>,
    /// Records in parts between which others lie.
    pub parted: Vec<Parted>,
    /// Where each record was read.
    pub locations: RecordLocations,
    /// Per output: some of it is for this output.
    pub wanted: Vec<bool>,
    /// Per output: none of it is for this output, which acknowledged all of it in an earlier run.
    pub acked_before: Vec<bool>,
    /// Its places in the order of outputs that write lines.
    pub turns: Turns<Ready>,
    /// It was read again, for one output; the shared reading has counted it.
    pub is_catch_up: bool,
    /// Records that an earlier run had read already.
    pub replayed: u64,
    /// Credit of the chunk.
    pub credit: Option<Reserved>,
    /// When the bytes were read, in nanoseconds since the Unix epoch.
    pub observed_ns: i64,
}

impl InputQueue {
    /// A queue that frames as configured.
    pub(crate) fn new(
        frame: tailrace_frame::Config,
        facts: FactsConfig,
        tracker: Arc<Tracker>,
        orders: Arc<Orders<Ready>>,
        bytes_waiting_max: u64,
        records_max: usize,
        overflow: Overflow,
    ) -> Self {
        let attached = (0..orders.outputs()).map(|_| AtomicBool::new(true));
        Self {
            mode: QueueMode::Shared(attached.collect()),
            batches: BatchQueue::new(bytes_waiting_max),
            frame: Arc::new(frame),
            facts,
            tracker,
            sources: Mutex::new(Sources::new(overflow)),
            orders,
            records_max,
        }
    }

    /// An input queue for what one output reads again.
    pub(crate) fn catching_up(self, output: usize) -> Self {
        Self {
            mode: QueueMode::CatchUp(output),
            ..self
        }
    }

    /// Which outputs take part in the shared reading.
    pub(crate) fn attached(&self) -> Vec<bool> {
        let load = |attached: &AtomicBool| attached.load(Ordering::Acquire);
        match &self.mode {
            QueueMode::Shared(attached) => attached.iter().map(load).collect(),
            QueueMode::CatchUp(_) => Vec::new(),
        }
    }

    /// From the next batch on an output takes part in the shared reading, or no more, if `agreed` still says so then:
    /// no batch is framed meanwhile.
    pub(crate) fn attach(
        &self,
        output: usize,
        attach: bool,
        agreed: impl FnOnce() -> bool,
    ) -> bool {
        let _nothing_is_framed = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        let agreed = agreed();
        if let (true, QueueMode::Shared(attached)) = (agreed, &self.mode) {
            attached[output].store(attach, Ordering::Release);
        }
        agreed
    }

    /// Does something if an output takes part in the shared reading; it neither begins nor ends to meanwhile.
    pub(crate) fn if_attached(&self, output: usize, then: impl FnOnce()) {
        let _nothing_is_framed = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        if self.attached().get(output) == Some(&true) {
            then();
        }
    }

    /// Whether nothing is held of a source, and nothing will be skipped: whoever frames on from here makes the same records.
    pub(crate) fn is_between_records(&self, slot: Slot) -> bool {
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        sources.is_between_records(slot)
    }

    /// Forgets all sources: nothing of them is to be framed any more.
    pub(crate) fn forget_sources(&self) {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        sources.clear();
    }

    /// Frames the oldest batch that waits, or as much of it as may be one framed batch, and says whether some of it is
    /// left; `None` if there is none. `searcher` finds the newlines of its buffer, `memory` is taken for the records.
    pub(crate) fn frame_next(
        &self,
        searcher: NewlineSearcher<'_>,
        memory: &mut Frames,
    ) -> Option<(Framed, bool)> {
        // Poisoned by a panic in a framer: what it left is not built upon, and the agent ends.
        let mut sources = self.sources.lock().ok()?;
        let batch = self.batches.pop()?;
        let frames = std::mem::take(memory);
        let (framed, rest) = self.frame(&mut sources, batch, searcher, frames);
        let is_cut = rest.is_some();
        if let Some(rest) = rest {
            self.batches.put_back(rest);
        }
        Some((framed, is_cut))
    }

    fn frame(
        &self,
        sources: &mut Sources,
        mut batch: RawBatch,
        searcher: NewlineSearcher<'_>,
        frames: Frames,
    ) -> (Framed, Option<RawBatch>) {
        batch.room = None;
        let bytes = batch.bytes.clone();
        let mut search = searcher.over(&bytes);
        let mut framed = Framed {
            frames,
            observed_ns: batch.observed_ns,
            ..Framed::default()
        };
        framed.locations.read_at(batch.read_at);
        let mut events = std::mem::take(&mut batch.events).into_iter();
        // Where the buffer is framed to, and what is left of the event at hand.
        let (mut framed_to, mut left) = (0, None);
        let mut moved = Moved::default();
        let mut for_whom = ForWhom::new(self.attached(), batch.cuts);
        while left.is_none()
            && framed.frames.side.len() <= SIDE_BYTES_MAX
            && let Some(event) = events.next()
        {
            let slot = match event {
                SourceEvent::Opened {
                    slot,
                    replaces,
                    path,
                    offset,
                    mid_line,
                    replay_to,
                } => {
                    if let Some(replaced) = replaces {
                        sources.remove(replaced);
                    }
                    let mut framer = Framer::new(&self.frame, offset, mid_line).numbered(slot.0);
                    self.begin_within(slot, offset, &mut framer);
                    let facts = self.facts.of(&path);
                    sources.insert(
                        slot,
                        FramedSource::new(framer, &self.frame, facts, replay_to),
                    );
                    continue;
                }
                SourceEvent::Continues {
                    slot,
                    earlier,
                    head,
                } => {
                    let mark = FrameMark::of(&framed.frames);
                    sources.continue_from(slot, earlier, &head, &mut framed.frames);
                    if let Some(source) = sources.get_mut(slot) {
                        framed.add_spans(source, &mark);
                    }
                    moved.add(sources, slot);
                    continue;
                }
                SourceEvent::Chunk { slot, .. } | SourceEvent::Finished { slot, .. } => slot,
                SourceEvent::Quiet { slot } => sources.holder(slot),
            };
            let mark = FrameMark::of(&framed.frames);
            if let SourceEvent::Finished { is_cut, .. } = event {
                sources.finish(slot, is_cut, &mut framed.frames);
                moved.finished.push(slot);
            }
            let Some(source) = sources.get_mut(slot) else {
                continue;
            };
            match event {
                SourceEvent::Chunk { start, end, .. } => {
                    let position = (source.framer.offset(), end - start);
                    let admitted = for_whom.admit(&self.tracker, slot, position, source.replay_to);
                    framed_to = start;
                    if admitted > 0 {
                        self.facts.refresh(&mut source.facts);
                        source.reframe(&self.frame, &mut framed.frames);
                        let (chunk, max) = (start..start + admitted, self.records_max);
                        framed_to =
                            source.push(&bytes, chunk, &mut search, max, &mut framed.frames);
                    }
                    left = (framed_to < end).then_some(SourceEvent::Chunk {
                        slot,
                        start: framed_to,
                        end,
                    });
                }
                SourceEvent::Quiet { .. } => source.framer.flush_joins(&mut framed.frames),
                _ => {}
            }
            framed.add_spans(source, &mark);
            moved.add(sources, slot);
            sources.limit_held();
        }
        sources.end_batch();
        let mut left = left.into_iter().chain(events).peekable();
        let is_cut = left.peek().is_some();
        // Of a batch that is cut, the next one searches the rest again.
        framed.searched = (!is_cut).then(|| search.finish());
        framed.credit = if is_cut {
            batch.cut(framed_to, left)
        } else {
            batch.credit.take()
        };
        let rest = is_cut.then_some(batch);
        self.report(&mut framed, &moved);
        let side = Bytes::from(std::mem::take(&mut framed.frames.side));
        framed.buffers = vec![bytes, side];
        (framed, rest)
    }
}

impl InputQueue {
    /// Where the source is read again from within a record, the framer knows it, as far as the checkpoint does.
    fn begin_within(&self, slot: Slot, offset: u64, framer: &mut Framer) {
        if !matches!(self.mode, QueueMode::Shared(_)) {
            return;
        }
        for rest in self.tracker.rests(slot) {
            let streams = [Stream::None, Stream::Stdout, Stream::Stderr];
            if let Some(stream) = streams.get(usize::from(rest.stream))
                && offset < rest.end
            {
                framer.begin_within(*stream, rest.is_acked);
            }
        }
    }

    /// Reports to the tracker what a batch was framed into.
    fn report(&self, framed: &mut Framed, moved: &Moved) {
        framed.merge_spans();
        if matches!(self.mode, QueueMode::Shared(_)) {
            // Before a watermark can move beyond them.
            for &(slot, ends) in &moved.rests {
                self.tracker.note_rests(slot, ends);
            }
        }
        self.register(framed, &moved.heads);
        for &slot in &moved.finished {
            // An output that catches up finishes only what the shared reading has.
            self.tracker.finish(slot);
        }
    }

    /// Registers the spans of a batch, and notes for whom it is.
    fn register(&self, framed: &mut Framed, heads: &[SourceHead]) {
        let attached = self.attached();
        let reading = match &self.mode {
            QueueMode::Shared(_) => Reading::Shared(&attached),
            QueueMode::CatchUp(output) => Reading::CatchUp(*output),
        };
        if !framed.frames.records.is_empty() {
            framed.turns = self.orders.take(|output| match reading {
                Reading::Shared(attached) => attached[output],
                Reading::CatchUp(only) => output == only,
            });
        }
        self.tracker.note_parted(reading, &framed.parted);
        framed.wanted = self.tracker.framed(reading, &framed.spans, heads);
        framed.is_catch_up = matches!(reading, Reading::CatchUp(_));
        let pairs = attached.iter().zip(&framed.wanted);
        framed.acked_before = pairs
            .map(|(&attached, &wanted)| attached && !wanted)
            .collect();
    }
}

/// What framing a batch moves in the tracker.
#[derive(Debug, Default)]
struct Moved {
    heads: Vec<SourceHead>,
    rests: Vec<RestEnds>,
    /// Sources that have ended.
    finished: Vec<Slot>,
}

impl Moved {
    /// Adds what the last push of a source moved.
    fn add(&mut self, sources: &mut Sources, slot: Slot) {
        sources.heads(slot, &mut self.heads);
        sources.rests(slot, &mut self.rests);
    }
}

/// How much a [`Frames`] held before a push.
struct FrameMark {
    records: usize,
    skips: usize,
}

impl FrameMark {
    fn of(frames: &Frames) -> Self {
        Self {
            records: frames.records.len(),
            skips: frames.skips.len(),
        }
    }
}

impl Framed {
    /// The memory of its records for another batch, unless only an extraordinary one needs so much.
    pub(crate) fn take_memory(&mut self) -> Frames {
        const KEPT: usize = 32 * 1024;
        let mut frames = std::mem::take(&mut self.frames);
        let of_records = frames.pieces.capacity().max(frames.records.capacity());
        if of_records.max(frames.skips.capacity()) > KEPT {
            return Frames::default();
        }
        frames.clear();
        frames
    }

    /// Counts what the batch was framed into.
    pub(crate) fn count(&self, metrics: &PipelineMetrics) {
        let stats = &self.frames.stats;
        metrics.records.inc_by(stats.records);
        metrics.malformed_lines.inc_by(stats.broken);
        metrics.truncated.inc_by(stats.truncated);
        metrics.blank_lines.inc_by(stats.blank_lines);
        metrics.replayed.inc_by(self.replayed);
        if stats.oversize_bytes > 0 {
            metrics.skipped(OVERSIZE, stats.oversize_bytes);
        }
        if stats.nul_bytes > 0 {
            metrics.skipped("nul", stats.nul_bytes);
        }
        if stats.excluded_bytes > 0 {
            metrics.skipped(EXCLUDED, stats.excluded_bytes);
        }
    }
}
