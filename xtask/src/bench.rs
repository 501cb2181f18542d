//! `cargo xtask bench --agents`: CPU time and peak memory of Tailrace and of
//! the OpenTelemetry Collector doing the same work, side by side.
//!
//! The work: read one generated file from its start, parse every line as JSON,
//! send all of it, or the tenth whose level is ERROR, by OTLP/HTTP to
//! `tailrace blackhole` on loopback, which decodes the requests and counts the
//! log records. A run counts only if exactly the expected records arrived. The
//! CPU time is the agent's own, user and system, from its start to its end; the
//! receiver's is not in it. Configs: `benches/peers`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use clap::ValueEnum;

use crate::collector;
use crate::workspace::{Workspace, run as execute};

mod child;
mod table;

use child::{Child, Receiver, Usage};
use table::Row;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Compare whole agents (the only kind of benchmark so far)
    #[arg(long, required = true)]
    agents: bool,
    /// Lines per file
    #[arg(long, default_value_t = 1_000_000)]
    lines: u64,
    /// Runs per case; the median is shown
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// The shapes of `tailrace generate` to use
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "narrow,simple,wide,mixed"
    )]
    shapes: Vec<String>,
    /// The agents to run
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "tailrace,otelcol"
    )]
    only: Vec<Agent>,
    /// The Collector's compression
    #[arg(long, default_value = "gzip", value_parser = ["gzip", "zstd"])]
    peer_compression: String,
    /// Give a run up after so many seconds
    #[arg(long, default_value_t = 600)]
    timeout: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Agent {
    Tailrace,
    Otelcol,
}

/// What is sent of a file.
#[derive(Clone, Copy)]
enum Selection {
    All,
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

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    // The same build that `cargo run --release` makes.
    execute(&mut workspace.cargo(&["build", "--release", "--bin", "tailrace"]))?;
    let otelcol = match args.only.contains(&Agent::Otelcol) {
        true => Some(collector::build(workspace)?),
        false => None,
    };
    let dir = workspace.target.join("bench");
    fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let tailrace = workspace.target.join("release/tailrace");
    let bench = Bench {
        workspace,
        args,
        tailrace,
        otelcol,
        dir,
    };
    let mut rows = Vec::new();
    for shape in &args.shapes {
        let file = bench.generate(shape)?;
        for selection in [Selection::All, Selection::Errors] {
            for &agent in &args.only {
                rows.push(bench.measure(shape, &file, selection, agent)?);
            }
        }
        fs::remove_file(&file.path).context("cannot remove the generated file")?;
    }
    print!("\n{}", table::markdown(&rows, args.lines, args.runs));
    Ok(())
}

/// A generated file and how many of its lines are errors.
struct DataFile {
    path: PathBuf,
    bytes: u64,
    errors: u64,
}

impl Bench<'_> {
    fn generate(&self, shape: &str) -> Result<DataFile> {
        let path = self.dir.join(format!("{shape}.ndjson"));
        let lines = self.args.lines.to_string();
        let arguments = [
            "generate", "--shape", shape, "--seed", "1", "--lines", &lines, "-o",
        ];
        let mut command = self.workspace.command(&self.tailrace, &arguments);
        execute(command.arg(&path))?;
        let bytes = fs::read(&path).context("cannot read the generated file")?;
        let errors = count_lines_with(&bytes, b"\"level\":\"ERROR\"");
        ensure!(errors > 0, "{shape} lines hold no errors");
        Ok(DataFile {
            path,
            bytes: bytes.len() as u64,
            errors,
        })
    }

    fn measure(
        &self,
        shape: &str,
        file: &DataFile,
        selection: Selection,
        agent: Agent,
    ) -> Result<Row> {
        let expected = match selection {
            Selection::All => self.args.lines,
            Selection::Errors => file.errors,
        };
        let name = format!("{shape} {} by {}", selection.name(), agent.name());
        let mut usages = Vec::new();
        for run in 1..=self.args.runs {
            let usage = self
                .run_once(file, selection, agent, expected)
                .with_context(|| format!("{name}, run {run}"))?;
            println!("{name}, run {run}: {usage}");
            usages.push(usage);
        }
        Ok(Row {
            shape: shape.to_owned(),
            selection: selection.name(),
            agent: agent.name(),
            file_bytes: file.bytes,
            usage: Usage::median(&usages),
        })
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
        let data_dir = self.dir.join("data");
        if data_dir.exists() {
            fs::remove_dir_all(&data_dir).context("cannot empty the data directory")?;
        }
        fs::create_dir_all(&data_dir).context("cannot create the data directory")?;
        let mut command = self.agent_command(agent, selection)?;
        command
            .env("BENCH_FILE", &file.path)
            .env("BENCH_DATA_DIR", &data_dir)
            .env("BENCH_ENDPOINT", format!("http://{}", receiver.address))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let agent = Child::start(command)?;
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

    fn agent_command(&self, agent: Agent, selection: Selection) -> Result<Command> {
        let peers = self.workspace.root.join("benches/peers");
        let config = |name: &str| -> PathBuf {
            peers.join(format!("{name}-{}.yaml", selection.config_suffix()))
        };
        let with = |program: &Path, arguments: &[&str], config: PathBuf, compression: &str| {
            let mut command = self.workspace.command(program, arguments);
            command.arg(config).env("BENCH_COMPRESSION", compression);
            command
        };
        Ok(match agent {
            Agent::Tailrace => with(&self.tailrace, &["run", "-c"], config("tailrace"), "zstd"),
            Agent::Otelcol => {
                let binary = self
                    .otelcol
                    .as_deref()
                    .context("the collector was not built")?;
                with(
                    binary,
                    &["--config"],
                    config("otelcol"),
                    &self.args.peer_compression,
                )
            }
        })
    }
}

impl Agent {
    fn name(self) -> &'static str {
        match self {
            Agent::Tailrace => "Tailrace",
            Agent::Otelcol => "OpenTelemetry Collector",
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

fn count_lines_with(bytes: &[u8], needle: &[u8]) -> u64 {
    let holds = |line: &&[u8]| line.windows(needle.len()).any(|window| window == needle);
    bytes.split(|&byte| byte == b'\n').filter(holds).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_once_each() {
        assert_eq!(count_lines_with(b"ab ab\nb\nab\n", b"ab"), 2);
        assert_eq!(count_lines_with(b"", b"ab"), 0);
    }
}
