//! How an output stands: whether it delivers, what went wrong last, and when it tries again. Counts nothing and sends
//! nothing.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Whether an output delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputState {
    /// Requests are accepted.
    Ok,
    /// There is nothing to send, and nothing was for a while.
    Idle,
    /// The last attempt failed and is repeated.
    Retrying,
    /// The server refuses the output, or records cannot be set aside; it waits from one attempt to the next.
    Holding,
    /// It is behind the other outputs of its pipeline and reads by itself.
    Detached,
}

impl OutputState {
    /// Its name for people and programs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Idle => "idle",
            Self::Retrying => "retrying",
            Self::Holding => "holding",
            Self::Detached => "detached",
        }
    }
}

/// What an attempt said that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastError {
    /// When.
    pub at: SystemTime,
    /// What happened.
    pub text: String,
}

/// What all requests of an output say of it.
#[derive(Debug, Default)]
pub(crate) struct Standing(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// What the last attempt said, if it failed.
    said: Option<String>,
    last_error: Option<LastError>,
    next_attempt: Option<Instant>,
    accepted_at: Option<Instant>,
}

/// After the last accepted request an output without work is idle.
const IDLE_AFTER: Duration = Duration::from_secs(60);

impl Standing {
    /// An attempt failed; the next one is made after this time, if it is known.
    pub(crate) fn failed(&self, text: &str, delay: Option<Duration>, now: Instant) {
        let mut state = self.lock();
        state.said = Some(text.to_owned());
        state.last_error = Some(LastError {
            at: SystemTime::now(),
            text: text.to_owned(),
        });
        let next = delay.map(|delay| now + delay);
        // Of several requests the first one counts.
        let earlier = state.next_attempt.filter(|&known| known > now);
        state.next_attempt = match (earlier, next) {
            (Some(earlier), Some(next)) => Some(earlier.min(next)),
            (earlier, next) => next.or(earlier),
        };
    }

    /// A request was accepted.
    pub(crate) fn accepted(&self, now: Instant) {
        let mut state = self.lock();
        (state.said, state.next_attempt) = (None, None);
        state.accepted_at = Some(now);
    }

    /// What the last attempt said, if it failed.
    pub(crate) fn said(&self) -> Option<String> {
        self.lock().said.clone()
    }

    /// The last error of all.
    pub(crate) fn last_error(&self) -> Option<LastError> {
        self.lock().last_error.clone()
    }

    /// How long until the next attempt, where the last one failed.
    pub(crate) fn retry_in(&self, now: Instant) -> Option<Duration> {
        let state = self.lock();
        let next = state.next_attempt.filter(|_| state.said.is_some());
        next.map(|next| next.saturating_duration_since(now))
    }

    /// Whether nothing was accepted lately.
    pub(crate) fn is_quiet(&self, now: Instant) -> bool {
        let accepted_at = self.lock().accepted_at;
        accepted_at.is_none_or(|at| now.saturating_duration_since(at) >= IDLE_AFTER)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_next_attempt_is_the_first_one_and_gone_once_something_is_accepted() {
        let (standing, now) = (Standing::default(), Instant::now());
        assert_eq!((standing.retry_in(now), standing.said()), (None, None));
        standing.failed("503", Some(5 * SECOND), now);
        standing.failed("503", Some(9 * SECOND), now);
        assert_eq!(standing.retry_in(now), Some(5 * SECOND));
        assert_eq!(standing.retry_in(now + 7 * SECOND), Some(Duration::ZERO));
        // What was planned for a moment that has passed says nothing.
        standing.failed("401", Some(9 * SECOND), now + 6 * SECOND);
        assert_eq!(standing.retry_in(now + 6 * SECOND), Some(9 * SECOND));
        standing.accepted(now + 8 * SECOND);
        assert_eq!((standing.retry_in(now), standing.said()), (None, None));
        let last = standing.last_error().map(|error| error.text);
        assert_eq!(last.as_deref(), Some("401"), "what happened is remembered");
    }

    #[test]
    fn an_output_is_quiet_a_minute_after_the_last_request() {
        let (standing, now) = (Standing::default(), Instant::now());
        assert!(standing.is_quiet(now));
        standing.accepted(now);
        assert!(!standing.is_quiet(now + 59 * SECOND));
        assert!(standing.is_quiet(now + 60 * SECOND));
    }
}
