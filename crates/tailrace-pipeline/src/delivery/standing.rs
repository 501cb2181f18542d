//! Whether an output delivers, as its last requests say. What failed last and when the next attempt is due is in `failures`.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Whether an output delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputState {
    /// Requests are accepted.
    Ok,
    /// There is nothing to send, and nothing was for a while.
    Idle,
    /// The last attempt failed, or records were refused, and it is repeated.
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

/// What all requests of an output say of it.
#[derive(Debug, Default)]
pub(crate) struct Standing(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// What the last attempt said, if it failed.
    said: Option<String>,
    accepted_at: Option<Instant>,
}

/// After the last accepted request an output without work is idle.
const IDLE_AFTER: Duration = Duration::from_secs(60);

impl Standing {
    /// An attempt failed.
    pub(crate) fn failed(&self, text: &str) {
        self.lock().said = Some(text.to_owned());
    }

    /// A request was accepted.
    pub(crate) fn accepted(&self, now: Instant) {
        let mut state = self.lock();
        state.said = None;
        state.accepted_at = Some(now);
    }

    /// Nothing is left of what failed: it was accepted or set aside.
    pub(crate) fn cleared(&self) {
        self.lock().said = None;
    }

    /// What the last attempt said, if it failed.
    pub(crate) fn said(&self) -> Option<String> {
        self.lock().said.clone()
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

    #[test]
    fn an_output_is_quiet_a_minute_after_the_last_request() {
        let (standing, now) = (Standing::default(), Instant::now());
        assert!(standing.is_quiet(now));
        standing.failed("503");
        assert_eq!(standing.said().as_deref(), Some("503"));
        standing.cleared();
        assert_eq!(standing.said(), None);
        standing.accepted(now);
        assert_eq!(standing.said(), None);
        let second = Duration::from_secs(1);
        assert!(!standing.is_quiet(now + 59 * second));
        assert!(standing.is_quiet(now + 60 * second));
    }
}
