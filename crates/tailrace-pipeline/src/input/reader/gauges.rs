//! The gauges of an input that walk all its files, and what is wrong with the metadata of pods. Counts nothing else.

use std::time::{Duration, Instant};

use tailrace_inputs::Input;
use tracing::{info, warn};

use crate::input::pods::Awaiting;
use crate::shared::Shared;

/// How often the gauges that walk all files are set.
const GAUGES_EVERY: Duration = Duration::from_secs(1);

/// The gauges that walk all files, and when they are set again.
pub(super) struct Gauges {
    pub(super) next: Instant,
    /// The last reported error with the metadata of pods.
    pub(super) metadata_error: Option<String>,
    /// How many attempts to get it have failed so far.
    pub(super) metadata_errors: u64,
}

impl Gauges {
    /// Sets them, if it is time.
    pub(super) fn set(
        &mut self,
        shared: &Shared,
        input: usize,
        reading: &mut dyn Input,
        awaiting: Option<&Awaiting>,
    ) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.next = now + GAUGES_EVERY;
        let gauge = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let metrics = &shared.metrics;
        let gauges = reading.gauges(now);
        if let Some(open) = gauges.open_files {
            metrics.files_open.set(gauge(open));
        }
        if let Some(denied) = gauges.denied {
            let denied = shared.health.set_denied(input, denied);
            metrics.denied_paths.set(gauge(denied as u64));
        }
        if let Some(unread) = gauges.unread_bytes {
            metrics.unread_bytes.set(gauge(unread));
        }
        let seconds = gauges.oldest_unread.unwrap_or_default().as_secs();
        metrics.oldest_unread.set(gauge(seconds));
        if let Some(awaiting) = awaiting {
            self.report_metadata(shared, awaiting);
        }
    }

    /// How the metadata of pods comes in; each error is reported once.
    fn report_metadata(&mut self, shared: &Shared, awaiting: &Awaiting) {
        let status = awaiting.node().status();
        let gauge = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let metrics = &shared.metrics;
        metrics.pods.set(gauge(status.tracked));
        metrics.pods_awaited.set(gauge(status.awaited));
        let new = status.errors.saturating_sub(self.metadata_errors);
        metrics.metadata_errors.inc_by(new);
        self.metadata_errors = status.errors;
        if status.last_error != self.metadata_error {
            match &status.last_error {
                Some(error) => {
                    warn!(
                        pipeline = shared.plan.name,
                        "metadata of pods cannot be had: {error}"
                    );
                }
                None => info!(pipeline = shared.plan.name, "metadata of pods comes in"),
            }
            self.metadata_error = status.last_error;
        }
    }
}
