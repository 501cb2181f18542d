//! How a file was seen to grow: a bound for what was written to it since it was looked at last.
//!
//! Takes looks, gives a number of bytes. What is written between the last look at a file and the moment in which it is
//! cut is gone, and nobody saw it. The bound holds as long as the file grew neither more nor faster in that time than it
//! ever did between two looks; it is no measurement. Reads no file.

use std::time::{Duration, Instant};

/// Looks that follow each other faster say nothing of how fast a file grows.
const LOOK_MILLIS_MIN: u128 = 10;

/// What the looks at one file have shown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Growth {
    /// Nothing was written to it before that was not seen; `None` before the first look.
    seen_to: Option<Instant>,
    /// The most that it was seen to grow between two looks, in bytes.
    most: u32,
    /// The fastest, in bytes a millisecond.
    fastest: u32,
}

impl Growth {
    /// Whether it was never seen to grow, so that there is no bound.
    pub(crate) fn is_unknown(&self) -> bool {
        self.most == 0
    }

    /// The file was looked at, and has grown by so many bytes since the last look.
    pub(crate) fn look(&mut self, now: Instant, bytes: u64) {
        if let Some(before) = self.seen_to.replace(now) {
            let millis = now.saturating_duration_since(before).as_millis();
            let rate = u128::from(bytes).div_ceil(millis.max(LOOK_MILLIS_MIN));
            self.most = self.most.max(u32::try_from(bytes).unwrap_or(u32::MAX));
            self.fastest = self.fastest.max(u32::try_from(rate).unwrap_or(u32::MAX));
        }
    }

    /// All that was written to the file before an instant is seen.
    pub(crate) fn seen_to(&mut self, to: Instant) {
        self.seen_to = self.seen_to.map(|seen_to| seen_to.max(to));
    }

    /// How long before `now` the file was seen last, and how many bytes were written to it since at most: as far as these
    /// are known.
    pub(crate) fn unseen(&self, now: Instant) -> (Option<Duration>, Option<u64>) {
        let unseen = self.seen_to.map(|to| now.saturating_duration_since(to));
        let bytes = unseen.filter(|_| self.most > 0).map(|unseen| {
            let bytes = (unseen.as_millis() + 1) * u128::from(self.fastest);
            u64::try_from(bytes)
                .unwrap_or(u64::MAX)
                .max(self.most.into())
        });
        (unseen, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_the_most_and_the_fastest_that_was_seen() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let bound = |growth: &Growth, millis| growth.unseen(at(millis)).1;
        let mut growth = Growth::default();
        assert_eq!(growth.unseen(start), (None, None));
        growth.look(at(0), 5000);
        assert_eq!(bound(&growth, 1), None, "it was not seen to grow");
        // 1000 bytes in 100 ms.
        growth.look(at(100), 1000);
        assert_eq!(bound(&growth, 100), Some(1000));
        assert_eq!(bound(&growth, 199), Some(1000));
        assert_eq!(bound(&growth, 299), Some(2000));
        // What is said to be seen shortens the time, and never lengthens it.
        growth.seen_to(at(200));
        growth.seen_to(at(50));
        assert_eq!(growth.unseen(at(299)).0, Some(Duration::from_millis(99)));
        assert_eq!(bound(&growth, 299), Some(1000));
        // A burst between two looks that follow each other at once is no speed.
        growth.look(at(200), 0);
        growth.look(at(200), 2000);
        assert_eq!(bound(&growth, 201), Some(2000));
        assert_eq!(bound(&growth, 300), Some(101 * 200));
        growth.look(at(200), u64::MAX);
        assert!(bound(&growth, u64::MAX >> 30) > Some(u64::from(u32::MAX)));
    }
}
