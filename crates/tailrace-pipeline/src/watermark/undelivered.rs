//! What is not delivered yet, for people. Changes nothing.

use std::ops::Bound;
use std::sync::Arc;

use tailrace_inputs::{FileId, QueueReader};

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
    /// since they were read. Looks at each such file.
    pub(crate) fn undelivered_gone_bytes(&self) -> u64 {
        let state = self.lock();
        let bytes = state.sources.values().map(|source| {
            let framed_to = source.head.framed_to;
            let unacked = |view: &OutputView| view.unacked_bytes(framed_to);
            let bytes = source.views.iter().map(unacked).max().unwrap_or(0);
            // A stream of a queue that has ended is to be forgotten when it is acknowledged; until then it is there.
            let is_there = |id: FileId| {
                QueueReader::owns(&id) || (id.is_at(&source.opening.path) && !source.gone)
            };
            match source.opening.id {
                Some(id) if bytes > 0 && !is_there(id) => bytes,
                _ => 0,
            }
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
