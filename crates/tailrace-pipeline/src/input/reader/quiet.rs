//! Sources that were read to their end and had nothing more for a while: the last record of each is complete. Takes
//! the time from who asks; never looks at a clock.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tailrace_inputs::SourceId;

/// When each source was last read from, of an input whose lines are joined.
#[derive(Debug)]
pub(super) struct Quiet {
    /// After so long a source is quiet; none if no record ever waits for that.
    timeout: Option<Duration>,
    /// Sources that were not quiet since.
    last_read: HashMap<SourceId, Instant>,
}

impl Quiet {
    pub(super) fn new(timeout: Option<Duration>) -> Self {
        Self {
            timeout,
            last_read: HashMap::new(),
        }
    }

    /// The source was read from.
    pub(super) fn read(&mut self, source: SourceId, now: Instant) {
        if self.timeout.is_some() {
            self.last_read.insert(source, now);
        }
    }

    /// The source has ended.
    pub(super) fn forget(&mut self, source: SourceId) {
        self.last_read.remove(&source);
    }

    /// How long it takes until the next source is quiet, at least; `None` if there is none.
    pub(super) fn next(&self, now: Instant) -> Option<Duration> {
        let timeout = self.timeout?;
        let first = self.last_read.values().min()?;
        Some((*first + timeout).saturating_duration_since(now))
    }

    /// The sources that have become quiet, each once. One with bytes that are not read yet waits anew.
    pub(super) fn take(
        &mut self,
        now: Instant,
        is_read_to_end: impl Fn(SourceId) -> bool,
    ) -> Vec<SourceId> {
        let mut quiet = Vec::new();
        if self.next(now) != Some(Duration::ZERO) {
            return quiet;
        }
        let timeout = self.timeout.unwrap_or_default();
        self.last_read.retain(|&source, last_read| {
            if *last_read + timeout > now {
                return true;
            }
            let is_quiet = is_read_to_end(source);
            if is_quiet {
                quiet.push(source);
            }
            *last_read = now;
            !is_quiet
        });
        quiet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_quiet_once_after_it_was_read_to_its_end() {
        let ms = Duration::from_millis;
        let start = Instant::now();
        let mut quiet = Quiet::new(Some(ms(100)));
        let (one, two) = (SourceId(1), SourceId(2));
        assert_eq!(quiet.next(start), None);
        quiet.read(one, start);
        quiet.read(two, start + ms(50));
        assert_eq!(quiet.next(start + ms(30)), Some(ms(70)));
        assert_eq!(quiet.take(start + ms(99), |_| true), []);
        assert_eq!(quiet.take(start + ms(100), |_| true), [one]);
        assert_eq!(quiet.next(start + ms(100)), Some(ms(50)));
        // There is more of it.
        assert_eq!(quiet.take(start + ms(150), |_| false), []);
        assert_eq!(quiet.next(start + ms(150)), Some(ms(100)));
        assert_eq!(quiet.take(start + ms(250), |_| true), [two]);
        assert_eq!(quiet.next(start + ms(250)), None);
        quiet.read(one, start + ms(300));
        quiet.forget(one);
        assert_eq!(quiet.next(start + ms(300)), None);
    }

    #[test]
    fn without_a_timeout_nothing_is_noted() {
        let mut quiet = Quiet::new(None);
        quiet.read(SourceId(1), Instant::now());
        assert_eq!(quiet.next(Instant::now()), None);
        assert!(quiet.last_read.is_empty());
    }
}
