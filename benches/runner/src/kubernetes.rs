//! `cargo xtask bench --kubernetes`: Tailrace and the OpenTelemetry Collector on the pods of one node, side by side.
//!
//! The work: read the logs of a hundred pods as the kubelet keeps them, join partial lines, ask the API server for
//! the pods, put their names, labels and containers on every record, send all by OTLP/HTTP with zstd. A stand-in
//! serves the pods and takes the records ([`node`]); a run counts only if each pod's records arrived with all that
//! is expected of the pod; Tailrace's once. What the stand-in uses is not counted.
//!
//! *Peak*: files that are there, as fast as an agent on one processor reads them; the stand-in has another. *Steady*:
//! a hundred lines a second from each pod, the agent where it likes. Both give memory as sampled from `/proc`.
//! Configs: `benches/peers`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::agents::{self, Agent, last_words, log_file, scratch_dir, stripped};
use crate::child::Child;
use crate::data::DataFile;
use crate::results::{Csv, machine, publish};
use crate::samples::Sampler;
use xtask::collector;
use xtask::workspace::{Workspace, on_path, run as execute};

mod logs;
mod node;
mod outcome;
mod pods;

use logs::{Logs, Steady};
use node::{Arrived, Node};
use outcome::{CSV_COLUMNS, Contender, Peak, Rate};
use pods::{NODE, PODS, Pod};

/// The shape of the payloads.
const SHAPE: &str = "simple";
/// Lines a second of each pod.
const RATE: u64 = 100;
/// Before this the steady rate is not measured, for an agent must have opened every file.
const WARM_UP: Duration = Duration::from_secs(5);
const MEASURED: Duration = Duration::from_secs(40);

/// What all runs need.
struct Bench<'a> {
    workspace: &'a Workspace,
    timeout: Duration,
    tailrace: PathBuf,
    otelcol: PathBuf,
    node: PathBuf,
    pods: Vec<Pod>,
    dir: PathBuf,
}

/// An agent with a config.
struct Setup {
    name: &'static str,
    agent: Agent,
    config: &'static str,
    /// Only its peak is measured.
    peak_only: bool,
}

impl Setup {
    /// Tailrace has no business with records too many; the Collector's container parser gives up a partial line that
    /// waits for its end longer than five seconds, which at its peak happens, and cannot be told otherwise.
    fn check(&self, arrived: Arrived) -> Result<Arrived> {
        let excess = arrived.excess;
        ensure!(
            excess == 0 || self.agent != Agent::Tailrace,
            "{excess} records too many arrived"
        );
        Ok(arrived)
    }
}

const SETUPS: [Setup; 3] = [
    Setup {
        name: "Tailrace",
        agent: Agent::Tailrace,
        config: "tailrace-kubernetes.yaml",
        peak_only: false,
    },
    Setup {
        name: "OpenTelemetry Collector",
        agent: Agent::Otelcol,
        config: "otelcol-kubernetes.yaml",
        peak_only: false,
    },
    Setup {
        name: "OpenTelemetry Collector, JSON left as text",
        agent: Agent::Otelcol,
        config: "otelcol-kubernetes-text.yaml",
        peak_only: true,
    },
];

pub(crate) fn run(workspace: &Workspace, args: &agents::Args, is_public: bool) -> Result<()> {
    ensure!(
        on_path("taskset"),
        "taskset of util-linux is not on the PATH"
    );
    let tailrace = stripped(workspace, args.binary.as_deref())?;
    let otelcol = collector::build(workspace)?;
    // With the features of the whole workspace, as everything else is built.
    let build = ["build", "--workspace", "--bin", "kubernetes-node"];
    execute(&mut workspace.cargo(&build))?;
    let dir = scratch_dir(workspace)?;
    let bench = Bench {
        workspace,
        timeout: Duration::from_secs(args.timeout),
        tailrace,
        otelcol,
        node: workspace.target.join("debug/kubernetes-node"),
        pods: pods::all(),
        dir,
    };
    let load = load()?;
    println!("{}\nload before: {load}\n", machine(workspace));
    let setups: Vec<&Setup> = SETUPS
        .iter()
        .filter(|setup| args.only.contains(&setup.agent))
        .collect();
    let mut contenders: Vec<Contender> = setups
        .iter()
        .map(|setup| Contender::new(setup.name))
        .collect();
    let path = bench.dir.join("kubernetes.ndjson");
    let records = args.lines / PODS * PODS;
    let payloads = DataFile::generate(workspace, &bench.tailrace, SHAPE, records, path)?;
    bench.peaks(&setups, &mut contenders, &payloads, args.runs)?;
    for (setup, contender) in setups.iter().zip(&mut contenders) {
        if !setup.peak_only {
            let rate = bench.steady(setup, &payloads);
            let rate = rate.with_context(|| bench.fault(setup, "at a steady rate"))?;
            println!("{}, steady: {rate}", setup.name);
            contender.rate = Some(rate);
        }
    }
    let mut csv = Csv::create(workspace, "-kubernetes", CSV_COLUMNS)?;
    for contender in &contenders {
        csv.push(&contender.csv(records, &load))?;
    }
    let table = outcome::markdown(&contenders, args.runs);
    let text = format!("{}, load before {load}\n\n{table}", machine(workspace));
    print!("\n{text}\nwritten: {}\n", csv.name(workspace));
    if is_public {
        publish(workspace, "kubernetes", &text)?;
    }
    Ok(())
}

/// The load averages of 1, 5 and 15 minutes.
fn load() -> Result<String> {
    let text = fs::read_to_string("/proc/loadavg").context("cannot read /proc/loadavg")?;
    let averages: Vec<&str> = text.split(' ').take(3).collect();
    Ok(averages.join(" "))
}

impl Bench<'_> {
    fn fault(&self, setup: &Setup, when: &str) -> String {
        format!("{} {when}; {}", setup.name, last_words(&self.dir))
    }

    /// Every agent so many times on the same logs, in turns.
    fn peaks(
        &self,
        setups: &[&Setup],
        contenders: &mut [Contender],
        payloads: &DataFile,
        runs: u32,
    ) -> Result<()> {
        let logs = Logs::write(&self.dir.join("pods"), &self.pods, payloads)?;
        println!("{} records in {} bytes of logs", logs.records, logs.bytes);
        for run in 1..=runs {
            for (setup, contender) in setups.iter().zip(contenders.iter_mut()) {
                let peak = self.peak(setup, &logs);
                let peak = peak.with_context(|| self.fault(setup, "at its peak"))?;
                println!("{}, run {run}: {peak}", setup.name);
                contender.peaks.push(peak);
            }
        }
        Ok(())
    }

    /// One agent on one processor, on logs that are there.
    fn peak(&self, setup: &Setup, logs: &Logs) -> Result<Peak> {
        let (first, last) = cpus()?;
        let records = logs.records / PODS;
        let node = Node::start(&self.node, &self.dir, &self.pods, records, Some(last))?;
        let agent = self.start(setup, &logs.dir, &node.address, Some(first))?;
        let sampler = Sampler::start(agent.id());
        node.wait_complete(self.timeout, &agent)?;
        let usage = agent.stop(self.timeout)?;
        let samples = sampler.stop()?;
        let arrived = setup.check(node.end(logs.records)?)?;
        Ok(Peak::new(logs, &usage, arrived, &samples))
    }

    /// One agent while every pod writes so many lines a second.
    fn steady(&self, setup: &Setup, payloads: &DataFile) -> Result<Rate> {
        let mut steady = Steady::open(&self.dir.join("pods"), &self.pods, payloads, RATE)?;
        let records = (WARM_UP + MEASURED).as_secs() * RATE;
        let node = Node::start(&self.node, &self.dir, &self.pods, records, None)?;
        let agent = self.start(setup, steady.dir(), &node.address, None)?;
        steady.write(WARM_UP)?;
        let before = agent.cpu_seconds()?;
        let sampler = Sampler::start(agent.id());
        steady.write(MEASURED)?;
        let cpu_seconds = agent.cpu_seconds()? - before;
        let samples = sampler.stop()?;
        node.wait_complete(self.timeout, &agent)?;
        agent.stop(self.timeout)?;
        let arrived = setup.check(node.end(records * PODS)?)?;
        Ok(Rate::new(
            cpu_seconds / MEASURED.as_secs_f64(),
            arrived,
            &samples,
        ))
    }

    /// Starts an agent on a fresh data directory, on any processor or on one.
    fn start(&self, setup: &Setup, logs: &Path, address: &str, cpu: Option<u32>) -> Result<Child> {
        let data_dir = self.dir.join("data");
        if data_dir.exists() {
            fs::remove_dir_all(&data_dir).context("cannot empty the data directory")?;
        }
        fs::create_dir_all(&data_dir).context("cannot create the data directory")?;
        let (program, arguments): (&Path, &[&str]) = match setup.agent {
            Agent::Tailrace => (&self.tailrace, &["run", "-c"]),
            Agent::Otelcol => (&self.otelcol, &["--config"]),
        };
        let mut command = match cpu {
            None => self.workspace.command(program, arguments),
            Some(cpu) => {
                // It becomes the agent, so its process id is the agent's.
                let mut command = self.workspace.command("taskset", &["-c", &cpu.to_string()]);
                command.arg(program).args(arguments);
                command
            }
        };
        command
            .arg(self.workspace.root.join("benches/peers").join(setup.config))
            .env("BENCH_LOGS_DIR", logs)
            .env("BENCH_DATA_DIR", &data_dir)
            .env("BENCH_ENDPOINT", format!("http://{address}"))
            .env("KUBECONFIG", self.dir.join("kubeconfig"))
            .env("K8S_NODE_NAME", NODE)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log_file(&self.dir)?);
        Child::start(command)
    }
}

/// The first and the last processor that this process may use; one alone would have the agent and the stand-in share it.
fn cpus() -> Result<(u32, u32)> {
    let text = fs::read_to_string("/proc/self/status").context("cannot read /proc/self/status")?;
    match parse_cpus(&text) {
        Some((first, last)) if first < last => Ok((first, last)),
        Some(_) => {
            bail!("the peak needs two processors: one for the agent, one for what it talks to")
        }
        None => bail!("/proc/self/status does not tell the processors"),
    }
}

/// Of a line such as `Cpus_allowed_list: 0-3,6`.
fn parse_cpus(status: &str) -> Option<(u32, u32)> {
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let mut numbers = list.trim().split([',', '-']).map(str::parse);
    let first = numbers.next()?.ok()?;
    Some((first, numbers.next_back().map_or(Some(first), Result::ok)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_read_from_their_list() {
        let parse = |list: &str| parse_cpus(&format!("Name:\tx\nCpus_allowed_list:\t{list}\n"));
        assert_eq!(parse("0-1"), Some((0, 1)));
        assert_eq!(parse("2,4-6"), Some((2, 6)));
        assert_eq!(parse("3"), Some((3, 3)));
        assert_eq!(parse_cpus("Name:\tx\n"), None);
    }
}
