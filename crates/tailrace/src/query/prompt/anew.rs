//! A query that was interrupted and does not stop: a cross join that finds nothing looks up from its work for hours. Its threads would
//! keep the next query waiting, and threads cannot be ended; so the process becomes a new one, with a prompt over the same files.

use std::env;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tailrace_query::Temporary;

use super::super::session::Session;
use super::interrupts::Interrupts;
use crate::printed::Printer;
use crate::sysinfo;

/// How long an interrupted query may take to stop.
const TIMEOUT: Duration = Duration::from_secs(1);

/// How long the process is looked at, and how much of that one busy thread takes at least, beside other programs.
const LOOK: Duration = Duration::from_millis(100);
const BUSY: Duration = Duration::from_millis(40);

/// Begins the process anew if a query that was interrupted still works after a second, or at the next interrupt. Where files
/// of the prompt are not there any more it goes on beside that query.
///
/// # Errors
///
/// The process cannot begin anew.
pub(super) fn begin_if_busy(session: &Session<'_>, interrupts: &Interrupts) -> anyhow::Result<()> {
    let interrupted = Instant::now();
    while works() {
        if !interrupts.forget() && interrupted.elapsed() < TIMEOUT {
            continue;
        }
        if session.has_its_files() {
            return begin(&session.temporary());
        }
        let note = "note: the query does not stop, and slows down the next one";
        return writeln!(Printer::stderr(), "{note}").context("stderr");
    }
    Ok(())
}

/// Whether a thread of this process works; the prompt's own waits here meanwhile.
fn works() -> bool {
    let before = sysinfo::cpu_time();
    thread::sleep(LOOK);
    let Some((before, after)) = before.zip(sysinfo::cpu_time()) else {
        return false;
    };
    after.saturating_sub(before) >= BUSY
}

fn begin(temporary: &Temporary) -> anyhow::Result<()> {
    let note = "note: the query does not stop, so the prompt begins anew";
    writeln!(Printer::stderr(), "{note}").context("stderr")?;
    temporary.remove();
    let mut words = env::args_os();
    let Some(name) = words.next() else {
        bail!("the prompt cannot begin anew: the process has no name");
    };
    let failed = Command::new("/proc/self/exe").arg0(name).args(words).exec();
    Err(failed).context("the prompt cannot begin anew")
}
