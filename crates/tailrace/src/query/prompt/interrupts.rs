//! Ctrl-C, which stops a query and not the program.

use std::sync::Arc;
use std::thread;

use anyhow::Context;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

/// The interrupts of this process. A thread of their own waits for them, since those of a query may all be busy.
pub(super) struct Interrupts {
    came: Arc<Notify>,
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
        let sender = Arc::clone(&came);
        let wait = move || {
            runtime.block_on(async {
                while interrupt.recv().await.is_some() {
                    sender.notify_one();
                }
            });
        };
        let thread = thread::Builder::new().name("interrupts".to_owned());
        thread.spawn(wait).context("a thread cannot be started")?;
        Ok(Interrupts { came })
    }

    /// Forgets one that came while no query ran.
    pub(super) fn forget(&self) {
        let mut came = std::pin::pin!(self.came.notified());
        // It is there at once if one came.
        let _ = came.as_mut().enable();
    }

    /// Waits for the next one.
    pub(super) async fn next(&self) {
        self.came.notified().await;
    }
}
