//! What is not delivered yet, for people. Changes nothing.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

use tailrace_inputs::{FileId, QueueReader, Stored};

use super::{OutputView, TrackedSource, Tracker};
use crate::source_lag::SourceLag;
use crate::sources::SourceState;

/// Sources that are looked at while the lock is held.
const SLICE: usize = 1000;

impl Tracker {
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
    /// since they were read. Looks for each such file, which may have been renamed since it was last followed. `stored` is what is
    /// there of queues.
    pub(crate) fn undelivered_gone_bytes(&self, stored: &[Stored]) -> u64 {
        let state = self.lock();
        let bytes = state.sources.values().map(|source| {
            let framed_to = source.head.framed_to;
            let unacked = |view: &OutputView| view.unacked_bytes(framed_to);
            let bytes = source.views.iter().map(unacked).max().unwrap_or(0);
            match source.opening.id {
                // A stream that has ended is to be forgotten when it is acknowledged; until then it is there.
                Some(id) if QueueReader::owns(&id) => {
                    bytes.saturating_sub(source.stored_bytes(&id, stored))
                }
                Some(id) if bytes > 0 => {
                    let path = source.target.as_ref().unwrap_or(&source.opening.path);
                    let is_whole = |size| size >= framed_to;
                    match !source.gone && id.size_at(path).is_some_and(is_whole) {
                        true => 0,
                        false => bytes,
                    }
                }
                _ => 0,
            }
        });
        bytes.sum()
    }

    /// Bytes of a queue that no record was made of: they were not read out of it, or their record is not complete.
    pub(crate) fn queued_bytes(&self, stored: &[Stored]) -> u64 {
        let state = self.lock();
        let mut framed: HashMap<u64, u64> = HashMap::new();
        for source in state.sources.values() {
            if let Some(id) = source.opening.id.filter(QueueReader::owns) {
                let to = framed.entry(id.inode).or_default();
                *to = source.head.ackable_to().max(*to);
            }
        }
        let bytes = stored.iter().map(|stored| {
            let framed = framed.get(&stored.id.inode).copied().unwrap_or(0);
            let from = framed.max(stored.bytes.start);
            stored.bytes.end.saturating_sub(from)
        });
        bytes.sum()
    }

    /// Bytes of known files with a record that one output has not acknowledged, read or not.
    pub(crate) fn undelivered_by(&self, output: usize) -> u64 {
        let state = self.lock();
        let bytes = state.sources.values().filter_map(|source| {
            let unacked = source
                .views
                .get(output)?
                .unacked_bytes(source.head.framed_to);
            Some(unacked + source.size.saturating_sub(source.read_to))
        });
        bytes.sum()
    }

    /// All sources as they are now, some at a time: workers take the lock.
    pub(crate) fn source_states(&self) -> Vec<SourceState> {
        let state = |source: &TrackedSource| SourceState {
            path: Arc::clone(&source.opening.path),
            size: source.size,
            read: source.read_to.saturating_sub(source.opening.offset),
            behind: source
                .size
                .max(source.read_to)
                .saturating_sub(source.lowest()),
            unread_since: None,
        };
        let (mut states, mut from) = (Vec::new(), Bound::Unbounded);
        loop {
            let before = states.len();
            let tracked = self.lock();
            for (slot, source) in tracked.sources.range((from, Bound::Unbounded)).take(SLICE) {
                states.push(state(source));
                from = Bound::Excluded(*slot);
            }
            if states.len() - before < SLICE {
                return states;
            }
        }
    }

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

impl TrackedSource {
    /// How much of what is not acknowledged is among this.
    fn stored_bytes(&self, id: &FileId, stored: &[Stored]) -> u64 {
        let (from, to) = (self.lowest(), self.read_to);
        let own = stored.iter().filter(|stored| stored.id.inode == id.inode);
        let bytes = own.map(|Stored { bytes, .. }| {
            let end = bytes.end.min(to);
            end.saturating_sub(bytes.start.max(from))
        });
        bytes.sum()
    }
}
