//! Where a file of a path is lost: what comes behind it does not go on where the one before it ended.
//!
//! Takes files that are given up, by the time at which they were made; says whether one of them stood between two others of its
//! path. A record that goes on in a file that is lost has no end: joined with what the next file begins with, it would be one
//! that nobody wrote.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use super::Follower;
use super::missed::is_missed;
use crate::event::LossReason;
use crate::resume::Resume;

/// The files that were given up.
#[derive(Default)]
pub(super) struct Gaps {
    /// By path, when they were made. Only where an older file of the path is there.
    by_origin: HashMap<Arc<Path>, BTreeSet<u64>>,
    /// Those of an earlier run, until all files are found: a name alone does not say what its path was.
    of_earlier: Vec<(Arc<Path>, u64)>,
}

impl Gaps {
    /// Whether one was made no earlier than `from` and no later than `to`. Of two files of one tick it is not known which
    /// was the first: a record in two parts is better than one made of two.
    pub(super) fn is_between(&self, origin: &Path, from: u64, to: u64) -> bool {
        let made = self.by_origin.get(origin);
        made.is_some_and(|made| from <= to && made.range(from..=to).next().is_some())
    }

    /// No file of a path is left.
    pub(super) fn forget(&mut self, origin: &Path) {
        self.by_origin.remove(origin);
    }
}

/// When the gap is that an earlier content of a file leaves: the content that replaced it lies behind that, and no other file
/// between them.
pub(super) fn before_content_of(created_at: u64) -> u64 {
    created_at.saturating_sub(1)
}

impl Follower {
    /// What an earlier run knew is given up. All of it may have been read: a record before it is not.
    pub(super) fn note_gap_of_earlier(&mut self, entry: &Resume, reason: LossReason) {
        let created_at = match reason {
            LossReason::Truncated => before_content_of(entry.id.created_at),
            _ => entry.id.created_at,
        };
        let origin = Arc::clone(entry.origin());
        self.gaps.of_earlier.push((origin, created_at));
    }

    /// All files are found.
    pub(super) fn place_gaps_of_earlier(&mut self) {
        for (path, created_at) in std::mem::take(&mut self.gaps.of_earlier) {
            let origin = self.origin_of(&path);
            self.note_gap(&origin, created_at);
        }
    }

    /// A file has ended, and has left those of its path. Whether something of it is lost that came next.
    pub(super) fn note_gap_of(&mut self, slot: u32, reason: LossReason) {
        let Some(file) = &self.files[slot as usize] else {
            return;
        };
        if file.unread() > 0 || is_missed(file) || reason != LossReason::Vanished {
            let (origin, created_at) = (Arc::clone(&file.origin), file.created_at);
            self.note_gap(&origin, created_at);
        }
    }

    /// A file of a path is given up. One of which nobody knows when it was made stands nowhere.
    pub(super) fn note_gap(&mut self, origin: &Path, created_at: u64) {
        let Some(oldest) = self.chain_of(origin).first() else {
            return;
        };
        let oldest = oldest.created_at;
        if created_at == 0 || created_at < oldest {
            return;
        }
        let made = self.gaps.by_origin.entry(origin.into()).or_default();
        // What was before the oldest is between no two any more.
        *made = made.split_off(&oldest);
        made.insert(created_at);
    }

    /// Whether what stood behind a file is lost.
    pub(super) fn is_before_gap(&self, slot: u32) -> bool {
        if self.gaps.by_origin.is_empty() {
            return false;
        }
        let (Some((chain, at)), Some(file)) = (self.place_of(slot), &self.files[slot as usize])
        else {
            return false;
        };
        let mut younger = chain[at + 1..].iter();
        // An empty one has nothing of a record.
        let next = younger.find(|known| {
            let known = self.files[known.slot as usize].as_ref();
            known.is_some_and(|known| known.size > 0)
        });
        let next = next.map_or(u64::MAX, |next| next.created_at);
        let from = chain[at].created_at;
        self.gaps.is_between(&file.origin, from, next)
    }
}
