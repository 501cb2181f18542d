//! A query that follows its files: it ends with a signal, and says meanwhile what is wrong with a file.

use std::io::{self, Write};
use std::pin::pin;
use std::time::Duration;

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, poll};
use tailrace_query::{Error, Notes, Temporary};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use super::print::How;
use crate::cli::Failure;
use crate::printed::Printer;

/// What the process ends with when a signal comes while nobody takes the rows.
pub(super) const INTERRUPTED: i32 = 130;
const TERMINATED: i32 = 143;
const HUNG_UP: i32 = 129;
/// How long the thread of the query may then wait for whoever reads its rows.
const GRACE: Duration = Duration::from_secs(1);

/// The form of the rows. Those of a query that does not end are printed as they come.
///
/// # Errors
///
/// The form has a last line.
pub(super) fn how(asked: Option<How>) -> Result<How, Failure> {
    match asked {
        None => Ok(How::Jsonl),
        Some(how @ (How::Jsonl | How::Csv | How::Tsv)) => Ok(how),
        Some(_) => Err(Failure::Usage(
            "`-f` prints rows as they come: `-o` is jsonl, csv or tsv with it".to_owned(),
        )),
    }
}

/// Runs a query until it ends, or until SIGINT or SIGTERM, which is an end as good as any.
///
/// # Errors
///
/// Signals cannot be waited for, or the standard error is gone.
pub(super) async fn until_signal(
    run: impl Future<Output = Result<(), Error>>,
    notes: &Notes,
) -> anyhow::Result<Result<(), Error>> {
    let (signalled, gone) = (signalled()?, reader_gone()?);
    let mut run = pin!(run);
    let (mut signalled, mut gone) = (pin!(signalled), pin!(gone));
    loop {
        tokio::select! {
            ended = &mut run => return Ok(ended),
            _ = &mut signalled => return Ok(Ok(())),
            _ = &mut gone => return Ok(Ok(())),
            problems = notes.problems() => {
                let mut stderr = Printer::stderr();
                for problem in problems {
                    writeln!(stderr, "note: {problem}").context("stderr")?;
                }
            }
        }
    }
}

/// Ends when SIGINT or SIGTERM comes. At a second one, or if the rows are not taken, the process ends.
///
/// # Errors
///
/// Signals cannot be waited for.
pub(super) fn signalled() -> anyhow::Result<oneshot::Receiver<()>> {
    let wait = |kind| signal(kind).context("signals cannot be waited for");
    let mut interrupt = wait(SignalKind::interrupt())?;
    let mut terminate = wait(SignalKind::terminate())?;
    let (sender, receiver) = oneshot::channel();
    tokio::spawn(async move {
        let code = tokio::select! {
            _ = interrupt.recv() => INTERRUPTED,
            _ = terminate.recv() => TERMINATED,
        };
        // Nobody waits for it if the query has ended.
        let _ = sender.send(());
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            () = tokio::time::sleep(GRACE) => {}
        }
        #[allow(
            clippy::disallowed_methods,
            reason = "at once, whatever the thread of the query waits for"
        )]
        std::process::exit(code);
    });
    Ok(receiver)
}

/// Ends the process when SIGINT, SIGTERM or SIGHUP comes, and removes what its query has on disk: on a thread of its own, for those
/// of the query may be busy for long. SIGHUP stays ignored where it is, as by `nohup`.
///
/// # Errors
///
/// Signals cannot be waited for.
pub(super) fn end_at_signal(temporary: Temporary) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build();
    let runtime = runtime.context("signals cannot be waited for")?;
    let signalled = {
        let _entered = runtime.enter();
        let wait = |kind| signal(kind).context("signals cannot be waited for");
        (
            wait(SignalKind::interrupt())?,
            wait(SignalKind::terminate())?,
            (!ignores_hangups())
                .then(|| wait(SignalKind::hangup()))
                .transpose()?,
        )
    };
    let wait = move || {
        let (mut interrupt, mut terminate, mut hangup) = signalled;
        let hung_up = async {
            match &mut hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        let code = runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => INTERRUPTED,
                _ = terminate.recv() => TERMINATED,
                _ = hung_up => HUNG_UP,
            }
        });
        temporary.remove();
        #[allow(
            clippy::disallowed_methods,
            reason = "at once, whatever the thread of the query waits for"
        )]
        std::process::exit(code);
    };
    let thread = std::thread::Builder::new().name("signals".to_owned());
    thread.spawn(wait).context("a thread cannot be started")?;
    Ok(())
}

/// Whether the process was started with SIGHUP ignored.
fn ignores_hangups() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Signals are counted from 1, and this is the first.
    ignored.is_some_and(|mask| mask & 1 == 1)
}

/// Ends when nobody can read the standard output any more.
fn reader_gone() -> anyhow::Result<oneshot::Receiver<()>> {
    let (sender, receiver) = oneshot::channel();
    let wait = move || {
        let stdout = io::stdout();
        loop {
            let mut stdout = [PollFd::new(&stdout, PollFlags::empty())];
            match poll(&mut stdout, None) {
                Err(rustix::io::Errno::INTR) => {}
                // The query goes on until a row cannot be written.
                Err(_) => return std::mem::forget(sender),
                Ok(_) => break,
            }
        }
        let _ = sender.send(());
    };
    let thread = std::thread::Builder::new().name("reader-gone".to_owned());
    thread.spawn(wait).context("a thread cannot be started")?;
    Ok(receiver)
}
