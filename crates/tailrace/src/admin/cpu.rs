//! CPU time and priority of the calling thread.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// The time that a thread was on a processor, as the kernel counts it, and that planning took for it.
#[derive(Debug)]
pub(crate) struct ThreadClock {
    /// None where the kernel does not count: the thread then seems to take nothing.
    file: Option<File>,
}

impl ThreadClock {
    /// Of the calling thread.
    pub(crate) fn new() -> Self {
        Self {
            file: File::open("/proc/thread-self/schedstat").ok(),
        }
    }

    /// The time so far. Called on that thread.
    pub(crate) fn now(&self) -> Duration {
        let mut text = [0; 64];
        let read = self.file.as_ref().map(|file| file.read_at(&mut text, 0));
        let text = match read {
            Some(Ok(length)) => std::str::from_utf8(&text[..length]).unwrap_or(""),
            _ => "",
        };
        let nanoseconds = text.split(' ').next().and_then(|first| first.parse().ok());
        Duration::from_nanos(nanoseconds.unwrap_or(0)) + self.planning_time()
    }

    fn planning_time(&self) -> Duration {
        match self.file {
            Some(_) => tailrace_sql::planning_time(),
            None => Duration::ZERO,
        }
    }
}

/// What a piece of work took of a processor. The kernel adds that up when it looks, at ticks and switches: a single figure is
/// rough, and their sum is right. Where it does not count, this is the time that went by.
pub(super) fn measured<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let clock = ThreadClock::new();
    let (start, begin) = (clock.now(), Instant::now());
    let result = work();
    let taken = match clock.file {
        Some(_) => clock.now().saturating_sub(start),
        None => begin.elapsed(),
    };
    (result, taken)
}

/// From here on the calling thread runs where no other thread of the process wants to, and takes less than 2 % of a
/// processor that one of them uses. Where the system forbids that, it stays as it is.
pub(crate) fn give_way() {
    let _ = rustix::process::nice(19);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_works_takes_time() {
        let clock = ThreadClock::new();
        let (start, mut sum) = (clock.now(), 0_u64);
        // Until the kernel has counted it.
        while clock.file.is_some() && clock.now() == start {
            sum = std::hint::black_box(sum + 1);
        }
        assert_eq!(ThreadClock { file: None }.now(), Duration::ZERO);
    }

    #[test]
    fn only_the_calling_thread_gives_way() {
        let nice = || rustix::process::nice(0).unwrap_or_default();
        let before = nice();
        let other = std::thread::spawn(move || {
            give_way();
            nice()
        });
        assert!(other.join().unwrap() >= before);
        assert_eq!(nice(), before);
    }
}
