//! `tailrace try`: runs a query on lines, without a config and a data directory. It prints the rows that would leave, or what
//! became of each record, or the OTLP records. The lines pass the stages of the agent; nothing is sent or stored.

mod config_text;
mod print;
pub(crate) mod table;
pub(crate) mod verdict;

use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow};
use clap::builder::PossibleValuesParser;
use tailrace_config::{Diagnostic, Sql};
use tailrace_inputs::Contents;
use tailrace_inputs::options::{Format, MultilinePreset};
use tailrace_pipeline::{ColumnFrom, PipelinePlan, RowBounds, TraceOptions, TraceSource, Tracer};

use self::config_text::ConfigText;
use self::print::Print;
use crate::cli::{ConfigArgs, Failure};
use crate::load;
use crate::printed::{self, Printer};

/// Arguments of `tailrace try`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tailrace try \"SELECT level, msg FROM logs WHERE status >= 500\" app.log\n  \
    kubectl logs web-1 | tailrace try \"SELECT * FROM logs WHERE level = 'ERROR'\" --verdict\n  \
    tailrace try -c tailrace.yaml --pipeline app app.log --otlp")]
pub(crate) struct Args {
    /// The query, one SELECT over the table `logs`; with `-c`, the file
    #[arg(value_name = "SQL", required_unless_present = "config")]
    sql: Option<String>,
    /// The file with the lines, perhaps compressed with gzip or zstd; `-` or nothing is standard input
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Take the query of a pipeline, and how its first input reads lines, from this config
    #[arg(short, long = "config", value_name = "FILE|DIR", value_delimiter = ':')]
    config: Vec<PathBuf>,
    /// The pipeline, if the config has several
    #[arg(long, value_name = "NAME", requires = "config")]
    pipeline: Option<String>,
    /// How the lines are read, as the option `format` of an input says
    #[arg(long, value_name = "FORMAT", conflicts_with = "config", value_parser = formats())]
    format: Option<String>,
    /// Join the lines of stack traces of these languages, as `multiline.preset` of an input does
    #[arg(long, value_name = "LANGUAGE", conflicts_with = "config", value_delimiter = ',', value_parser = presets())]
    multiline: Vec<String>,
    /// Show every record with what became of it
    #[arg(long)]
    verdict: bool,
    /// Show the OTLP records as JSON
    #[arg(long, conflicts_with = "verdict")]
    otlp: bool,
    /// Print a config with this query, and read nothing
    #[arg(long, conflicts_with_all = ["config", "verdict", "otlp"])]
    to_config: bool,
    /// Print a table or text for people, or a JSON value on each line; by default what suits the standard output
    #[arg(short, long, value_name = "HOW")]
    output: Option<How>,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum How {
    /// For people
    Table,
    /// A JSON value on each line
    Jsonl,
}

/// Bytes read at once.
const READ_BYTES: usize = 1024 * 1024;

fn formats() -> PossibleValuesParser {
    Format::CHOICES
        .iter()
        .map(|choice| choice.name)
        .collect::<Vec<_>>()
        .into()
}

fn presets() -> PossibleValuesParser {
    let names = MultilinePreset::CHOICES.iter().map(|choice| choice.name);
    names.collect::<Vec<_>>().into()
}

/// Tries a query.
///
/// # Errors
///
/// A query or a config that is not valid, or a file that cannot be read.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let (sql, file) = args.sql_and_file()?;
    if args.to_config {
        args.plan(sql)?;
        let sql = sql.unwrap_or_default();
        let text = args.config_text(sql, file.as_ref()).to_string();
        return Ok(out.write_all(text.as_bytes()).context("stdout")?);
    }
    let file = file.filter(|file| file.as_os_str() != "-");
    if file.is_none() && io::stdin().is_terminal() && args.names_no_stdin() {
        return Err(anyhow!(
            "there are no lines: give a file, as in `tailrace try SQL app.log`, or pipe them in, as in `cat app.log | tailrace try SQL`"
        )
        .into());
    }
    let plan = args.plan(sql)?;
    notes(&plan, file.is_some(), &mut Printer::stderr()).context("stderr")?;
    let source = TraceSource {
        path: file
            .as_ref()
            .map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone())),
        pod: Vec::new(),
    };
    let options = TraceOptions {
        otlp: args.otlp,
        reasons: args.verdict,
        rows: RowBounds::MOST,
    };
    let mut tracer = Tracer::new(&plan, 0, &source, options);
    let is_jsonl = match args.output {
        Some(how) => how == How::Jsonl,
        None => !io::stdout().is_terminal(),
    };
    let mut print = Print::new(args.verdict, args.otlp, is_jsonl, &plan, out);
    let name = file
        .as_deref()
        .map_or_else(|| "standard input".to_owned(), printed::path);
    let unreadable = || format!("{name}: cannot be read");
    let mut lines = Contents::open(file.as_deref()).with_context(unreadable)?;
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let bytes = lines.read(&mut buffer).with_context(unreadable)?;
        if bytes == 0 {
            break;
        }
        tracer.push(&buffer[..bytes], now_ns(), &mut |traced| print.add(&traced));
        print.flush()?;
    }
    tracer.finish(now_ns(), &mut |traced| print.add(&traced));
    let counts = print.finish()?;
    let stats = tracer.stats();
    let mut stderr = Printer::stderr();
    Ok(counts
        .summary(stats.blank_lines, stats.nul_bytes, &mut stderr)
        .context("stderr")?)
}

impl Args {
    /// The query of the command line, if it is given there, and the file.
    fn sql_and_file(&self) -> Result<(Option<&str>, Option<PathBuf>), Failure> {
        if self.config.is_empty() {
            let is_file = |sql: &String| self.file.is_none() && Path::new(sql).is_file();
            if let Some(file) = self.sql.as_ref().filter(|sql| is_file(sql)) {
                let usage = format!(
                    "{} is a file, and the query comes first: `tailrace try 'SELECT * FROM logs' FILE`",
                    printed::shown(file)
                );
                return Err(Failure::Usage(usage));
            }
            return Ok((self.sql.as_deref(), self.file.clone()));
        }
        if self.file.is_some() {
            let message = "with -c the query is that of the pipeline: give the file only";
            return Err(anyhow!(message).into());
        }
        Ok((None, self.sql.as_ref().map(PathBuf::from)))
    }

    /// Whether standard input is to be read only because nothing else is named.
    fn names_no_stdin(&self) -> bool {
        let last = self.file.as_deref().and_then(|file| file.to_str());
        let of_config = self.sql.as_deref().filter(|_| !self.config.is_empty());
        last != Some("-") && of_config != Some("-")
    }

    fn config_text<'a>(&'a self, sql: &'a str, file: Option<&PathBuf>) -> ConfigText<'a> {
        ConfigText {
            sql,
            file: file.and_then(|file| std::path::absolute(file).ok()),
            format: self.format.as_deref(),
            multiline: &self.multiline,
        }
    }

    /// The plan of the query given, or of the pipeline named.
    fn plan(&self, sql: Option<&str>) -> Result<PipelinePlan, Failure> {
        let no_options = ConfigArgs::default();
        let Some(sql) = sql else {
            let config = ConfigArgs {
                config: self.config.clone(),
                ..no_options
            };
            return pipeline(load::load(&config)?.1, self.pipeline.as_deref());
        };
        // What it says of an output does not matter.
        let text = self.config_text("SELECT * FROM logs", None).to_string();
        let mut config = tailrace_config::load_text("try", &text, &|_| None)?;
        for pipeline in config.pipelines.values_mut() {
            pipeline.transform = Sql::plain("SQL", sql);
        }
        match load::prepare(&no_options, config) {
            Ok((_, plans)) => pipeline(plans, None),
            Err(wrong) => {
                print_wrong(&wrong).context("stderr")?;
                Err(Failure::Refused)
            }
        }
    }
}

/// What is wrong with the query of the command line.
fn print_wrong(diagnostics: &[Diagnostic]) -> io::Result<()> {
    let mut stderr = Printer::stderr();
    for diagnostic in diagnostics {
        writeln!(stderr, "{diagnostic}")?;
    }
    Ok(())
}

/// The plan of this pipeline, or of the only one.
fn pipeline(plans: Vec<PipelinePlan>, name: Option<&str>) -> Result<PipelinePlan, Failure> {
    let names: Vec<String> = plans.iter().map(|plan| plan.name.clone()).collect();
    let names = names.join(", ");
    let count = plans.len();
    let mut wanted = plans
        .into_iter()
        .filter(|plan| name.is_none_or(|name| plan.name == name));
    match (wanted.next(), name) {
        (Some(_), None) if count > 1 => Err(anyhow!(
            "the config has several pipelines: choose one of {names} with --pipeline"
        )
        .into()),
        (Some(plan), _) => Ok(plan),
        (None, name) => Err(anyhow!(
            "there is no pipeline `{}`; the config has {names}",
            name.unwrap_or_default()
        )
        .into()),
    }
}

/// What may not be as meant, and what is not known here.
fn notes(plan: &PipelinePlan, is_file: bool, out: &mut dyn Write) -> io::Result<()> {
    let transform = &plan.config.transform;
    for warning in plan.query.warnings() {
        let message = warning.message.clone();
        let diagnostic: Diagnostic =
            transform.diagnostic(warning.line, warning.column, 1, message, None);
        let text = diagnostic.to_string();
        writeln!(out, "{}\n", text.replacen(": error: ", ": warning: ", 1))?;
    }
    let columns = plan.query.columns().iter().zip(&plan.columns);
    for (column, from) in columns {
        let is_of_file = !matches!(from, ColumnFrom::Fact(tailrace_pipeline::Fact::OfPod(_)));
        if matches!(from, ColumnFrom::Fact(_)) && !(is_file && is_of_file) {
            let label = transform.redact(&column.label).into_owned();
            writeln!(
                out,
                "note: {label} is NULL here: only a running agent knows it of a log's source"
            )?;
        }
    }
    Ok(())
}

/// What `now()` gives to the records read now, in nanoseconds since the Unix epoch.
pub(crate) fn now_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| i64::try_from(now.as_nanos()).unwrap_or(i64::MAX))
}
