//! `tailrace test`: runs the tests of a config. The lines of each pass the stages of an agent, and what leaves is compared with
//! what the test expects. Nothing is sent or stored.

mod compare;
mod junit;
mod otlp;
mod outcome;
mod update;

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use tailrace_config::{Config, Diagnostic, Test};
use tailrace_pipeline::PipelinePlan;

use self::compare::Line;
use self::outcome::Outcome;
use crate::cli::{ConfigArgs, Failure};
use crate::load;
use crate::printed::{self, Printer};
use crate::style;
use crate::try_query::table::shortened;

/// Arguments of `tailrace test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    config: ConfigArgs,
    /// Run these tests only
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Write the results into this file, as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the rows that leave into the tests that expect others; everything else in the files stays
    #[arg(long)]
    update: bool,
}

/// A test that ran.
struct Tested<'a> {
    test: &'a Test,
    pipeline: &'a str,
    outcome: Outcome,
    /// Whether its rows were written into its file.
    is_updated: bool,
}

/// Characters of a line that is printed.
const LINE_CHARS_MAX: usize = 1000;
/// Lines that are printed of what differs, of each expectation.
const LINES_MAX: usize = 60;

/// Runs the tests.
///
/// # Errors
///
/// A bad config, a test that fails, or a file that cannot be written.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let (config, plans, missing) = load::load_for_tests(&args.config)?;
    note_missing(&missing).context("stderr")?;
    let chosen = chosen(&config.tests, &args.names)?;
    let conditions = conditions(&chosen)?;
    let mut tested = Vec::new();
    for (test, condition) in chosen.into_iter().zip(&conditions) {
        let name = test.pipeline_of(&config).unwrap_or_default();
        let plan = plans.iter().find(|plan| plan.name == name);
        let plan = plan.with_context(|| format!("there is no pipeline `{name}`"))?;
        let outcome = outcome::run(test, plan, condition.as_ref());
        tested.push(Tested {
            test,
            pipeline: &plan.name,
            outcome,
            is_updated: false,
        });
    }
    if args.update {
        update::update(&tested, &config.tests)?;
        for it in &mut tested {
            it.is_updated = it.outcome.rows.take().is_some();
            it.outcome.failures.retain(|failure| !failure.is_of_rows);
        }
    }
    if let Some(path) = &args.junit {
        fs::write(path, junit::xml(&tested))
            .with_context(|| format!("{}: cannot be written", printed::path(path)))?;
    }
    print(&tested, out).context("stdout")?;
    if args.names.is_empty() {
        print_untested(&config, &tested, out).context("stdout")?;
    }
    let failed = tested.iter().filter(|it| !it.outcome.is_passed()).count();
    match failed {
        0 => Ok(()),
        1 => Err(anyhow!("1 test failed").into()),
        _ => Err(anyhow!("{failed} tests failed").into()),
    }
}

/// A query could say something else where a variable is not set.
fn note_missing(missing: &[String]) -> io::Result<()> {
    let mut stderr = Printer::stderr();
    for name in missing {
        let name = shortened(name, LINE_CHARS_MAX);
        writeln!(
            stderr,
            "note: ${{{name}}} is not there; a placeholder stands for it"
        )?;
    }
    Ok(())
}

/// The tests with these names, or all.
fn chosen<'c>(tests: &'c [Test], names: &[String]) -> anyhow::Result<Vec<&'c Test>> {
    if tests.is_empty() {
        return Err(anyhow!(
            "the config has no tests: add `tests:`, such as `tests: [{{name: errors pass, lines: '{{\"level\":\"error\"}}', expect: {{count: 1}}}}]`"
        ));
    }
    for name in names {
        if tests.iter().all(|test| test.name != *name) {
            let known: Vec<&str> = tests.iter().map(|test| test.name.as_str()).collect();
            let known = known.join(", ");
            return Err(anyhow!("there is no test `{name}`; the config has {known}"));
        }
    }
    let is_chosen = |test: &&Test| names.is_empty() || names.contains(&test.name);
    Ok(tests.iter().filter(is_chosen).collect())
}

/// What is wrong with the conditions of the tests of a config.
pub(crate) fn check_conditions(config: &Config) -> Vec<Diagnostic> {
    let sql = config
        .tests
        .iter()
        .filter_map(|test| test.expect.sql.as_ref());
    let wrong = sql.filter_map(|sql| outcome::condition(sql).err());
    wrong.flatten().collect()
}

/// The plans of the conditions of the tests.
fn conditions(tests: &[&Test]) -> Result<Vec<Option<PipelinePlan>>, Failure> {
    let mut plans = Vec::new();
    let mut wrong = Vec::new();
    for test in tests {
        match test.expect.sql.as_ref().map(outcome::condition) {
            Some(Err(diagnostics)) => wrong.extend(diagnostics),
            Some(Ok(plan)) => plans.push(Some(plan)),
            None => plans.push(None),
        }
    }
    if wrong.is_empty() {
        Ok(plans)
    } else {
        Err(wrong.into())
    }
}

/// Prints a line for each test, what differs in those that failed, and the counts.
fn print(tested: &[Tested<'_>], out: &mut dyn Write) -> io::Result<()> {
    for it in tested {
        let word = match it.outcome.is_passed() {
            true if it.is_updated => style::warn(format!("{:<7}", "updated")),
            true => style::good(format!("{:<7}", "ok")),
            false => style::bad(format!("{:<7}", "failed")),
        };
        let name = shortened(&it.test.name, LINE_CHARS_MAX);
        writeln!(out, "{word} {name}")?;
        if !it.outcome.is_passed() {
            let (position, pipeline) = (it.test.position.to_string(), it.pipeline);
            let place = format!("{position}, pipeline {pipeline}");
            writeln!(out, "        {}", style::dim(printed::shown(&place)))?;
        }
        for failure in &it.outcome.failures {
            writeln!(out, "        {}", shortened(&failure.what, LINE_CHARS_MAX))?;
            for line in failure.lines.iter().take(LINES_MAX) {
                let text = shortened(&plain(line), LINE_CHARS_MAX);
                let text = match line {
                    Line::Text(_) => text,
                    Line::Expected(_) => style::bad(text).to_string(),
                    Line::Actual(_) => style::good(text).to_string(),
                };
                writeln!(out, "          {text}")?;
            }
            let more = failure.lines.len().saturating_sub(LINES_MAX);
            if more > 0 {
                writeln!(out, "          {more} more lines; --junit writes them all")?;
            }
        }
    }
    let failed = tested.iter().filter(|it| !it.outcome.is_passed()).count();
    writeln!(out, "{} passed, {failed} failed", tested.len() - failed)
}

/// A line of what differs, as text: `-` is expected, `+` leaves.
fn plain(line: &Line) -> String {
    match line {
        Line::Text(text) => text.clone(),
        Line::Expected(text) => format!("- {text}"),
        Line::Actual(text) => format!("+ {text}"),
    }
}

/// Names the pipelines that no test is about.
fn print_untested(config: &Config, tested: &[Tested<'_>], out: &mut dyn Write) -> io::Result<()> {
    let has_test = |name: &str| tested.iter().any(|it| it.pipeline == name);
    let untested: Vec<&str> = config.pipelines.keys().map(String::as_str).collect();
    let untested: Vec<&str> = untested
        .into_iter()
        .filter(|name| !has_test(name))
        .collect();
    if untested.is_empty() {
        return Ok(());
    }
    let names = untested.join(", ");
    writeln!(out, "{}", style::dim(format!("without a test: {names}")))
}
