//! The harness of a run: it owns the agent, the collector, the writers and the clock. It judges nothing;
//! [`super::verdict`] does.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::agent::{Kind, Process, Program, Setup};
use super::dead_letters;
use super::disk::{Disk, DiskFault};
use super::faults::{Fault, Mood};
use super::plan::Plan;
use super::rng::Rng;
use super::sink::{Group, Sink};
use super::stops::{How, Stop};
use super::stream::{FileWriter, Pace, Truth};
use tailrace_testkit::Collector;

/// From the moment whose state a checkpoint holds until it is on disk.
const CHECKPOINT_TAKES: Duration = Duration::from_millis(300);
/// Stands for the age of a checkpoint that was never written.
const AGE_MAX: Duration = Duration::from_secs(8);
/// What does not move for so long at the end is stuck.
const STUCK: Duration = Duration::from_secs(15);
/// The same for an agent that holds: longer than its pause between two probes.
const STUCK_HOLDING: Duration = Duration::from_secs(45);
/// Longer than the grace period.
const END_TIMEOUT: Duration = Duration::from_secs(20);

/// Counters of the agent, by family and pipeline.
pub(crate) type Counters = BTreeMap<(String, String), f64>;

/// Everything that runs.
pub(crate) struct Harness<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) sink: Arc<Sink>,
    pub(crate) truths: Vec<Arc<Truth>>,
    pub(crate) process: Process,
    pub(crate) stops: Vec<Stop>,
    /// How the agent ended when it was asked to, and how often.
    pub(crate) codes: BTreeMap<String, u32>,
    /// How it ended by itself.
    pub(crate) own_ends: BTreeMap<String, u32>,
    /// Counters of lives that ended, by family and pipeline.
    pub(crate) past: Counters,
    /// The counters of this life, as last seen.
    pub(crate) present: Counters,
    pub(crate) peak_bytes: u64,
    /// The oldest that a checkpoint was when the agent was stopped.
    pub(crate) checkpoint_age: Duration,
    pub(crate) notes: Vec<String>,
    pub(crate) program: Program,
    pub(crate) rng: Rng,
    pub(crate) started: Instant,
    pub(crate) drained: Duration,
    collector: Collector,
    is_listening: bool,
    disk: Option<Disk>,
    disk_fault: Option<DiskFault>,
    /// When the disk was last unfit for a checkpoint.
    disk_bad: Option<Instant>,
    writers: Vec<JoinHandle<()>>,
    stop_writers: Arc<AtomicBool>,
    scraped: Instant,
    restart_due: Option<Instant>,
    dir: Home,
}

/// A directory that goes at the end, or stays.
enum Home {
    Ours(tempfile::TempDir),
    Given(PathBuf),
}

impl Home {
    fn path(&self) -> &Path {
        match self {
            Home::Ours(dir) => dir.path(),
            Home::Given(dir) => dir,
        }
    }
}

impl<'a> Harness<'a> {
    pub(crate) fn start(plan: &'a Plan) -> io::Result<Harness<'a>> {
        let dir = match &plan.dir {
            Some(dir) => {
                std::fs::create_dir_all(dir)?;
                Home::Given(dir.canonicalize()?)
            }
            None => Home::Ours(tempfile::tempdir()?),
        };
        let mut notes = Vec::new();
        let disk = if plan.disk.is_empty() {
            None
        } else {
            Disk::mount(&dir.path().join("data"))
                .map_err(|why| notes.push(format!("skipped: faults of the disk: {why}")))
                .ok()
        };
        let files = u32::try_from(plan.files).unwrap_or(u32::MAX);
        let mut end = 0;
        let groups = plan.rotations.iter().map(|rotation| {
            end += rotation.streams() * files;
            Group {
                name: rotation.name().to_owned(),
                end,
            }
        });
        let sink = Arc::new(Sink::new(groups.collect(), Mood::new(plan.seed)));
        let collector = Collector::judged(sink.clone());
        let program = Program::configure(
            &plan.agent,
            &Setup {
                dir: dir.path(),
                endpoint: collector.endpoint(),
                groups: &plan.rotations,
                replay_mib: plan.replay_mib,
                concurrency: plan.concurrency,
                more: &plan.more,
                environment: &plan.environment,
                has_inotify: plan.has_inotify,
                cgroup: plan.cgroup.clone(),
            },
        )?;
        let mut harness = Harness {
            plan,
            truths: Vec::new(),
            process: program.start()?,
            stops: Vec::new(),
            codes: BTreeMap::new(),
            own_ends: BTreeMap::new(),
            past: BTreeMap::new(),
            present: BTreeMap::new(),
            peak_bytes: 0,
            checkpoint_age: Duration::ZERO,
            notes,
            program,
            rng: Rng::fork(plan.seed, 2),
            started: Instant::now(),
            drained: Duration::ZERO,
            collector,
            is_listening: true,
            disk,
            disk_fault: None,
            disk_bad: None,
            writers: Vec::new(),
            stop_writers: Arc::new(AtomicBool::new(false)),
            scraped: Instant::now(),
            restart_due: None,
            dir,
            sink,
        };
        harness.await_agent();
        harness.start_writers()?;
        Ok(harness)
    }

    /// What is compressed before an agent first ran is none of its affair: it has to have begun.
    fn await_agent(&mut self) {
        let due = Instant::now() + END_TIMEOUT;
        while self.plan.agent.kind == Kind::Tailrace
            && self.program.checkpoint_age().is_none()
            && self.process.ended().is_none()
            && Instant::now() < due
        {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn start_writers(&mut self) -> io::Result<()> {
        let mut stream = 0;
        for rotation in &self.plan.rotations {
            let dir = self.dir.path().join(rotation.name());
            std::fs::create_dir_all(&dir)?;
            for number in 0..self.plan.files {
                let pace = Pace {
                    lines_per_second: self.plan.lines_per_second,
                    rotate_ms: self.plan.rotate_ms.clone(),
                    backlog_max: self.plan.backlog_max,
                    records_max: self.plan.records_max,
                    at_once: self.plan.at_once,
                };
                let what = (*rotation, number, stream);
                let (writer, truth) =
                    FileWriter::new(&dir, what, self.plan.seed, pace, Arc::clone(&self.sink));
                stream += rotation.streams();
                self.truths.push(truth);
                let stop = Arc::clone(&self.stop_writers);
                let name = format!("writer-{}", rotation.name());
                let thread = std::thread::Builder::new().name(name);
                self.writers.push(thread.spawn(move || writer.run(&stop))?);
            }
        }
        Ok(())
    }

    /// From now on the collector fails like this.
    pub(crate) fn fault(&mut self, fault: Fault) {
        if fault == Fault::Refused && self.is_listening {
            self.sink.doubt_recent();
            self.collector.stop();
            self.sink.doubt_recent();
            self.is_listening = false;
        } else if fault != Fault::Refused && !self.is_listening {
            self.collector.restart();
            self.is_listening = true;
        }
        self.sink.lock().mood.fault = fault;
    }

    /// Breaks the disk, or heals it.
    pub(crate) fn turn_disk(&mut self) -> io::Result<()> {
        if self.disk.is_none() {
            return Ok(());
        }
        self.disk_bad = Some(Instant::now());
        let next = match self.disk_fault {
            Some(_) => None,
            None => Some(*self.rng.pick(&self.plan.disk)),
        };
        // A disk on which a file is open for writing cannot be made read-only.
        let is_between_lives = next == Some(DiskFault::ReadOnly) && self.restart_due.is_none();
        if is_between_lives {
            self.end_life(How::Kill);
        }
        let done = match (&self.disk, next) {
            (Some(disk), Some(fault)) => disk.break_by(fault),
            (Some(disk), None) => disk.heal(),
            (None, _) => Ok(()),
        };
        self.disk_fault = next;
        if let Err(why) = done {
            self.notes
                .push(format!("a fault of the disk could not be made: {why}"));
        }
        if is_between_lives {
            self.process = self.program.start()?;
        }
        Ok(())
    }

    /// Reads counters, and starts an agent that has ended by itself.
    pub(crate) fn tick(&mut self) -> io::Result<()> {
        if self.scraped.elapsed() > Duration::from_millis(200) {
            self.scrape();
        }
        if let Some(due) = self.restart_due {
            if Instant::now() >= due {
                self.process = self.program.start()?;
                self.restart_due = None;
            }
        } else if let Some(status) = self.process.ended() {
            let excuse = if self.is_disk_fit() {
                ""
            } else {
                " (disk broken)"
            };
            let count = self
                .own_ends
                .entry(format!("{status}{excuse}"))
                .or_default();
            *count += 1;
            if *count > 20 && self.sink.lock().requests == 0 {
                return Err(self.no_agent(&status.to_string()));
            }
            self.life_ended();
            self.restart_due = Some(Instant::now() + Duration::from_millis(300));
        }
        Ok(())
    }

    /// It never does anything: there is nothing to torture.
    fn no_agent(&self, status: &str) -> io::Error {
        let log = std::fs::read_to_string(self.program.log()).unwrap_or_default();
        let last: Vec<&str> = log.lines().rev().take(20).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        io::Error::other(format!(
            "the agent ends at once, {status}:\n{}",
            last.join("\n")
        ))
    }

    fn scrape(&mut self) {
        let seen = self.program.metrics();
        if !seen.is_empty() {
            self.present = seen;
        }
        let (_, peak) = self.process.memory();
        self.peak_bytes = self.peak_bytes.max(peak);
        self.scraped = Instant::now();
    }

    fn life_ended(&mut self) {
        for (key, value) in std::mem::take(&mut self.present) {
            *self.past.entry(key).or_insert(0.0) += value;
        }
    }

    pub(crate) fn stop(&mut self, how: How) -> io::Result<()> {
        if self.restart_due.is_some() {
            return Ok(());
        }
        self.end_life(how);
        self.process = self.program.start()?;
        Ok(())
    }

    fn end_life(&mut self, how: How) {
        self.scrape();
        match how {
            How::Kill => {
                self.process.kill();
                // But for the last eight of each 32 stops, of which some are in safe mode.
                if self.stops.len() % 32 < 24 {
                    self.program.forget_deaths();
                }
            }
            How::Terminate => {
                let code = self.process.terminate(END_TIMEOUT);
                let code = code.map_or("ignored SIGTERM".to_owned(), |code| code.to_string());
                *self.codes.entry(code).or_default() += 1;
            }
        }
        self.life_ended();
        self.close_stop();
        let age = self.program.checkpoint_age().unwrap_or(AGE_MAX);
        self.checkpoint_age = self.checkpoint_age.max(age);
        let recent = self.sink.lock().recent_bytes(age + CHECKPOINT_TAKES);
        // Of each file.
        let replay = (self.plan.replay_mib << 20) * self.plan.files as u64;
        self.stops.push(Stop {
            how,
            repeated_bytes: Vec::new(),
            bound_bytes: recent.iter().map(|bytes| replay + bytes).collect(),
            bounded: self.is_disk_fit(),
        });
    }

    /// True when it has not been broken of late: checkpoints could be written.
    fn is_disk_fit(&self) -> bool {
        let is_old = |at: Instant| at.elapsed() > Duration::from_secs(3);
        self.disk_fault.is_none() && self.disk_bad.is_none_or(is_old)
    }

    /// What was repeated so far is the last stop's doing.
    fn close_stop(&mut self) {
        let nothing = vec![0; self.plan.rotations.len()];
        let repeated = std::mem::replace(&mut self.sink.lock().repeated_bytes, nothing);
        match self.stops.last_mut() {
            Some(last) => last.repeated_bytes = repeated,
            None if repeated.iter().any(|bytes| *bytes > 0) => {
                let note = format!("bytes repeated before the first stop: {repeated:?}");
                self.notes.push(note);
            }
            None => {}
        }
    }

    /// Stops the writers, waits until everything has arrived or nothing moves, and ends the agent. Returns the last
    /// counters, too.
    pub(crate) fn end(mut self) -> io::Result<(Self, Counters)> {
        self.stop_writers.store(true, Ordering::Relaxed);
        for writer in self.writers.drain(..) {
            writer
                .join()
                .map_err(|_| io::Error::other("a writer panicked"))?;
        }
        self.fault(Fault::None);
        if self.disk_fault.is_some() {
            self.turn_disk()?;
        }
        let holds = self.plan.faults.iter().any(|fault| fault.is_hold());
        let stuck = match self.plan.agent.kind {
            Kind::Tailrace if holds => STUCK_HOLDING,
            _ => STUCK,
        };
        let began = Instant::now();
        let mut last_new = Instant::now();
        let mut arrived = 0;
        while !self.is_complete() && last_new.elapsed() < stuck {
            self.tick()?;
            let wait = Instant::now() + Duration::from_millis(100);
            self.sink.wait(wait, |state| state.arrived > arrived + 1000);
            let dead_lettered = dead_letters::read(&self.dir.path().join("data/dead-letter"));
            self.sink.lock().dead_letter(&dead_lettered);
            let now = self.sink.lock().arrived;
            if now > arrived {
                (arrived, last_new) = (now, Instant::now());
            }
        }
        self.drained = began.elapsed();
        // Counters are brought up to date once a second.
        let deadline = Instant::now() + Duration::from_millis(1500);
        self.sink.wait(deadline, |_| false);
        self.scrape();
        let last = self.present.clone();
        if self.plan.agent.kind == Kind::Tailrace && self.restart_due.is_none() {
            let code = self.process.terminate(END_TIMEOUT);
            let code = code.map_or("ignored SIGTERM".to_owned(), |code| code.to_string());
            if code != "exit status: 0" {
                self.own_ends.insert(format!("{code} at the end"), 1);
            }
        }
        self.process.kill();
        self.close_stop();
        self.life_ended();
        Ok((self, last))
    }

    /// True when every writer has written all its records.
    pub(crate) fn has_written(&self) -> bool {
        self.truths
            .iter()
            .all(|truth| truth.done.load(Ordering::Relaxed))
    }

    /// Records that were written and have not arrived.
    pub(crate) fn missing(&self) -> u64 {
        let state = self.sink.lock();
        let resolved: u64 = state.streams.iter().map(|tally| tally.resolved).sum();
        let written = self.truths.iter().flat_map(|truth| &truth.written);
        let written: u64 = written.map(|written| written.load(Ordering::Relaxed)).sum();
        written.saturating_sub(resolved)
    }

    fn is_complete(&self) -> bool {
        let state = self.sink.lock();
        let whole = self.truths.iter().all(|truth| truth.is_complete(&state));
        // What is destroyed may still come; nobody knows until it has been quiet.
        let destroys = self.plan.rotations.iter().any(|of| of.destroys());
        whole && (!destroys || state.last_new.elapsed() > Duration::from_secs(3))
    }
}
