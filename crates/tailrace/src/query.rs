//! `tailrace query`: SQL over log files, and the result in the form that is asked for.

mod bounds;
mod columns;
mod follow;
mod notes;
mod plot;
mod print;
mod progress;
mod prompt;
mod session;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use tailrace_query::{Error, Input, STACK_BYTES, expand, runtime};

use self::columns::{Columns, columns};
use self::print::How;
use self::session::Session;
use crate::cli::Failure;
use crate::printed;
use crate::sysinfo;

/// Arguments of `tailrace query`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tailrace query \"SELECT level, count(*) AS n FROM logs GROUP BY level ORDER BY n DESC\" app.log\n  \
    kubectl logs deploy/web | tailrace query \"SELECT * FROM logs WHERE status >= 500\" -\n  \
    tailrace query '/var/log/app/*.log'\n  \
    tailrace query \"SELECT a.user, b.team FROM 'events.ndjson' a JOIN 'users.csv' b ON a.user = b.id\"")]
pub(crate) struct Args {
    /// The query. Without one a prompt opens in a terminal, for queries of the files that are named; with `--file`, it is the
    /// first of the files
    #[arg(value_name = "SQL")]
    sql: Option<OsString>,
    /// The files that are the table `logs`: paths, globs, directories, or `-` for standard input
    #[arg(value_name = "FILE")]
    files: Vec<OsString>,
    /// Read the query from this file
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// How the result is printed; by default a table on a terminal, JSON lines elsewhere
    #[arg(short, long, value_name = "HOW")]
    output: Option<How>,
    /// Keep the rows as Parquet files below this directory, or below a URL of an object store, as s3://bucket/logs
    #[arg(long, value_name = "DIR", conflicts_with_all = ["follow", "plot"])]
    to: Option<String>,
    /// With `--to`: the columns whose values become directories, as dt=2026-11-25/service=api; the rows of a file are in the
    /// order of their time
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', requires = "to")]
    partition_by: Vec<String>,
    /// Draw the result as a chart in the terminal. The first column is a time or a group, and numbers follow: columns over the
    /// time, or bars for the groups
    #[arg(long)]
    plot: bool,
    /// Print at most so many rows, and stop reading when they are there
    #[arg(short = 'n', long, value_name = "N")]
    rows: Option<usize>,
    /// Types of columns instead of those that the beginning of the files suggests: text, int64, float64, boolean or
    /// timestamp. Keys that only come later become columns this way
    #[arg(long, value_name = "NAME=TYPE", value_parser = columns)]
    columns: Vec<Columns>,
    #[command(flatten)]
    bounds: bounds::Args,
    /// Go on when all is read, and print rows as they are written, through rotation, until Ctrl-C. The query takes SELECT
    /// and WHERE
    #[arg(short, long)]
    follow: bool,
    /// What sorts, groups and joins may keep in memory; what needs more goes on on disk. By default half of the machine's
    /// memory, or of the cgroup's
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory_limit: Option<u64>,
    /// Print the plan, and read nothing but the beginning of the files
    #[arg(long)]
    explain: bool,
    /// Say on the standard error what was read, and how long it took
    #[arg(long)]
    stats: bool,
}

fn size(text: &str) -> Result<u64, String> {
    let size = tailrace_config::parse_size(text).filter(|size| *size > 0);
    size.ok_or_else(|| format!("`{text}` is no size, as 512MiB is"))
}

/// Half of what this machine has.
fn half_of_memory() -> u64 {
    let total = rustix::system::sysinfo();
    let total = total
        .totalram
        .saturating_mul(u64::from(total.mem_unit.max(1)));
    let limit = sysinfo::cgroup().memory_limit.unwrap_or(u64::MAX);
    total.min(limit) / 2
}

/// Runs a query.
///
/// # Errors
///
/// A query that is not valid, or a file that cannot be read.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let Asked { sql, files } = args.asked()?;
    let inputs = expand(&files)?;
    if inputs
        .iter()
        .filter(|input| **input == Input::Stdin)
        .count()
        > 1
    {
        return Err(Failure::Usage("`-` is named more than once".to_owned()));
    }
    if !args.follow {
        check_files(&inputs)?;
    }
    std::thread::scope(|scope| {
        let work = move || {
            let runtime = runtime(None).context("the threads of the query cannot be started")?;
            let session = Session::new(args, &files, inputs)?;
            let answered = match &sql {
                Some(sql) => {
                    if session.ends_at_once() {
                        follow::end_at_signal(session.temporary())?;
                    }
                    runtime.block_on(session.answer(sql))
                }
                None => prompt::run(&session, &runtime),
            };
            // A read of standard input may wait for ever.
            runtime.shutdown_background();
            session.temporary().remove();
            // The process ends: nobody needs the memory that it would tidy up.
            std::mem::forget(session);
            answered
        };
        let thread = std::thread::Builder::new()
            .stack_size(STACK_BYTES)
            .name("query".to_owned());
        let thread = thread
            .spawn_scoped(scope, work)
            .context("a thread cannot be started")?;
        thread.join().unwrap_or_else(|_| {
            Err(anyhow!("the query was given up: this is a fault of tailrace").into())
        })
    })
}

/// Files that are named must be there, also where the query does not read them. Of those that are followed some come later.
fn check_files(inputs: &[Input]) -> anyhow::Result<()> {
    for input in inputs {
        if let Input::File(path) = input {
            let found = fs::metadata(path).map(drop);
            found.with_context(|| format!("{}: cannot be read", printed::path(path)))?;
        }
    }
    Ok(())
}

/// What is asked for.
struct Asked {
    /// The query. `None`: those that are written at the prompt.
    sql: Option<String>,
    /// What names the files of `logs`.
    files: Vec<OsString>,
}

impl Args {
    /// Whether it goes on until it is stopped.
    pub(crate) fn follows(&self) -> bool {
        self.follow
    }

    fn asked(&self) -> Result<Asked, Failure> {
        let words = || self.sql.iter().chain(&self.files).cloned().collect();
        if let Some(path) = &self.file {
            let sql = fs::read_to_string(path)
                .with_context(|| format!("{}: cannot be read", printed::path(path)))?;
            let sql = sql.strip_prefix('\u{feff}').unwrap_or(&sql);
            return Ok(Asked {
                sql: Some(sql.to_owned()),
                files: words(),
            });
        }
        let refused = |text: String| Err(Failure::Usage(text));
        let usage = "`tailrace query 'SELECT * FROM logs' FILE`";
        match &self.sql {
            Some(sql) if !names_files(sql) => {
                let Some(sql) = sql.to_str() else {
                    return refused("the query is not UTF-8".to_owned());
                };
                let is_query = !self.files.is_empty() || sql.contains(char::is_whitespace);
                if !is_query {
                    let sql = printed::shown(sql);
                    return refused(format!(
                        "`{sql}` is no query, and there is no such file: {usage}"
                    ));
                }
                Ok(Asked {
                    sql: Some(sql.to_owned()),
                    files: self.files.clone(),
                })
            }
            Some(file) if !prompt::is_possible() => {
                let file = printed::path(Path::new(file));
                refused(format!(
                    "`{file}` is a file, and the query comes first: {usage}. Without a query a prompt opens in a terminal, and this is none"
                ))
            }
            None if !prompt::is_possible() => refused(format!(
                "no query was given: {usage}. Without one a prompt opens in a terminal, and this is none"
            )),
            _ if self.files.iter().any(|file| file == "-") => refused(
                "`-` is the standard input, from which the prompt reads queries: name files, or give a query".to_owned(),
            ),
            _ if self.to.is_some() => refused(format!(
                "`--to` needs a query: {usage} --to DIR"
            )),
            _ if self.follow => refused(format!(
                "`-f` needs a query: {usage} -f; at the prompt files are not followed"
            )),
            _ => Ok(Asked {
                sql: None,
                files: words(),
            }),
        }
    }
}

/// Whether a word is no query but names files.
fn names_files(word: &OsStr) -> bool {
    let text = word.to_str().unwrap_or_default();
    let is_glob = text.contains(['*', '?', '[', '{']) && !text.contains(char::is_whitespace);
    Path::new(word).exists() || (is_glob && expand(&[word]).is_ok())
}

/// How a query that was refused or failed ends the command.
pub(crate) fn failure(error: &Error, sql: &str) -> Failure {
    if !error.is_usage {
        let hint = error.hint.iter().map(|hint| format!("; {hint}"));
        return Failure::Runtime(anyhow!("{}{}", error.message, hint.collect::<String>()));
    }
    let mut text = printed::shown(&error.message);
    if let Some((line, column)) = error.place {
        text += &format!(" (SQL:{line}:{column})");
    }
    if let Some(excerpt) = error.excerpt(sql) {
        for line in excerpt.lines() {
            text += &format!("\n{}", printed::shown(line));
        }
    }
    if let Some(hint) = &error.hint {
        text += &format!("\n{}", printed::shown(hint));
    }
    Failure::Usage(text)
}
