//! How long to wait before the next attempt. The delay is a function of the number of failures and
//! random bits.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

const MIN: Duration = Duration::from_millis(500);
const MAX: Duration = Duration::from_secs(30);

/// Doubles from 1 s to 30 s; each wait is a random time between half of that and all of it, so that the
/// agents of many nodes do not come back to a server in the same moment.
#[derive(Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
    }

    pub(crate) fn next(&mut self) -> Duration {
        // A hasher with new random keys is all the randomness this needs.
        let random = RandomState::new().build_hasher().finish();
        self.failures = self.failures.saturating_add(1);
        delay(self.failures, random)
    }
}

fn delay(failures: u32, random: u64) -> Duration {
    let factor = 2u32.checked_pow(failures);
    let ceiling = factor.and_then(|factor| MIN.checked_mul(factor));
    let ceiling = ceiling.map_or(MAX, |ceiling| ceiling.min(MAX));
    let floor = ceiling / 2;
    let spread = u64::try_from((ceiling - floor).as_nanos()).unwrap_or(u64::MAX);
    floor + Duration::from_nanos(random % spread.max(1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn never_shorter_or_longer(failures in 1u32..40, random in any::<u64>()) {
            let delay = delay(failures, random);
            prop_assert!(delay >= MIN && delay <= MAX, "{delay:?}");
        }
    }

    #[test]
    fn doubles_and_starts_over() {
        for (failures, floor) in [(1, 500), (2, 1000), (3, 2000), (6, 15_000), (60, 15_000)] {
            assert_eq!(
                delay(failures, 0),
                Duration::from_millis(floor),
                "{failures}"
            );
        }
        let mut backoff = Backoff { failures: 9 };
        backoff.succeeded();
        assert!(backoff.next() <= Duration::from_secs(1));
    }
}
