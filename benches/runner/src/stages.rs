//! The criterion benches: run, read what they left, one table, a CSV and the plots.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::chart::{Bar, Chart, Group, number};
use crate::results::{Csv, machine, median, publish};
use xtask::workspace::{Workspace, capture, run as execute};

#[derive(clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    /// The benches to run
    #[arg(
        long,
        value_delimiter = ',',
        default_value = BENCHES
    )]
    bench: Vec<String>,
    /// Time only the cases whose names hold this
    #[arg(long)]
    filter: Option<String>,
    /// Time the scan alone, with everything compiled for this very machine (sonic-rs needs that to be fast)
    #[arg(long, conflicts_with_all = ["agents", "memory", "instructions"])]
    native: bool,
    /// Run them so many times; medians are shown
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
}

/// What one contender did with one case.
#[derive(Clone, Debug, PartialEq)]
struct Measured {
    bench: String,
    case: String,
    who: String,
    lines: f64,
    bytes: f64,
    /// CPU time of one pass, of each run.
    ns: Vec<f64>,
}

const BENCHES: &str = "scan,pushdown,encode,compress,worker,allocations";

/// The contender that the others are compared with.
const OURS: &str = "tailrace";
const YARDSTICK: &str = "simdutf8";

pub(crate) fn run(workspace: &Workspace, args: &Args, is_public: bool) -> Result<()> {
    let program = if args.native {
        build_native(workspace)?
    } else {
        build(workspace)?;
        workspace.target.join("release/tailrace-bench")
    };
    let is_wanted = |name: &&String| !args.native || *name == "scan";
    let (timed, printed): (Vec<&String>, Vec<&String>) = args
        .bench
        .iter()
        .filter(is_wanted)
        .partition(|name| *name != "allocations");
    let mut all: Vec<Measured> = Vec::new();
    for _ in 0..args.repeat {
        if timed.is_empty() {
            break;
        }
        for measured in run_once(workspace, &program, &timed, args.filter.as_deref())? {
            match all.iter_mut().find(|known| known.is_same_case(&measured)) {
                Some(known) => known.ns.extend(measured.ns),
                None => all.push(measured),
            }
        }
    }
    if !all.is_empty() {
        print!("\n{}\n\n{}", machine(workspace), markdown(&all));
        let is_part = args.filter.is_some() || args.bench.len() < BENCHES.split(',').count();
        let suffix = match (args.native, is_part) {
            (true, _) => "-native",
            (false, true) => "-part",
            (false, false) => "",
        };
        let csv = write_csv(workspace, suffix, &all)?;
        println!("\nwritten: {csv}");
        if args.native {
            if is_public {
                let both = ["scan", "scan 2 of 20"].map(|bench| pivot(&all, bench));
                publish(workspace, "scan native", &both.join("\n"))?;
            }
            return Ok(());
        }
        draw(workspace, &all)?;
        if is_public {
            publish_all(workspace, &all)?;
        }
    }
    for _ in printed {
        println!();
        let program = workspace.target.join("release/tailrace-bench-allocations");
        let table = capture(&mut workspace.command(program, &[]))?;
        print!("{table}");
        if is_public {
            publish(workspace, "allocations", &table)?;
        }
    }
    Ok(())
}

/// The tables of docs/performance.md.
fn publish_all(workspace: &Workspace, all: &[Measured]) -> Result<()> {
    for bench in [
        "scan",
        "scan 2 of 20",
        "filter",
        "encode",
        "compress",
        "worker",
    ] {
        if all.iter().any(|one| one.bench == bench) {
            publish(workspace, bench, &pivot(all, bench))?;
        }
    }
    publish(workspace, "machine", &machine(workspace))
}

/// The scan alone at its best: for this very machine, with link-time optimisation, in a directory of its own: nothing of it can be shared.
fn build_native(workspace: &Workspace) -> Result<PathBuf> {
    let target = workspace.target.join("bench/native");
    let mut command = workspace.cargo(&["build", "--release", "--no-default-features"]);
    command
        .args(["--package", "tailrace-benches", "--bin", "tailrace-bench"])
        .env("CARGO_TARGET_DIR", &target)
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1")
        .env("CARGO_PROFILE_RELEASE_LTO", "fat")
        .env("RUSTFLAGS", "-C target-cpu=native");
    execute(&mut command)?;
    Ok(target.join("release/tailrace-bench"))
}

/// The programs of the benches, with the features of the whole workspace: what is built for one is there for all.
pub(super) fn build(workspace: &Workspace) -> Result<()> {
    let programs = [
        "--bin",
        "tailrace-bench",
        "--bin",
        "tailrace-bench-allocations",
    ];
    let mut command = workspace.cargo(&["build", "--release", "--workspace"]);
    execute(command.args(programs))
}

/// All benches once, results in the order in which they came.
fn run_once(
    workspace: &Workspace,
    program: &Path,
    benches: &[&String],
    filter: Option<&str>,
) -> Result<Vec<Measured>> {
    let home = workspace.target.join("bench/criterion");
    if home.exists() {
        fs::remove_dir_all(&home).with_context(|| format!("cannot empty {}", home.display()))?;
    }
    for bench in benches {
        let mut command = workspace.command(program, &[bench]);
        command.args(filter).env("CRITERION_HOME", &home);
        execute(&mut command)?;
    }
    let mut found: Vec<(SystemTime, Measured)> = Vec::new();
    collect(&home, &mut found)?;
    ensure!(!found.is_empty(), "no results under {}", home.display());
    found.sort_by_key(|(at, _)| *at);
    Ok(found.into_iter().map(|(_, measured)| measured).collect())
}

/// Reads every `new/estimates.json` and the `benchmark.json` beside it.
fn collect(dir: &Path, found: &mut Vec<(SystemTime, Measured)>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let path = entry?.path();
        let estimates = path.join("estimates.json");
        if path.is_dir() && path.ends_with("new") && estimates.is_file() {
            let at = fs::metadata(&estimates)?.modified()?;
            let read = |path: &Path| -> Result<Value> {
                let text = fs::read_to_string(path)?;
                serde_json::from_str(&text).with_context(|| format!("{}", path.display()))
            };
            let measured = measured(&read(&path.join("benchmark.json"))?, &read(&estimates)?);
            let place = || format!("{} is not what criterion 0.8 writes", path.display());
            found.push((at, measured.with_context(place)?));
        } else if path.is_dir() {
            collect(&path, found)?;
        }
    }
    Ok(())
}

fn measured(benchmark: &Value, estimates: &Value) -> Option<Measured> {
    let text = |name: &str| benchmark.get(name)?.as_str().map(str::to_owned);
    let throughput = benchmark.get("throughput")?.get("ElementsAndBytes")?;
    Some(Measured {
        bench: text("group_id")?,
        who: text("function_id")?,
        case: text("value_str")?,
        lines: throughput.get("elements")?.as_f64()?,
        bytes: throughput.get("bytes")?.as_f64()?,
        ns: vec![estimates.get("median")?.get("point_estimate")?.as_f64()?],
    })
}

impl Measured {
    fn is_same_case(&self, other: &Measured) -> bool {
        (&self.bench, &self.case, &self.who) == (&other.bench, &other.case, &other.who)
    }

    /// Of two that did the same work: how many times faster this one is, run by run.
    fn times(&self, other: &Measured) -> f64 {
        let ratios: Vec<f64> = self.ns.iter().zip(&other.ns).map(|(a, b)| b / a).collect();
        median(&ratios)
    }

    fn gb_per_s(&self) -> f64 {
        self.bytes / median(&self.ns)
    }

    fn mlines_per_s(&self) -> f64 {
        self.lines / median(&self.ns) * 1e3
    }

    /// Who else had the same case, by name.
    fn beside<'a>(&self, all: &'a [Measured], who: &str) -> Option<&'a Measured> {
        all.iter().find(|other| {
            (&other.bench, &other.case, other.who.as_str()) == (&self.bench, &self.case, who)
        })
    }
}

/// The one table.
fn markdown(all: &[Measured]) -> String {
    let mut text =
        "| bench | case | who | GB/s | M lines/s | of simdutf8 | Tailrace is faster by |\n\
                    |---|---|---|---:|---:|---:|---:|\n"
            .to_owned();
    for one in all {
        let of_yardstick = one.beside(all, YARDSTICK).map(|other| one.times(other));
        let ours = one.beside(all, OURS).filter(|_| one.who != OURS);
        text.push_str(&format!(
            "| {} | {} | {} | {} | {} | {} | {} |\n",
            one.bench,
            one.case,
            one.who,
            number(one.gb_per_s()),
            number(one.mlines_per_s()),
            of_yardstick.map_or(String::new(), |ratio| format!("{ratio:.3}")),
            ours.map_or(String::new(), |ours| number(ours.times(one))),
        ));
    }
    text
}

/// The cases of one bench below each other, the contenders beside each other: GB/s, and how many times faster ours is.
fn pivot(all: &[Measured], bench: &str) -> String {
    let all: Vec<&Measured> = all.iter().filter(|one| one.bench == bench).collect();
    let distinct = |of: fn(&Measured) -> &str| {
        let mut names: Vec<&str> = Vec::new();
        for one in &all {
            if !names.contains(&of(one)) {
                names.push(of(one));
            }
        }
        names
    };
    let (cases, mut contenders) = (distinct(|one| &one.case), distinct(|one| &one.who));
    contenders.sort_by_key(|who| (*who != YARDSTICK, *who != OURS));
    let dashes = "---:|".repeat(contenders.len());
    let mut text = format!("| GB/s | {} |\n|---|{dashes}\n", contenders.join(" | "));
    for case in cases {
        let find = |who: &str| {
            all.iter()
                .find(|one| (one.case.as_str(), one.who.as_str()) == (case, who))
        };
        let cell = |who: &&str| {
            let Some(one) = find(who) else {
                return String::new();
            };
            let speed = number(one.gb_per_s());
            match (*who, find(OURS), find(YARDSTICK)) {
                (OURS, _, Some(yardstick)) => format!("**{speed}** ({:.3})", one.times(yardstick)),
                (OURS, ..) => format!("**{speed}**"),
                (YARDSTICK, ..) | (_, None, _) => speed,
                (_, Some(ours), _) => format!("{speed} ({}x)", number(ours.times(one))),
            }
        };
        let cells: Vec<String> = contenders.iter().map(cell).collect();
        text.push_str(&format!("| {case} | {} |\n", cells.join(" | ")));
    }
    text
}

fn write_csv(workspace: &Workspace, suffix: &str, all: &[Measured]) -> Result<String> {
    let columns =
        "bench,case,who,lines,bytes,ns,gb_per_s,mlines_per_s,of_simdutf8,tailrace_is_faster_by";
    let mut csv = Csv::create(workspace, suffix, columns)?;
    for one in all {
        let ratio = |ratio: Option<f64>| ratio.map_or(String::new(), |ratio| format!("{ratio:.4}"));
        csv.push(&[
            one.bench.clone(),
            one.case.clone(),
            // The only names with a comma are ours.
            one.who.replace(',', ""),
            one.lines.to_string(),
            one.bytes.to_string(),
            format!("{:.0}", median(&one.ns)),
            format!("{:.4}", one.gb_per_s()),
            format!("{:.4}", one.mlines_per_s()),
            ratio(one.beside(all, YARDSTICK).map(|other| one.times(other))),
            ratio(one.beside(all, OURS).map(|ours| ours.times(one))),
        ])?;
    }
    Ok(csv.name(workspace))
}

/// The plots of docs/performance.md; each only if its benches ran.
fn draw(workspace: &Workspace, all: &[Measured]) -> Result<()> {
    let scan = |one: &&Measured| one.bench.starts_with("scan") && one.who != YARDSTICK;
    let filter = |one: &&Measured| one.bench == "filter";
    let charts = [
        (
            "scan.svg",
            "JSON lines read on one core",
            all.iter().filter(scan).collect::<Vec<_>>(),
        ),
        (
            "filter.svg",
            "Wide lines filtered on one core, by the share that is kept",
            all.iter().filter(filter).collect(),
        ),
    ];
    let dir = workspace.root.join("docs/img");
    fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    for (name, title, bars) in charts {
        if bars.is_empty() {
            continue;
        }
        let chart = Chart {
            title: title.to_owned(),
            unit: "GB of JSON per second of CPU time; longer is better".to_owned(),
            groups: groups(&bars),
        };
        let path = dir.join(name);
        chart.write(&path)?;
        println!("drawn: docs/img/{name}");
    }
    Ok(())
}

/// One group for each case, ours first.
fn groups(bars: &[&Measured]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for one in bars {
        let title = match one.bench.strip_prefix("scan ") {
            Some(part) => format!("{}, {part} fields", one.case),
            None => one.case.clone(),
        };
        let bar = Bar {
            name: one.who.clone(),
            value: one.gb_per_s(),
            is_ours: one.who == OURS,
        };
        match groups.iter_mut().find(|group| group.title == title) {
            Some(group) => group.bars.push(bar),
            None => groups.push(Group {
                title,
                bars: vec![bar],
            }),
        }
    }
    for group in &mut groups {
        group.bars.sort_by_key(|bar| !bar.is_ours);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(who: &str, ns: &[f64]) -> Measured {
        Measured {
            bench: "scan".to_owned(),
            case: "wide".to_owned(),
            who: who.to_owned(),
            lines: 1000.0,
            bytes: 500_000.0,
            ns: ns.to_vec(),
        }
    }

    #[test]
    fn ratios_are_of_paired_runs() {
        let all = [
            one("simdutf8", &[100.0, 200.0]),
            one("tailrace", &[500.0, 1000.0]),
            one("rival", &[2000.0, 4000.0]),
        ];
        let table = markdown(&all);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(
            lines[3],
            "| scan | wide | tailrace | 667 | 1333 | 0.200 |  |"
        );
        assert_eq!(
            lines[4],
            "| scan | wide | rival | 167 | 333 | 0.050 | 4.00 |"
        );
    }

    #[test]
    fn contenders_stand_beside_each_other() {
        let all = [
            one("rival", &[2000.0]),
            one("simdutf8", &[100.0]),
            one("tailrace", &[500.0]),
        ];
        let table = "| GB/s | simdutf8 | tailrace | rival |\n|---|---:|---:|---:|\n\
                     | wide | 5000 | **1000** (0.200) | 250 (4.00x) |\n";
        assert_eq!(pivot(&all, "scan"), table);
    }

    #[test]
    fn criterions_files_are_understood() {
        let benchmark = serde_json::json!({
            "group_id": "scan", "function_id": "tailrace", "value_str": "wide",
            "throughput": {"ElementsAndBytes": {"elements": 1000, "bytes": 500_000}}
        });
        let estimates = serde_json::json!({"median": {"point_estimate": 7.5}});
        assert_eq!(
            measured(&benchmark, &estimates),
            Some(one("tailrace", &[7.5]))
        );
    }

    #[test]
    fn ours_comes_first_in_a_group() {
        let (ours, rival) = (one("tailrace", &[1.0]), one("rival", &[1.0]));
        let groups = groups(&[&rival, &ours]);
        assert_eq!(groups.len(), 1);
        assert_eq!(groups[0].bars[0].name, "tailrace");
    }
}
