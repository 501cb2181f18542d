//! A query that follows its files: it ends with a signal, and says meanwhile what is wrong with a file.

use std::io::Write;
use std::pin::pin;

use anyhow::Context;
use tailrace_query::{Error, Notes};
use tokio::signal::unix::{SignalKind, signal};

use super::print::How;
use crate::cli::Failure;
use crate::printed::Printer;

/// What a second signal ends the process with, while nobody takes the rows.
const INTERRUPTED: i32 = 130;

/// The form of the rows. Those of a query that does not end are printed as they come.
///
/// # Errors
///
/// The form has a last line.
pub(super) fn how(asked: Option<How>) -> Result<How, Failure> {
    match asked {
        None => Ok(How::Jsonl),
        Some(how @ (How::Jsonl | How::Csv | How::Tsv)) => Ok(how),
        Some(How::Table | How::Json | How::Markdown) => Err(Failure::Usage(
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
    let wait = |kind| signal(kind).context("signals cannot be waited for");
    let mut interrupt = wait(SignalKind::interrupt())?;
    let mut terminate = wait(SignalKind::terminate())?;
    // The thread of the query may wait for whoever reads its rows.
    let mut again = wait(SignalKind::interrupt())?;
    tokio::spawn(async move {
        again.recv().await;
        again.recv().await;
        #[allow(
            clippy::disallowed_methods,
            reason = "at once, whatever the thread of the query waits for"
        )]
        std::process::exit(INTERRUPTED);
    });
    let mut run = pin!(run);
    loop {
        tokio::select! {
            ended = &mut run => return Ok(ended),
            _ = interrupt.recv() => return Ok(Ok(())),
            _ = terminate.recv() => return Ok(Ok(())),
            problems = notes.problems() => {
                let mut stderr = Printer::stderr();
                for problem in problems {
                    writeln!(stderr, "note: {problem}").context("stderr")?;
                }
            }
        }
    }
}
