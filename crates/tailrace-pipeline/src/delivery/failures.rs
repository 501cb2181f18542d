//! The last failed attempt of one output, and when the next one is due: what a person asks first when nothing arrives.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// Shared by an output and whoever reports about it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Failures(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    last: Option<(SystemTime, String)>,
    retry_at: Option<SystemTime>,
    compared: u64,
}

impl Failures {
    /// So many refused records wait to be compared with more, and everything else is accepted.
    pub(crate) fn compared(&self, records: u64) {
        self.lock().compared = records;
    }

    /// How many refused records wait to be compared with more while everything else is accepted.
    pub(crate) fn records_compared(&self) -> u64 {
        self.lock().compared
    }

    /// An attempt failed at `now`, for this reason; the next one begins after `delay`, if that is known.
    pub(crate) fn failed(&self, reason: &str, delay: Option<Duration>, now: SystemTime) {
        let mut state = self.lock();
        state.last = Some((now, reason.to_owned()));
        let Some(at) = delay.and_then(|delay| now.checked_add(delay)) else {
            return;
        };
        // Several requests may wait: the first of them is the next attempt.
        let earlier = state.retry_at.filter(|known| (now..at).contains(known));
        state.retry_at = Some(earlier.unwrap_or(at));
    }

    /// An attempt succeeded: unless refused records wait, nothing is waited for. The last failure is still known.
    pub(crate) fn succeeded(&self) {
        let mut state = self.lock();
        if state.compared == 0 {
            state.retry_at = None;
        }
    }

    /// When the last attempt failed, and why. It stays known after a success.
    pub(crate) fn last(&self) -> Option<(SystemTime, String)> {
        self.lock().last.clone()
    }

    /// When the next attempt is due, if one is waited for.
    pub(crate) fn retry_at(&self) -> Option<SystemTime> {
        self.lock().retry_at
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_failure_stays_and_the_first_attempt_is_the_next() {
        let (failures, start) = (Failures::default(), SystemTime::UNIX_EPOCH);
        let seconds = Duration::from_secs;
        assert_eq!((failures.last(), failures.retry_at()), (None, None));
        failures.failed("a", Some(seconds(10)), start);
        failures.failed("b", Some(seconds(30)), start + seconds(1));
        assert_eq!(failures.last(), Some((start + seconds(1), "b".to_owned())));
        assert_eq!(failures.retry_at(), Some(start + seconds(10)));
        // That one is over: the one after it counts.
        failures.failed("c", Some(seconds(20)), start + seconds(10));
        assert_eq!(failures.retry_at(), Some(start + seconds(10)));
        failures.failed("c", Some(seconds(20)), start + seconds(11));
        assert_eq!(failures.retry_at(), Some(start + seconds(31)));
        failures.succeeded();
        assert_eq!(failures.retry_at(), None);
        assert_eq!(failures.last(), Some((start + seconds(11), "c".to_owned())));
        failures.failed("d", Some(Duration::MAX), start);
        assert_eq!(failures.retry_at(), None);
    }
}
