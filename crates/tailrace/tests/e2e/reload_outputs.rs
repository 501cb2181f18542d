//! Outputs that come and go while the agent runs, and between two runs: one that is added again goes on where it stopped, and
//! gets what appeared while it was away.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value as Json;
use tailrace_testkit::{Answer, Collector};

use crate::agent::{arrivals, lines};
use crate::reload::{json, ledger, reload};
use crate::support::{Agent, Bench, append, until};

/// A pipeline with the output `a`, a file, and `b`, the server, if it is given.
fn config(bench: &Bench, server: Option<&Collector>) {
    let b = server.map_or(String::new(), |server| {
        format!(
            "      - {{name: b, type: otlp, endpoint: {}, retry: {{initial: 50ms, max: 100ms}}}}\n",
            server.endpoint()
        )
    });
    bench.config(&format!(
        "admin: {{listen: '127.0.0.1:0'}}\nshutdown: {{grace: 100ms}}\npipelines:\n  app:\n    input: {{type: file, include: \
         ['$DIR/logs/*.log'], format: json}}\n    batch: {{max_wait: 20ms}}\n    outputs:\n      - {{name: a, type: file, path: \
         $DIR/a.ndjson}}\n{b}"
    ));
}

/// The ledger of one output.
fn output(agent: &Agent, name: &str) -> Json {
    let ledger = ledger(agent, "app");
    let mut outputs = ledger["outputs"].as_array().unwrap().iter();
    let found = outputs.find(|output| output["output"] == name);
    found.unwrap_or_else(|| panic!("{ledger}")).clone()
}

/// Waits until an output has delivered so many records since the start of the process, and nothing is in flight.
fn delivers(agent: &Agent, name: &str, records: u64) {
    let is_done = || {
        let output = output(agent, name);
        output["delivered_records"] == records && output["in_flight_records"] == 0
    };
    until(is_done, || ledger(agent, "app").to_string());
    assert!(!agent.own_log().contains("does not balance"));
}

fn once(records: std::ops::Range<usize>) -> BTreeMap<usize, usize> {
    records.map(|seq| (seq, 1)).collect()
}

#[test]
fn an_output_that_is_added_again_gets_what_appeared_meanwhile() {
    let (bench, server) = (Bench::new(), Collector::start());
    config(&bench, Some(&server));
    append(&bench.log("x.log"), &lines(0..10));
    let agent = bench.start();
    delivers(&agent, "a", 10);
    delivers(&agent, "b", 10);
    let delay = || output(&agent, "a")["delivery_delay_seconds"].clone();
    // It is noted right after the records are counted.
    until(
        || delay()["batches"] == 1,
        || ledger(&agent, "app").to_string(),
    );
    let before = delay();
    config(&bench, None);
    assert_eq!(reload(&agent).0, 200);
    assert_eq!(delay(), before, "like all that is counted of an output");
    // A file that it knew, and one that it did not.
    append(&bench.log("x.log"), &lines(10..20));
    append(&bench.log("y.log"), &lines(20..30));
    delivers(&agent, "a", 30);
    config(&bench, Some(&server));
    assert_eq!(reload(&agent).0, 200);
    delivers(&agent, "b", 30);
    delivers(&agent, "a", 30);
    assert_eq!(arrivals(&server), once(0..30));
    let log = agent.own_log();
    assert!(!log.contains("not delivered everything"), "{log}");
    assert_eq!(agent.terminate().code(), Some(0));
}

#[test]
fn the_same_holds_over_restarts_and_for_an_output_that_saw_no_file() {
    let (bench, server) = (Bench::new(), Collector::start());
    config(&bench, Some(&server));
    let agent = bench.start();
    agent.says("running");
    assert_eq!(agent.terminate().code(), Some(0));
    config(&bench, None);
    append(&bench.log("x.log"), &lines(0..10));
    let agent = bench.start();
    delivers(&agent, "a", 10);
    assert_eq!(agent.terminate().code(), Some(0));
    config(&bench, Some(&server));
    for _ in 0..2 {
        let agent = bench.start();
        server.wait_records(10);
        agent.says("running");
        until(
            || json(&agent, "/api/v1/ledger")["pipelines"][0]["in_flight_bytes"] == 0,
            || agent.own_log(),
        );
        assert_eq!(agent.terminate().code(), Some(0));
    }
    assert_eq!(arrivals(&server), once(0..10));
    let text = fs::read_to_string(bench.path("a.ndjson")).unwrap();
    assert_eq!(text.lines().count(), 10, "{text}");
}

#[test]
fn an_output_that_never_ran_begins_with_the_others() {
    let (bench, server) = (Bench::new(), Collector::start());
    config(&bench, None);
    append(&bench.log("x.log"), &lines(0..10));
    let agent = bench.start();
    delivers(&agent, "a", 10);
    config(&bench, Some(&server));
    assert_eq!(reload(&agent).0, 200);
    append(&bench.log("x.log"), &lines(10..20));
    append(&bench.log("y.log"), &lines(20..30));
    delivers(&agent, "b", 20);
    assert_eq!(agent.terminate().code(), Some(0));
    // Nor does it get the rest later.
    let agent = bench.start();
    append(&bench.log("x.log"), &lines(30..31));
    delivers(&agent, "b", 1);
    assert_eq!(arrivals(&server), once(10..31));
    assert_eq!(agent.terminate().code(), Some(0));
}

#[test]
fn what_an_output_leaves_behind_is_said() {
    let (bench, server) = (Bench::new(), Collector::start());
    server.always(Answer::status(503));
    config(&bench, Some(&server));
    append(&bench.log("x.log"), &lines(0..10));
    let agent = bench.start();
    delivers(&agent, "a", 10);
    until(
        || output(&agent, "b")["in_flight_records"] == 10,
        || agent.own_log(),
    );
    config(&bench, None);
    assert_eq!(reload(&agent).0, 200);
    let bytes = lines(0..10).len();
    agent.says("an output was removed that has not delivered everything");
    let left = format!("output=\"b\" records=10 bytes={bytes}");
    assert!(agent.own_log().contains(&left), "{}", agent.own_log());
    // The file is gone, and another one has its name.
    fs::remove_file(bench.log("x.log")).unwrap();
    agent.says("a file is gone that an output had not delivered to its end");
    append(&bench.log("x.log"), &lines(10..15));
    delivers(&agent, "a", 15);
    server.always(Answer::ok());
    config(&bench, Some(&server));
    assert_eq!(reload(&agent).0, 200);
    delivers(&agent, "b", 5);
    assert_eq!(arrivals(&server), once(10..15));
    assert_eq!(
        json(&agent, "/api/v1/ledger")["pipelines"][0]["lost_bytes"],
        serde_json::json!({})
    );
    assert_eq!(agent.terminate().code(), Some(0));
}
