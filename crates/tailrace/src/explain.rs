//! `tailrace explain`: what a config makes of each query. The columns the scanner extracts, their
//! types and why; what is filtered where; the OTLP field each output column becomes.

use std::io::{self, Write};

use anyhow::Context;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{ContentArrangement, Table};
use tailrace_config::OutputKind;
use tailrace_pipeline::{ColumnFrom, PipelinePlan};
use tailrace_sql::{Branch, OutputValue, Type};

use crate::cli::{ConfigArgs, Failure};
use crate::run::load;

/// Arguments of `tailrace explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    config: ConfigArgs,
    /// Explain this pipeline only.
    pipeline: Option<String>,
}

/// Explains a config.
///
/// # Errors
///
/// A bad config, or a pipeline it does not have.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let (_, plans) = load(&args.config)?;
    let wanted =
        |plan: &&PipelinePlan| args.pipeline.as_ref().is_none_or(|name| *name == plan.name);
    let chosen: Vec<&PipelinePlan> = plans.iter().filter(wanted).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = plans.iter().map(|plan| plan.name.as_str()).collect();
        return Err(no_such_pipeline(args.pipeline.as_deref().unwrap_or(""), &names).into());
    }
    for plan in chosen {
        explain(plan, out).context("stdout")?;
    }
    Ok(())
}

fn no_such_pipeline(name: &str, names: &[&str]) -> anyhow::Error {
    anyhow::anyhow!(
        "there is no pipeline `{name}`; the config has {}",
        names.join(", ")
    )
}

fn explain(plan: &PipelinePlan, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "pipeline {}", plan.name)?;
    for line in plan.config.transform.text.trim().lines() {
        writeln!(out, "    {line}")?;
    }
    writeln!(out)?;
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
        let from = match from {
            ColumnFrom::Scan(_) => "each record",
            ColumnFrom::Fact(_) => "its source",
        };
        let uses = column.uses.iter();
        table.add_row([
            column.label.clone(),
            column.ty.to_string(),
            from.to_owned(),
            lines(
                uses.clone()
                    .map(|used| format!("{} (line {})", used.expression, used.line)),
            ),
            lines(uses.map(|used| used.why.clone())),
        ]);
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

fn explain_branch(plan: &PipelinePlan, branch: &Branch, out: &mut dyn Write) -> io::Result<()> {
    if branch.predicate.is_empty() {
        writeln!(out, "no WHERE: every record passes")?;
    } else {
        writeln!(out, "a record passes if all of these hold")?;
        for conjunct in &branch.predicate {
            let columns = conjunct
                .columns
                .iter()
                .map(|&n| plan.query.columns()[n].name.as_str());
            let columns: Vec<&str> = columns.collect();
            writeln!(out, "    {}    reads {}", conjunct.text, columns.join(", "))?;
        }
        writeln!(
            out,
            "evaluated on the scanned columns; nothing is pushed into the scan yet"
        )?;
    }
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
            let becomes = becomes(plan, &output.kind, &column.name);
            table.add_row([column.name.clone(), becomes, value_of(plan, &column.value)]);
        }
        if branch.star {
            let fields = match &output.kind {
                OutputKind::Otlp(_) => "the LogRecord field its name stands for, else an attribute",
                _ => "a key of the line",
            };
            table.add_row(["every other key", fields, "as it is, with its own kind"]);
        }
        writeln!(out, "{table}\n")?;
    }
    Ok(())
}

fn becomes(plan: &PipelinePlan, kind: &OutputKind, column: &str) -> String {
    let OutputKind::Otlp(otlp) = kind else {
        return "a key of the line".to_owned();
    };
    match plan.mapping(otlp).field_of(column) {
        Some(field) => field.name().to_owned(),
        None => format!("attribute {column}"),
    }
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
    table.set_header(header);
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
