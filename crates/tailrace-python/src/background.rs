//! Threads beside Python's: work that is waited for without keeping Python's other threads, and Ctrl-C, from running.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use tailrace_query::{STACK_BYTES, THREAD_NAME, runtime};
use tokio::runtime::Runtime;

/// How often a thread that waits looks for signals.
const SIGNALS_EVERY: Duration = Duration::from_millis(100);

/// Starts `work` on a thread with the stack that plans need, and with a runtime of so many threads.
///
/// # Errors
///
/// A thread cannot be started.
pub(crate) fn spawn(
    threads: Option<usize>,
    work: impl FnOnce(&Runtime) + Send + 'static,
) -> io::Result<()> {
    let runtime = runtime(threads)?;
    let thread = thread::Builder::new()
        .name(THREAD_NAME.to_owned())
        .stack_size(STACK_BYTES);
    thread.spawn(move || {
        work(&runtime);
        // A read of standard input may wait for ever.
        runtime.shutdown_background();
    })?;
    Ok(())
}

/// Waits for the next answer of other threads; `None` if there will be none.
///
/// # Errors
///
/// What a signal handler of Python raises, such as KeyboardInterrupt.
pub(crate) fn wait<T: Send>(py: Python<'_>, answers: &mut Receiver<T>) -> PyResult<Option<T>> {
    loop {
        let waiting = &mut *answers;
        match py.detach(move || waiting.recv_timeout(SIGNALS_EVERY)) {
            Ok(answer) => return Ok(Some(answer)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
        }
    }
}
