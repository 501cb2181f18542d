//! How long the oldest byte that is not read has been there.
//!
//! Takes offsets and sizes of sources, again and again; gives an age. When a byte was written is not known, only when
//! a size was first seen: the age is exact to the time between two looks. Never reads anything.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use crate::event::SourceId;

/// Remembers when each source was first seen with the bytes that it still has unread.
#[derive(Debug, Default)]
pub(crate) struct OldestUnread {
    /// Of sources with unread bytes: the sizes seen, ascending, and when. The first one is above the offset.
    sizes: HashMap<SourceId, VecDeque<(Instant, u64)>>,
}

/// Sizes remembered of one source, at most.
const SIZES_MAX: usize = 64;

impl OldestUnread {
    /// Looks at all sources: their next byte to read and their size. Gives the age of the oldest unread byte, if
    /// there is one.
    pub(crate) fn look(
        &mut self,
        now: Instant,
        sources: impl Iterator<Item = (SourceId, u64, u64)>,
    ) -> Option<Duration> {
        let mut before = std::mem::take(&mut self.sizes);
        for (source, offset, size) in sources {
            if size <= offset {
                continue;
            }
            let mut seen = before.remove(&source).unwrap_or_default();
            seen.retain(|&(_, seen)| seen > offset);
            if seen.back().is_none_or(|&(_, last)| last < size) {
                seen.push_back((now, size));
            }
            if seen.len() > SIZES_MAX {
                // What was seen with one that is left out counts as seen with the next.
                let mut nth = 0;
                seen.retain(|_| {
                    nth += 1;
                    nth % 2 == 1
                });
            }
            self.sizes.insert(source, seen);
        }
        let firsts = self.sizes.values().filter_map(VecDeque::front);
        let oldest = firsts.map(|&(since, _)| since).min()?;
        Some(now.saturating_duration_since(oldest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ages(looks: &[(u64, u64, u64)]) -> Vec<Option<u64>> {
        let start = Instant::now();
        let mut oldest = OldestUnread::default();
        let look = |&(second, offset, size): &(u64, u64, u64)| {
            let now = start + Duration::from_secs(second);
            let age = oldest.look(now, [(SourceId(1), offset, size)].into_iter());
            age.map(|age| age.as_secs())
        };
        looks.iter().map(look).collect()
    }

    #[test]
    fn a_file_that_is_not_read_ages_and_one_that_is_level_does_not() {
        let looks = [
            (0, 5, 5),
            (1, 5, 9),
            (4, 5, 20),
            (6, 8, 20),
            (7, 20, 20),
            (9, 20, 21),
        ];
        let expected = [None, Some(0), Some(3), Some(5), None, Some(0)];
        assert_eq!(ages(&looks), expected);
    }

    #[test]
    fn a_file_that_is_read_as_fast_as_it_grows_does_not_age() {
        let looks: Vec<_> = (0..1_000).map(|s| (s, 10 * s, 10 * s + 15)).collect();
        let ages = ages(&looks);
        assert!(ages[1..].iter().all(|age| *age == Some(1)), "{ages:?}");
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_oldest_stays() {
        let start = Instant::now();
        let mut oldest = OldestUnread::default();
        for second in 0..10_000 {
            let now = start + Duration::from_secs(second);
            let age = oldest.look(now, [(SourceId(1), 0, second + 1)].into_iter());
            assert_eq!(age, Some(Duration::from_secs(second)));
            assert!(oldest.sizes[&SourceId(1)].len() <= SIZES_MAX);
        }
        assert_eq!(oldest.look(start, std::iter::empty()), None);
        assert!(
            oldest.sizes.is_empty(),
            "a source that is gone is forgotten"
        );
    }
}
