//! The process behind `cargo xtask bench --kubernetes` that an agent on a node talks to: serves pods and receives records.
//!
//! It reads the pods from a file, a JSON list of `{"pod": ..., "attributes": {...}}`. It writes a kubeconfig and prints the
//! address that receives records; then, as lines of JSON, when all have arrived, and the totals when its standard input ends.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "its output is what it prints"
)]

use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use serde_json::{Value, json};
use tailrace_testkit::{Expected, Node};

#[derive(Parser)]
struct Cli {
    /// The pods and what is expected of their records
    #[arg(long, value_name = "FILE")]
    pods: PathBuf,
    /// The records of each pod
    #[arg(long)]
    records: u64,
    /// Where the kubeconfig is written
    #[arg(long, value_name = "DIRECTORY")]
    dir: PathBuf,
}

fn main() -> ExitCode {
    match serve(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(cli: &Cli) -> Result<(), String> {
    let text = std::fs::read_to_string(&cli.pods)
        .map_err(|error| format!("cannot read {}: {error}", cli.pods.display()))?;
    let pods = pods(&text).ok_or_else(|| format!("no list of pods: {}", cli.pods.display()))?;
    let expected = cli.records * pods.len() as u64;
    let node = Arc::new(Node::start(pods));
    node.api.kubeconfig(&cli.dir);
    println!("{}", json!({"listening": node.address.to_string()}));
    let waited = Arc::clone(&node);
    std::thread::spawn(move || {
        waited.wait_records(expected);
        println!("{}", json!({"complete": true}));
    });
    let end = std::io::stdin().read_to_end(&mut Vec::new());
    end.map_err(|error| format!("cannot read the standard input: {error}"))?;
    let totals = node.totals(cli.records);
    let totals = json!({
        "records": totals.records,
        "labelled": totals.labelled,
        "complete_pods": totals.complete_pods,
        "wire_bytes": totals.wire_bytes,
        "refused": totals.refused,
        "fault": totals.fault,
        "asked": node.api.requests(),
    });
    println!("{totals}");
    Ok(())
}

fn pods(text: &str) -> Option<Vec<Expected>> {
    let value: Value = serde_json::from_str(text).ok()?;
    let expected = |value: &Value| {
        let attributes = value["attributes"].as_object()?;
        let pairs = attributes.iter();
        Some(Expected {
            pod: value["pod"].clone(),
            attributes: pairs
                .map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect::<Option<_>>()?,
        })
    };
    value.as_array()?.iter().map(expected).collect()
}
