//! The torture test in short: every rotation that is promised, every fault that passes, kill -9,
//! SIGTERM and a broken disk, and the verdict. `cargo xtask torture` runs it for longer.

use std::time::Duration;

use tailrace_torture::{Agent, DiskFault, Fault, Kind, Plan, Rotation, Scenario, Stops, run};

fn agent() -> Agent {
    Agent {
        kind: Kind::Tailrace,
        binary: env!("CARGO_BIN_EXE_tailrace").into(),
    }
}

#[test]
fn a_panic_and_an_abort_cost_a_record_each() {
    let outcome = Scenario::Crash.run(&Plan::new(agent(), 5), Duration::ZERO);
    let outcome = outcome.unwrap();
    eprintln!("{outcome}");
    assert!(outcome.broken.is_empty(), "{outcome}");
}

#[test]
fn a_short_torture_loses_nothing() {
    let plan = Plan {
        rotations: vec![
            Rotation::Steady,
            Rotation::Rename,
            Rotation::CopyTruncate,
            Rotation::Delete,
            Rotation::Cri,
        ],
        // A server that refuses for good makes the agent wait for half a minute, which the long runs do.
        faults: Fault::ALL
            .into_iter()
            .filter(|fault| !fault.is_hold())
            .collect(),
        stops: Stops::Count(25),
        disk: vec![DiskFault::Full, DiskFault::ReadOnly],
        lines_per_second: 500,
        ..Plan::new(agent(), 4)
    };
    let outcome = run(&plan).unwrap();
    eprintln!("{outcome}");
    assert!(outcome.broken.is_empty(), "{outcome}");
    let arrived: u64 = outcome.groups.iter().map(|group| group.written).sum();
    assert!(arrived > 1000, "{outcome}");
}
