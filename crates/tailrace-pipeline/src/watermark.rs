//! Watermarks: how far each output has settled each source (a file generation).
//!
//! Takes spans as they are framed, settlements as requests are resolved, and gives for every
//! (source, output) the *watermark*: the lowest byte that is not settled for that output. Only
//! watermarks reach the checkpoint. Never reads a file, never looks at a clock.
//!
//! The invariants, which `tests` checks against a map of single bytes:
//!
//! 1. Every byte below `framed_to` lies in exactly one registered span, or is held by the framer
//!    at or above `held_from` (an unfinished line or partial chain).
//! 2. A watermark never moves back.
//! 3. A watermark is at most the start of any span unsettled for that output, at most
//!    `held_from`, and at most `framed_to`.
//!
//! So a restart that reads from the watermark reads every byte that was not settled.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tailrace_input::FileId;

use crate::ledger::SourceLag;

/// Number of a source in a [`Tracker`]; given once, never reused while the agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Slot(pub u32);

/// A byte range of one source, `[start, end)`, that settles as one.
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

/// Final outcomes of records, cumulative.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Accepted by the output.
    pub delivered: u64,
    /// Removed by `WHERE`.
    pub filtered: u64,
    /// Rejected by the output in a partial success.
    pub rejected: u64,
    /// Set aside in the dead-letter file.
    pub dead_lettered: u64,
    /// Given up as configured.
    pub dropped: u64,
}

impl Counts {
    /// Adds another count to this one.
    pub(crate) fn add(&mut self, other: Self) {
        self.delivered += other.delivered;
        self.filtered += other.filtered;
        self.rejected += other.rejected;
        self.dead_lettered += other.dead_lettered;
        self.dropped += other.dropped;
    }
}

/// What the follower tells of a source when it opens it.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    /// Identity of the file; `None` for inputs that are not files.
    pub id: Option<FileId>,
    /// Generation of the file: grows by one with each truncation.
    pub generation: u32,
    /// Path at opening.
    pub path: PathBuf,
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
pub(crate) struct Mark {
    /// Identity of the file.
    pub id: FileId,
    /// Generation of the file.
    pub generation: u32,
    /// Path at opening.
    pub path: PathBuf,
    /// Index of the output.
    pub output: usize,
    /// Lowest byte not settled for this output.
    pub watermark: u64,
    /// Last known size of the file, in bytes.
    pub size: u64,
    /// Outcomes of the records below the watermark, over all runs.
    pub counts: Counts,
}

/// What the checkpoint must still learn of files that are tracked no more: their last marks, and
/// which files are gone and may be forgotten.
#[derive(Debug, Default)]
struct Departed {
    marks: Vec<Mark>,
    gone: Vec<(FileId, u32)>,
}

/// Watermarks of all sources of one pipeline.
#[derive(Debug)]
pub(crate) struct Tracker {
    outputs: usize,
    sources: Mutex<BTreeMap<Slot, Source>>,
    next: AtomicU32,
    departed: Mutex<Departed>,
    /// Locked after `sources`, never before.
    files: Mutex<Files>,
}

/// Device, inode and generation.
type FileKey = (u64, u64, u32);

/// What the checkpoint must still learn of files that are tracked.
#[derive(Debug, Default)]
struct Files {
    /// Sources whose marks may be others than at the last look.
    changed: BTreeSet<Slot>,
    /// The sources of each file: two, where one came back before its earlier bytes were settled.
    slots: HashMap<FileKey, Vec<Slot>>,
}

#[derive(Debug)]
struct Source {
    opening: Opening,
    read_to: u64,
    size: u64,
    framed_to: u64,
    held_from: Option<u64>,
    /// Spans not yet below every watermark, by start.
    spans: BTreeMap<u64, OpenSpan>,
    /// One per output.
    marks: Vec<Resumed>,
    finished: bool,
    /// Its file is gone, not just renamed.
    gone: bool,
}

#[derive(Debug)]
struct OpenSpan {
    end: u64,
    /// Per output: the outcome once settled.
    settled: Vec<Option<Counts>>,
}

impl Tracker {
    /// A tracker for a pipeline with so many outputs.
    pub(crate) fn new(outputs: usize) -> Self {
        Self {
            outputs,
            sources: Mutex::default(),
            next: AtomicU32::new(0),
            departed: Mutex::default(),
            files: Mutex::default(),
        }
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self, slot: Slot) {
        self.files().changed.insert(slot);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Slot, Source>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a source under a new slot.
    pub(crate) fn open(&self, opening: Opening) -> Slot {
        let mut sources = self.lock();
        let slot = Slot(self.next.fetch_add(1, Ordering::Relaxed));
        let fresh = Resumed {
            watermark: opening.offset,
            counts: Counts::default(),
        };
        let mark = |output| {
            let resumed: Resumed = opening.resume.get(output).copied().unwrap_or(fresh);
            Resumed {
                watermark: resumed.watermark.max(opening.offset),
                ..resumed
            }
        };
        let source = Source {
            read_to: opening.offset,
            framed_to: opening.offset,
            size: opening.size,
            held_from: None,
            spans: BTreeMap::new(),
            marks: (0..self.outputs).map(mark).collect(),
            finished: false,
            gone: false,
            opening,
        };
        let mut files = self.files();
        files.changed.insert(slot);
        if let Some(key) = source.key() {
            files.slots.entry(key).or_default().push(slot);
        }
        sources.insert(slot, source);
        slot
    }

    /// Notes that the source was read up to `to`.
    pub(crate) fn read(&self, slot: Slot, to: u64) {
        if let Some(source) = self.lock().get_mut(&slot) {
            source.read_to = source.read_to.max(to);
            source.size = source.size.max(to);
            self.changed(slot);
        }
    }

    /// Bytes read but not settled by every output: what a kill would repeat.
    pub(crate) fn unsettled_bytes(&self, slot: Slot) -> u64 {
        self.lock()
            .get(&slot)
            .map_or(0, |source| source.read_to.saturating_sub(source.lowest()))
    }

    /// The path of a source.
    pub(crate) fn path(&self, slot: Slot) -> Option<PathBuf> {
        self.lock()
            .get(&slot)
            .map(|source| source.opening.path.clone())
    }

    /// What identifies the file of a source: none where it is no file.
    pub(crate) fn identity(&self, slot: Slot) -> Option<(FileId, u32)> {
        let sources = self.lock();
        let opening = &sources.get(&slot)?.opening;
        Some((opening.id?, opening.generation))
    }

    /// Bytes below this offset were read by an earlier run.
    pub(crate) fn replay_to(&self, slot: Slot) -> u64 {
        self.lock()
            .get(&slot)
            .map_or(0, |source| source.opening.replay_to)
    }

    /// Registers framed spans as unsettled, then moves the framer's heads: for each source, how
    /// far it is framed and the lowest byte its framer still holds.
    pub(crate) fn framed(&self, spans: &[Span], heads: &[(Slot, u64, Option<u64>)]) {
        let mut sources = self.lock();
        for span in spans {
            if let Some(source) = sources.get_mut(&span.slot) {
                let open = OpenSpan {
                    end: span.end,
                    settled: vec![None; self.outputs],
                };
                let before = source.spans.insert(span.start, open);
                debug_assert!(before.is_none(), "span at {} registered twice", span.start);
            }
        }
        for &(slot, framed_to, held_from) in heads {
            if let Some(source) = sources.get_mut(&slot) {
                source.framed_to = source.framed_to.max(framed_to);
                source.held_from = held_from;
                source.advance();
                self.changed(slot);
            }
        }
    }

    /// Settles spans for one output; `counts` are the outcomes of each span's records.
    pub(crate) fn settle(&self, output: usize, spans: &[(Span, Counts)]) {
        let mut sources = self.lock();
        for (span, counts) in spans {
            let Some(source) = sources.get_mut(&span.slot) else {
                continue;
            };
            if let Some(open) = source.spans.get_mut(&span.start) {
                debug_assert_eq!(open.end, span.end, "a span settles whole");
                open.settled[output] = Some(*counts);
                source.advance();
                self.changed(span.slot);
            }
        }
    }

    /// Marks a source that will not grow again.
    pub(crate) fn finish(&self, slot: Slot) {
        if let Some(source) = self.lock().get_mut(&slot) {
            source.finished = true;
        }
    }

    /// Forgets a finished source that every output has settled, and gives its end offset; `None`
    /// while it must be kept.
    pub(crate) fn take_done(&self, slot: Slot) -> Option<u64> {
        let mut sources = self.lock();
        let source = sources.get(&slot)?;
        let end = source.read_to;
        if !source.finished || source.lowest() < end {
            return None;
        }
        let mut departed = self.departed();
        match source.opening.id {
            Some(id) if source.gone => departed.gone.push((id, source.opening.generation)),
            // It was renamed out of the globs and may yet come back: the checkpoint keeps it.
            _ => source.add_marks(&mut departed.marks),
        }
        drop(departed);
        self.files().drop_slot(source.key(), slot);
        sources.remove(&slot);
        Some(end)
    }

    fn departed(&self) -> MutexGuard<'_, Departed> {
        self.departed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A file of the checkpoint is gone: it may be forgotten, once what was read of it is settled.
    pub(crate) fn gone(&self, id: FileId, generation: u32) {
        let mut tracked = false;
        for source in self.lock().values_mut() {
            if source.key() == Some((id.device, id.inode, generation)) {
                source.gone = true;
                tracked = true;
            }
        }
        if !tracked {
            self.departed().gone.push((id, generation));
        }
    }

    /// Last marks of files that are tracked no more, and files to forget, since the last call.
    pub(crate) fn take_departed(&self) -> (Vec<Mark>, Vec<(FileId, u32)>) {
        let Departed { marks, gone } = std::mem::take(&mut *self.departed());
        (marks, gone)
    }

    /// Forgets a source that was opened and had no byte; gives how it was opened.
    pub(crate) fn forget(&self, slot: Slot) -> Option<Opening> {
        let source = self.lock().remove(&slot)?;
        self.files().drop_slot(source.key(), slot);
        Some(source.opening)
    }

    /// The file's fingerprint covers more bytes now.
    pub(crate) fn identify(&self, slot: Slot, id: FileId) {
        if let Some(source) = self.lock().get_mut(&slot) {
            source.opening.id = Some(id);
            self.changed(slot);
        }
    }

    /// The file has another name.
    pub(crate) fn rename(&self, slot: Slot, path: PathBuf) {
        if let Some(source) = self.lock().get_mut(&slot) {
            source.opening.path = path;
            self.changed(slot);
        }
    }

    /// The file was seen with this size.
    pub(crate) fn resize(&self, slot: Slot, size: u64) {
        if let Some(source) = self.lock().get_mut(&slot) {
            source.size = size;
            self.changed(slot);
        }
    }

    /// The marks of files that may have others than at the last call, for the checkpoint: of each such
    /// file, those of all its sources.
    pub(crate) fn take_marks(&self) -> Vec<Mark> {
        let sources = self.lock();
        let mut files = self.files();
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

    /// Framed bytes with a record or skip that is not settled by every output: of files, and of
    /// sources that cannot be read again. Bytes of an unfinished line are not among them.
    pub(crate) fn undelivered_bytes(&self) -> (u64, u64) {
        let (mut files, mut others) = (0, 0);
        for source in self.lock().values() {
            let open = |span: &OpenSpan| span.settled.iter().any(Option::is_none);
            let spans = source.spans.iter().filter(|(_, span)| open(span));
            let bytes: u64 = spans.map(|(start, span)| span.end - start).sum();
            match source.opening.id {
                Some(_) => files += bytes,
                None => others += bytes,
            }
        }
        (files, others)
    }
}

impl Tracker {
    /// The sources that are furthest behind, at most `max`, the furthest first; none that is level.
    pub(crate) fn lags(&self, max: usize) -> Vec<SourceLag> {
        let lag = |source: &Source| SourceLag {
            path: source.opening.path.clone(),
            size: source.size,
            read_to: source.read_to,
            watermark: source.lowest(),
        };
        let mut lags: Vec<_> = self.lock().values().map(lag).collect();
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

impl Source {
    fn key(&self) -> Option<FileKey> {
        let id = self.opening.id?;
        Some((id.device, id.inode, self.opening.generation))
    }

    fn add_marks(&self, marks: &mut Vec<Mark>) {
        let Some(id) = self.opening.id else { return };
        for (output, mark) in self.marks.iter().enumerate() {
            marks.push(Mark {
                id,
                generation: self.opening.generation,
                path: self.opening.path.clone(),
                output,
                watermark: mark.watermark,
                size: self.size,
                counts: mark.counts,
            });
        }
    }

    /// The lowest watermark over all outputs.
    fn lowest(&self) -> u64 {
        self.marks
            .iter()
            .map(|mark| mark.watermark)
            .min()
            .unwrap_or(self.framed_to)
    }

    /// Moves every output's watermark as far as its settled spans allow, and drops spans that
    /// lie below all of them.
    fn advance(&mut self) {
        let head = self
            .held_from
            .map_or(self.framed_to, |held| held.min(self.framed_to));
        for (output, mark) in self.marks.iter_mut().enumerate() {
            for (&start, span) in &self.spans {
                // Below the watermark: here for a slower output, or replayed for this one.
                if span.end <= mark.watermark {
                    continue;
                }
                let Some(counts) = span.settled[output] else {
                    break;
                };
                // Either would do while invariant 1 holds; a hole must never be stepped over.
                if start > mark.watermark || span.end > head {
                    break;
                }
                mark.watermark = span.end;
                mark.counts.add(counts);
            }
        }
        let lowest = self.lowest();
        while let Some(entry) = self.spans.first_entry() {
            if entry.get().end > lowest {
                break;
            }
            entry.remove();
        }
    }
}

#[cfg(test)]
#[path = "watermark/tests.rs"]
mod tests;
