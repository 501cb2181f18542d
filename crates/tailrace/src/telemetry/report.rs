//! What the own log says about sending own logs and metrics: that it fails, at most once a minute, and that it works again.
//! These lines go to standard error alone.

use std::time::Duration;

use tailrace_outputs::Signal;
use tokio::time::Instant;
use tracing::{info, warn};

/// A problem that lasts is reported again after this.
const AGAIN: Duration = Duration::from_secs(60);

/// The standing of one signal.
#[derive(Debug)]
pub(super) struct Report {
    signal: Signal,
    is_failing: bool,
    warned_at: Option<Instant>,
}

impl Report {
    pub(super) fn new(signal: Signal) -> Self {
        Self {
            signal,
            is_failing: false,
            warned_at: None,
        }
    }

    /// An attempt failed; another one follows after a pause.
    pub(super) fn failed(&mut self, reason: &str, after: Duration) {
        if self.is_due() {
            self.is_failing = true;
            let retry_in_s = after.as_secs_f64();
            match self.signal {
                Signal::Logs => warn!(
                    error = reason,
                    retry_in_s,
                    "the agent's own logs cannot be sent; the pipelines are not affected"
                ),
                Signal::Metrics => warn!(
                    error = reason,
                    retry_in_s,
                    "the agent's own metrics cannot be sent; the pipelines are not affected"
                ),
            }
        }
    }

    /// What was to be sent will never be accepted.
    pub(super) fn refused(&mut self, reason: &str) {
        if self.is_due() {
            let signal = self.signal.as_str();
            warn!(
                error = reason,
                signal, "what the agent sends about itself is refused, and dropped"
            );
        }
    }

    /// The server accepted a request, but for `rejected` lines or points, or with a message.
    pub(super) fn delivered(&mut self, rejected: u64, message: Option<&str>) {
        if std::mem::take(&mut self.is_failing) {
            self.warned_at = None;
            let signal = self.signal.as_str();
            info!(signal, "what the agent sends about itself arrives again");
        }
        if (rejected > 0 || message.is_some()) && self.is_due() {
            let signal = self.signal.as_str();
            let message = message.unwrap_or_default();
            warn!(
                signal,
                rejected,
                message,
                "the server accepted what the agent sends about itself in part, or with a message"
            );
        }
    }

    /// Whether a problem is to be reported now.
    fn is_due(&mut self) -> bool {
        let is_due = self.warned_at.is_none_or(|at| at.elapsed() >= AGAIN);
        if is_due {
            self.warned_at = Some(Instant::now());
        }
        is_due
    }
}
