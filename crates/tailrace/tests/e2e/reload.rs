//! Reloads of the config: what changes is drained and goes on, what does not is left alone, and what is
//! wrong changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Stdio;

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use rustix::process::Signal;
use serde_json::Value as Json;
use tailrace_testkit::{Answer, Collector, Gate, Record, TestTls};

use crate::agent::{arrivals, attribute, lines};
use crate::support::{Agent, Bench, append, get, post, until};

/// How often the config is reloaded under load; `TAILRACE_RELOADS` asks for more.
const RELOADS: usize = 60;
/// Files during one reload.
const FILES: usize = 20;

pub(crate) fn json(agent: &Agent, path: &str) -> Json {
    serde_json::from_str(&get(&agent.admin(), path)).unwrap()
}

pub(crate) fn reload(agent: &Agent) -> (u16, Json) {
    let (status, body) = post(&agent.admin(), "/-/reload");
    (status, serde_json::from_str(&body).unwrap())
}

/// How many reloads were taken into use and refused.
fn reloads(agent: &Agent) -> (u64, u64) {
    let reloads = &json(agent, "/api/v1/status")["config"]["reloads"];
    let count = |key: &str| reloads[key].as_u64().unwrap();
    (count("succeeded"), count("failed"))
}

/// The ledger of one pipeline.
pub(crate) fn ledger(agent: &Agent, pipeline: &str) -> Json {
    let ledger = json(agent, "/api/v1/ledger");
    let mut pipelines = ledger["pipelines"].as_array().unwrap().iter();
    let found = pipelines.find(|found| found["pipeline"] == pipeline);
    found.unwrap_or_else(|| panic!("{ledger}")).clone()
}

/// Waits until nothing of a pipeline is in flight, and checks that every record has one outcome.
fn balances(agent: &Agent, pipeline: &str) {
    let mut last = Json::Null;
    let is_idle = || {
        // One answer for all: after a reload more may be read again between two.
        last = ledger(agent, pipeline);
        last["in_flight_bytes"] == 0
    };
    until(is_idle, || ledger(agent, pipeline).to_string());
    let ledger = last;
    let output = &ledger["outputs"][0];
    let count = |value: &Json| value.as_u64().unwrap();
    let outcomes = count(&ledger["filtered_records"])
        + count(&output["delivered_records"])
        + count(&output["earlier_records"]);
    assert_eq!(count(&ledger["records"]), outcomes, "{ledger}");
    assert_eq!(count(&output["in_flight_requests"]), 0, "{ledger}");
    assert_eq!(ledger["lost_bytes"], serde_json::json!({}), "{ledger}");
    assert!(!agent.own_log().contains("does not balance"));
}

/// A pipeline that reads `logs/NAME*.log`.
fn pipeline(name: &str, collector: &Collector, transform: &str) -> String {
    format!(
        "  {name}:\n    input: {{type: file, include: ['$DIR/logs/{name}*.log'], format: json}}\n    \
         transform: {transform}\n    batch: {{max_wait: 20ms}}\n    output: {{type: otlp, endpoint: \
         {}, retry: {{initial: 50ms, max: 100ms}}}}\n",
        collector.endpoint()
    )
}

fn config(bench: &Bench, pipelines: &[String]) {
    config_with(bench, "", pipelines);
}

fn config_with(bench: &Bench, head: &str, pipelines: &[String]) {
    bench.config(&format!(
        "admin: {{listen: '127.0.0.1:0'}}\n{head}pipelines:\n{}",
        pipelines.concat()
    ));
}

/// Descriptors, threads and resident bytes of the agent.
fn held(agent: &Agent) -> (usize, usize, u64) {
    let list = |what: &str| fs::read_dir(format!("/proc/{}/{what}", agent.pid())).unwrap();
    let status = fs::read_to_string(format!("/proc/{}/status", agent.pid())).unwrap();
    let rss = status.lines().find(|line| line.starts_with("VmRSS"));
    let kib = rss.and_then(|line| line.split_whitespace().nth(1));
    let bytes = kib.unwrap().parse::<u64>().unwrap() * 1024;
    (list("fd").count(), list("task").count(), bytes)
}

#[test]
fn reloads_under_load_lose_nothing_and_keep_nothing() {
    let wanted = std::env::var("TAILRACE_RELOADS").ok();
    let rounds = wanted.map_or(RELOADS, |text| text.parse().unwrap());
    let (bench, still, app) = (Bench::new(), Collector::start(), Collector::start());
    let write = |transform: &str| {
        let quiet = pipeline("still", &still, "SELECT * FROM logs");
        config(&bench, &[pipeline("app", &app, transform), quiet]);
    };
    write("SELECT * FROM logs");
    append(&bench.log("still.log"), &lines(0..1));
    let agent = bench.start();
    still.wait_records(1);
    let (mut written, mut batches, mut before) = (0, 0, (0, 0, 0));
    let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
    for round in 0..rounds {
        append(&bench.log("app.log"), &lines(written..written + 300));
        append(&bench.log("still.log"), &lines(round + 1..round + 2));
        written += 300;
        if round % 10 == 4 {
            // The one of ten rounds before is deleted.
            fs::rename(bench.log("app.log"), bench.log("app.1.log")).unwrap();
            append(&bench.log("app.log"), &lines(written..written + 100));
            written += 100;
        }
        if round % 7 == 3 {
            app.script(vec![Answer::status(503); 3]);
        }
        let is_valid = round % 3 != 2;
        if is_valid {
            write(&format!("SELECT * FROM logs WHERE seq >= -{round}"))
        } else {
            write("SELECT * FROM logs WHERE seq >")
        }
        let (status, body) = reload(&agent);
        assert_eq!(status, if is_valid { 200 } else { 422 }, "{body}");
        if is_valid {
            assert_eq!(body["unchanged"], serde_json::json!(["still"]));
            assert_eq!(body["changed"], serde_json::json!(["app"]));
        }
        let of_still = ledger(&agent, "still");
        let now = of_still["outputs"][0]["delivery_delay_seconds"]["batches"].as_u64();
        assert!(now.unwrap() >= batches, "it was started anew: {of_still}");
        batches = now.unwrap();
        for record in app.take_records() {
            *seen.entry(sequence(&record)).or_default() += 1;
        }
        if round == rounds / 3 {
            balances(&agent, "app");
            before = held(&agent);
        }
    }
    until(
        || {
            for record in app.take_records() {
                *seen.entry(sequence(&record)).or_default() += 1;
            }
            seen.len() == written
        },
        || agent.own_log(),
    );
    still.wait_records(rounds + 1);
    assert!(arrivals(&still).values().all(|&times| times == 1));
    balances(&agent, "app");
    balances(&agent, "still");
    let after = held(&agent);
    let refused = (rounds / 3) as u64;
    assert_eq!(reloads(&agent), (rounds as u64 - refused, refused));
    let again: usize = seen.values().map(|times| times - 1).sum();
    eprintln!("{rounds} reloads, {written} lines, {again} twice; held {before:?}, then {after:?}");
    assert!(
        after.0 <= before.0 + 4,
        "descriptors: {before:?}, {after:?}"
    );
    assert!(after.1 <= before.1, "threads: {before:?}, {after:?}");
    let room = before.2 / 4 + (8 << 20);
    assert!(after.2 <= before.2 + room, "memory: {before:?}, {after:?}");
    assert_eq!(agent.terminate().code(), Some(0));
}

fn sequence(record: &Record) -> usize {
    match attribute(record, "seq") {
        Some(Value::IntValue(seq)) => usize::try_from(seq).unwrap(),
        other => panic!("no seq: {other:?}"),
    }
}

#[test]
fn a_config_that_is_wrong_changes_nothing_and_is_shown() {
    let (bench, collector) = (Bench::new(), Collector::start());
    let of_app = |transform: &str| [pipeline("app", &collector, transform)];
    config(&bench, &of_app("SELECT * FROM logs"));
    append(&bench.log("app.log"), &lines(0..10));
    let agent = bench.start();
    collector.wait_records(10);
    config(&bench, &of_app("SELEC"));
    agent.signal(Signal::HUP);
    until(|| reloads(&agent) == (0, 1), || agent.own_log());
    let error = json(&agent, "/api/v1/status")["config"]["error"].clone();
    let error = error.as_str().unwrap();
    assert!(error.contains("tailrace.yaml:6:16: error: "), "{error}");
    agent.says("tailrace.yaml:6:16: error: ");
    let metrics = get(&agent.admin(), "/metrics");
    assert!(metrics.contains("\ntailrace_config_last_reload_successful 0\n"));
    assert!(metrics.contains("\ntailrace_config_reloads_total{result=\"failure\"} 1\n"));
    append(&bench.log("app.log"), &lines(10..20));
    collector.wait_records(20);
    // A server's certificate that cannot be read is found before anything is stopped.
    let tls = ", tls: {ca_file: /nowhere/ca.pem}, endpoint: 'https://localhost:1'}";
    let broken = pipeline("app", &collector, "SELECT * FROM logs");
    let at = broken.find(", endpoint").unwrap_or(broken.len());
    let broken = format!(
        "{}{tls}\n",
        &broken[..broken[..at].find("endpoint").map_or(at, |at| at - 2)]
    );
    config(&bench, &[broken]);
    let (status, body) = reload(&agent);
    assert_eq!(status, 422);
    assert!(
        body["error"].as_str().unwrap().contains("/nowhere/ca.pem"),
        "{body}"
    );
    // What needs a restart is named, the rest is in use.
    config_with(
        &bench,
        "workers: 2\n",
        &of_app("SELECT * FROM logs WHERE seq < 25"),
    );
    agent.signal(Signal::HUP);
    until(|| reloads(&agent) == (1, 2), || agent.own_log());
    agent.says("workers was changed, which needs a restart");
    let status = json(&agent, "/api/v1/status")["config"].clone();
    assert_eq!(status["needs_restart"], serde_json::json!(["workers"]));
    assert_eq!(status["error"], Json::Null);
    assert!(
        status["in_use_since_unix_s"].as_f64() > Some(1.7e9),
        "{status}"
    );
    assert_eq!(
        status["in_use_since_seconds"],
        status["in_use_since_unix_s"]
    );
    append(&bench.log("app.log"), &lines(20..30));
    collector.wait_records(25);
    balances(&agent, "app");
    assert_eq!(agent.terminate().code(), Some(0));
    let all: BTreeMap<usize, usize> = (0..25).map(|seq| (seq, 1)).collect();
    assert_eq!(arrivals(&collector), all);
}

#[test]
fn a_pipeline_that_is_removed_and_added_again_goes_on() {
    let (bench, collector, other) = (Bench::new(), Collector::start(), Collector::start());
    let app = pipeline("app", &collector, "SELECT * FROM logs");
    let more = pipeline("more", &other, "SELECT * FROM logs");
    config(&bench, std::slice::from_ref(&app));
    append(&bench.log("app.log"), &lines(0..10));
    append(&bench.log("more.log"), &lines(0..10));
    let agent = bench.start();
    collector.wait_records(10);
    config(&bench, std::slice::from_ref(&more));
    let (status, body) = reload(&agent);
    assert_eq!(
        (status, &body["removed"]),
        (200, &serde_json::json!(["app"]))
    );
    assert_eq!(body["added"], serde_json::json!(["more"]));
    other.wait_records(10);
    append(&bench.log("app.log"), &lines(10..20));
    config(&bench, &[app, more]);
    assert_eq!(reload(&agent).1["unchanged"], serde_json::json!(["more"]));
    collector.wait_records(20);
    for (collector, count) in [(&collector, 20), (&other, 10)] {
        let all: BTreeMap<usize, usize> = (0..count).map(|seq| (seq, 1)).collect();
        assert_eq!(arrivals(collector), all);
    }
    balances(&agent, "app");
    assert_eq!(agent.terminate().code(), Some(0));
}

#[test]
fn another_server_gets_what_the_one_that_is_down_did_not_take() {
    let (bench, ill, well) = (Bench::new(), Collector::start(), Collector::start());
    ill.always(Answer::status(503));
    config(&bench, &[pipeline("app", &ill, "SELECT * FROM logs")]);
    append(&bench.log("app.log"), &lines(0..1_000));
    let agent = bench.start();
    agent.says("will be sent again");
    // Read to its end, deleted, and delivered nowhere.
    fs::remove_file(bench.log("app.log")).unwrap();
    append(&bench.log("app-2.log"), &lines(1_000..1_100));
    until(
        || ledger(&agent, "app")["records"] == 1_100,
        || agent.own_log(),
    );
    until(
        || ledger(&agent, "app")["unread_bytes"] == 0,
        || agent.own_log(),
    );
    config(&bench, &[pipeline("app", &well, "SELECT * FROM logs")]);
    assert_eq!(reload(&agent).0, 200);
    well.wait_records(1_100);
    let all: BTreeMap<usize, usize> = (0..1_100).map(|seq| (seq, 1)).collect();
    assert_eq!(arrivals(&well), all);
    assert_eq!(ledger(&agent, "app")["replayed_records"], 1_100);
    balances(&agent, "app");
    assert_eq!(agent.terminate().code(), Some(0));
}

#[test]
fn files_that_come_and_go_during_a_reload_are_read() {
    let (bench, collector, gate) = (Bench::new(), Collector::start(), Gate::new());
    collector.script([Answer::ok().after(&gate)]);
    config(&bench, &[pipeline("app", &collector, "SELECT * FROM logs")]);
    append(&bench.log("app.log"), &lines(0..1));
    let agent = bench.start();
    // The reload waits for the answer.
    let is_under_way = || ledger(&agent, "app")["outputs"][0]["in_flight_requests"] == 1;
    until(is_under_way, || agent.own_log());
    let changed = "SELECT *, 1 AS changed FROM logs";
    config(&bench, &[pipeline("app", &collector, changed)]);
    std::thread::scope(|scope| {
        let reloading = scope.spawn(|| reload(&agent));
        for n in 1..=FILES {
            let path = bench.log(&format!("app-{n}.log"));
            append(&path, &lines(n..n + 1));
            until(|| has_open(&agent, &path), || agent.own_log());
            assert!(!reloading.is_finished(), "{n}: {}", agent.own_log());
            fs::remove_file(&path).unwrap();
        }
        gate.open();
        assert_eq!(reloading.join().unwrap().0, 200);
    });
    collector.wait_records(FILES + 1);
    let all: BTreeMap<usize, usize> = (0..=FILES).map(|seq| (seq, 1)).collect();
    assert_eq!(arrivals(&collector), all);
    balances(&agent, "app");
    assert_eq!(agent.terminate().code(), Some(0));
}

fn has_open(agent: &Agent, path: &std::path::Path) -> bool {
    let open = fs::read_dir(format!("/proc/{}/fd", agent.pid())).unwrap();
    let mut open = open.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
    open.any(|open| open == path)
}

/// A directory as the kubelet mounts a ConfigMap: names that lead through `..data`, which is swapped.
struct Mounted<'a> {
    bench: &'a Bench,
    version: usize,
}

impl Mounted<'_> {
    fn swap(&mut self, files: &[(&str, String)]) {
        let dir = self.bench.path("conf");
        let version = |n: usize| format!("..{n}");
        let now = dir.join(version(self.version));
        fs::create_dir_all(&now).unwrap();
        for (name, content) in files {
            let root = self.bench.path("").display().to_string();
            let content = content.replace("$DIR", root.trim_end_matches('/'));
            fs::write(now.join(name), content).unwrap();
            if self.version == 0 {
                symlink(format!("..data/{name}"), dir.join(name)).unwrap();
            }
        }
        let new = dir.join("..data_tmp");
        symlink(version(self.version), &new).unwrap();
        fs::rename(&new, dir.join("..data")).unwrap();
        if let Some(before) = self.version.checked_sub(1) {
            fs::remove_dir_all(dir.join(version(before))).unwrap();
        }
        self.version += 1;
    }
}

#[test]
fn only_swaps_with_other_bytes_are_reloads() {
    let (bench, collector) = (Bench::new(), Collector::start());
    let mut mounted = Mounted {
        bench: &bench,
        version: 0,
    };
    let files = |transform: usize, token: usize| {
        let app = pipeline(
            "app",
            &collector,
            &format!("SELECT * FROM logs WHERE seq >= -{transform}"),
        );
        let app = app.replace(
            "retry:",
            "headers: {x-token: '${file:$DIR/conf/token}'}, retry:",
        );
        let head = "data_dir: $DIR/data\nadmin: {listen: '127.0.0.1:0'}\npipelines:\n";
        [
            ("tailrace.yaml", format!("{head}{app}")),
            ("token", format!("token-{token}\n")),
        ]
    };
    mounted.swap(&files(0, 0));
    let config = bench.path("conf/tailrace.yaml");
    let agent = bench.start_args(&["--watch"], &config);
    agent.says("admin endpoint");
    let (mut transform, mut token) = (0, 0);
    for swap in 1..=100 {
        let is_other = swap % 10 == 0;
        match swap % 20 {
            0 => transform += 1,
            10 => token += 1,
            _ => {}
        }
        mounted.swap(&files(transform, token));
        if is_other {
            until(|| reloads(&agent).0 >= swap / 10, || agent.own_log());
            append(&bench.log("app.log"), &lines(token..token + 1));
            collector.wait_requests(usize::try_from(swap / 10).unwrap());
            let sent = collector.requests();
            let sent = sent.last().unwrap().header("x-token").unwrap();
            assert_eq!(sent, format!("token-{token}").as_str());
        }
    }
    assert_eq!(reloads(&agent), (10, 0));
    // Behind whatever still waits.
    assert_eq!(reload(&agent).1["unchanged"], serde_json::json!(["app"]));
    assert_eq!(reloads(&agent), (11, 0));
    assert_eq!(agent.terminate().code(), Some(0));
}

#[test]
fn another_certificate_is_taken_into_use() {
    let tls = TestTls::generate();
    let (bench, collector) = (Bench::new(), Collector::start_tls(&tls, false));
    let ca = bench.path("ca.pem");
    fs::copy(TestTls::generate().ca_file(), &ca).unwrap();
    let app = pipeline("app", &collector, "SELECT * FROM logs");
    let app = app.replace(
        "retry:",
        "tls: {ca_file: $DIR/ca.pem, server_name: localhost}, retry:",
    );
    config(&bench, &[app]);
    append(&bench.log("app.log"), &lines(0..10));
    let agent = bench.start_args(&["--watch"], &bench.path("tailrace.yaml"));
    agent.says("will be sent again");
    fs::copy(tls.ca_file(), bench.path("ca.new")).unwrap();
    fs::rename(bench.path("ca.new"), &ca).unwrap();
    collector.wait_records(10);
    until(|| reloads(&agent) == (1, 0), || agent.own_log());
    balances(&agent, "app");
    assert_eq!(agent.terminate().code(), Some(0));
}

#[test]
fn a_pipeline_of_standard_input_stays_as_it_is() {
    let (bench, collector) = (Bench::new(), Collector::start());
    let pipe = |transform: &str| {
        let app = pipeline("app", &collector, transform);
        let input = app.find("input:").unwrap()..app.find("transform:").unwrap();
        app.replace(&app[input], "input: {type: stdin, format: json}\n    ")
    };
    let file = pipeline("file", &collector, "SELECT * FROM logs");
    config(&bench, &[pipe("SELECT * FROM logs")]);
    let mut agent = bench.start_with(Stdio::piped());
    let stdin = agent.stdin();
    agent.says("admin endpoint");
    for pipelines in [vec![pipe("SELECT seq FROM logs")], vec![file.clone()]] {
        config(&bench, &pipelines);
        let (status, body) = reload(&agent);
        assert_eq!(status, 422);
        let error = body["error"].as_str().unwrap();
        assert!(error.contains("tailrace.yaml:"), "{error}");
        assert!(error.contains("reads the standard input"), "{error}");
    }
    // Unchanged, it lets others come and go.
    config(&bench, &[pipe("SELECT * FROM logs"), file]);
    assert_eq!(reload(&agent).1["added"], serde_json::json!(["file"]));
    append(&bench.log("file.log"), &lines(0..10));
    crate::support::write(stdin, &lines(10..20));
    collector.wait_records(20);
    config(&bench, &[pipe("SELECT * FROM logs")]);
    assert_eq!(reload(&agent).1["removed"], serde_json::json!(["file"]));
    // Its input has ended, and no other one is left.
    assert_eq!(agent.end().code(), Some(0));
    let all: BTreeMap<usize, usize> = (0..20).map(|seq| (seq, 1)).collect();
    assert_eq!(arrivals(&collector), all);
}
