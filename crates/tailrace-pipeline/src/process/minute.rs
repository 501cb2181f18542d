//! Limits lines of the own log to one a minute, with how often something happened since the last one. It reads no clock.

const INTERVAL_NS: i64 = 60_000_000_000;

/// When a line was logged last, and what happened since.
#[derive(Debug, Default)]
pub(crate) struct Minute {
    logged_ns: Option<i64>,
    count: u64,
}

impl Minute {
    /// It happened so many times more at `now_ns`, in nanoseconds since the Unix epoch. How many times to log now, if it is
    /// time to: at once the first time, then at most once a minute.
    pub(crate) fn due(&mut self, count: u64, now_ns: i64) -> Option<u64> {
        self.count = self.count.saturating_add(count);
        // A clock that was set back must not end the log.
        let is_early = |logged: i64| (0..INTERVAL_NS).contains(&now_ns.saturating_sub(logged));
        if self.logged_ns.is_some_and(is_early) {
            return None;
        }
        self.logged_ns = Some(now_ns);
        Some(std::mem::take(&mut self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_due_at_once_and_then_once_a_minute_with_how_often() {
        let mut minute = Minute::default();
        assert_eq!(minute.due(3, 0), Some(3));
        assert_eq!(minute.due(4, INTERVAL_NS - 1), None);
        assert_eq!(minute.due(5, INTERVAL_NS), Some(9));
        assert_eq!(minute.due(1, 5), Some(1), "the clock was set back");
    }
}
