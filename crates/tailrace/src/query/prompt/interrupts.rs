//! Ctrl-C, which stops a query and not the program. A second one ends the program, where the first is not noticed: while a
//! file that is a pipe is opened, or a server does not answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::Context;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use super::super::follow::INTERRUPTED;

/// The interrupts of this process. A thread of their own waits for them, since those of a query may all be busy.
pub(super) struct Interrupts {
    came: Arc<Notify>,
    /// One came that nobody has noticed.
    is_waiting: Arc<AtomicBool>,
}

impl Interrupts {
    /// From now on SIGINT does not end the process.
    ///
    /// # Errors
    ///
    /// Signals cannot be waited for.
    pub(super) fn listen() -> anyhow::Result<Interrupts> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("signals cannot be waited for")?;
        let entered = runtime.enter();
        let mut interrupt =
            signal(SignalKind::interrupt()).context("signals cannot be waited for")?;
        drop(entered);
        let came = Arc::<Notify>::default();
        let is_waiting = Arc::<AtomicBool>::default();
        let (sender, is_unnoticed) = (Arc::clone(&came), Arc::clone(&is_waiting));
        let wait = move || {
            runtime.block_on(async {
                while interrupt.recv().await.is_some() {
                    if is_unnoticed.swap(true, Ordering::Relaxed) {
                        #[allow(
                            clippy::disallowed_methods,
                            reason = "at once, whatever the thread of the query waits for"
                        )]
                        std::process::exit(INTERRUPTED);
                    }
                    sender.notify_one();
                }
            });
        };
        let thread = thread::Builder::new().name("interrupts".to_owned());
        thread.spawn(wait).context("a thread cannot be started")?;
        Ok(Interrupts { came, is_waiting })
    }

    /// Forgets one that came while no query ran; says whether one had.
    pub(super) fn forget(&self) -> bool {
        let mut came = std::pin::pin!(self.came.notified());
        // It is there at once if one came.
        let came = came.as_mut().enable();
        self.is_waiting.store(false, Ordering::Relaxed);
        came
    }

    /// Waits for the next one.
    pub(super) async fn next(&self) {
        self.came.notified().await;
        self.is_waiting.store(false, Ordering::Relaxed);
    }
}
