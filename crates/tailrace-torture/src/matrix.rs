//! The fault matrix: one run for each fault, all rotations at once, agents side by side, as Markdown text. It writes no file.

use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use super::agent::{Agent, Kind};
use super::disk::DiskFault;
use super::faults::Fault;
use super::plan::{Plan, Stops};
use super::run::run;
use super::stream::Rotation;
use super::verdict::Outcome;

/// What a row of the matrix does.
struct Row {
    name: String,
    faults: Vec<Fault>,
    stops: Stops,
    disk: Vec<DiskFault>,
    has_inotify: bool,
}

/// Runs every row with every agent, `time` each, and returns the table. `report` receives the outcome of each run.
///
/// # Errors
///
/// The machine lets nothing be started.
pub fn matrix(
    agents: &[(&str, Agent)],
    seed: u64,
    time: Duration,
    mut report: impl FnMut(&str),
) -> io::Result<String> {
    let mut text = String::from("| fault | agent |");
    for rotation in Rotation::ALL {
        let _ = write!(text, " {} |", rotation.name());
    }
    text.push_str("\n|---|---|");
    text.push_str(&"---|".repeat(Rotation::ALL.len()));
    text.push('\n');
    for row in rows() {
        for (name, agent) in agents {
            // The Collector never uses inotify: without it nothing changes.
            if agent.kind == Kind::Otelcol && !row.has_inotify {
                continue;
            }
            let plan = Plan {
                faults: row.faults.clone(),
                stops: row.stops,
                disk: row.disk.clone(),
                has_inotify: row.has_inotify,
                time,
                lines_per_second: 500,
                ..Plan::new(agent.clone(), seed)
            };
            let outcome = run(&plan)?;
            report(&format!("== {}, {name}\n{outcome}", row.name));
            let _ = writeln!(text, "| {} | {name} |{}", row.name, cells(&outcome));
        }
    }
    Ok(text)
}

fn cells(outcome: &Outcome) -> String {
    let cells = outcome
        .groups
        .iter()
        .map(|group| format!(" {} |", group.cell()));
    cells.collect()
}

fn rows() -> Vec<Row> {
    use Fault::{
        Close, Delay, Half, Html, None, Partial, Refused, Reset, RetryAfter, Silence, Slow, Status,
    };
    let row = |name: &str, faults: &[Fault], stops| Row {
        name: name.to_owned(),
        faults: faults.to_vec(),
        stops,
        disk: Vec::new(),
        has_inotify: true,
    };
    let polling = |name: &str, stops| Row {
        has_inotify: false,
        ..row(name, &[None], stops)
    };
    let served = |name: &str, faults: &[Fault]| row(name, &[faults, &[None]].concat(), Stops::None);
    let disk = |name: &str, fault| Row {
        disk: vec![fault],
        ..row(name, &[None], Stops::Kill)
    };
    vec![
        row("none", &[None], Stops::None),
        row("kill -9", &[None], Stops::Kill),
        row("SIGTERM", &[None], Stops::Terminate),
        polling("no inotify", Stops::None),
        polling("no inotify, kill -9", Stops::Kill),
        served("429, 502, 503, 504", &[429, 502, 503, 504].map(Status)),
        served("429 with Retry-After", &[RetryAfter]),
        served("408", &[Status(408)]),
        served("reset or closed connections", &[Reset, Close]),
        served("half responses", &[Half]),
        served("late answers, slow reads", &[Delay, Silence, Slow]),
        served("refused connections", &[Refused]),
        served("partial success", &[Partial]),
        served("400", &[Status(400)]),
        served("401, 403, 404", &[401, 403, 404].map(Status)),
        served("413", &[Status(413)]),
        served("500", &[Status(500)]),
        served("200 with a web page", &[Html]),
        row("all of these, kill -9", &Fault::ALL, Stops::Kill),
        disk("disk full, kill -9", DiskFault::Full),
        disk("disk read-only, kill -9", DiskFault::ReadOnly),
    ]
}
