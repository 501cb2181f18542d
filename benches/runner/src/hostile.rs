//! `cargo xtask bench --memory --hostile`: what `tailrace run` takes at most, with a stock configuration, over files that
//! attack its memory, beside a file of ordinary lines that must arrive whatever the others hold. The bar is the base that
//! the documentation names plus `limits.memory` and a tenth of that. Where the machine lets us make memory cgroups, each
//! case runs in them too, and must not be killed.

mod shapes;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::agents::{self, last_words, log_file, scratch_dir, stripped};
use crate::child::Child;
use crate::data::DataFile;
use crate::receiver::Receiver;
use crate::results::{Csv, machine, publish};
use crate::samples::{Sampler, peak};
use shapes::Case;
use xtask::workspace::Workspace;

/// Lines of the ordinary neighbour.
const NEIGHBOUR_LINES: u64 = 20_000;
/// `limits.memory` of a stock configuration, and what the process takes beside it.
const LIMIT_MIB: u64 = 64;
const BASE_MIB: u64 = 40;
/// The cgroups that each case runs in, in MiB.
const CGROUPS: [u64; 3] = [256, 128, 64];
const MIB: f64 = 1_048_576.0;

/// What one run took.
struct Outcome {
    resident: u64,
    anonymous: u64,
    cpu_seconds: f64,
}

pub(super) fn run(
    workspace: &Workspace,
    agents: &agents::Args,
    mixtures: u64,
    is_public: bool,
) -> Result<()> {
    let tailrace = stripped(workspace, agents.binary.as_deref())?;
    let timeout = Duration::from_secs(agents.timeout);
    let columns = "case,peak_resident_bytes,peak_anonymous_bytes,cpu_seconds,cgroups_survived";
    let mut csv = Csv::create(workspace, "-hostile", columns)?;
    let mut table = String::from(
        "| input | peak resident, MiB | of it anonymous | CPU s | cgroups survived, MiB |\n|---|---:|---:|---:|---|\n",
    );
    let bar = BASE_MIB * 1024 * 1024 + LIMIT_MIB * 1024 * 1024 * 11 / 10;
    let mut above = Vec::new();
    let cases = shapes::cases();
    for case in cases.into_iter().chain((1..=mixtures).map(shapes::mixture)) {
        let outcome = sample(workspace, &tailrace, &case, None, timeout)?;
        let mut survived = Vec::new();
        for limit in CGROUPS {
            let Some(cgroup) = Cgroup::make(limit) else {
                break;
            };
            match sample(workspace, &tailrace, &case, Some(&cgroup), timeout) {
                Ok(_) => survived.push(limit.to_string()),
                Err(error) => println!("{} in {limit} MiB: {error:#}", case.name),
            }
        }
        let row = [
            format!("{:.1}", outcome.resident as f64 / MIB),
            format!("{:.1}", outcome.anonymous as f64 / MIB),
            format!("{:.2}", outcome.cpu_seconds),
            survived.join(", "),
        ];
        let line = format!("| {} | {} |\n", case.name, row.join(" | "));
        print!("{line}");
        table.push_str(&line);
        csv.push(&[
            case.name.replace(',', ""),
            outcome.resident.to_string(),
            outcome.anonymous.to_string(),
            outcome.cpu_seconds.to_string(),
            survived.join(" "),
        ])?;
        if outcome.resident > bar {
            above.push(case.name);
        }
    }
    if is_public {
        let text = format!("{}\n\n{table}", machine(workspace));
        publish(workspace, "hostile", &text)?;
    }
    println!("written: {}", csv.name(workspace));
    if !above.is_empty() {
        bail!("above {:.1} MiB: {}", bar as f64 / MIB, above.join("; "));
    }
    Ok(())
}

/// Runs the agent over a case until all of its records and the neighbour's have arrived, and nothing is left to do.
fn sample(
    workspace: &Workspace,
    tailrace: &Path,
    case: &Case,
    cgroup: Option<&Cgroup>,
    timeout: Duration,
) -> Result<Outcome> {
    let scratch = scratch_dir(workspace)?;
    let [logs, data_dir] = ["hostile", "data"].map(|name| scratch.join(name));
    for dir in [&logs, &data_dir] {
        let _ = fs::remove_dir_all(dir);
        fs::create_dir_all(dir).context("cannot create a directory")?;
    }
    let records = case.write(&logs)?;
    let path = logs.join("neighbour.log");
    let _neighbour = DataFile::generate(workspace, tailrace, "simple", NEIGHBOUR_LINES, path)?;
    let expected = records + NEIGHBOUR_LINES;
    let receiver = Receiver::start(tailrace, expected)?;
    let config = workspace.root.join("benches/peers/tailrace-hostile.yaml");
    let mut command = match cgroup {
        Some(cgroup) => cgroup.command(tailrace),
        None => Command::new(tailrace),
    };
    command
        .args(["run", "-c"])
        .arg(config)
        .env("BENCH_DIR", &logs)
        .env("BENCH_COLUMNS", case.columns.to_string())
        .env("BENCH_DATA_DIR", &data_dir)
        .env("BENCH_ENDPOINT", format!("http://{}", receiver.address))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log_file(&scratch)?);
    let agent = Child::start(command)?;
    let sampler = Sampler::start(agent.id());
    let received = receiver.wait(timeout, &agent);
    let arrived = received.with_context(|| last_words(&scratch))?.records;
    wait_until_idle(&agent, timeout)?;
    let samples = sampler.stop()?;
    let usage = agent.stop(timeout)?;
    if arrived != expected {
        bail!("{}: {arrived} of {expected} records arrived", case.name);
    }
    fs::remove_dir_all(&logs).context("cannot remove the hostile files")?;
    Ok(Outcome {
        resident: usage.peak_bytes,
        anonymous: peak(&samples, |sample| sample.anonymous),
        cpu_seconds: usage.cpu_seconds,
    })
}

/// Waits until the agent has used nearly no CPU for a second: what is never sent was read, too.
fn wait_until_idle(agent: &Child, timeout: Duration) -> Result<()> {
    let deadline = Instant::now() + timeout;
    loop {
        let before = agent.cpu_seconds()?;
        thread::sleep(Duration::from_secs(1));
        if agent.cpu_seconds()? - before < 0.05 || Instant::now() > deadline {
            return Ok(());
        }
    }
}

/// A memory cgroup of our own, removed when this is dropped.
struct Cgroup(PathBuf);

impl Cgroup {
    /// With this limit; `None` where the machine does not let us.
    fn make(limit_mib: u64) -> Option<Cgroup> {
        let name = format!("tailrace-bench-{}", std::process::id());
        let candidates = [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ];
        candidates.into_iter().find_map(|(root, file)| {
            let cgroup = Cgroup(Path::new(root).join(&name));
            fs::create_dir(&cgroup.0).ok()?;
            let limit = (limit_mib * 1024 * 1024).to_string();
            fs::write(cgroup.0.join(file), limit).ok()?;
            Some(cgroup)
        })
    }

    /// A command that runs a program in it.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", "echo $$ > \"$1\" && shift && exec \"$@\"", "sh"])
            .arg(self.0.join("cgroup.procs"))
            .arg(program);
        command
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // It is empty as soon as the agent has gone.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}
