//! The command behind `cargo xtask torture`: takes a plan from the command line, runs it, prints the
//! verdict. Its exit code tells whether every promise was kept.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "its output is what it prints"
)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use tailrace_testkit::torture::{Agent, DiskFault, Fault, Kind, Plan, Rotation, Stops, run};

#[derive(Parser)]
#[command(
    name = "cargo xtask torture",
    about = "Kills, rotates and refuses, and counts what is lost"
)]
struct Cli {
    /// Go on for so many minutes
    #[arg(long, conflicts_with = "kills")]
    minutes: Option<u64>,
    /// Go on until the agent was stopped so many times [default: 20]
    #[arg(long)]
    kills: Option<u32>,
    /// Every decision follows from it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Who is tortured
    #[arg(long, value_enum, default_value = "tailrace")]
    agent: Who,
    /// The Tailrace to torture
    #[arg(long, value_name = "FILE", hide = true)]
    tailrace: PathBuf,
    /// The OpenTelemetry Collector to torture
    #[arg(long, value_name = "FILE", hide = true)]
    otelcol: Option<PathBuf>,
    /// What happens to the files
    #[arg(long, value_delimiter = ',', value_parser = rotation)]
    rotations: Vec<Rotation>,
    /// What the server does, in turns; `all`, or names such as `503`, `reset`, `healthy`
    #[arg(long, value_delimiter = ',', default_value = "all")]
    faults: Vec<String>,
    /// Log files of each rotation
    #[arg(long, default_value_t = 1)]
    files: usize,
    /// Lines a second of each file
    #[arg(long, default_value_t = 1000)]
    rate: u64,
    /// Also fill the disk of the agent's state, and make it read-only
    #[arg(long)]
    disk: bool,
    /// Keep everything in this directory
    #[arg(long)]
    dir: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Who {
    Tailrace,
    Otelcol,
}

fn rotation(name: &str) -> Result<Rotation, String> {
    let found = Rotation::ALL.into_iter().find(|of| of.name() == name);
    found.ok_or_else(|| format!("one of {}", Rotation::ALL.map(Rotation::name).join(", ")))
}

fn main() -> ExitCode {
    match torture(&Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn torture(cli: &Cli) -> Result<bool, String> {
    let agent = match cli.agent {
        Who::Tailrace => Agent {
            kind: Kind::Tailrace,
            binary: cli.tailrace.clone(),
        },
        Who::Otelcol => Agent {
            kind: Kind::Otelcol,
            binary: cli.otelcol.clone().ok_or("--otelcol is missing")?,
        },
    };
    let faults = match cli.faults.as_slice() {
        [all] if all == "all" => Fault::ALL.to_vec(),
        names => names
            .iter()
            .map(|name| fault(name))
            .collect::<Result<_, _>>()?,
    };
    let mut plan = Plan {
        faults,
        files: cli.files,
        lines_per_second: cli.rate,
        dir: cli.dir.clone(),
        ..Plan::new(agent, cli.seed)
    };
    if !cli.rotations.is_empty() {
        plan.rotations.clone_from(&cli.rotations);
    }
    if cli.disk {
        plan.disk = vec![DiskFault::Full, DiskFault::ReadOnly];
    }
    match (cli.minutes, cli.kills) {
        (Some(minutes), _) => {
            plan.time = Duration::from_secs(60 * minutes);
            plan.stops = Stops::Kill;
        }
        (None, Some(0)) => {
            plan.time = Duration::from_secs(20);
            plan.stops = Stops::None;
        }
        (None, Some(kills)) => plan.stops = Stops::Count(kills),
        (None, None) => {}
    }
    println!("seed {}", cli.seed);
    let outcome = run(&plan).map_err(|error| error.to_string())?;
    print!("{outcome}");
    Ok(outcome.broken.is_empty())
}

fn fault(name: &str) -> Result<Fault, String> {
    let found = Fault::ALL.into_iter().find(|fault| fault.name() == name);
    found.ok_or_else(|| {
        let names = Fault::ALL.map(Fault::name).join("; ");
        format!("no fault `{name}`; there are: {names}")
    })
}
