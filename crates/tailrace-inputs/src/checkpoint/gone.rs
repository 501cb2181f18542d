//! What was read of files that are gone, for as long as it may be asked for.
//!
//! Takes identities as files are removed from a state, gives them back at the next start: a compressed file
//! that none of them fits was never read. Bounded in time and in number; it says since when it is complete.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::identity::FileId;
use crate::resume::Gone;

/// How long a file that is gone is remembered: a compressed file that was made just before the agent
/// ended may have been made of it.
const KEPT: Duration = Duration::from_secs(600);
/// How many are remembered.
const FILES_MAX: usize = 4096;

/// The files that one pipeline read and that are gone.
#[derive(Clone, Debug, Default)]
pub(super) struct GoneFiles {
    /// Since when every one is listed, in nanoseconds since the Unix epoch. 0: not known.
    pub(super) since: u64,
    /// When it was removed (0: not yet stamped), and its identity as last read, in that order.
    files: Vec<(u64, FileId)>,
    /// How many of them, from the end, the disk does not have yet.
    new: usize,
}

impl GoneFiles {
    /// Adds a file. False if nothing of it was read, so that nothing can be known again.
    pub(super) fn push(&mut self, id: FileId) -> bool {
        if id.fingerprint.bytes == 0 {
            return false;
        }
        self.files.push((0, id));
        self.new += 1;
        true
    }

    /// Dates what was added, and forgets what is too old or too much.
    pub(super) fn stamp(&mut self, now: SystemTime) {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let begin = self.files.len() - self.new;
        for (at, _) in &mut self.files[begin..] {
            if *at == 0 {
                *at = nanoseconds(now);
            }
        }
        let oldest = if self.since == 0 {
            // The first time: of what was before nothing is known.
            nanoseconds(now)
        } else {
            nanoseconds(now.saturating_sub(KEPT))
        };
        self.since = self.since.max(oldest);
        if let Some(over) = self.files.len().checked_sub(FILES_MAX + 1) {
            self.since = self.since.max(self.files[over].0 + 1);
        }
        self.forget();
    }

    /// Adds what the disk has.
    pub(super) fn add(&mut self, since: u64, files: Vec<(u64, FileId)>) {
        self.files.extend(files);
        self.since = self.since.max(since);
        self.forget();
    }

    /// All of it is on the disk.
    pub(super) fn written(&mut self) {
        self.new = 0;
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &(u64, FileId)> {
        self.files.iter()
    }

    pub(super) fn unwritten(&self) -> impl Iterator<Item = &(u64, FileId)> {
        self.files[self.files.len() - self.new..].iter()
    }

    pub(super) fn known(&self) -> Gone {
        Gone {
            since: self.since,
            files: self.files.iter().map(|(_, id)| *id).collect(),
        }
    }

    fn forget(&mut self) {
        let since = self.since;
        self.files.retain(|(at, _)| *at >= since);
        self.new = self.new.min(self.files.len());
    }
}
