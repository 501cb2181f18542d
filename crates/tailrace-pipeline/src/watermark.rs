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
//!    until it can move beyond the last one.
//!
//! So a restart that reads from the watermark reads every byte that was not acknowledged, and no part of a record alone.

mod parts;
mod view;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tailrace_inputs::FileId;
use tailrace_inputs::checkpoint::{Counts, Rest};

use crate::source_lag::SourceLag;

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

/// The state of one source for one output, as the checkpoint keeps it.
#[derive(Debug, Clone)]
pub(crate) struct CheckpointEntry {
    /// Identity of the file.
    pub id: FileId,
    /// Generation of the file.
    pub generation: u32,
    /// Path at opening.
    pub path: Arc<Path>,
    /// Index of the output.
    pub output: usize,
    /// Lowest byte not acknowledged for this output.
    pub watermark: u64,
    /// Last known size of the file, in bytes.
    pub size: u64,
    /// Outcomes of the records below the watermark, over all runs.
    pub counts: Counts,
    /// Records that began in the file before and end above a watermark.
    pub rests: Vec<Rest>,
}

/// What the checkpoint must still learn of files that are tracked no more: their last marks, and
/// which files are gone and may be forgotten.
#[derive(Debug, Default)]
struct Departed {
    marks: Vec<CheckpointEntry>,
    gone: Vec<(FileId, u32)>,
}

impl Departed {
    /// A file is gone. Marks of it that were not taken yet would bring it back.
    fn forget(&mut self, id: FileId, generation: u32) {
        let key = (id.device, id.inode, generation);
        let key_of = |mark: &CheckpointEntry| (mark.id.device, mark.id.inode, mark.generation);
        self.marks.retain(|mark| key_of(mark) != key);
        self.gone.push((id, generation));
    }
}

/// Watermarks of all sources of one pipeline.
#[derive(Debug)]
pub(crate) struct Tracker {
    outputs: usize,
    next: AtomicU32,
    state: Mutex<State>,
}

/// All that changes, under one lock.
#[derive(Debug, Default)]
struct State {
    sources: BTreeMap<Slot, Box<TrackedSource>>,
    files: Files,
    departed: Departed,
}

/// Device, inode and generation.
type FileKey = (u64, u64, u32);

/// What the checkpoint must still learn of files that are tracked.
#[derive(Debug, Default)]
struct Files {
    /// Sources whose marks may be others than at the last look.
    changed: BTreeSet<Slot>,
    /// The sources of each file: two, where one came back before its earlier bytes were acknowledged.
    slots: HashMap<FileKey, Vec<Slot>>,
}

#[derive(Debug)]
struct TrackedSource {
    opening: Opening,
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

/// Who frames.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reading<'a> {
    /// The shared reading, for the outputs that take part in it.
    Shared(&'a [bool]),
    /// The catch-up reading of one output.
    CatchUp(usize),
}

/// How far an output is behind the shared reading of a source.
#[derive(Debug, Clone)]
pub(crate) struct Behind {
    /// The first byte that it has to read.
    pub offset: u64,
    /// How far its own reading is framed.
    pub framed_to: u64,
    /// How far the shared reading is framed.
    pub shared_to: u64,
    /// How far the source is read.
    pub read_to: u64,
    /// All that was framed for it is acknowledged.
    pub drained: bool,
    /// The shared reading has reached the end of the source.
    pub finished: bool,
    /// It is where the shared reading is, in the middle of the same lines.
    pub level: bool,
    /// It is framed to where the shared reading is, and holds a record that the shared reading gave out: nothing came
    /// for a while that might have gone on with it.
    pub holds_more: bool,
    /// Path of the file.
    pub path: PathBuf,
    /// The source that it continues.
    pub continues: Option<Slot>,
}

impl Tracker {
    /// A tracker for a pipeline with so many outputs.
    pub(crate) fn new(outputs: usize) -> Self {
        Self {
            outputs,
            next: AtomicU32::new(0),
            state: Mutex::default(),
        }
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
            opening,
        };
        let State { sources, files, .. } = &mut *self.lock();
        files.changed.insert(slot);
        if let Some(key) = source.key() {
            files.slots.entry(key).or_default().push(slot);
        }
        sources.insert(slot, Box::new(source));
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

    /// Registers framed spans as unacknowledged, then moves the framer's heads: for each source, how
    /// far it is framed and the lowest byte its framer still holds. Gives for each output whether any
    /// of these bytes are for it: not if it does not take part, or acknowledged all of them in an earlier run.
    pub(crate) fn framed(
        &self,
        reading: Reading<'_>,
        spans: &[Span],
        heads: &[(Slot, u64, Option<u64>)],
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
        for &(slot, framed_to, held_from) in heads {
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
            if let Some(open) = view.spans.get_mut(&span.start) {
                debug_assert_eq!(open.end, span.end, "a span is acknowledged whole");
                open.acked = Some(*counts);
                view.advance();
                files.changed.insert(span.slot);
            }
        }
    }

    /// How far an output is behind the shared reading; `None` for a source that is not known.
    pub(crate) fn behind(&self, output: usize, slot: Slot) -> Option<Behind> {
        let state = self.lock();
        let source = state.sources.get(&slot)?;
        let view = &source.views[output];
        Some(Behind {
            offset: view.head.ackable_to(),
            framed_to: view.head.framed_to,
            shared_to: source.head.framed_to,
            read_to: source.read_to,
            drained: view.spans.values().all(|span| span.acked.is_some()),
            finished: source.finished,
            level: view.head.is_level_with(source.head),
            holds_more: view.head.framed_to == source.head.framed_to
                && view.head.ackable_to() < source.head.ackable_to(),
            path: source.opening.path.to_path_buf(),
            continues: source.continues,
        })
    }

    /// A source goes on where another one ended.
    pub(crate) fn continues(&self, slot: Slot, earlier: Slot) {
        if let Some(source) = self.lock().sources.get_mut(&slot) {
            source.continues = Some(earlier);
        }
    }

    /// An output begins to read a source by itself, from [`Behind::offset`]. What it acknowledged beyond
    /// that, between the lines of an unfinished record, comes again: gives how many such records it
    /// had sent. Nothing may be in flight.
    pub(crate) fn begin_catch_up(&self, output: usize, slot: Slot) -> u64 {
        let mut state = self.lock();
        let Some(source) = state.sources.get_mut(&slot) else {
            return 0;
        };
        let view = &mut source.views[output];
        let offset = view.head.ackable_to();
        let again = view.spans.split_off(&offset);
        view.head.framed_to = offset;
        view.head.held_from = None;
        let mut sent = 0;
        for span in again.values() {
            view.head.records -= span.records;
            let filtered = span.acked.map_or(0, |counts| counts.filtered);
            sent += span.records - filtered;
        }
        sent
    }

    /// What an output has not read of a source will never be: it is level with the shared reading.
    /// Gives how many records it goes without, those that the query would have removed among them.
    pub(crate) fn give_up(&self, output: usize, slot: Slot) -> u64 {
        let State { sources, files, .. } = &mut *self.lock();
        let Some(source) = sources.get_mut(&slot) else {
            return 0;
        };
        let head = source.head;
        // The lines between those of an unfinished record, as an output has them that takes part.
        let others = source.views.iter().enumerate();
        let mut others = others.filter(|(n, view)| *n != output && view.head.is_level_with(head));
        let between: Vec<(u64, u64)> = match (head.held_from, others.next()) {
            (Some(held), Some((_, other))) => {
                let spans = other.spans.range(held..);
                spans.map(|(&start, span)| (start, span.end)).collect()
            }
            _ => Vec::new(),
        };
        let view = &mut source.views[output];
        let dropped = head.records.saturating_sub(view.head.records);
        let offset = view.head.ackable_to();
        view.spans.split_off(&offset);
        let mut counts = Some(Counts {
            dropped,
            ..Counts::default()
        });
        let unread = (offset < head.ackable_to()).then(|| (offset, head.ackable_to()));
        for (start, end) in unread.into_iter().chain(between) {
            let open = OpenSpan {
                end,
                records: 0,
                acked: Some(counts.take().unwrap_or_default()),
            };
            view.spans.insert(start, open);
        }
        if let Some(counts) = counts {
            view.mark.counts = view.mark.counts.plus(counts);
        }
        view.head = head;
        view.advance();
        files.changed.insert(slot);
        dropped
    }

    /// Marks a source that will not grow again.
    pub(crate) fn finish(&self, slot: Slot) {
        if let Some(source) = self.lock().sources.get_mut(&slot) {
            source.finished = true;
        }
    }

    /// Forgets a finished source that every output has acknowledged, and gives its end offset; `None`
    /// while it must be kept.
    pub(crate) fn take_done(&self, slot: Slot) -> Option<u64> {
        let State {
            sources,
            files,
            departed,
        } = &mut *self.lock();
        let source = sources.get(&slot)?;
        let end = source.read_to;
        if !source.finished || source.lowest() < end {
            return None;
        }
        match source.opening.id {
            Some(id) if source.gone => departed.forget(id, source.opening.generation),
            // It was renamed out of the globs and may yet come back: the checkpoint keeps it.
            _ => source.add_marks(&mut departed.marks),
        }
        files.drop_slot(source.key(), slot);
        sources.remove(&slot);
        Some(end)
    }

    /// A file of the checkpoint is gone: it may be forgotten, once what was read of it is acknowledged.
    pub(crate) fn gone(&self, id: FileId, generation: u32) {
        let State {
            sources, departed, ..
        } = &mut *self.lock();
        let mut tracked = false;
        for source in sources.values_mut() {
            if source.key() == Some((id.device, id.inode, generation)) {
                source.gone = true;
                tracked = true;
            }
        }
        if !tracked {
            departed.forget(id, generation);
        }
    }

    /// Last marks of files that are tracked no more, and files to forget, since the last call.
    pub(crate) fn take_departed(&self) -> (Vec<CheckpointEntry>, Vec<(FileId, u32)>) {
        let Departed { marks, gone } = std::mem::take(&mut self.lock().departed);
        (marks, gone)
    }

    /// Forgets a source that was opened and had no byte; gives how it was opened.
    pub(crate) fn forget(&self, slot: Slot) -> Option<Opening> {
        let State { sources, files, .. } = &mut *self.lock();
        let source = sources.remove(&slot)?;
        files.drop_slot(source.key(), slot);
        Some(source.opening)
    }

    /// The file's fingerprint covers more bytes now.
    pub(crate) fn identify(&self, slot: Slot, id: FileId) {
        self.change(slot, |source| source.opening.id = Some(id));
    }

    /// The file has another name.
    pub(crate) fn rename(&self, slot: Slot, path: Arc<Path>) {
        self.change(slot, |source| source.opening.path = path);
    }

    /// The file was seen with this size.
    pub(crate) fn resize(&self, slot: Slot, size: u64) {
        self.change(slot, |source| source.size = size);
    }

    /// The marks of files that may have others than at the last call, for the checkpoint: of each such
    /// file, those of all its sources.
    pub(crate) fn take_marks(&self) -> Vec<CheckpointEntry> {
        let State { sources, files, .. } = &mut *self.lock();
        let changed = std::mem::take(&mut files.changed);
        let changed = changed.iter().filter_map(|slot| sources.get(slot)?.key());
        let keys: BTreeSet<FileKey> = changed.collect();
        let mut marks = Vec::with_capacity(keys.len() * self.outputs);
        let slots = keys.iter().filter_map(|key| files.slots.get(key));
        for source in slots.flatten().filter_map(|slot| sources.get(slot)) {
            source.add_marks(&mut marks);
        }
        marks
    }

    /// Framed bytes with a record or skip that is not acknowledged by the output that is furthest behind: of
    /// files, and of sources that cannot be read again. Bytes of an unfinished line are not among them.
    pub(crate) fn undelivered_bytes(&self) -> (u64, u64) {
        let (mut files, mut others) = (0, 0);
        for source in self.lock().sources.values() {
            let framed_to = source.head.framed_to;
            let unacked = |view: &OutputView| view.unacked_bytes(framed_to);
            let bytes = source.views.iter().map(unacked).max().unwrap_or(0);
            match source.opening.id {
                Some(_) => files += bytes,
                None => others += bytes,
            }
        }
        (files, others)
    }

    /// Of [those](Self::undelivered_bytes) of files, how many are not in their file any more: it was truncated or deleted
    /// since they were read. Looks at each such file.
    pub(crate) fn undelivered_gone_bytes(&self) -> u64 {
        let state = self.lock();
        let bytes = state.sources.values().map(|source| {
            let framed_to = source.head.framed_to;
            let unacked = |view: &OutputView| view.unacked_bytes(framed_to);
            let bytes = source.views.iter().map(unacked).max().unwrap_or(0);
            let is_there = |id: FileId| !source.gone && id.is_at(&source.opening.path);
            match source.opening.id {
                Some(id) if bytes > 0 && !is_there(id) => bytes,
                _ => 0,
            }
        });
        bytes.sum()
    }
}

impl Tracker {
    /// The sources that are furthest behind, at most `max`, the furthest first; none that is level.
    pub(crate) fn lags(&self, max: usize) -> Vec<SourceLag> {
        let lag = |source: &TrackedSource| SourceLag {
            path: source.opening.path.to_path_buf(),
            size: source.size,
            read_to: source.read_to,
            watermark: source.lowest(),
        };
        let mut lags: Vec<_> = self
            .lock()
            .sources
            .values()
            .map(|source| lag(source))
            .collect();
        lags.retain(|lag| lag.behind() > 0);
        lags.sort_by_key(|lag| std::cmp::Reverse(lag.behind()));
        lags.truncate(max);
        lags
    }
}

impl Files {
    fn drop_slot(&mut self, key: Option<FileKey>, slot: Slot) {
        self.changed.remove(&slot);
        let Some(key) = key else { return };
        if let Some(slots) = self.slots.get_mut(&key) {
            slots.retain(|known| *known != slot);
            if slots.is_empty() {
                self.slots.remove(&key);
            }
        }
    }
}

impl TrackedSource {
    fn key(&self) -> Option<FileKey> {
        let id = self.opening.id?;
        Some((id.device, id.inode, self.opening.generation))
    }

    fn add_marks(&self, marks: &mut Vec<CheckpointEntry>) {
        let Some(id) = self.opening.id else { return };
        let rests = self.open_rests();
        for (output, view) in self.views.iter().enumerate() {
            let mark = &view.mark;
            marks.push(CheckpointEntry {
                id,
                generation: self.opening.generation,
                path: self.opening.path.clone(),
                output,
                watermark: mark.watermark,
                size: self.size,
                counts: mark.counts,
                rests: rests.clone(),
            });
        }
    }

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
