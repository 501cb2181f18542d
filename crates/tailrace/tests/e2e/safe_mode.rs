//! Starts that die without progress: the fourth one is in safe mode, and the way back out of it.

use std::path::Path;

use serde_json::Value as Json;
use tailrace_testkit::Collector;

use crate::support::{Agent, Bench, append, get, until};

fn lines(range: std::ops::Range<usize>) -> Vec<u8> {
    let line = |n| format!("{{\"msg\":\"line {n}\"}}\n").into_bytes();
    range.flat_map(line).collect()
}

/// One worker more than safe mode has, and an end that does not wait for a server that nobody can reach.
fn config(bench: &Bench, endpoint: &str) {
    let more = "workers: 2\nadmin: {listen: '127.0.0.1:0'}\n";
    let grace = if endpoint == NOWHERE {
        "shutdown: {grace: 100ms}\n"
    } else {
        ""
    };
    bench.pipeline(endpoint, "json", &format!("{more}{grace}"));
}

const NOWHERE: &str = "http://127.0.0.1:1";

/// The agent has all of its workers and reads.
fn running(agent: &Agent) {
    agent.says("running");
    agent.says("following file");
}

fn metric(admin: &str) -> Option<String> {
    let metrics = get(admin, "/metrics");
    let line = metrics
        .lines()
        .find(|line| line.starts_with("tailrace_safe_mode "));
    line.map(str::to_owned)
}

fn readiness(admin: &str) -> Json {
    serde_json::from_str(&get(admin, "/readyz")).unwrap()
}

/// How many workers have marked what they work on.
fn workers(agent: &Agent) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", agent.pid())).unwrap();
    let name = |task: &Path| std::fs::read_to_string(task.join("comm")).unwrap_or_default();
    tasks
        .flatten()
        .filter(|task| name(&task.path()).trim() == "tailrace-work")
        .count()
}

fn die(bench: &Bench, times: usize) {
    for _ in 0..times {
        let agent = bench.start();
        running(&agent);
        agent.kill();
    }
}

#[test]
fn after_three_deaths_without_progress_the_agent_needs_little_until_there_is_some() {
    let bench = Bench::new();
    config(&bench, NOWHERE);
    append(&bench.log("a.log"), &lines(0..1000));
    die(&bench, 2);
    let agent = bench.start();
    let admin = agent.admin();
    until(|| workers(&agent) == 2, || workers(&agent).to_string());
    assert_eq!(metric(&admin).as_deref(), Some("tailrace_safe_mode 0"));
    assert_eq!(readiness(&admin)["safe_mode"], Json::Null);
    agent.kill();

    let collector = Collector::start();
    config(&bench, &collector.endpoint());
    let agent = bench.start();
    let admin = agent.admin();
    agent.says("safe mode: the last starts ended without progress or soon");
    until(|| workers(&agent) == 1, || workers(&agent).to_string());
    assert_eq!(metric(&admin).as_deref(), Some("tailrace_safe_mode 1"));
    let ready = readiness(&admin);
    assert_eq!(ready["ready"], true, "{ready}");
    let said = ready["safe_mode"].as_str().unwrap();
    assert!(said.contains("the last 3 starts"), "{said}");

    // There is progress now, and then as much as the machine affords again.
    let mut written = 1000;
    until(
        || {
            append(&bench.log("a.log"), &lines(written..written + 1));
            written += 1;
            metric(&admin).as_deref() == Some("tailrace_safe_mode 0")
        },
        || agent.own_log(),
    );
    agent.says("safe mode has ended");
    until(|| workers(&agent) == 2, || workers(&agent).to_string());
    assert_eq!(readiness(&admin)["safe_mode"], Json::Null);
    collector.wait_records(written);
    assert_eq!(agent.terminate().code(), Some(0));
    assert_eq!(collector.records().len(), written, "nothing twice");
    assert!(!bench.path("data/starts").exists());
}

#[test]
fn an_end_in_order_a_refused_start_and_progress_are_no_deaths() {
    let bench = Bench::new();
    config(&bench, NOWHERE);
    append(&bench.log("a.log"), &lines(0..10));
    let starts = || std::fs::read_to_string(bench.path("data/starts")).ok();
    die(&bench, 2);
    assert_eq!(starts().as_deref(), Some("2 2\n"));
    let agent = bench.start();
    running(&agent);
    assert_eq!(agent.terminate().code(), Some(3));
    assert_eq!(starts(), None);

    die(&bench, 2);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("admin: {{listen: '{}'}}\n", taken.local_addr().unwrap());
    bench.pipeline(NOWHERE, "json", &listen);
    let mut refused = bench.start();
    assert_eq!(refused.end().code(), Some(1));
    assert_eq!(starts(), None);

    config(&bench, NOWHERE);
    die(&bench, 2);
    let collector = Collector::start();
    config(&bench, &collector.endpoint());
    let agent = bench.start();
    collector.wait_records(10);
    until(|| starts().as_deref() == Some("0 3\n"), || agent.own_log());
    agent.kill();
}

/// One pipeline makes a little progress before each death that another one may be the cause of.
#[test]
fn deaths_soon_after_the_start_count_in_spite_of_progress() {
    let bench = Bench::new();
    let collector = Collector::start();
    config(&bench, &collector.endpoint());
    let starts = || std::fs::read_to_string(bench.path("data/starts")).ok();
    for death in 0..5 {
        append(&bench.log("a.log"), &lines(death..death + 1));
        let agent = bench.start();
        let expected = format!("0 {}\n", death + 1);
        until(
            || starts().as_deref() == Some(&expected),
            || agent.own_log(),
        );
        agent.kill();
    }
    let agent = bench.start();
    agent.says("safe mode: the last starts ended without progress or soon");
    let ready = readiness(&agent.admin());
    let said = ready["safe_mode"].as_str().unwrap();
    assert!(said.contains("the last 5 starts"), "{said}");
    assert_eq!(agent.terminate().code(), Some(0));
    assert_eq!(starts(), None);
}
