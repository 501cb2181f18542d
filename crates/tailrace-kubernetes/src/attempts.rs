//! The delays between attempts to reach the API server or the kubelet.

use std::time::Duration;

use tailrace_model::backoff::Backoff;

const MIN: Duration = Duration::from_millis(500);
const MAX: Duration = Duration::from_secs(30);

/// The first delay is about a second, the longest half a minute.
pub(crate) fn backoff() -> Backoff {
    Backoff::try_new(MIN, MAX).expect("the first delay is not the longer one")
}
