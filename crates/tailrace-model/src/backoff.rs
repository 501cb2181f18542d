//! Exponential backoff with jitter and bounds. It computes the delay before the next attempt, and respects the delay that
//! the server asked for. It never sleeps.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// Waits between `min` and `max`: attempt n waits a random time between half and all of
/// `min * 2^(n+1)`, cut to these bounds. At the upper bound it still spreads over half of it, so that
/// many agents do not come back to a recovering server in the same moment.
#[derive(Clone, Debug)]
pub struct Backoff {
    min: Duration,
    max: Duration,
    failures: u32,
    random: u64,
}

impl Backoff {
    /// Fails with the reason when the bounds make no sense.
    pub fn try_new(min: Duration, max: Duration) -> Result<Backoff, &'static str> {
        if min.is_zero() {
            return Err("the first delay must not be zero");
        }
        if min > max {
            return Err("the first delay must not be longer than the longest");
        }
        Ok(Backoff {
            min,
            max,
            failures: 0,
            random: RandomState::new().build_hasher().finish(),
        })
    }

    /// The same bounds, no failures, other random times.
    pub fn another(&mut self) -> Backoff {
        Backoff {
            failures: 0,
            random: self.bits(),
            ..*self
        }
    }

    /// The delay after one more failure; at least `after`, plus up to a tenth of it, as far as both are within `after_max`.
    pub fn next_after(&mut self, after: Duration, after_max: Duration) -> Duration {
        let delay = self.next_delay();
        delay.max(self.spread(after.min(after_max)).min(after_max))
    }

    /// The delay after one more failure.
    pub fn next_delay(&mut self) -> Duration {
        let ceiling = 2u32
            .checked_pow(self.failures.saturating_add(1))
            .and_then(|factor| self.min.checked_mul(factor))
            .map_or(self.max, |ceiling| ceiling.min(self.max));
        let floor = (ceiling / 2).max(self.min);
        self.failures = self.failures.saturating_add(1);
        self.between(floor, ceiling)
    }

    /// A time between `delay` and a tenth more.
    pub fn spread(&mut self, delay: Duration) -> Duration {
        self.between(delay, delay + delay / 10)
    }

    /// Forgets past failures.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// splitmix64 (Steele, Lea, Flood 2014): enough to spread, not to hide anything.
    fn bits(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn between(&mut self, low: Duration, high: Duration) -> Duration {
        let bits = self.bits();
        let span = u64::try_from((high - low).as_nanos()).unwrap_or(u64::MAX);
        let part = (u128::from(bits) * u128::from(span)) >> 64;
        low + Duration::from_nanos(u64::try_from(part).unwrap_or(span))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::Backoff;

    fn bounds() -> impl Strategy<Value = (Duration, Duration)> {
        (1u64..=10_000_000_000, 0u64..=600_000_000_000)
            .prop_map(|(min, more)| (Duration::from_nanos(min), Duration::from_nanos(min + more)))
    }

    proptest! {
        #[test]
        fn a_delay_stays_within_its_bounds((min, max) in bounds(), failures in 0u32..200) {
            let mut backoff = Backoff::try_new(min, max).unwrap();
            backoff.failures = failures;
            let delay = backoff.next_delay();
            prop_assert!(min <= delay && delay <= max, "{delay:?}");
        }

        #[test]
        fn the_server_is_never_asked_earlier_than_it_said(
            (min, max) in bounds(),
            after in 0u64..=600_000,
            failures in 0u32..40,
        ) {
            let (after, after_max) = (Duration::from_millis(after), Duration::from_secs(300));
            let mut backoff = Backoff::try_new(min, max).unwrap();
            backoff.failures = failures;
            let delay = backoff.next_after(after, after_max);
            prop_assert!(delay >= after.min(after_max) && delay >= min, "{delay:?}");
            prop_assert!(delay <= max.max((after + after / 10).min(after_max)), "{delay:?}");
        }
    }

    #[test]
    fn delays_double_until_the_longest_and_start_again_after_a_reset() {
        let seconds = Duration::from_secs;
        let mut backoff = Backoff::try_new(seconds(1), seconds(30)).unwrap();
        let ranges = [(1, 2), (2, 4), (4, 8), (8, 16), (15, 30), (15, 30)];
        for round in 0..2 {
            for (low, high) in ranges {
                let delay = backoff.next_delay();
                let within = seconds(low) <= delay && delay <= seconds(high);
                assert!(within, "round {round}: {delay:?} not in {low}..={high} s");
            }
            backoff.reset();
        }
    }

    #[test]
    fn delays_differ() {
        let mut backoff =
            Backoff::try_new(Duration::from_secs(1), Duration::from_secs(1000)).unwrap();
        backoff.failures = 20;
        let delays: std::collections::HashSet<_> = (0..100).map(|_| backoff.next_delay()).collect();
        assert!(delays.len() > 90);
    }

    #[test]
    fn senseless_bounds_are_refused() {
        assert!(Backoff::try_new(Duration::ZERO, Duration::from_secs(1)).is_err());
        assert!(Backoff::try_new(Duration::from_secs(2), Duration::from_secs(1)).is_err());
    }
}
