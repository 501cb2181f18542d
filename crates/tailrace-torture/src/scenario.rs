//! Named runs with one story each, for the figures of `docs/fault-matrix.md`. Each uses the harness of
//! every run and adds what it measured as notes.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::faults::Fault;
use super::harness::Harness;
use super::plan::{Plan, Stops};
use super::record::Identity;
use super::stream::Rotation;
use super::verdict::{GroupVerdict, Outcome};

/// A story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// 1,000,000 lines in one second, rotated at once; the server takes 5 MB/s.
    Burst,
    /// 50 rotations at 100 ms while the server answers 503 for a minute.
    Rotations,
    /// 160 files that are rotated and compressed milliseconds after they are made, while the server is down.
    Chain,
    /// The server is down while 10,000 lines a second are written.
    Outage,
    /// 100 files in 64 MiB while the server stalls for a minute.
    Squeeze,
    /// The server refuses any request with one record of 10,000.
    Poison,
    /// The agent panics at one record, and its process aborts at another.
    Crash,
}

/// The limit of the squeeze.
const SQUEEZE_BYTES: u64 = 64 << 20;
/// Every so many records one is poison.
const POISON_EVERY: u64 = 10_000;

impl Scenario {
    /// All of them.
    pub const ALL: [Scenario; 7] = [
        Scenario::Burst,
        Scenario::Rotations,
        Scenario::Chain,
        Scenario::Outage,
        Scenario::Squeeze,
        Scenario::Poison,
        Scenario::Crash,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Scenario::Burst => "burst",
            Scenario::Rotations => "rotations",
            Scenario::Chain => "chain",
            Scenario::Outage => "outage",
            Scenario::Squeeze => "squeeze",
            Scenario::Poison => "poison",
            Scenario::Crash => "crash",
        }
    }

    /// Plays it with the agent, seed and directory of `plan`; `time` is how long the server of
    /// [`Scenario::Outage`] is down.
    ///
    /// # Errors
    ///
    /// The machine lets nothing be started.
    pub fn run(self, plan: &Plan, time: Duration) -> io::Result<Outcome> {
        let plan = Plan {
            rotations: vec![Rotation::Rename],
            faults: vec![Fault::None],
            stops: Stops::None,
            backlog_max: u64::MAX,
            // As by default: nobody is killed here.
            replay_mib: 16,
            dir: plan.dir.clone(),
            ..Plan::new(plan.agent.clone(), plan.seed)
        };
        match self {
            Scenario::Burst => burst(plan),
            Scenario::Rotations => rotations(plan),
            Scenario::Chain => chain(plan),
            Scenario::Outage => outage(plan, time),
            Scenario::Squeeze => squeeze(plan),
            Scenario::Poison => poison(plan),
            Scenario::Crash => crash(plan),
        }
    }
}

fn burst(plan: Plan) -> io::Result<Outcome> {
    let plan = Plan {
        records_max: 1_000_000,
        at_once: true,
        concurrency: 1,
        ..plan
    };
    let mut harness = Harness::start(&plan)?;
    harness.sink.lock().mood.bytes_per_second = Some(5_000_000);
    harness.until_written()?;
    let written = harness.started.elapsed().as_secs_f64();
    harness.notes.push(format!(
        "written {written:.1} s after the start, the making of the lines included"
    ));
    harness.finish()
}

fn rotations(plan: Plan) -> io::Result<Outcome> {
    let plan = Plan {
        records_max: 12_000,
        lines_per_second: 2000,
        rotate_ms: 100..101,
        concurrency: 1,
        ..plan
    };
    let mut harness = Harness::start(&plan)?;
    harness.sink.lock().mood.percent = 100;
    harness.fault(Fault::Status(503));
    harness.go_on(Duration::from_secs(60))?;
    let mut outcome = harness.finish()?;
    for group in &outcome.groups {
        if group.disorder > 0 {
            let records = group.disorder;
            outcome
                .broken
                .push(format!("{records} records arrived after a later one"));
        }
    }
    Ok(outcome)
}

fn chain(plan: Plan) -> io::Result<Outcome> {
    let plan = Plan {
        rotations: vec![Rotation::GzipChainFast],
        // Bursts of 50 on the average, of which four in five end a file.
        records_max: 160 * 50 * 5 / 4,
        lines_per_second: 10_000,
        ..plan
    };
    let mut harness = Harness::start(&plan)?;
    harness.fault(Fault::Refused);
    harness.until_written()?;
    harness.go_on(Duration::from_millis(500))?;
    let mut outcome = harness.finish()?;
    for group in &outcome.groups {
        if group.repeated > 0 {
            let what = format!(
                "{} records repeated, and nothing was stopped",
                group.repeated
            );
            outcome.broken.push(what);
        }
    }
    Ok(outcome)
}

fn outage(plan: Plan, time: Duration) -> io::Result<Outcome> {
    let plan = Plan {
        lines_per_second: 10_000,
        rotate_ms: 5_000..10_000,
        ..plan
    };
    let mut harness = Harness::start(&plan)?;
    harness.go_on(Duration::from_secs(5))?;
    harness.fault(Fault::Refused);
    let started = Instant::now();
    let mut resident = Vec::new();
    while started.elapsed() < time {
        harness.go_on(Duration::from_secs(1))?;
        resident.push(harness.process.memory().0 >> 20);
    }
    let parts: Vec<String> = resident
        .chunks(resident.len().div_ceil(10).max(1))
        .filter_map(|part| part.iter().max().map(u64::to_string))
        .collect();
    harness.notes.push(format!(
        "down for {} s; resident MiB, highest in each tenth: {}",
        time.as_secs(),
        parts.join(" ")
    ));
    let (before, cpu) = (harness.sink.lock().arrived, harness.process.cpu());
    let began = Instant::now();
    harness.fault(Fault::None);
    // Level when what is missing is what a second brings.
    while harness.missing() > plan.lines_per_second && began.elapsed() < time * 2 {
        harness.go_on(Duration::from_millis(100))?;
    }
    let records = harness.sink.lock().arrived - before;
    let (wall, cpu) = (
        began.elapsed().as_secs_f64(),
        (harness.process.cpu() - cpu).as_secs_f64(),
    );
    harness.notes.push(format!(
        "caught up on {records} records in {wall:.1} s: {:.0} a second, {:.0} for a second of the agent's CPU",
        records as f64 / wall,
        records as f64 / cpu.max(0.01)
    ));
    harness.finish()
}

fn squeeze(plan: Plan) -> io::Result<Outcome> {
    let group = Group::make();
    let cgroup = group.as_ref().ok().map(|group| group.dir.clone());
    let plan = Plan {
        rotations: vec![Rotation::Steady],
        files: 100,
        lines_per_second: 200,
        cgroup,
        ..plan
    };
    let mut harness = Harness::start(&plan)?;
    harness.sink.lock().mood.percent = 100;
    harness.fault(Fault::Stall);
    harness.go_on(Duration::from_secs(60))?;
    match &group {
        Ok(group) => harness.notes.push(format!(
            "in a cgroup of {} MiB: {}",
            SQUEEZE_BYTES >> 20,
            group.facts()
        )),
        Err(why) => harness
            .notes
            .push(format!("skipped: the memory limit: {why}")),
    }
    harness.finish()
}

fn poison(plan: Plan) -> io::Result<Outcome> {
    fn is_poison(record: &Identity) -> bool {
        record.sequence % POISON_EVERY == POISON_EVERY / 2
    }
    let plan = Plan {
        records_max: 5 * POISON_EVERY,
        // Refused, an agent may hold: it is given the time.
        faults: vec![Fault::Status(400)],
        lines_per_second: 5000,
        ..plan
    };
    let mut harness = Harness::start(&plan)?;
    harness.sink.lock().mood.poison = Some(is_poison);
    harness.until_written()?;
    let mut outcome = harness.finish()?;
    let poison = plan.records_max / POISON_EVERY;
    let sum = |of: fn(&GroupVerdict) -> u64| outcome.groups.iter().map(of).sum::<u64>();
    let (lost, dead_lettered) = (sum(|group| group.lost), sum(|group| group.dead_lettered));
    let note = format!(
        "{poison} records are poison: {dead_lettered} dead-lettered, {lost} in all did not arrive"
    );
    outcome.notes.push(note);
    Ok(outcome)
}

fn crash(plan: Plan) -> io::Result<Outcome> {
    let at = |sequence: u64| format!("\"seq\":{sequence},");
    let plan = Plan {
        records_max: 10_000,
        lines_per_second: 5000,
        environment: vec![
            ("TAILRACE_FAILPOINT_PANIC", at(2_500)),
            ("TAILRACE_FAILPOINT_ABORT", at(7_500)),
        ],
        ..plan
    };
    let mut harness = Harness::start(&plan)?;
    harness.until_written()?;
    let mut outcome = harness.finish()?;
    let dead_lettered: u64 = outcome.groups.iter().map(|group| group.dead_lettered).sum();
    if dead_lettered != 2 {
        let what = format!("2 records end the agent, and {dead_lettered} were dead-lettered");
        outcome.broken.push(what);
    }
    Ok(outcome)
}

impl Harness<'_> {
    /// Lets everything run for a while.
    fn go_on(&mut self, time: Duration) -> io::Result<()> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.tick()?;
            let soon = until.min(Instant::now() + Duration::from_millis(50));
            self.sink.wait(soon, |_| false);
        }
        Ok(())
    }

    /// Lets everything run until the writers have written all.
    fn until_written(&mut self) -> io::Result<()> {
        while !self.has_written() {
            self.go_on(Duration::from_millis(50))?;
        }
        Ok(())
    }
}

/// A cgroup with a limit on memory; it goes when this is dropped.
struct Group {
    dir: PathBuf,
    is_v2: bool,
}

impl Group {
    fn make() -> Result<Group, String> {
        let name = format!("tailrace-torture-{}", std::process::id());
        let text = |error: io::Error| error.to_string();
        let v2 = Path::new("/sys/fs/cgroup/cgroup.controllers");
        let is_v2 = std::fs::read_to_string(v2).is_ok_and(|text| text.contains("memory"));
        let (root, limit) = if is_v2 {
            ("/sys/fs/cgroup", "memory.max")
        } else {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        };
        let dir = Path::new(root).join(name);
        std::fs::create_dir(&dir).map_err(text)?;
        let group = Group { dir, is_v2 };
        std::fs::write(group.dir.join(limit), SQUEEZE_BYTES.to_string()).map_err(text)?;
        Ok(group)
    }

    /// The highest use, page cache included, and how often the kernel killed.
    fn facts(&self) -> String {
        let (peak, events) = if self.is_v2 {
            ("memory.peak", "memory.events")
        } else {
            ("memory.max_usage_in_bytes", "memory.oom_control")
        };
        let read = |name| std::fs::read_to_string(self.dir.join(name)).unwrap_or_default();
        let kills = read(events);
        let kills = kills
            .lines()
            .find(|line| line.starts_with("oom_kill "))
            .unwrap_or("oom_kill ?");
        format!(
            "highest use with page cache {} bytes, {kills}",
            read(peak).trim()
        )
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The agent has left it by now, or the directory stays.
        let _ = std::fs::remove_dir(&self.dir);
    }
}
