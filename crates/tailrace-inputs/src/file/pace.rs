//! When a file is looked at again, and what its looks have shown: of files that were active of late.
//!
//! Most of very many files are idle, and take no memory for it.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::file::growth::Growth;

/// What only a file has that is read, waits for a time, or was seen to grow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pace {
    /// When to look at it again without a notification, and the timer that is set for that.
    pub(crate) due: Option<Instant>,
    pub(crate) timer: Option<Instant>,
    /// How long to wait after the next error; doubles with each.
    pub(crate) backoff: Duration,
    /// How it was seen to grow.
    pub(crate) growth: Growth,
}

/// An instant of this process, in half the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment(u64);

static FIRST: LazyLock<Instant> = LazyLock::new(Instant::now);

impl Moment {
    pub(crate) fn now() -> Self {
        let first = *FIRST;
        let since = Instant::now().saturating_duration_since(first);
        Self(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    pub(crate) fn instant(self) -> Instant {
        *FIRST + Duration::from_nanos(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_an_instant() {
        let before = Instant::now();
        let first = Moment::now();
        let now = Moment::now().instant();
        assert!(first.instant() <= now && now <= Instant::now());
        assert!(now.saturating_duration_since(before) <= before.elapsed());
    }
}
