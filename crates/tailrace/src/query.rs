//! `tailrace query`: SQL over log files, and the result in the form that is asked for.

mod bounds;
mod columns;
mod follow;
mod notes;
mod print;

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, anyhow};
use arrow::record_batch::RecordBatch;
use tailrace_query::{Archive, Engine, Error, Input, Options, Plan, STACK_BYTES, expand, runtime};

use self::columns::{Columns, columns};
use self::print::{How, Print};
use crate::cli::Failure;
use crate::printed::{self, Printer, Stdout};
use crate::sysinfo;

/// Arguments of `tailrace query`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tailrace query \"SELECT level, count(*) AS n FROM logs GROUP BY level ORDER BY n DESC\" app.log\n  \
    kubectl logs deploy/web | tailrace query \"SELECT * FROM logs WHERE status >= 500\" -\n  \
    tailrace query \"SELECT a.user, b.team FROM 'events.ndjson' a JOIN 'users.csv' b ON a.user = b.id\"")]
pub(crate) struct Args {
    /// The query; with `--file`, the first of the files
    #[arg(value_name = "SQL", required_unless_present = "file")]
    sql: Option<String>,
    /// The files that are the table `logs`: paths, globs, directories, or `-` for standard input
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    /// Read the query from this file
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// How the result is printed; by default a table on a terminal, JSON lines elsewhere
    #[arg(short, long, value_name = "HOW")]
    output: Option<How>,
    /// Keep the rows as Parquet files below this directory, or below a URL of an object store, as s3://bucket/logs
    #[arg(long, value_name = "DIR", conflicts_with = "follow")]
    to: Option<String>,
    /// With `--to`: the columns whose values become directories, as dt=2026-11-25/service=api; the rows of a file are in the
    /// order of their time
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', requires = "to")]
    partition_by: Vec<String>,
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
    /// What sorts, groups and joins may keep in memory; a query that needs more ends with an error. By default half of the
    /// machine's memory, or of the cgroup's
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
    let (sql, files) = args.sql_and_files()?;
    let inputs = expand(&files)?;
    if inputs
        .iter()
        .filter(|input| **input == Input::Stdin)
        .count()
        > 1
    {
        return Err(Failure::Usage("`-` is named more than once".to_owned()));
    }
    std::thread::scope(|scope| {
        let work = || {
            let runtime = runtime(None).context("the threads of the query cannot be started")?;
            let answered = runtime.block_on(args.answer(&sql, &files, &inputs));
            // A read of standard input may wait for ever.
            runtime.shutdown_background();
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

impl Args {
    fn sql_and_files(&self) -> Result<(String, Vec<String>), Failure> {
        let Some(path) = &self.file else {
            let sql = self.sql.clone().unwrap_or_default();
            if self.files.is_empty() && !sql.contains(char::is_whitespace) {
                return Err(Failure::Usage(format!(
                    "`{}` is no query, which comes first: `tailrace query 'SELECT * FROM logs' FILE`",
                    printed::shown(&sql)
                )));
            }
            return Ok((sql, self.files.clone()));
        };
        let sql = fs::read_to_string(path)
            .with_context(|| format!("{}: cannot be read", printed::path(path)))?;
        Ok((sql, self.sql.iter().chain(&self.files).cloned().collect()))
    }

    async fn answer(&self, sql: &str, files: &[String], inputs: &[Input]) -> Result<(), Failure> {
        let started = Instant::now();
        if self.to.is_some() && self.output.is_some_and(|how| how != How::Parquet) {
            return Err(Failure::Usage(
                "`--to` writes Parquet: leave out `-o`".to_owned(),
            ));
        }
        let archive = self.to.as_ref().map(|to| Archive {
            to: to.clone(),
            partition_by: self
                .partition_by
                .iter()
                .map(|name| name.trim().to_owned())
                .collect(),
        });
        let engine = Engine::new(Options {
            columns: self.columns.iter().flat_map(|it| it.0.clone()).collect(),
            bounds: self.bounds.bounds()?,
            rows_max: self.rows,
            follow: self.follow.then(|| files.to_vec()),
            archive: archive.clone(),
            memory_bytes: usize::try_from(self.memory_limit.unwrap_or_else(half_of_memory))
                .unwrap_or(usize::MAX),
            ..Options::default()
        })?;
        let refused = |error: Error| failure(&error, sql);
        let plan = engine.plan(sql, inputs).await.map_err(refused)?;
        let mut out = Stdout::lock();
        if self.explain {
            return Ok(out.write_all(plan.text().as_bytes()).context("stdout")?);
        }
        if let Some(archive) = &archive {
            let (written, ended) = plan.write(archive).await;
            let mut stderr = Printer::stderr();
            self.print_notes(&engine, &plan, started, &mut stderr)?;
            if !written.run.is_empty() {
                notes::written(&written, &archive.to, &mut stderr).context("stderr")?;
            }
            return ended.map_err(refused);
        }
        let how = match self.follow {
            true => follow::how(self.output)?,
            false => self
                .output
                .unwrap_or_else(|| How::suiting(io::stdout().is_terminal())),
        };
        if how.is_binary() && io::stdout().is_terminal() {
            return Err(Failure::Usage("the rows would be bytes on a terminal: write them to a file, by `> result.parquet`".to_owned()));
        }
        let mut print = Print::new(how, &plan.schema(), &mut out)?;
        let mut written = Ok(());
        let each = |batch: RecordBatch| {
            written = print.add(&batch);
            if self.follow && written.is_ok() {
                written = print.flush();
            }
            written.is_ok()
        };
        let ended = match self.follow {
            true => follow::until_signal(plan.run(each), engine.notes()).await?,
            false => plan.run(each).await,
        };
        written?;
        if ended.is_ok() {
            // Half a result is not made to look like a whole one.
            print.finish()?;
        }
        self.print_notes(&engine, &plan, started, &mut Printer::stderr())?;
        ended.map_err(refused)
    }

    /// Prints what a person should know of what was read, and the statistics that were asked for.
    fn print_notes(
        &self,
        engine: &Engine,
        plan: &Plan,
        started: Instant,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let counts = engine.notes().counts();
        notes::print(&counts, out).context("stderr")?;
        if self.stats {
            notes::statistics(&counts, plan.pruning(), started, out).context("stderr")?;
        } else if counts.files == 0 && counts.pruned > 0 {
            writeln!(
                out,
                "note: no file was read: all were last modified before `--since`"
            )
            .context("stderr")?;
        }
        Ok(())
    }
}

/// How a query that was refused or failed ends the command.
pub(crate) fn failure(error: &Error, sql: &str) -> Failure {
    if !error.is_usage {
        return Failure::Runtime(anyhow!("{}", error.message));
    }
    let lines = error.lines(sql);
    let lines: Vec<_> = lines.iter().map(|line| printed::shown(line)).collect();
    Failure::Usage(lines.join("\n"))
}
