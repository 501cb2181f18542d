//! Instructions of each stage, counted by callgrind: a figure that the load of the machine does not move.
//!
//! Valgrind's processor has AVX2 and no AVX-512, so the code counted is the AVX2 path.

use std::fs;

use anyhow::{Context as _, Result, bail, ensure};

use crate::results::publish;
use crate::stages;
use xtask::workspace::{Workspace, on_path};

#[derive(clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    /// Write the counts to benches/instructions.csv instead of comparing with it
    #[arg(long, requires = "instructions")]
    record: bool,
}

/// Counted stages, and the shapes they are counted on.
const STAGES: [(&str, &[&str]); 5] = [
    ("scan", SHAPES),
    ("scan without pushdown", SHAPES),
    ("filter", &["wide"]),
    ("encode", SHAPES),
    ("compress", &["simple", "wide"]),
];
const SHAPES: &[&str] = &["narrow", "simple", "wide", "mixed"];

/// More than this above the recorded count is a regression.
const TOLERANCE: f64 = 0.05;
/// An unfiltered query may cost so much more where the code for pushdown is there.
const PUSHDOWN_TOLERANCE: f64 = 0.01;
const HEADER: &str = "stage,shape,instructions_per_line,instructions_per_byte";

struct Count {
    stage: &'static str,
    shape: &'static str,
    per_line: f64,
    per_byte: f64,
}

pub(crate) fn run(workspace: &Workspace, args: &Args, is_public: bool) -> Result<()> {
    if !on_path("valgrind") {
        println!("skipped: valgrind is not on the PATH");
        return Ok(());
    }
    stages::build(workspace)?;
    let path = workspace.root.join("benches/instructions.csv");
    let recorded = fs::read_to_string(&path).unwrap_or_default();
    let mut counts: Vec<Count> = Vec::new();
    let mut faults = Vec::new();
    let mut table = String::new();
    let mut add = |line: String| {
        println!("{line}");
        table.push_str(&line);
        table.push('\n');
    };
    add("| stage | shape | instructions per line | per byte | recorded | change |".to_owned());
    add("|---|---|---:|---:|---:|---:|".to_owned());
    for (stage, shapes) in STAGES {
        for shape in shapes {
            let count = count(workspace, stage, shape)?;
            let before = recorded_count(&recorded, stage, shape);
            let change = before.map(|before| count.per_line / before - 1.0);
            add(format!(
                "| {stage} | {shape} | {:.1} | {:.2} | {} | {} |",
                count.per_line,
                count.per_byte,
                before.map_or("none".to_owned(), |before| format!("{before:.1}")),
                change.map_or(String::new(), |change| format!("{:+.1} %", change * 100.0)),
            ));
            if change.is_some_and(|change| change > TOLERANCE) {
                faults.push(format!("{stage} of {shape} lines costs more than recorded"));
            }
            counts.push(count);
        }
    }
    faults.extend(pushdown_faults(&counts));
    if is_public {
        publish(workspace, "instructions", &table)?;
    }
    if args.record {
        fs::write(&path, csv(&counts)).context("cannot write benches/instructions.csv")?;
        println!("recorded: benches/instructions.csv");
    } else if !faults.is_empty() {
        bail!("{}; `--record` accepts it", faults.join("; "));
    }
    Ok(())
}

/// One run of callgrind, which collects only inside the function `measured`.
fn count(workspace: &Workspace, stage: &'static str, shape: &'static str) -> Result<Count> {
    let binary = workspace.target.join("release/tailrace-bench");
    let mut command = workspace.command(
        "valgrind",
        &[
            "--tool=callgrind",
            "--callgrind-out-file=/dev/null",
            "--collect-atstart=no",
            "--toggle-collect=*instructions::measured*",
        ],
    );
    command.arg(binary).args(["instructions", stage, shape]);
    let output = command.output().context("cannot start valgrind")?;
    let (out, log) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    ensure!(output.status.success(), "{stage} of {shape} lines: {log}");
    let instructions =
        collected(&log).with_context(|| format!("callgrind counted nothing: {log}"))?;
    let field = |name: &str| {
        let value: serde_json::Value = serde_json::from_str(out.trim()).ok()?;
        value.get(name)?.as_f64()
    };
    let lines = field("lines").with_context(|| format!("no lines in {out}"))?;
    let bytes = field("bytes").with_context(|| format!("no bytes in {out}"))?;
    Ok(Count {
        stage,
        shape,
        per_line: instructions / lines,
        per_byte: instructions / bytes,
    })
}

/// Of callgrind's last words: `==7== Collected : 123456`.
fn collected(log: &str) -> Option<f64> {
    let line = log.lines().find(|line| line.contains("Collected :"))?;
    let count: f64 = line.rsplit(':').next()?.trim().parse().ok()?;
    (count > 0.0).then_some(count)
}

fn recorded_count(csv: &str, stage: &str, shape: &str) -> Option<f64> {
    let line = csv
        .lines()
        .find(|line| line.starts_with(&format!("{stage},{shape},")))?;
    line.split(',').nth(2)?.parse().ok()
}

/// Unfiltered, with and without the code for pushdown.
fn pushdown_faults(counts: &[Count]) -> Vec<String> {
    let of = |stage: &str, shape: &str| {
        let count = counts.iter().find(|c| c.stage == stage && c.shape == shape);
        count.map(|count| count.per_line)
    };
    let fault = |shape: &&str| {
        let ratio = of("scan", shape)? / of("scan without pushdown", shape)?;
        println!(
            "pushdown costs an unfiltered query on {shape} lines {:+.3} %",
            (ratio - 1.0) * 100.0
        );
        let is_fault = ratio > 1.0 + PUSHDOWN_TOLERANCE;
        is_fault.then(|| format!("an unfiltered query on {shape} lines pays for pushdown"))
    };
    SHAPES.iter().filter_map(fault).collect()
}

fn csv(counts: &[Count]) -> String {
    let mut text = format!("{HEADER}\n");
    for count in counts {
        let Count {
            stage,
            shape,
            per_line,
            per_byte,
        } = count;
        text.push_str(&format!("{stage},{shape},{per_line:.2},{per_byte:.4}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callgrinds_count_is_read() {
        let log = "==7== Events    : Ir\n==7== Collected : 123456\n==7==\n";
        assert_eq!(collected(log), Some(123_456.0));
        assert_eq!(collected("==7== Collected : 0\n"), None);
    }

    #[test]
    fn what_is_recorded_is_found_again() {
        let count = Count {
            stage: "scan",
            shape: "wide",
            per_line: 1234.5,
            per_byte: 2.25,
        };
        let text = csv(&[count]);
        assert_eq!(recorded_count(&text, "scan", "wide"), Some(1234.5));
        assert_eq!(recorded_count(&text, "scan", "simple"), None);
    }
}
