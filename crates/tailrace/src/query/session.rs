//! The queries of one command: the engine that answers them, and how each result is printed.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use tailrace_query::{Archive, Engine, Error, Input, Options, Plan, Temporary};

use super::plot::{Canvas, Plot};
use super::print::{How, Print};
use super::progress::Bar;
use super::{Args, failure, follow, half_of_memory, notes};
use crate::cli::Failure;
use crate::printed::{self, Printer, Stdout};

/// An engine with the files that are its table `logs`.
pub(super) struct Session<'a> {
    args: &'a Args,
    engine: Engine,
    inputs: Vec<Input>,
    /// Where the rows are kept, if they are not printed.
    archive: Option<Archive>,
}

impl<'a> Session<'a> {
    /// A session over `inputs`, which `files` names.
    ///
    /// # Errors
    ///
    /// The options contradict each other.
    pub(super) fn new(
        args: &'a Args,
        files: &[OsString],
        inputs: Vec<Input>,
    ) -> Result<Session<'a>, Failure> {
        let archive = archive(args)?;
        let follow = args.follow.then(|| texts(files)).transpose()?;
        let memory_bytes = args.memory_limit.unwrap_or_else(half_of_memory);
        let engine = Engine::new(Options {
            columns: args.columns.iter().flat_map(|it| it.0.clone()).collect(),
            bounds: args.bounds.bounds()?,
            rows_max: args.rows,
            follow,
            archive: archive.clone(),
            memory_bytes: usize::try_from(memory_bytes).unwrap_or(usize::MAX),
            ..Options::default()
        })?;
        Ok(Session {
            args,
            engine,
            inputs,
            archive,
        })
    }

    /// The names and types of the columns of `logs`; none without files.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub(super) async fn columns(&self) -> Result<Vec<(String, DataType)>, Failure> {
        if self.inputs.is_empty() {
            return Ok(Vec::new());
        }
        let sql = "SELECT * FROM logs";
        let plan = self.engine.plan(sql, &self.inputs).await;
        let schema = plan.map_err(|error| failure(&error, sql))?.schema();
        let columns = schema.fields().iter();
        Ok(columns
            .map(|field| (field.name().clone(), field.data_type().clone()))
            .collect())
    }

    /// What its queries have on disk.
    pub(super) fn temporary(&self) -> Temporary {
        self.engine.temporary()
    }

    /// Whether a query that is interrupted has no more to do: it prints rows that are there, and keeps none.
    pub(super) fn ends_at_once(&self) -> bool {
        !self.args.follow && self.archive.is_none()
    }

    /// The files of `logs`.
    pub(super) fn files(&self) -> Vec<String> {
        self.inputs.iter().map(Input::name).collect()
    }

    /// Whether its files are where they were.
    pub(super) fn has_its_files(&self) -> bool {
        super::check_files(&self.inputs).is_ok()
    }

    /// The first of the files that can be read once.
    pub(super) fn stream(&self) -> Option<String> {
        let stream = self.inputs.iter().find(|input| input.is_stream());
        stream.map(Input::name)
    }

    /// The functions that a query can call.
    pub(super) fn functions(&self) -> Vec<String> {
        self.engine.functions()
    }

    /// Runs a query, and prints its result and what is to say about it.
    ///
    /// # Errors
    ///
    /// The query is not valid, a file cannot be read, or nobody reads the result.
    pub(super) async fn answer(&self, sql: &str) -> Result<(), Failure> {
        let started = Instant::now();
        let refused = |error: Error| failure(&error, sql);
        let plan = self.engine.plan(sql, &self.inputs).await.map_err(refused)?;
        let mut out = Stdout::lock();
        if self.args.explain {
            // It names keys of the data.
            for line in plan.text().lines() {
                writeln!(out, "{}", printed::shown(line)).context("stdout")?;
            }
            return Ok(());
        }
        if let Some(archive) = &self.archive {
            return self.keep(sql, &plan, archive, started).await;
        }
        let is_following = self.args.follow;
        let how = self.how()?;
        if how.is_binary() && io::stdout().is_terminal() {
            let text = match how.is_chart() {
                true => {
                    "the chart would be bytes on a terminal: write it to a file, by `> chart.png`"
                }
                false => "the rows would be bytes on a terminal: write them to a file, by `> FILE`",
            };
            return Err(Failure::Usage(text.to_owned()));
        }
        let mut print = match self.canvas(how) {
            Some(canvas) => Printing::Chart(Plot::new(canvas, &plan.schema(), &mut out)?),
            None => Printing::Rows(Print::new(how, &plan.schema(), &mut out)?),
        };
        let notes = self.engine.notes();
        let mut bar = (!is_following).then(|| Bar::start(notes.clone(), print.prints_rows(how)));
        let mut written = Ok(());
        let each = |batch: RecordBatch| {
            if let Some(bar) = &mut bar {
                bar.before_rows();
            }
            written = print.add(&batch);
            if is_following && written.is_ok() {
                written = print.flush();
            }
            written.is_ok()
        };
        let ended = match is_following {
            true => follow::until_signal(plan.run(each), &notes).await?,
            false => plan.run(each).await,
        };
        drop(bar);
        written?;
        let beyond = print.beyond();
        if ended.is_ok() {
            // Half a result is not made to look like a whole one.
            print.finish()?;
        }
        let mut stderr = Printer::stderr();
        notes::beyond_calendar(beyond, &mut stderr).context("stderr")?;
        self.print_notes(&plan, started, &mut stderr)?;
        ended.map_err(refused)
    }

    /// Runs a query whose rows become files, and prints what was written.
    async fn keep(
        &self,
        sql: &str,
        plan: &Plan,
        archive: &Archive,
        started: Instant,
    ) -> Result<(), Failure> {
        let bar = Bar::start(self.engine.notes(), false);
        let signalled = follow::signalled()?;
        let stopped = async move {
            // The sender is there until the process ends.
            let _ = signalled.await;
        };
        let (written, ended) = plan.write(archive, stopped).await;
        drop(bar);
        let mut stderr = Printer::stderr();
        self.print_notes(plan, started, &mut stderr)?;
        if ended.is_ok() || written.files > 0 {
            notes::written(&written, &archive.to, &mut stderr).context("stderr")?;
        }
        ended.map_err(|error| failure(&error, sql))
    }

    /// Prints what a person should know of what was read, and the statistics that were asked for.
    fn print_notes(
        &self,
        plan: &Plan,
        started: Instant,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let found = self.engine.notes();
        notes::print(&found, out).context("stderr")?;
        let counts = found.counts();
        if self.args.stats {
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

    /// The form of the result.
    fn how(&self) -> Result<How, Failure> {
        let refused = |text: &str| Err(Failure::Usage(text.to_owned()));
        match self.args.output {
            _ if self.args.plot && self.args.follow => refused(
                "`--plot` draws a whole result, and a query with `-f` has none: leave out one of them",
            ),
            Some(how) if self.args.plot && !how.is_chart() => refused(
                "`--plot` draws a chart, and `-o` asks for rows: leave out one of them, or draw with `-o svg` or `-o png`",
            ),
            output if self.args.follow => follow::how(output),
            Some(how) => Ok(how),
            None => Ok(How::suiting(io::stdout().is_terminal())),
        }
    }

    /// Where a chart is drawn, if one is asked for.
    fn canvas(&self, how: How) -> Option<Canvas> {
        match how {
            How::Svg => Some(Canvas::Svg),
            How::Png => Some(Canvas::Png),
            _ => self.args.plot.then_some(Canvas::Text),
        }
    }
}

/// The names of files that are followed, which later files are compared with.
fn texts(files: &[OsString]) -> Result<Vec<String>, Failure> {
    let text = |file: &OsString| {
        file.to_str().map(str::to_owned).ok_or_else(|| {
            Failure::Usage(format!(
                "{}: its name is not UTF-8, so it cannot be followed",
                printed::path(Path::new(file))
            ))
        })
    };
    files.iter().map(text).collect()
}

/// Where the rows are kept, if that is asked for.
fn archive(args: &Args) -> Result<Option<Archive>, Failure> {
    let Some(to) = &args.to else { return Ok(None) };
    if args.output.is_some_and(|how| how != How::Parquet) {
        return Err(Failure::Usage(
            "`--to` writes Parquet: leave out `-o`".to_owned(),
        ));
    }
    let partition_by = args.partition_by.iter().map(|name| name.trim().to_owned());
    Ok(Some(Archive {
        to: to.clone(),
        partition_by: partition_by.collect(),
    }))
}

/// A result on its way to the standard output.
enum Printing<'o> {
    Rows(Print<'o>),
    Chart(Plot<'o>),
}

impl Printing<'_> {
    /// Whether rows are printed while the query runs.
    fn prints_rows(&self, how: How) -> bool {
        matches!(self, Printing::Rows(_)) && how.prints_rows()
    }

    fn add(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        match self {
            Printing::Rows(rows) => rows.add(batch),
            Printing::Chart(chart) => chart.add(batch),
        }
    }

    /// How many times no calendar has.
    fn beyond(&self) -> usize {
        match self {
            Printing::Rows(rows) => rows.beyond(),
            Printing::Chart(_) => 0,
        }
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        match self {
            Printing::Rows(rows) => rows.flush(),
            Printing::Chart(_) => Ok(()),
        }
    }

    fn finish(self) -> anyhow::Result<()> {
        match self {
            Printing::Rows(rows) => rows.finish(),
            Printing::Chart(chart) => chart.finish(),
        }
    }
}
