//! `tailrace ledger` and `/api/v1/ledger`: the outcome of every byte and record of a running agent.
//!
//! [`report`] turns ledgers into JSON for the admin endpoint, and [`run`] prints this JSON as tables. Nothing is counted here.

mod tables;

use std::io::Write;

use anyhow::Context;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use indicatif::{HumanBytes, HumanCount};
use serde_json::{Value, json};
use tailrace_config::AdminAddress;
use tailrace_pipeline::{PipelineLedger, SourceLag};

use crate::admin_client::{LEDGER_PATH, REASONS_PATH, SOURCES_PATH, ask};
use crate::cli::Failure;
use crate::printed;

/// How many sources of a pipeline are listed: those furthest behind.
pub(crate) const SOURCES_MAX: usize = 10;

/// Arguments of `tailrace ledger`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Admin endpoint of the running agent, as in `admin.listen`: `IP:PORT` or `unix:/PATH`.
    #[arg(long, value_name = "ADDRESS", env = "TAILRACE_ADMIN")]
    admin: AdminAddress,
    /// Show the files that are followed, or all files of a namespace or of a pod together.
    #[arg(long, value_enum)]
    by: Option<By>,
    /// Order of the sources: the most bytes read, or the most bytes not delivered.
    #[arg(long, value_enum, requires = "by", default_value = "bytes")]
    sort: Sort,
    /// Show so many sources.
    #[arg(long, value_name = "N", requires = "by", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    top: u16,
    /// Show the recent reasons why records, lines and files did not go the usual way.
    #[arg(long, conflicts_with = "by")]
    reasons: bool,
    /// Print the JSON of the agent.
    #[arg(long)]
    json: bool,
}

/// What sources are put together by.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum By {
    File,
    Namespace,
    Pod,
}

impl By {
    const fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Namespace => "namespace",
            Self::Pod => "pod",
        }
    }
}

/// Which sources come first.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Sort {
    Bytes,
    Lag,
}

impl Sort {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Lag => "lag",
        }
    }
}

/// How an answer is printed for people.
type Print = fn(&Value, &mut dyn Write) -> std::io::Result<()>;

/// Asks the agent and prints its ledger.
///
/// # Errors
///
/// The agent cannot be reached or does not answer as one.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let (path, print): (String, Print) = match args.by {
        Some(by) => {
            let (by, sort, top) = (by.as_str(), args.sort.as_str(), args.top);
            let path = format!("{SOURCES_PATH}?by={by}&sort={sort}&n={top}");
            (path, tables::print_sources)
        }
        None if args.reasons => (REASONS_PATH.to_owned(), tables::print_reasons),
        None => (LEDGER_PATH.to_owned(), print),
    };
    let body = ask(&args.admin, &path).with_context(|| {
        format!(
            "the agent at {} gives no ledger: does it run, with `admin: {{listen: {}}}`?",
            args.admin, args.admin
        )
    })?;
    let report: Value = serde_json::from_slice(&body)
        .context("the answer is no JSON: is that a Tailrace agent?")?;
    if args.json {
        let body = printed::plain_json(&String::from_utf8_lossy(&body));
        out.write_all(body.as_bytes()).context("standard output")?;
        return Ok(());
    }
    print(&report, out).context("standard output")?;
    Ok(())
}

/// The ledgers of all pipelines, and the sources of each that are furthest behind.
pub(crate) fn report(ledgers: &[PipelineLedger], lags: &[Vec<SourceLag>]) -> Value {
    let pipelines = ledgers.iter().zip(lags).map(|(ledger, lags)| {
        let sources = lags.iter().map(|lag| {
            json!({
                "path": printed::redacted(&lag.path.to_string_lossy()),
                "size": lag.size,
                "read_to": lag.read_to,
                "watermark": lag.watermark,
                "behind_bytes": lag.behind(),
            })
        });
        let mut pipeline = of_pipeline(ledger);
        pipeline["sources"] = sources.collect();
        pipeline
    });
    json!({ "pipelines": pipelines.collect::<Vec<_>>() })
}

/// The ledger of one pipeline, without its sources.
pub(crate) fn of_pipeline(ledger: &PipelineLedger) -> Value {
    let outputs = ledger.outputs.iter().map(|output| {
        json!({
            "output": output.output,
            "delivered_records": output.delivered,
            "rejected_records": output.rejected,
            "dead_lettered_records": output.dead_lettered,
            "dropped_records": output.dropped,
            "earlier_records": output.earlier,
            "in_flight_records": ledger.in_flight(output),
            "in_flight_requests": output.in_flight_requests,
            "requests": output.requests,
            "sent_bytes": output.payload_bytes,
            "encoded_bytes": output.encoded_bytes,
            "holding": output.holding,
            "detached": output.detached > 0,
            "delivery_delay_seconds": {
                "batches": output.delay.batches,
                "total": output.delay.total.as_secs_f64(),
                "max": output.delay.max.as_secs_f64(),
            },
        })
    });
    json!({
        "pipeline": ledger.pipeline,
        "read_bytes": ledger.read_bytes,
        "unread_bytes": ledger.unread_bytes,
        "oldest_unread_seconds": ledger.oldest_unread_s,
        "in_flight_bytes": ledger.in_flight_bytes,
        "lost_bytes": by_reason(&ledger.lost_bytes),
        "lost_files": by_reason(&ledger.lost_files),
        "truncated_unread": {
            "truncations": ledger.truncated_unread.truncations,
            "bytes_max": ledger.truncated_unread.bytes_max,
            "unbounded": ledger.truncated_unread.unbounded,
        },
        "skipped_bytes": by_reason(&ledger.skipped_bytes),
        "records": ledger.records,
        "replayed_records": ledger.replayed,
        "malformed_records": ledger.malformed,
        "truncated_records": ledger.truncated,
        "filtered_records": ledger.filtered,
        "outputs": outputs.collect::<Vec<_>>(),
    })
}

fn by_reason(reasons: &[(&'static str, u64)]) -> Value {
    let pairs = reasons.iter();
    pairs
        .map(|&(reason, bytes)| (reason.to_owned(), json!(bytes)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// Tables for people.
fn print(report: &Value, out: &mut dyn Write) -> std::io::Result<()> {
    let pipelines = report["pipelines"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    for pipeline in pipelines {
        writeln!(out, "pipeline {}", text(&pipeline["pipeline"]))?;
        let mut table = plain_table();
        let bytes = |key: &str| HumanBytes(number(&pipeline[key])).to_string();
        let count = |value: &Value| HumanCount(number(value)).to_string();
        table.add_row(["  read", &bytes("read_bytes"), ""]);
        table.add_row(["  not read yet", &bytes("unread_bytes"), ""]);
        for (key, name) in [("lost_bytes", "  lost"), ("skipped_bytes", "  skipped")] {
            for (reason, bytes) in pipeline[key].as_object().into_iter().flatten() {
                let bytes = HumanBytes(number(bytes)).to_string();
                table.add_row([name, &bytes, &printed::shown(reason)]);
            }
        }
        for (reason, files) in pipeline["lost_files"].as_object().into_iter().flatten() {
            table.add_row(["  files lost", &count(files), reason]);
        }
        let unread = &pipeline["truncated_unread"];
        if number(&unread["truncations"]) > 0 {
            let times = format!(
                "unseen at most, in {} truncations",
                count(&unread["truncations"])
            );
            let bytes = HumanBytes(number(&unread["bytes_max"])).to_string();
            table.add_row(["  truncated", &bytes, &times]);
        }
        if number(&unread["unbounded"]) > 0 {
            let times = count(&unread["unbounded"]);
            table.add_row(["    of these", &times, "without a bound"]);
        }
        table.add_row(["  records", &count(&pipeline["records"]), ""]);
        for kind in ["replayed", "malformed", "truncated"] {
            let records = &pipeline[format!("{kind}_records")];
            if number(records) > 0 {
                table.add_row(["    of these", &count(records), kind]);
            }
        }
        table.add_row([
            "  filtered",
            &count(&pipeline["filtered_records"]),
            "by WHERE",
        ]);
        for output in pipeline["outputs"].as_array().into_iter().flatten() {
            let name = text(&output["output"]);
            for kind in [
                "delivered",
                "rejected",
                "dead_lettered",
                "dropped",
                "in_flight",
            ] {
                let records = count(&output[format!("{kind}_records")]);
                let held = kind == "in_flight" && output["holding"] == json!(true);
                let note = if held {
                    format!("{name}, which refuses")
                } else {
                    name.clone()
                };
                table.add_row([format!("  {}", kind.replace('_', " ")), records, note]);
            }
        }
        writeln!(out, "{table}")?;
        print_sources(pipeline, out)?;
    }
    Ok(())
}

fn print_sources(pipeline: &Value, out: &mut dyn Write) -> std::io::Result<()> {
    let sources = pipeline["sources"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    if sources.is_empty() {
        return Ok(());
    }
    let mut table = plain_table();
    for source in sources {
        let behind = HumanBytes(number(&source["behind_bytes"])).to_string();
        table.add_row(["  behind".to_owned(), behind, text(&source["path"])]);
    }
    writeln!(out, "{table}")
}

fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING);
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn text(value: &Value) -> String {
    printed::shown(value.as_str().unwrap_or("?"))
}
