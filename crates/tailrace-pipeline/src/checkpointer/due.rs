//! Asks for a checkpoint before the second is over: a file that is followed from now on, and that no checkpoint knows, would be
//! forgotten by a kill -9, with what was not read of it if it is renamed meanwhile.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// When the next checkpoint is to be written.
#[derive(Debug, Default)]
pub(crate) struct Due {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// A checkpoint is asked for.
    is_asked: bool,
    is_ended: bool,
}

impl Due {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a checkpoint soon.
    pub(crate) fn ask(&self) {
        let was_asked = std::mem::replace(&mut self.lock().is_asked, true);
        if !was_asked {
            self.changed.notify_all();
        }
    }

    #[cfg(test)]
    pub(crate) fn is_asked(&self) -> bool {
        self.lock().is_asked
    }

    /// None is to be written any more.
    pub(crate) fn end(&self) {
        self.lock().is_ended = true;
        self.changed.notify_all();
    }

    /// Waits until a checkpoint is due: until `most` has passed, or only `least` if somebody asks for one or has asked since the
    /// last one was due. False at the end.
    pub(crate) fn wait(&self, least: Duration, most: Duration) -> bool {
        let begun_at = Instant::now();
        let mut state = self.lock();
        loop {
            if state.is_ended {
                return false;
            }
            let until = if state.is_asked { least } else { most };
            let left = until.saturating_sub(begun_at.elapsed());
            if left.is_zero() {
                state.is_asked = false;
                return true;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use super::*;
    use crate::watermark::{Opening, Tracker};

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn who_asks_is_heard_and_so_is_the_end() {
        let due = Due::default();
        due.ask();
        assert!(due.wait(Duration::ZERO, LONG));
        std::thread::scope(|scope| {
            scope.spawn(|| due.ask());
            assert!(due.wait(Duration::ZERO, LONG));
            scope.spawn(|| due.end());
            assert!(!due.wait(Duration::ZERO, LONG));
        });
        due.ask();
        assert!(!due.wait(Duration::ZERO, LONG));
    }

    /// What is read on is in the checkpoint already.
    #[test]
    fn a_file_that_is_read_from_its_beginning_asks() {
        let due = Arc::new(Due::default());
        let tracker = Tracker::new(1, u64::MAX);
        tracker.asks(&due);
        for (offset, is_asked) in [(7, false), (0, true)] {
            tracker.open(Opening {
                id: None,
                generation: 0,
                path: PathBuf::from("/var/log/app.log").into(),
                origin: None,
                offset,
                size: 9,
                replay_to: 0,
                resume: Vec::new(),
            });
            assert_eq!(due.is_asked(), is_asked);
        }
        assert!(due.wait(Duration::ZERO, LONG));
    }
}
