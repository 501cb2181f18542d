//! The files of one path, in the order in which they were made.
//!
//! Takes and gives slots, and remembers up to where nothing has to be looked at: thousands of files may have had one path, and
//! nearly all of them are read and done with. Of a file it looks only at when that was made; whether it is read, the caller says.

use std::ops::Deref;

use crate::event::SourceId;
use crate::file::tracked::File;

/// A file of one path. They sort by age: a birth time is no finer than the kernel's tick, and of two with the same one, that
/// which was rotated away is the older.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ChainedFile {
    pub(super) created_at: u64,
    /// Where it was found.
    pub(super) rank: Rank,
    /// [`File::number`].
    pub(super) number: SourceId,
    pub(super) slot: u32,
}

/// Where a file of a path was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// Under a rotated name.
    Rotated,
    /// Where the path, a link, leads or led.
    LedTo,
    /// Under the path itself.
    Current,
}

/// All of them, in order. Nearly all paths have one file: it takes no memory beside the map.
pub(super) enum RotationChain {
    One(ChainedFile),
    Many {
        entries: Vec<ChainedFile>,
        /// All before have no turn, are read, and are awaited by nobody.
        done: u32,
        /// None before waits for its turn and was not reported.
        reported: u32,
    },
}

impl Default for RotationChain {
    fn default() -> Self {
        Self::Many {
            entries: Vec::new(),
            done: 0,
            reported: 0,
        }
    }
}

impl Deref for RotationChain {
    type Target = [ChainedFile];

    fn deref(&self) -> &[ChainedFile] {
        match self {
            Self::One(entry) => std::slice::from_ref(entry),
            Self::Many { entries, .. } => entries,
        }
    }
}

impl RotationChain {
    pub(super) fn insert(&mut self, entry: ChainedFile) {
        if self.is_empty() {
            *self = Self::One(entry);
            return;
        }
        if let Self::One(one) = *self {
            *self = Self::Many {
                entries: vec![one],
                done: 0,
                reported: 0,
            };
        }
        let at = self.partition_point(|known| *known < entry);
        if let Self::Many { entries, .. } = self {
            entries.insert(at, entry);
        }
        self.look_again_from(at);
    }

    pub(super) fn remove(&mut self, file: &File, slot: u32) {
        let Some(at) = self.position(file, slot) else {
            return;
        };
        match self {
            Self::One(_) => *self = Self::default(),
            Self::Many {
                entries,
                done,
                reported,
            } => {
                entries.remove(at);
                for until in [done, reported] {
                    if at < *until as usize {
                        *until -= 1;
                    }
                }
            }
        }
    }

    /// Where the file of a slot stands.
    pub(super) fn position(&self, file: &File, slot: u32) -> Option<usize> {
        let from = self.partition_point(|known| known.created_at < file.created_at);
        let mut same = self[from..].iter();
        let at = same.position(|known| known.slot == slot);
        at.map(|at| from + at)
            .or_else(|| self.iter().position(|known| known.slot == slot))
    }

    /// Something happened to the file there, or one was put there.
    pub(super) fn look_again_from(&mut self, at: usize) {
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        if let Self::Many { done, reported, .. } = self {
            (*done, *reported) = (at.min(*done), at.min(*reported));
        }
    }

    /// The first before `end` that is not done with, as `is_done` says of a slot.
    pub(super) fn first_left(&mut self, end: usize, is_done: impl Fn(u32) -> bool) -> usize {
        match self {
            Self::One(_) => 0,
            Self::Many { entries, done, .. } => advance(entries, done, end, is_done),
        }
    }

    /// The first before `end` that has to be reported, as `is_reported` says of a slot.
    pub(super) fn first_unreported(
        &mut self,
        end: usize,
        is_reported: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let Self::Many {
            entries, reported, ..
        } = self
        else {
            return None;
        };
        let first = advance(entries, reported, end, is_reported);
        (first < end).then(|| entries[first].slot)
    }
}

/// Moves a mark up to the first entry of which something is not so, or up to `end`.
fn advance(
    entries: &[ChainedFile],
    mark: &mut u32,
    end: usize,
    is_so: impl Fn(u32) -> bool,
) -> usize {
    let from = *mark as usize;
    if from >= end {
        return end;
    }
    let so = entries[from..end]
        .iter()
        .take_while(|known| is_so(known.slot));
    let first = from + so.count();
    *mark = u32::try_from(first).unwrap_or(u32::MAX);
    first
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn entry(created_at: u32) -> ChainedFile {
        ChainedFile {
            created_at: created_at.into(),
            rank: Rank::Rotated,
            number: SourceId(created_at),
            slot: created_at,
        }
    }

    #[test]
    fn files_that_are_done_with_are_passed_once_and_not_for_each_after_them() {
        let mut chain = RotationChain::default();
        for number in 0..1000 {
            chain.insert(entry(number));
        }
        let looks = Cell::new(0);
        let is_so = |_| {
            looks.set(looks.get() + 1);
            true
        };
        for end in 0..1000 {
            assert_eq!(chain.first_left(end, is_so), end);
            assert_eq!(chain.first_unreported(end, is_so), None);
        }
        assert!(looks.get() <= 2000, "{} looks", looks.get());
    }

    #[test]
    fn what_changes_or_comes_late_is_looked_at_again() {
        let mut chain = RotationChain::default();
        for number in [10, 30, 20, 40] {
            chain.insert(entry(number));
        }
        let order: Vec<u32> = chain.iter().map(|known| known.slot).collect();
        assert_eq!(order, [10, 20, 30, 40]);
        assert_eq!(chain.first_left(4, |_| true), 4);
        assert_eq!(chain.first_unreported(4, |_| true), None);
        assert_eq!(
            chain.first_left(4, |slot| slot != 20),
            4,
            "nothing was told"
        );
        chain.look_again_from(1);
        assert_eq!(chain.first_left(4, |slot| slot != 20), 1);
        assert_eq!(chain.first_unreported(4, |slot| slot != 30), Some(30));
        chain.insert(entry(5));
        assert_eq!(chain.first_left(5, |slot| slot != 5), 0);
        assert_eq!(chain.first_unreported(5, |slot| slot != 5), Some(5));
    }
}
