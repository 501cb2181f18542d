//! What an overflow of the kernel's queue hid: files that were made under paths of the input and rotated away, and of
//! which no change told.
//!
//! Takes the time up to which all changes were taken, and looks through the directories of the input for files that carry a
//! rotated name of one of its paths and were made since. Never reads a sibling of a file that is older than that: its path
//! led to it all the time, and what carries its name may be its copy.

use std::path::{Path, PathBuf};

use super::Follower;
use super::missed::CLOCK_TICK_NS;

/// How often directories are listed at most while files turn up in them.
const LOOKS_MAX: usize = 16;

/// When the kernel's queue was found empty: what was made before was announced.
#[derive(Default)]
pub(super) struct Announced {
    /// The time before the last one, and the last one, in nanoseconds since the Unix epoch.
    emptied_at: [u64; 2],
}

impl Announced {
    /// What was there by then was found, or is not to be read.
    pub(super) fn at(at: u64) -> Self {
        Self {
            emptied_at: [at; 2],
        }
    }

    /// All changes from before `at` were taken.
    pub(super) fn until(&mut self, at: u64) {
        self.emptied_at = [self.emptied_at[1], at];
    }

    /// A file that was made before is known: its name was looked at, and where that led elsewhere by then, the change that
    /// took it there was taken as well.
    pub(super) fn since(&self) -> u64 {
        self.emptied_at[0].saturating_sub(CLOCK_TICK_NS)
    }
}

impl Follower {
    /// Looks for files that were rotated away unannounced since then. A name that is changed while a directory is listed
    /// may be left out: it is listed again until nothing new is in it.
    pub(super) fn find_unannounced(&mut self, since: u64) {
        let homes = self.homes();
        for _ in 0..LOOKS_MAX {
            let rotated = self.rotated_in(homes.iter().map(PathBuf::as_path), |origin| {
                self.may_have_been_another(origin, since)
                    .then_some(since.max(1))
            });
            #[cfg(test)]
            super::tests::between_looks();
            if rotated.is_empty() {
                break;
            }
            self.take_rotated(rotated);
        }
    }

    /// Whether a path of the input may have led to a file that was made since then and rotated away.
    fn may_have_been_another(&self, origin: &Path, since: u64) -> bool {
        let now = self.by_path.get(origin);
        let now = now.and_then(|&slot| self.files[slot as usize].as_ref());
        now.is_none_or(|file| file.created_at >= since) && self.discovery.matches(origin)
    }
}
