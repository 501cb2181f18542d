//! The budget of CPU time of an activity: a share of the elapsed time, plus what it has saved. It is pure: the caller passes
//! times and does the waiting.

use std::time::Duration;

/// A share of one core.
#[derive(Debug)]
pub(crate) struct Budget {
    /// One part in so many.
    part: u32,
    /// What can be saved up.
    burst: Duration,
    /// What is left; below zero it is owed.
    left_ns: i64,
    /// When that was so.
    at: Duration,
}

impl Budget {
    pub(crate) fn new(part: u32, burst: Duration) -> Self {
        Self {
            part,
            burst,
            left_ns: nanoseconds(burst),
            at: Duration::ZERO,
        }
    }

    /// So much was taken by `now`.
    pub(crate) fn take(&mut self, taken: Duration, now: Duration) {
        let earned = now.saturating_sub(self.at) / self.part;
        self.at = self.at.max(now);
        self.left_ns = self.left_ns.saturating_add(nanoseconds(earned));
        self.left_ns = self.left_ns.min(nanoseconds(self.burst));
        self.left_ns = self.left_ns.saturating_sub(nanoseconds(taken));
    }

    /// How long to wait until nothing is owed; zero if nothing is.
    pub(crate) fn wait(&self) -> Duration {
        let owed = u64::try_from(-self.left_ns.max(-i64::MAX)).unwrap_or(0);
        Duration::from_nanos(owed).saturating_mul(self.part)
    }
}

fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn what_is_taken_beyond_what_was_saved_is_waited_for() {
        let mut budget = Budget::new(50, 100 * MS);
        budget.take(100 * MS, Duration::ZERO);
        assert_eq!(budget.wait(), Duration::ZERO);
        budget.take(3 * MS, Duration::ZERO);
        assert_eq!(budget.wait(), 150 * MS);
        budget.take(Duration::ZERO, 150 * MS);
        assert_eq!(budget.wait(), Duration::ZERO);
        // No more is saved up than the burst, however long nothing was taken.
        budget.take(Duration::ZERO, 10_000_000 * MS);
        budget.take(101 * MS, 10_000_000 * MS);
        assert_eq!(budget.wait(), 50 * MS);
    }

    #[test]
    fn in_the_long_run_it_takes_its_part() {
        let mut budget = Budget::new(50, Duration::ZERO);
        let (mut now, mut taken) = (Duration::ZERO, Duration::ZERO);
        for step in 1..1000 {
            budget.take(MS * (step % 7), now);
            taken += MS * (step % 7);
            now += budget.wait();
        }
        assert_eq!(now, taken * 50);
    }

    #[test]
    fn absurd_times_do_no_harm() {
        let mut budget = Budget::new(1, Duration::MAX);
        budget.take(Duration::MAX, Duration::MAX);
        budget.take(Duration::MAX, Duration::ZERO);
        budget.take(Duration::MAX, Duration::MAX);
        assert!(budget.wait() > Duration::ZERO);
    }
}
