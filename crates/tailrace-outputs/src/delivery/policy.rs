//! How an output is driven: how many requests at once, when to retry, and what happens while everything is refused.

use std::time::Duration;

/// How an output is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveConfig {
    /// The most requests in flight at once.
    pub concurrency: usize,
    /// What happens to requests while everything is refused.
    pub on_refused: OnRefused,
}

choice! {
    /// What happens to refused records without evidence that they are at fault.
    pub enum OnRefused {
        /// They wait until the server accepts them. The data stays in the files.
        Hold = "hold",
        /// They are dropped and counted.
        Drop = "drop",
    }
}

/// When to try again.
#[derive(Clone, Debug)]
pub struct RetryPolicy {
    /// The shortest delay before another attempt.
    pub min: Duration,
    /// The longest delay; not shorter than the shortest, which is not zero.
    pub max: Duration,
    /// The longest wait a server may ask for.
    pub after_max: Duration,
    /// The time between two probes while the output holds.
    pub hold: Duration,
}

impl RetryPolicy {
    /// A policy with delays from `min` to `max`, and defaults for the rest.
    pub const fn between(min: Duration, max: Duration) -> RetryPolicy {
        RetryPolicy {
            min,
            max,
            after_max: Duration::from_secs(300),
            hold: Duration::from_secs(30),
        }
    }
}
