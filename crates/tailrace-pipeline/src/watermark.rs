//! Watermarks: how far each output has acknowledged each source (a file generation).
//!
//! Takes spans as they are framed, acknowledgements as requests are resolved, and gives for every
//! (source, output) the *watermark*: the lowest byte that is not acknowledged for that output. Only
//! watermarks reach the checkpoint. Never reads a file, never looks at a clock.
//!
//! Each output has its own view of a source: what was framed for it, and what of that it acknowledged. As
//! long as an output takes part in the shared reading its view moves with it; while it is detached its
//! catch-up reading moves it, up to where the shared reading is (`input/catch_up.rs`).
//!
//! The invariants of a view, which `tests` checks against a map of single bytes:
//!
//! 1. Every byte below `framed_to` lies in exactly one registered span, or is held by the framer
//!    at or above `held_from` (an unfinished line or partial chain), or is below the watermark.
//! 2. A watermark never moves back.
//! 3. A watermark is at most the start of any span unacknowledged for that output, at most
//!    `held_from`, and at most `framed_to`.
//! 4. No watermark is within a record: where other records lie between the parts of one, it waits at the first part
//!    until it can move beyond the last one. Only where records in parts overlap without a gap for more than
//!    `parted_span_max` bytes does it move into them, since the file would not be read on otherwise.
//!
//! So a restart that reads from the watermark reads every byte that was not acknowledged, and no part of a record alone.

mod behind;
mod checkpoint;
mod parts;
mod undelivered;
mod view;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tailrace_inputs::FileId;
use tailrace_inputs::checkpoint::{Counts, Rest};

use crate::checkpointer::Due;

pub(crate) use behind::Behind;
pub(crate) use checkpoint::CheckpointEntry;
use checkpoint::{Departed, Files};

/// Number of a source in a [`Tracker`]; given once, never reused while the agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Slot(pub u32);

/// A byte range of one source, `[start, end)`, that is acknowledged as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// The source.
    pub slot: Slot,
    /// First byte.
    pub start: u64,
    /// Byte behind the last.
    pub end: u64,
    /// Records whose last piece lies in this span.
    pub records: u64,
}

/// What the follower reports about a source when it opens it.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    /// Identity of the file; `None` for inputs that are not files.
    pub id: Option<FileId>,
    /// Generation of the file: grows by one with each truncation.
    pub generation: u32,
    /// Path at opening.
    pub path: Arc<Path>,
    /// The path of its input that the file had, if no glob names `path`.
    pub origin: Option<Arc<Path>>,
    /// First byte that will be read.
    pub offset: u64,
    /// Size of the file at opening, in bytes.
    pub size: u64,
    /// Bytes below this offset were read before the restart: their records are replayed.
    pub replay_to: u64,
    /// What the checkpoint knows of each output, by index; an output it does not know starts at
    /// `offset`.
    pub resume: Vec<Resumed>,
}

/// Where an earlier run left one output.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Resumed {
    /// Its watermark, at or above the offset that is read from.
    pub watermark: u64,
    /// Outcomes below it.
    pub counts: Counts,
}

/// Watermarks of all sources of one pipeline.
#[derive(Debug)]
pub(crate) struct Tracker {
    outputs: usize,
    /// How many bytes of records in parts may overlap before a watermark moves into them.
    parted_span_max: u64,
    next: AtomicU32,
    state: Mutex<State>,
    /// Asked for a checkpoint where a source is new, once the pipeline runs.
    due: OnceLock<Arc<Due>>,
}

/// All that changes, under one lock.
#[derive(Debug, Default)]
struct State {
    sources: BTreeMap<Slot, Box<TrackedSource>>,
    files: Files,
    departed: Departed,
}

#[derive(Debug)]
struct TrackedSource {
    opening: Opening,
    /// Where the file itself is, if its path is a link.
    target: Option<Arc<Path>>,
    read_to: u64,
    size: u64,
    /// How far the shared reading is framed.
    head: Head,
    /// One per output.
    views: Vec<OutputView>,
    finished: bool,
    /// The source whose records may go on in this one.
    continues: Option<Slot>,
    /// Its file is gone, not just renamed.
    gone: bool,
    /// Records of several parts that began in the source before, one for each stream at most.
    rests: Vec<Rest>,
}

/// How far a reading is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head {
    framed_to: u64,
    held_from: Option<u64>,
    /// Records framed so far.
    records: u64,
}

/// A source as one output sees it.
#[derive(Debug)]
struct OutputView {
    mark: Resumed,
    head: Head,
    /// Spans not yet below the watermark, by start.
    spans: BTreeMap<u64, OpenSpan>,
    /// Records in parts, as far as they are not below the watermark.
    parted: Vec<Parted>,
    /// As [`Tracker::parted_span_max`].
    parted_span_max: u64,
}

/// A record in parts with other records between them, from its first byte in a source to its last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parted {
    /// The source.
    pub slot: Slot,
    /// First byte of the first part.
    pub start: u64,
    /// Behind the last part.
    pub end: u64,
}

#[derive(Debug)]
struct OpenSpan {
    end: u64,
    records: u64,
    /// The outcome once acknowledged.
    acked: Option<Counts>,
}

/// How far a source is framed by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SourceHead {
    /// The source.
    pub slot: Slot,
    /// Behind the last framed byte.
    pub framed_to: u64,
    /// The lowest of its bytes that a framer holds.
    pub held_from: Option<u64>,
}

/// Who frames.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reading<'a> {
    /// The shared reading, for the outputs that take part in it.
    Shared(&'a [bool]),
    /// The catch-up reading of one output.
    CatchUp(usize),
}

impl Tracker {
    /// A tracker for a pipeline with so many outputs. `parted_span_max` must be well below what may be read of a source
    /// beyond its watermark, in bytes.
    pub(crate) fn new(outputs: usize, parted_span_max: u64) -> Self {
        Self {
            outputs,
            parted_span_max,
            next: AtomicU32::new(0),
            state: Mutex::default(),
            due: OnceLock::new(),
        }
    }

    /// From now on asks for a checkpoint by this.
    pub(crate) fn asks(&self, due: &Arc<Due>) {
        let _ = self.due.set(Arc::clone(due));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes a source whose marks may be others then; nothing where it is not known.
    fn change(&self, slot: Slot, change: impl FnOnce(&mut TrackedSource)) {
        let State { sources, files, .. } = &mut *self.lock();
        if let Some(source) = sources.get_mut(&slot) {
            change(source);
            files.changed.insert(slot);
        }
    }

    /// Adds a source under a new slot.
    pub(crate) fn open(&self, opening: Opening) -> Slot {
        let slot = Slot(self.next.fetch_add(1, Ordering::Relaxed));
        let fresh = Resumed {
            watermark: opening.offset,
            counts: Counts::default(),
        };
        let head = Head {
            framed_to: opening.offset,
            held_from: None,
            records: 0,
        };
        let view = |output| {
            let resumed: Resumed = opening.resume.get(output).copied().unwrap_or(fresh);
            OutputView {
                mark: Resumed {
                    watermark: resumed.watermark.max(opening.offset),
                    ..resumed
                },
                head,
                spans: BTreeMap::new(),
                parted: Vec::new(),
                parted_span_max: self.parted_span_max,
            }
        };
        let source = TrackedSource {
            read_to: opening.offset,
            size: opening.size,
            head,
            views: (0..self.outputs).map(view).collect(),
            finished: false,
            continues: None,
            gone: false,
            rests: Vec::new(),
            target: None,
            opening,
        };
        let mut state = self.lock();
        let State { sources, files, .. } = &mut *state;
        files.changed.insert(slot);
        if let Some(key) = source.key() {
            files.slots.entry(key).or_default().push(slot);
        }
        let is_new = source.read_to == 0;
        sources.insert(slot, Box::new(source));
        drop(state);
        if let (true, Some(due)) = (is_new, self.due.get()) {
            due.ask();
        }
        slot
    }

    /// Notes that the source was read up to `to`.
    pub(crate) fn read(&self, slot: Slot, to: u64) {
        self.change(slot, |source| {
            source.read_to = source.read_to.max(to);
            source.size = source.size.max(to);
        });
    }

    /// Bytes read but not acknowledged, for each output; nothing for a source that is not known.
    pub(crate) fn unacked_by_output(&self, slot: Slot) -> Vec<u64> {
        self.lock()
            .sources
            .get(&slot)
            .map_or_else(Vec::new, |source| {
                let unacked =
                    |view: &OutputView| source.read_to.saturating_sub(view.mark.watermark);
                source.views.iter().map(unacked).collect()
            })
    }

    /// Whether every byte that was read of a source is acknowledged for all outputs, and none is held of a record that is
    /// not complete.
    pub(crate) fn is_all_acknowledged(&self, slot: Slot) -> bool {
        let state = self.lock();
        let Some(source) = state.sources.get(&slot) else {
            return false;
        };
        let is_done = |view: &OutputView| {
            view.mark.watermark == source.read_to && view.head.held_from.is_none()
        };
        source.head.held_from.is_none() && source.views.iter().all(is_done)
    }

    /// The path of a source.
    pub(crate) fn path(&self, slot: Slot) -> Option<PathBuf> {
        self.lock()
            .sources
            .get(&slot)
            .map(|source| source.opening.path.to_path_buf())
    }

    /// What identifies the file of a source: none where it is no file.
    pub(crate) fn identity(&self, slot: Slot) -> Option<(FileId, u32)> {
        let state = self.lock();
        let opening = &state.sources.get(&slot)?.opening;
        Some((opening.id?, opening.generation))
    }

    /// Bytes below this offset were read by an earlier run.
    pub(crate) fn replay_to(&self, slot: Slot) -> u64 {
        self.lock()
            .sources
            .get(&slot)
            .map_or(0, |source| source.opening.replay_to)
    }

    /// By output, whether it takes part and needs the byte at the offset `at` of a source, and up to where that is so for all of
    /// them.
    pub(crate) fn needed_by(&self, attached: &[bool], slot: Slot, at: u64) -> (Vec<bool>, u64) {
        let state = self.lock();
        let Some(source) = state.sources.get(&slot) else {
            return (attached.to_vec(), u64::MAX);
        };
        let marks = source.views.iter().zip(attached);
        let marks = marks.map(|(view, attached)| attached.then_some(view.mark.watermark));
        let needed = marks
            .clone()
            .map(|mark| mark.is_some_and(|mark| mark <= at));
        let until = marks.flatten().filter(|mark| *mark > at).min();
        (needed.collect(), until.unwrap_or(u64::MAX))
    }

    /// Registers framed spans as unacknowledged, then moves the framer's heads: for each source, how
    /// far it is framed and the lowest byte its framer still holds. Gives for each output whether any
    /// of these bytes are for it: not if it does not take part, or acknowledged all of them in an earlier run.
    pub(crate) fn framed(
        &self,
        reading: Reading<'_>,
        spans: &[Span],
        heads: &[SourceHead],
    ) -> Vec<bool> {
        let takes_part = |output| match reading {
            Reading::Shared(attached) => attached[output],
            Reading::CatchUp(only) => output == only,
        };
        let outputs: Vec<usize> = (0..self.outputs).filter(|&n| takes_part(n)).collect();
        let is_shared = matches!(reading, Reading::Shared(_));
        let mut wanted = vec![false; self.outputs];
        let State { sources, files, .. } = &mut *self.lock();
        for span in spans {
            let Some(source) = sources.get_mut(&span.slot) else {
                continue;
            };
            if is_shared {
                source.head.records += span.records;
            }
            for &output in &outputs {
                wanted[output] |= source.views[output].register(span);
            }
        }
        for &SourceHead {
            slot,
            framed_to,
            held_from,
        } in heads
        {
            let Some(source) = sources.get_mut(&slot) else {
                continue;
            };
            let views = outputs.iter();
            for &output in views {
                source.views[output].head.move_to(framed_to, held_from);
                source.views[output].advance();
            }
            if is_shared {
                source.head.move_to(framed_to, held_from);
            }
            files.changed.insert(slot);
        }
        wanted
    }

    /// Acknowledges spans for one output; `counts` are the outcomes of each span's records.
    pub(crate) fn ack(&self, output: usize, spans: &[(Span, Counts)]) {
        let State { sources, files, .. } = &mut *self.lock();
        for (span, counts) in spans {
            let Some(source) = sources.get_mut(&span.slot) else {
                continue;
            };
            let view = &mut source.views[output];
            let open = view.spans.get_mut(&span.start);
            // Those that were given up meanwhile are acknowledged.
            if let Some(open) = open.filter(|open| open.acked.is_none()) {
                debug_assert_eq!(open.end, span.end, "a span is acknowledged whole");
                open.acked = Some(*counts);
                view.advance();
                files.changed.insert(span.slot);
            }
        }
    }

    /// Marks a source that will not grow again.
    pub(crate) fn finish(&self, slot: Slot) {
        if let Some(source) = self.lock().sources.get_mut(&slot) {
            source.finished = true;
        }
    }

    /// The file's fingerprint covers more bytes now.
    pub(crate) fn identify(&self, slot: Slot, id: FileId) {
        self.change(slot, |source| source.opening.id = Some(id));
    }

    /// The file has another name.
    pub(crate) fn rename(&self, slot: Slot, path: Arc<Path>, origin: Option<Arc<Path>>) {
        self.change(slot, |source| {
            source.opening.path = path;
            source.opening.origin = origin;
            source.target = None;
        });
    }

    /// The path of the file is a link, and the file itself is at `target`.
    pub(crate) fn linked(&self, slot: Slot, target: Arc<Path>) {
        self.change(slot, |source| source.target = Some(target));
    }

    /// The file was seen with this size.
    pub(crate) fn resize(&self, slot: Slot, size: u64) {
        self.change(slot, |source| source.size = size);
    }

    /// So many bytes of the file that were not read are lost, and counted: the next run of the agent does not count them again.
    pub(crate) fn lost(&self, slot: Slot, bytes: u64) {
        self.change(slot, |source| {
            source.size = source.size.saturating_sub(bytes).max(source.read_to);
        });
    }
}

impl TrackedSource {
    /// The lowest watermark over all outputs.
    fn lowest(&self) -> u64 {
        let marks = self.views.iter().map(|view| view.mark.watermark);
        marks.min().unwrap_or(self.head.framed_to)
    }
}

impl Head {
    fn move_to(&mut self, framed_to: u64, held_from: Option<u64>) {
        self.framed_to = self.framed_to.max(framed_to);
        self.held_from = held_from;
    }

    /// No watermark goes beyond this.
    fn ackable_to(&self) -> u64 {
        let held = self.held_from.unwrap_or(u64::MAX);
        held.min(self.framed_to)
    }

    fn is_level_with(&self, other: Self) -> bool {
        (self.framed_to, self.held_from) == (other.framed_to, other.held_from)
    }
}

#[cfg(test)]
mod tests;
