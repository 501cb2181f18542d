//! `tailrace explain`: how the queries of a config are planned. It shows the columns that the scanner extracts, their types
//! and why, when each condition is evaluated, and the OTLP field of each output column.

mod json;

use std::io::{self, Write};

use anyhow::Context;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{ContentArrangement, Table};
use serde_json::json;
use tailrace_config::Input;
use tailrace_inputs::options::{MultilineBy, MultilinePreset};
use tailrace_pipeline::{ColumnFrom, PipelinePlan};
use tailrace_sql::{Branch, Needles, OutputValue, Type, When};

use crate::cli::{ConfigArgs, Failure, Format};
use crate::diagnostics::{self, Severity};
use crate::load::load;
use crate::printed::{self, Printer};
use crate::style;

/// Arguments of `tailrace explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    config: ConfigArgs,
    /// Explain this pipeline only.
    pipeline: Option<String>,
    /// Do not check this machine for logs that the agent may not read.
    #[arg(long, env = "TAILRACE_NO_ENVIRONMENT")]
    no_environment: bool,
    /// How the plan is printed.
    #[arg(long, value_enum, default_value_t = Format::Text, env = "TAILRACE_FORMAT")]
    format: Format,
}

/// Explains a config.
///
/// # Errors
///
/// A bad config, or a pipeline it does not have.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let plans = match load(&args.config) {
        Ok((_, plans)) => plans,
        Err(Failure::Config(found)) if args.format == Format::Json => {
            let found = found.iter();
            let found = found.map(|it| diagnostics::to_json(it, Severity::Error));
            let json = json!({"diagnostics": found.collect::<Vec<_>>()}).to_string();
            writeln!(out, "{}", printed::plain_json(&json)).context("stdout")?;
            return Err(Failure::Refused);
        }
        Err(failure) => return Err(failure),
    };
    let wanted =
        |plan: &&PipelinePlan| args.pipeline.as_ref().is_none_or(|name| *name == plan.name);
    let chosen: Vec<&PipelinePlan> = plans.iter().filter(wanted).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = plans.iter().map(|plan| plan.name.as_str()).collect();
        return Err(no_such_pipeline(args.pipeline.as_deref().unwrap_or(""), &names).into());
    }
    if args.format == Format::Json {
        let pipelines = chosen.into_iter();
        let pipelines = pipelines.map(|plan| json::pipeline(plan, !args.no_environment));
        let json = json!({"pipelines": pipelines.collect::<Vec<_>>()}).to_string();
        writeln!(out, "{}", printed::plain_json(&json)).context("stdout")?;
        return Ok(());
    }
    for plan in chosen {
        let text = text(plan).context("memory")?;
        out.write_all(text.as_bytes()).context("stdout")?;
        if !args.no_environment {
            explain_unreadable(plan, out).context("stdout")?;
        }
    }
    Ok(())
}

/// How a pipeline is planned, as it may be shown without colours.
///
/// # Errors
///
/// There is no memory for it.
pub(crate) fn plain_text(plan: &PipelinePlan) -> io::Result<String> {
    let mut plain = Vec::new();
    let mut printer = Printer::new(&mut plain);
    printer.write_all(text(plan)?.as_bytes())?;
    printer.flush()?;
    drop(printer);
    Ok(String::from_utf8_lossy(&plain).into_owned())
}

/// The same with looks, for a [`Printer`].
fn text(plan: &PipelinePlan) -> io::Result<String> {
    let mut text = Vec::new();
    explain(plan, &mut text)?;
    let text = printed::redacted(&String::from_utf8_lossy(&text));
    Ok(plan.config.transform.redact(&text).into_owned())
}

/// The plans of all pipelines of a config, as JSON.
///
/// # Errors
///
/// A bad config.
pub(crate) fn report(config: &ConfigArgs) -> Result<serde_json::Value, Failure> {
    let (_, plans) = load(config)?;
    let pipelines = plans.iter().map(|plan| json::pipeline(plan, true));
    Ok(json!({"pipelines": pipelines.collect::<Vec<_>>()}))
}

fn no_such_pipeline(name: &str, names: &[&str]) -> anyhow::Error {
    anyhow::anyhow!(
        "there is no pipeline `{name}`; the config has {}",
        names.join(", ")
    )
}

fn explain(plan: &PipelinePlan, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "pipeline {}", style::strong(&plan.name))?;
    for line in plan.config.transform.shown.trim().lines() {
        writeln!(out, "    {}", style::accent(line))?;
    }
    writeln!(out)?;
    for input in &plan.config.inputs {
        explain_multiline(input, out)?;
    }
    explain_columns(plan, out)?;
    let branches = plan.query.branches();
    for (n, branch) in branches.iter().enumerate() {
        if branches.len() > 1 {
            writeln!(
                out,
                "select {} of {}, joined by UNION ALL",
                n + 1,
                branches.len()
            )?;
        }
        explain_branch(plan, branch, out)?;
    }
    Ok(())
}

/// What this user may not read.
fn explain_unreadable(plan: &PipelinePlan, out: &mut dyn Write) -> io::Result<()> {
    let label = diagnostics::label(Severity::Warning);
    for (position, unreadable) in tailrace_pipeline::unreadable(plan) {
        let place = printed::shown(&position.to_string());
        for denied in &unreadable.denied {
            let path = printed::path(&denied.path);
            let message = printed::shown(&denied.message);
            writeln!(out, "{label}: {place}: {path} {message}\n")?;
        }
        if let Some(warning) = tailrace_pipeline::incomplete(position, &unreadable) {
            writeln!(out, "{label}: {place}: {}\n", warning.message)?;
        }
    }
    Ok(())
}

fn explain_multiline(input: &Input, out: &mut dyn Write) -> io::Result<()> {
    match multiline_text(input) {
        Some(text) => writeln!(out, "{text}\n"),
        None => Ok(()),
    }
}

/// Which lines an input joins to one record.
fn multiline_text(input: &Input) -> Option<String> {
    let multiline = input.records().multiline?;
    let what = match &multiline.by {
        MultilineBy::Presets(presets) => {
            let names = presets.iter().copied().map(MultilinePreset::name);
            format!("stack traces of {}", names.collect::<Vec<_>>().join(", "))
        }
        MultilineBy::Start(start) => {
            format!("lines without {}, with the one before them,", start.0)
        }
    };
    let timeout = multiline.timeout.as_millis();
    Some(format!(
        "{what} are one record, complete after {timeout} ms without another line"
    ))
}

fn explain_columns(plan: &PipelinePlan, out: &mut dyn Write) -> io::Result<()> {
    if plan.query.columns().is_empty() && plan.query.star().is_none() {
        return writeln!(
            out,
            "the scanner extracts nothing: the query names no column\n"
        );
    }
    writeln!(out, "the scanner extracts")?;
    let mut table = new_table(["key", "type", "from", "used by", "why"]);
    for (column, from) in plan.query.columns().iter().zip(&plan.columns) {
        let from = from_text(from);
        let uses = column.uses.iter();
        let row = [
            column.label.clone(),
            column.ty.to_string(),
            from.to_owned(),
            lines(
                uses.clone()
                    .map(|used| format!("{} (line {})", used.expression, used.line)),
            ),
            lines(uses.map(|used| used.why.clone())),
        ];
        table.add_row(row.map(|cell| shown(plan, &cell)));
    }
    if let Some(star) = plan.query.star() {
        let except = match star.except.as_slice() {
            [] => String::new(),
            keys => format!(" except {}", keys.join(", ")),
        };
        let limit = plan.config.limits.columns;
        table.add_row([
            format!("every key{except}"),
            "open".to_owned(),
            "each record".to_owned(),
            "*".to_owned(),
            format!("passed through; beyond {limit} keys the rest shares one column"),
        ]);
    }
    writeln!(out, "{table}\n")
}

/// A text without what `${...}` put into the query. A cell is shortened before it is laid out, since the width of a table
/// would tell how long a secret is.
fn shown(plan: &PipelinePlan, text: &str) -> String {
    let text = printed::redacted(text);
    plan.config.transform.redact(&text).into_owned()
}

fn from_text(from: &ColumnFrom) -> &'static str {
    match from {
        ColumnFrom::Scan(_) => "each record",
        ColumnFrom::Fact(_) => "its source",
    }
}

fn explain_branch(plan: &PipelinePlan, branch: &Branch, out: &mut dyn Write) -> io::Result<()> {
    explain_conditions(plan, branch, out)?;
    match &branch.reason {
        _ if branch.row_wise => writeln!(
            out,
            "row-wise: compiled once, evaluated without operators; what is passed through is never copied\n"
        )?,
        Some(reason) => writeln!(
            out,
            "not row-wise ({reason}): planned once, run for each batch\n"
        )?,
        None => writeln!(out, "not row-wise: planned once, run for each batch\n")?,
    }
    for output in &plan.config.outputs {
        writeln!(out, "output {} ({})", output.name, output.kind.type_name())?;
        let mut table = new_table(["column", "becomes", "value"]);
        for column in &branch.outputs {
            let becomes = output.kind.becomes(Some(&column.name));
            let row = [column.name.clone(), becomes, value_of(plan, &column.value)];
            table.add_row(row.map(|cell| shown(plan, &cell)));
        }
        if branch.star {
            let every = "every other key".to_owned();
            let value = "as it is, with its own kind".to_owned();
            table.add_row([every, output.kind.becomes(None), value]);
        }
        writeln!(out, "{table}\n")?;
    }
    Ok(())
}

fn explain_conditions(plan: &PipelinePlan, branch: &Branch, out: &mut dyn Write) -> io::Result<()> {
    if branch.predicate.is_empty() {
        return writeln!(out, "no WHERE: every record passes");
    }
    writeln!(out, "a record passes if all of these hold")?;
    let mut table = new_table(["condition", "reads", "evaluated"]);
    for conjunct in &branch.predicate {
        let columns = conjunct.columns.iter();
        let evaluated = match &conjunct.when {
            When::Prefilter(needles) => {
                let texts = format!("prefilter: {}", texts(needles).join(" or "));
                style::good(shown(plan, &texts)).to_string()
            }
            When::PushedDown => style::good("pushed down").to_string(),
            When::After => style::warn("after").to_string(),
        };
        table.add_row([
            shown(plan, &conjunct.text),
            lines(columns.map(|&n| plan.query.columns()[n].name.clone())),
            evaluated,
        ]);
    }
    writeln!(out, "{table}")?;
    let when = |wanted: fn(&When) -> bool| branch.predicate.iter().any(|it| wanted(&it.when));
    if when(|when| matches!(when, When::Prefilter(_))) {
        writeln!(
            out,
            "prefilter: a record that holds none of the texts, and no escape behind which one may be, is dropped unread"
        )?;
    }
    if when(|when| *when == When::After) {
        return writeln!(
            out,
            "after: on all columns of all records; only a query all of whose SELECTs are row-wise and have a condition \
             on a column is pushed down"
        );
    }
    writeln!(
        out,
        "pushed down: first, on the columns it reads; the others are built for the records that pass \
         (while most records pass, all columns are built at once)"
    )
}

/// The texts of which a record must contain one, as they are written in it.
fn texts(needles: &Needles) -> Vec<String> {
    let text = |needle: &tailrace_sql::Needle| {
        if needle.quoted {
            format!("\"{}\"", needle.text)
        } else {
            needle.text.clone()
        }
    };
    needles.any.iter().map(text).collect()
}

fn value_of(plan: &PipelinePlan, value: &OutputValue) -> String {
    match value {
        OutputValue::Column(n) => {
            let column = &plan.query.columns()[*n];
            match column.ty {
                Type::Open => format!("{} as it is, with its own kind", column.label),
                ty => format!("{} as {ty}", column.label),
            }
        }
        OutputValue::Computed(ty) => format!("computed, {ty}"),
    }
}

fn new_table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_HORIZONTAL_ONLY);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    if let Some(width) = style::width() {
        table.set_width(width);
    }
    table.set_header(header.map(|name| style::dim(name).to_string()));
    table
}

fn lines(lines: impl Iterator<Item = String>) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for line in lines {
        if !distinct.contains(&line) {
            distinct.push(line);
        }
    }
    distinct.join("\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_table_is_as_wide_for_a_long_secret_as_for_a_short_one() {
        let explained = |secret: &str| {
            let dir = tempfile::tempdir().unwrap();
            let (config, file) = (dir.path().join("t.yaml"), dir.path().join("secret"));
            std::fs::write(&file, secret).unwrap();
            let text = format!(
                "pipelines: {{a: {{input: {{type: stdin}}, output: {{type: stdout}}, transform: \"SELECT msg FROM logs \
                 WHERE token = '${{file:{}}}' AND msg LIKE '%${{file:{0}}}%'\"}}}}\n",
                file.display()
            );
            std::fs::write(&config, text).unwrap();
            let args = ConfigArgs {
                config: vec![config],
                ..ConfigArgs::default()
            };
            let (_, plans) = load(&args).unwrap();
            let text = plain_text(&plans[0]).unwrap();
            assert!(!text.contains(secret), "{text}");
            text.replace(&dir.path().display().to_string(), "DIR")
        };
        let long = "explained0".repeat(30);
        assert_eq!(explained(&long), explained("explained1"));
    }
}
