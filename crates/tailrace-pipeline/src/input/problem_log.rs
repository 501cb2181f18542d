//! Limits what the own log says of one kind of problem: some are named each minute, and the others counted. It reads
//! no clock.

use std::time::{Duration, Instant};

/// So many are named in a minute, for each kind of problem.
const NAMED_MAX: u32 = 5;
const WINDOW: Duration = Duration::from_secs(60);

/// What the own log said of one kind of problem.
#[derive(Debug, Default)]
pub(crate) struct ProblemLog {
    /// When the minute began.
    began: Option<Instant>,
    named: u32,
    others: u64,
}

impl ProblemLog {
    /// One more problem at `now`. If it is to be logged, how many were not since the last one that was.
    pub(crate) fn due(&mut self, now: Instant) -> Option<u64> {
        let is_over = |began: Instant| now.saturating_duration_since(began) >= WINDOW;
        if self.began.is_none_or(is_over) {
            self.began = Some(now);
            self.named = 0;
        }
        if self.named == NAMED_MAX {
            self.others = self.others.saturating_add(1);
            return None;
        }
        self.named += 1;
        Some(std::mem::take(&mut self.others))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_are_named_each_minute_and_the_others_counted() {
        let (mut log, start) = (ProblemLog::default(), Instant::now());
        let named =
            |log: &mut ProblemLog, at| (0..1000).filter_map(|_| log.due(at)).collect::<Vec<_>>();
        assert_eq!(named(&mut log, start), [0; NAMED_MAX as usize]);
        let second = Duration::from_secs(1);
        assert_eq!(log.due(start + 59 * second), None);
        assert_eq!(named(&mut log, start + 60 * second), [996, 0, 0, 0, 0]);
    }
}
