//! `cargo xtask bench --agents`: CPU time and peak memory of Tailrace and of
//! the OpenTelemetry Collector doing the same work, side by side.
//!
//! The work: read one generated file from its start, parse every line as JSON,
//! send all of it, or the tenth whose level is ERROR, by OTLP/HTTP with zstd to
//! `tailrace blackhole` on loopback, which decodes the requests and counts the
//! log records. A run counts only if exactly the expected records arrived. The
//! CPU time is the agent's own, user and system, from its start to its end; the
//! receiver's is not in it. Configs: `benches/peers`.
//!
//! The agents take turns, so that a run of each stands beside a run of the
//! other; ratios are taken run by run. Start-up is measured apart, on a file
//! without lines. The yardstick is `zstd -1` alone on the same file's OTLP
//! bytes, in one process.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;

use crate::child::{Child, Usage};
use crate::data::DataFile;
use crate::receiver::Receiver;
use crate::results::{Csv, machine, publish};
use crate::stages;
use crate::table::{self, Case, Yardstick};
use xtask::collector;
use xtask::workspace::{Workspace, capture, on_path, run as execute};

#[derive(clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    /// Lines per file
    #[arg(long, default_value_t = 1_000_000)]
    pub(super) lines: u64,
    /// Runs per case; medians are shown
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) runs: u32,
    /// The shapes of `tailrace generate` to use
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "narrow,simple,wide,mixed"
    )]
    shapes: Vec<String>,
    /// What is sent of a file
    #[arg(long, value_enum, value_delimiter = ',', default_value = "all,errors")]
    cases: Vec<Selection>,
    /// The agents to run
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "tailrace,otelcol"
    )]
    pub(super) only: Vec<Agent>,
    /// The peers' compression
    #[arg(long, default_value = "zstd", value_parser = ["gzip", "zstd"])]
    peer_compression: String,
    /// Measure this Tailrace instead of building one
    #[arg(long, value_name = "FILE")]
    pub(super) binary: Option<PathBuf>,
    /// Leave out the yardstick `zstd -1`
    #[arg(long)]
    no_yardstick: bool,
    /// Give a run up after so many seconds
    #[arg(long, default_value_t = 900)]
    pub(super) timeout: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Agent {
    Tailrace,
    Otelcol,
}

/// What is sent of a file.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Selection {
    /// Every line
    All,
    /// The tenth whose level is ERROR
    #[value(alias = "10%")]
    Errors,
}

/// What all runs need.
struct Bench<'a> {
    workspace: &'a Workspace,
    args: &'a Args,
    tailrace: PathBuf,
    otelcol: Option<PathBuf>,
    /// Holds the data and what the agents write.
    dir: PathBuf,
}

pub(crate) fn run(workspace: &Workspace, args: &Args, is_public: bool) -> Result<()> {
    let tailrace = stripped(workspace, args.binary.as_deref())?;
    // Who brings a binary wants no build, if it can be helped.
    let yardstick = workspace.target.join("release/tailrace-bench");
    if !args.no_yardstick && (args.binary.is_none() || !yardstick.is_file()) {
        stages::build(workspace)?;
    }
    let otelcol = match args.only.contains(&Agent::Otelcol) {
        true => Some(collector::build(workspace)?),
        false => None,
    };
    let bench = Bench {
        workspace,
        args,
        tailrace,
        otelcol,
        dir: scratch_dir(workspace)?,
    };
    let mut csv = Csv::create(workspace, "-agents", table::CSV_COLUMNS)?;
    let mut cases = Vec::new();
    let mut faults = Vec::new();
    let mut done = |case: Result<Case>| -> Result<()> {
        match case {
            Ok(case) => {
                println!("{case}");
                for fields in case.csv() {
                    csv.push(&fields)?;
                }
                cases.push(case);
            }
            Err(error) => {
                println!("failed: {error:#}");
                faults.push(format!("{error:#}"));
            }
        }
        Ok(())
    };
    done(bench.start_up())?;
    for shape in &args.shapes {
        let path = bench.dir.join(format!("{shape}.ndjson"));
        let file = DataFile::generate(workspace, &bench.tailrace, shape, args.lines, path)?;
        for &selection in &args.cases {
            done(bench.measure(shape, &file, selection))?;
        }
    }
    let machine = machine(workspace);
    let table = format!("{machine}\n\n{}", table::markdown(&cases, args.runs));
    print!("\n{table}");
    println!("\nwritten: {}", csv.name(workspace));
    table::draw(workspace, &cases)?;
    if is_public {
        publish(workspace, "agents", &table)?;
    }
    match faults.as_slice() {
        [] => Ok(()),
        faults => bail!("{}", faults.join("; ")),
    }
}

/// Where data files and data directories go.
pub(super) fn scratch_dir(workspace: &Workspace) -> Result<PathBuf> {
    let dir = workspace.target.join("bench");
    fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    Ok(dir)
}

/// Where an agent's own log goes, so that the results stay readable.
pub(super) fn log_file(dir: &Path) -> Result<File> {
    File::create(dir.join(LOG)).context("cannot create the agent's log")
}

const LOG: &str = "agent.log";

/// The end of the last agent's log.
pub(super) fn last_words(dir: &Path) -> String {
    let log = fs::read_to_string(dir.join(LOG)).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    let last = &lines[lines.len().saturating_sub(5)..];
    format!("the agent's last words:\n{}", last.join("\n"))
}

/// The release build (or the binary given) without symbols, under a name of its
/// own, so that a build meanwhile does not change what is measured.
pub(super) fn stripped(workspace: &Workspace, given: Option<&Path>) -> Result<PathBuf> {
    let built = workspace.target.join("release/tailrace");
    if given.is_none() {
        // With the features of the whole workspace, as the benches are built.
        let build = ["build", "--release", "--workspace", "--bin", "tailrace"];
        execute(&mut workspace.cargo(&build))?;
    }
    let from = given.unwrap_or(&built);
    let to = scratch_dir(workspace)?.join("tailrace");
    // A running binary cannot be written to, but it can be replaced.
    let _ = fs::remove_file(&to);
    fs::copy(from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
    if on_path("strip") {
        execute(workspace.command("strip", &[]).arg(&to))?;
    }
    Ok(to)
}

impl Bench<'_> {
    /// Every agent on a file without lines, for as long as three seconds.
    fn start_up(&self) -> Result<Case> {
        let path = self.dir.join("empty.ndjson");
        fs::write(&path, "").context("cannot write an empty file")?;
        let mut case = Case::new("start-up", "none", 0, &self.names());
        for _ in 0..self.args.runs {
            for (at, &agent) in self.args.only.iter().enumerate() {
                let receiver = Receiver::start(&self.tailrace, 1)?;
                let agent = self.start(agent, Selection::All, &path, &receiver.address)?;
                thread::sleep(Duration::from_secs(3));
                let usage = agent.stop(Duration::from_secs(self.args.timeout))?;
                case.usages[at].push(usage);
            }
        }
        Ok(case)
    }

    fn names(&self) -> Vec<&'static str> {
        self.args.only.iter().map(|agent| agent.name()).collect()
    }

    /// Every agent so many times, in turns.
    fn measure(&self, shape: &str, file: &DataFile, selection: Selection) -> Result<Case> {
        let mut case = Case::new(shape, selection.name(), file.lines, &self.names());
        case.file_bytes = file.bytes;
        let expected = match selection {
            Selection::All => file.lines,
            Selection::Errors => file.errors,
        };
        for run in 1..=self.args.runs {
            for (at, &agent) in self.args.only.iter().enumerate() {
                let name = format!(
                    "{shape} {} by {}, run {run}",
                    selection.name(),
                    agent.name()
                );
                let usage = self
                    .run_once(file, selection, agent, expected)
                    .with_context(|| format!("{name}; {}", last_words(&self.dir)))?;
                println!("{name}: {usage}");
                case.usages[at].push(usage);
            }
            if selection == Selection::All && !self.args.no_yardstick {
                case.yardsticks.push(self.yardstick(file)?);
            }
        }
        Ok(case)
    }

    /// One agent, from start to end, on a fresh data directory.
    fn run_once(
        &self,
        file: &DataFile,
        selection: Selection,
        agent: Agent,
        expected: u64,
    ) -> Result<Usage> {
        let timeout = Duration::from_secs(self.args.timeout);
        let receiver = Receiver::start(&self.tailrace, expected)?;
        let agent = self.start(agent, selection, &file.path, &receiver.address)?;
        let received = receiver.wait(timeout, &agent)?;
        let mut usage = agent.stop(timeout)?;
        if received.records != expected || received.refused != 0 {
            bail!(
                "{} records arrived where {expected} were expected, {} requests were refused",
                received.records,
                received.refused
            );
        }
        usage.wire_bytes = received.wire_bytes;
        Ok(usage)
    }

    fn start(
        &self,
        agent: Agent,
        selection: Selection,
        file: &Path,
        address: &str,
    ) -> Result<Child> {
        let data_dir = self.dir.join("data");
        if data_dir.exists() {
            fs::remove_dir_all(&data_dir).context("cannot empty the data directory")?;
        }
        fs::create_dir_all(&data_dir).context("cannot create the data directory")?;
        let (program, arguments, compression): (&Path, &[&str], &str) = match agent {
            Agent::Tailrace => (&self.tailrace, &["run", "-c"], "zstd"),
            Agent::Otelcol => {
                let binary = self.otelcol.as_deref();
                let binary = binary.context("the collector was not built")?;
                (binary, &["--config"], &self.args.peer_compression)
            }
        };
        let config = format!("{}-{}.yaml", agent.config_name(), selection.config_suffix());
        let mut command = self.workspace.command(program, arguments);
        command
            .arg(self.workspace.root.join("benches/peers").join(config))
            .env("BENCH_COMPRESSION", compression)
            .env("BENCH_FILE", file)
            .env("BENCH_DATA_DIR", &data_dir)
            .env("BENCH_ENDPOINT", format!("http://{address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log_file(&self.dir)?);
        Child::start(command)
    }

    /// `zstd -1` alone on the file's OTLP bytes.
    fn yardstick(&self, file: &DataFile) -> Result<Yardstick> {
        let binary = self.workspace.target.join("release/tailrace-bench");
        let mut command = self.workspace.command(binary, &["zstd"]);
        Yardstick::parse(&capture(command.arg(&file.path))?)
    }
}

impl Agent {
    fn name(self) -> &'static str {
        match self {
            Agent::Tailrace => "Tailrace",
            Agent::Otelcol => "OpenTelemetry Collector",
        }
    }

    fn config_name(self) -> &'static str {
        match self {
            Agent::Tailrace => "tailrace",
            Agent::Otelcol => "otelcol",
        }
    }
}

impl Selection {
    fn name(self) -> &'static str {
        match self {
            Selection::All => "all",
            Selection::Errors => "10 %",
        }
    }

    fn config_suffix(self) -> &'static str {
        match self {
            Selection::All => "all",
            Selection::Errors => "errors",
        }
    }
}
