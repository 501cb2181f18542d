//! The plan of a run.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use super::agent::Agent;
use super::disk::DiskFault;
use super::faults::Fault;
use super::stream::Rotation;

/// What a run does. The same plan and seed make the same decisions; what the machine makes of them
/// differs in time.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Who is tortured.
    pub agent: Agent,
    /// Every decision follows from it.
    pub seed: u64,
    /// One directory and pipeline each.
    pub rotations: Vec<Rotation>,
    /// Log files of each.
    pub files: usize,
    /// What the collector does, in turns.
    pub faults: Vec<Fault>,
    /// When the agent is stopped.
    pub stops: Stops,
    /// The run takes so long, if stops do not say when it ends.
    pub time: Duration,
    /// What happens to the disk of the agent's state.
    pub disk: Vec<DiskFault>,
    /// Of each file.
    pub lines_per_second: u64,
    /// Milliseconds between two rotations of a file.
    pub rotate_ms: Range<u64>,
    /// Writers rest while so many records of a file have not arrived.
    pub backlog_max: u64,
    /// Each file ends after so many records.
    pub records_max: u64,
    /// Write all of them as fast as the disk takes them, then rotate.
    pub at_once: bool,
    /// `limits.replay`.
    pub replay_mib: u64,
    /// Requests at once of each pipeline.
    pub concurrency: u32,
    /// More YAML for the top of Tailrace's config.
    pub more: String,
    /// What is in the agent's environment: its failpoints.
    pub environment: Vec<(&'static str, String)>,
    /// The agent can have inotify.
    pub has_inotify: bool,
    /// The agent runs in this cgroup.
    pub cgroup: Option<PathBuf>,
    /// Where everything is, and stays; else in a directory that goes.
    pub dir: Option<PathBuf>,
}

/// How the agent is stopped and started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stops {
    /// Never.
    None,
    /// By `kill -9`, until the time is over.
    Kill,
    /// By SIGTERM, until the time is over.
    Terminate,
    /// Until so many stops, a quarter of them by SIGTERM.
    Count(u32),
}

impl Plan {
    /// Everything at once, moderately.
    pub fn new(agent: Agent, seed: u64) -> Plan {
        Plan {
            agent,
            seed,
            rotations: Rotation::ALL.to_vec(),
            files: 1,
            faults: Fault::ALL.to_vec(),
            stops: Stops::Count(20),
            time: Duration::ZERO,
            disk: Vec::new(),
            lines_per_second: 1000,
            rotate_ms: 30..600,
            backlog_max: 20_000,
            records_max: u64::MAX,
            at_once: false,
            replay_mib: 2,
            concurrency: 4,
            more: String::new(),
            environment: Vec::new(),
            has_inotify: true,
            cgroup: None,
            dir: None,
        }
    }
}
