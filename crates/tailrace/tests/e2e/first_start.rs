//! Kills during the first start: what `start_at: end` and `ignore_older` leave out then is left out for good, and what is
//! written from then on arrives.

use std::fs;
use std::time::{Duration, SystemTime};

use crate::reload::reload;
use crate::support::{Agent, Bench, append, until};

const HOUR: Duration = Duration::from_secs(3600);

/// A pipeline that leaves out all of `end*.log` and what is old of `age*.log`.
fn pipeline() -> String {
    "  app:\n    inputs:\n      - {type: file, include: ['$DIR/logs/end*.log'], start_at: end}\n      - {type: file, include: \
     ['$DIR/logs/age*.log'], ignore_older: 1h}\n    batch: {max_wait: 20ms}\n    output: {type: file, path: $DIR/out.ndjson}\n"
        .to_owned()
}

/// Logs that are left out, a hundred of each input.
fn write_old(bench: &Bench) {
    for n in 0..100 {
        append(&bench.log(&format!("end{n}.log")), b"old\n");
        let path = bench.log(&format!("age{n}.log"));
        append(&path, b"old\n");
        let file = fs::File::options().append(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - 2 * HOUR).unwrap();
    }
}

/// What comes now arrives, and nothing else.
fn only_new_arrives(bench: &Bench, agent: Agent) {
    agent.says("running");
    let names = ["end7.log", "age7.log", "end-later.log", "age-later.log"];
    for name in names {
        append(&bench.log(name), b"new\n");
    }
    let out = || fs::read_to_string(bench.path("out.ndjson")).unwrap_or_default();
    until(
        || out().matches("new").count() == names.len(),
        || format!("{}\n{}", out(), agent.own_log()),
    );
    assert_eq!(agent.terminate().code(), Some(0));
    assert_eq!(out().lines().count(), names.len(), "{}", out());
}

#[test]
fn a_kill_at_any_moment_of_the_first_start_brings_nothing_back() {
    type Moment = fn(&Bench, &Agent) -> bool;
    let moments: [Moment; 4] = [
        |_, agent| agent.own_log().contains("following file"),
        |bench, _| bench.path("data/checkpoint.journal").exists(),
        |bench, _| bench.path("data/checkpoint.json").exists(),
        |_, agent| agent.own_log().contains("running"),
    ];
    for moment in moments {
        let bench = Bench::new();
        bench.config(&format!("pipelines:\n{}", pipeline()));
        write_old(&bench);
        let agent = bench.start();
        until(|| moment(&bench, &agent), || agent.own_log());
        agent.kill();
        only_new_arrives(&bench, bench.start());
    }
}

#[test]
fn a_kill_after_a_reload_that_adds_a_pipeline_brings_nothing_back() {
    let bench = Bench::new();
    let other = "admin: {listen: '127.0.0.1:0'}\npipelines:\n  other: {input: {type: file, include: ['$DIR/none']}, \
                 output: {type: discard}}\n";
    bench.config(other);
    write_old(&bench);
    let agent = bench.start();
    agent.says("running");
    bench.config(&format!("{other}{}", pipeline()));
    assert_eq!(reload(&agent).0, 200);
    agent.kill();
    only_new_arrives(&bench, bench.start());
}
