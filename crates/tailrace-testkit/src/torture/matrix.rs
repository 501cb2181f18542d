//! The fault matrix: one run for each fault, all rotations at once, agents side by side, as Markdown.
//! Takes agents, gives text; it never writes a file.

use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use super::agent::Agent;
use super::disk::DiskFault;
use super::faults::Fault;
use super::run::{Plan, Stops, run};
use super::stream::Rotation;
use super::verdict::Outcome;

/// What a row of the matrix does.
struct Row {
    name: String,
    faults: Vec<Fault>,
    stops: Stops,
    disk: Vec<DiskFault>,
}

/// Runs every row with every agent, `time` each, and gives the table. `tell` hears what each run found.
///
/// # Errors
///
/// The machine lets nothing be started.
pub fn matrix(
    agents: &[(&str, Agent)],
    seed: u64,
    time: Duration,
    mut tell: impl FnMut(&str),
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
            let plan = Plan {
                faults: row.faults.clone(),
                stops: row.stops,
                disk: row.disk.clone(),
                time,
                lines_per_second: 500,
                ..Plan::new(agent.clone(), seed)
            };
            let outcome = run(&plan)?;
            tell(&format!("== {}, {name}\n{outcome}", row.name));
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
    let row = |name: &str, faults: &[Fault], stops| Row {
        name: name.to_owned(),
        faults: faults.to_vec(),
        stops,
        disk: Vec::new(),
    };
    let of = |fault: Fault| row(&fault.name(), &[fault, fault, Fault::None], Stops::None);
    let mut rows = vec![
        row("none", &[Fault::None], Stops::None),
        row("kill -9", &[Fault::None], Stops::Kill),
        row("SIGTERM", &[Fault::None], Stops::Terminate),
        row("kill -9 and all faults", &Fault::ALL, Stops::Kill),
    ];
    let temporary = Fault::ALL.into_iter().filter(|fault| *fault != Fault::None);
    rows.extend(temporary.map(of));
    for (name, fault) in [
        ("disk full", DiskFault::Full),
        ("disk read-only", DiskFault::ReadOnly),
    ] {
        rows.push(Row {
            disk: vec![fault],
            ..row(&format!("{name}, kill -9"), &[Fault::None], Stops::Kill)
        });
    }
    rows
}
