//! A thread that is waited for when it ends, but not for ever: a shutdown must not hang on one long computation.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{io, thread};

use tracing::warn;

/// A thread that was started.
#[derive(Debug)]
pub(crate) struct Ending {
    name: &'static str,
    thread: JoinHandle<()>,
    /// Never gets anything: its sender is dropped when the thread ends.
    ended: Receiver<()>,
}

impl Ending {
    /// Starts a thread.
    ///
    /// # Errors
    ///
    /// The system has none.
    pub(crate) fn start(
        name: &'static str,
        run: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let (end, ended) = sync_channel(0);
        let run = move || {
            let _end: SyncSender<()> = end;
            run();
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(run)?;
        Ok(Self {
            name,
            thread,
            ended,
        })
    }

    /// Waits until the thread has ended, for so long at most; true if it has.
    pub(crate) fn wait(self, longest: Duration) -> bool {
        if self.ended.recv_timeout(longest) == Err(RecvTimeoutError::Timeout) {
            warn!(
                thread = self.name,
                "a thread is still at work: it is left behind"
            );
            return false;
        }
        // A thread that panicked has said so.
        let _ = self.thread.join();
        true
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_thread_that_goes_on_is_left_and_one_that_ends_is_joined() {
        let (go, gone) = sync_channel::<()>(0);
        let ending = Ending::start("test", move || {
            let _ = gone.recv();
        });
        assert!(!ending.unwrap().wait(Duration::from_millis(1)));
        drop(go);
        let ending = Ending::start("test", || {});
        assert!(ending.unwrap().wait(Duration::from_secs(60)));
        let ending = Ending::start("test", || panic!("on purpose"));
        assert!(ending.unwrap().wait(Duration::from_secs(60)));
    }
}
