//! The command behind `cargo xtask torture`: reads a plan from the command line, runs it and prints the
//! verdict. Its exit code says whether every promise was kept.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "its output is what it prints"
)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use tailrace_torture::{
    Agent, DiskFault, Fault, Kind, Plan, Rotation, Scenario, Stops, matrix, run,
};

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
    /// Torture this Tailrace instead of building one
    #[arg(long, value_name = "FILE")]
    tailrace: PathBuf,
    /// The OpenTelemetry Collector; built when it is needed
    #[arg(long, value_name = "FILE")]
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
    /// Run the agent where inotify is not to be had, in a user namespace
    #[arg(long)]
    no_inotify: bool,
    /// Play one story: burst, rotations, chain, outage (`--minutes`), squeeze, poison or crash
    #[arg(long, value_parser = scenario, conflicts_with = "kills")]
    scenario: Option<Scenario>,
    /// Run every fault with every agent and write the matrix to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Seconds of each run of the matrix
    #[arg(long, default_value_t = 10)]
    seconds: u64,
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

fn scenario(name: &str) -> Result<Scenario, String> {
    let found = Scenario::ALL.into_iter().find(|of| of.name() == name);
    found.ok_or_else(|| format!("one of {}", Scenario::ALL.map(Scenario::name).join(", ")))
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
    let tailrace = Agent {
        kind: Kind::Tailrace,
        binary: cli.tailrace.clone(),
    };
    let otelcol = cli.otelcol.clone().map(|binary| Agent {
        kind: Kind::Otelcol,
        binary,
    });
    println!("seed {}", cli.seed);
    if let Some(path) = &cli.report {
        let mut agents = vec![("Tailrace", tailrace)];
        agents.extend(otelcol.map(|agent| ("Collector", agent)));
        return report(cli, &agents, path).map_err(|error| error.to_string());
    }
    let agent = match cli.agent {
        Who::Tailrace => tailrace,
        Who::Otelcol => otelcol.ok_or("--otelcol is missing")?,
    };
    let outcome = match cli.scenario {
        Some(scenario) => {
            let time = Duration::from_secs(60 * cli.minutes.unwrap_or(10));
            scenario.run(&plan(cli, agent)?, time)
        }
        None => run(&plan(cli, agent)?),
    };
    let outcome = outcome.map_err(|error| error.to_string())?;
    print!("{outcome}");
    Ok(outcome.broken.is_empty())
}

/// Writes the matrix between the marks of a document that is there, else a new one.
fn report(cli: &Cli, agents: &[(&str, Agent)], path: &Path) -> std::io::Result<bool> {
    let time = Duration::from_secs(cli.seconds);
    let table = matrix(agents, cli.seed, time, |text| println!("{text}"))?;
    let old = std::fs::read_to_string(path).unwrap_or_default();
    let (before, after) = match (old.split_once(BEGIN), old.split_once(END)) {
        (Some((before, _)), Some((_, after))) => (before, after),
        _ => ("# The fault matrix\n\n", "\n"),
    };
    let text = format!("{before}{BEGIN}\n\n{table}\n{END}{after}");
    std::fs::write(path, text)?;
    Ok(true)
}

const BEGIN: &str = "<!-- matrix: `cargo xtask torture --report` -->";
const END: &str = "<!-- end of the matrix -->";

fn plan(cli: &Cli, agent: Agent) -> Result<Plan, String> {
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
        has_inotify: !cli.no_inotify,
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
    Ok(plan)
}

fn fault(name: &str) -> Result<Fault, String> {
    let found = Fault::ALL.into_iter().find(|fault| fault.name() == name);
    found.ok_or_else(|| {
        let names = Fault::ALL.map(Fault::name).join("; ");
        format!("no fault `{name}`; there are: {names}")
    })
}
