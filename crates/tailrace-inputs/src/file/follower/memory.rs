//! What is remembered from one change of a name to later ones.
//!
//! Takes what is seen of a change, gives it to those that follow from the same, and forgets it once none of them can come. Never
//! asks the disk.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What has to be remembered from one batch of changes to the next. A `stat` made while a batch is
/// worked on shows what happened after it; those changes are in the next batch, never later. So
/// everything here lives for two batches.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) number: u64,
    /// How many changes of this batch were applied.
    applied: usize,
    /// Renames whose first half was seen.
    pub(super) moves: HashMap<u32, (Moved, u64)>,
    /// Names outside the globs that a file of the input was renamed to, and the link by which it is known if there is one.
    pub(super) inherited: HashMap<PathBuf, (Option<Arc<Path>>, u64)>,
    /// Names of the input that appeared and led nowhere when looked at, each with the time at which its file is assumed to
    /// have been created.
    pub(super) unseen: HashMap<PathBuf, (u64, u64)>,
}

/// The first half of a rename.
#[derive(Default)]
pub(super) struct Moved {
    /// Whether that name belonged to the input.
    pub(super) wanted: bool,
    /// The link of the input that leads to that name, if no glob names it.
    pub(super) link: Option<Arc<Path>>,
    /// The file that is followed and went with it.
    pub(super) slot: Option<u32>,
}

impl Memory {
    /// What happened before is applied.
    pub(super) fn next_batch(&mut self) {
        let number = self.number;
        self.moves.retain(|_, (_, seen)| *seen == number);
        self.inherited.retain(|_, (_, seen)| *seen == number);
        self.unseen.retain(|_, (_, seen)| *seen == number);
        self.number += 1;
        self.applied = 0;
    }

    /// So many changes were applied, and the kernel's queue was not found empty, as it may never be in a storm. So many can
    /// have been on their way at a time: the batch ends when that many were applied.
    pub(super) fn applied(&mut self, changes: usize, on_their_way_max: usize) {
        self.applied += changes;
        if self.applied >= on_their_way_max {
            self.next_batch();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_remembered_until_all_that_was_on_its_way_is_applied_though_the_queue_is_never_empty()
     {
        const MAX: usize = 1000;
        const DRAINED: usize = 300;
        let mut memory = Memory::default();
        for change in 0..100 * MAX {
            let number = memory.number;
            let cookie = u32::try_from(change).unwrap();
            memory.moves.insert(cookie, (Moved::default(), number));
            memory
                .inherited
                .insert(change.to_string().into(), (None, number));
            memory.unseen.insert(change.to_string().into(), (0, number));
            let before = change.saturating_sub(MAX);
            assert!(memory.moves.contains_key(&u32::try_from(before).unwrap()));
            assert!(memory.moves.len() <= 3 * MAX, "{}", memory.moves.len());
            if change % DRAINED == DRAINED - 1 {
                memory.applied(DRAINED, MAX);
            }
        }
        assert_eq!(memory.moves.len(), memory.unseen.len());
        assert_eq!(memory.moves.len(), memory.inherited.len());
    }
}
