//! The kubernetes input: logs as the kubelet keeps them, and an API server that reports their pods.

use std::collections::BTreeMap;
use std::path::PathBuf;

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use serde_json::json;
use tailrace_testkit::{Collector, PodsApi, Record, Stream, Writer, pod};

use crate::support::{Bench, get, until};

const TIME: &str = "2026-01-02T03:04:05.678901234Z";

/// A node: where its kubelet keeps logs, its API server, and where the agent sends.
struct Node {
    bench: Bench,
    api: PodsApi,
    collector: Collector,
}

impl Node {
    /// With these further options of the input, and this query.
    fn new(options: &str, sql: &str) -> Node {
        let (bench, api, collector) = (Bench::new(), PodsApi::start(), Collector::start());
        api.kubeconfig(&bench.path("logs"));
        bench.config(&format!(
            "admin: {{listen: 127.0.0.1:0}}\nresource: {{deployment.environment.name: test}}\n\
             pipelines:\n  pods:\n    input: {{type: kubernetes, logs_dir: $DIR/pods, node_name: node-1, \
             kubeconfig: $DIR/logs/kubeconfig, {options}}}\n    transform: |\n      {sql}\n    \
             batch: {{max_wait: 20ms}}\n    output: {{type: otlp, endpoint: '{}'}}\n",
            collector.endpoint()
        ));
        Node {
            bench,
            api,
            collector,
        }
    }

    fn path(&self, pod: &str, log: &str) -> PathBuf {
        self.bench.path("pods").join(pod).join(log)
    }

    fn log(&self, pod: &str, log: &str) -> Writer {
        Writer::open(self.path(pod, log))
    }

    /// The records with these bodies have arrived.
    fn wait(&self, bodies: &[&str]) -> BTreeMap<String, Record> {
        self.collector.wait_records(bodies.len());
        let records = self.collector.records().into_iter();
        let records: BTreeMap<String, Record> = records
            .map(|record| (text(body(&record)), record))
            .collect();
        let found: Vec<&str> = records.keys().map(String::as_str).collect();
        assert_eq!(found, bodies);
        records
    }
}

fn body(record: &Record) -> Option<Value> {
    record.log.body.as_ref()?.value.clone()
}

fn text(value: Option<Value>) -> String {
    match value {
        Some(Value::StringValue(text)) => text,
        other => format!("{other:?}"),
    }
}

fn resource(record: &Record, key: &str) -> Option<Value> {
    let mut pairs = record.resource.attributes.iter();
    pairs
        .find(|pair| pair.key == key)?
        .value
        .as_ref()?
        .value
        .clone()
}

fn said(record: &Record, key: &str) -> String {
    resource(record, key).map_or_else(|| "none".to_owned(), |value| text(Some(value)))
}

#[test]
fn records_carry_what_is_known_of_their_pods() {
    let node = Node::new("labels: [app]", "SELECT * FROM logs");
    let labels = json!({"labels": {"app": "web", "other": "x"}});
    node.api.set(pod("shop", "web-0", "u1", "app", &labels));
    let mut log = node.log("shop_web-0_u1", "app/0.log");
    log.cri(
        TIME,
        Stream::Stdout,
        true,
        r#"{"msg":"one","level":"warn"}"#,
    );
    let agent = node.bench.start();
    let one = &node.wait(&["one"])["one"];
    for (key, expected) in [
        ("k8s.namespace.name", "shop"),
        ("k8s.pod.name", "web-0"),
        ("k8s.pod.uid", "u1"),
        ("k8s.container.name", "app"),
        ("k8s.node.name", "node-1"),
        ("k8s.pod.label.app", "web"),
        ("k8s.pod.label.other", "none"),
        ("container.id", "abc"),
        ("container.image.name", "registry.example/shop/web"),
        ("service.name", "web-0"),
        ("service.namespace", "shop"),
        ("service.instance.id", "shop.web-0.app"),
        ("deployment.environment.name", "test"),
    ] {
        assert_eq!(said(one, key), expected, "{key}");
    }
    let restarts = resource(one, "k8s.container.restart_count");
    assert_eq!(restarts, Some(Value::IntValue(0)));
    assert_eq!(one.log.severity_text, "warn");

    // What changes is said of the records that follow.
    let labels = json!({"labels": {"app": "shop"}});
    node.api.set(pod("shop", "web-0", "u1", "app", &labels));
    let mut number = 0;
    until(
        || {
            number += 1;
            log.cri(TIME, Stream::Stdout, true, &format!("line {number}"));
            node.collector.wait_records(number + 1);
            let records = node.collector.records();
            records
                .iter()
                .any(|record| said(record, "k8s.pod.label.app") == "shop")
        },
        || agent.own_log(),
    );
    let requests = node.api.requests();
    assert!(
        requests
            .iter()
            .all(|path| path.contains("fieldSelector=spec.nodeName%3Dnode-1"))
    );
    assert_eq!(requests.len(), 2, "one list and one watch: {requests:?}");
    assert!(agent.terminate().success());
}

#[test]
fn a_log_waits_for_its_pod_and_holds_no_other_up() {
    let node = Node::new("metadata_wait: 10m, labels: [app]", "SELECT * FROM logs");
    let labels = json!({"labels": {"app": "web"}});
    node.api.set(pod("shop", "web-0", "u1", "app", &labels));
    node.log("shop_web-0_u1", "app/0.log")
        .cri(TIME, Stream::Stdout, true, "known");
    node.log("shop_late-0_u2", "app/0.log")
        .cri(TIME, Stream::Stdout, true, "late");
    let agent = node.bench.start();
    node.wait(&["known"]);
    let awaiting = "tailrace_k8s_logs_awaiting_metadata{pipeline=\"pods\"} 1\n";
    until(
        || get(&agent.admin(), "/metrics").contains(awaiting),
        || agent.own_log(),
    );
    // Its pod lived a second: by the time it is reported, it is gone, and so is its log.
    let late = pod(
        "shop",
        "late-0",
        "u2",
        "app",
        &json!({"labels": {"app": "late"}}),
    );
    std::fs::remove_file(node.path("shop_late-0_u2", "app/0.log")).unwrap();
    node.api.set(late.clone());
    node.api.delete(late);
    let records = node.wait(&["known", "late"]);
    assert_eq!(said(&records["late"], "k8s.pod.label.app"), "late");
    assert!(resource(&records["late"], "tailrace.metadata_missing").is_none());
    assert!(agent.terminate().success());
}

#[test]
fn what_is_not_answered_in_time_goes_on_marked() {
    let node = Node::new("metadata_wait: 100ms", "SELECT * FROM logs");
    node.api.hold(true);
    node.log("shop_web-0_u1", "app/3.log")
        .cri(TIME, Stream::Stderr, true, "alone");
    let agent = node.bench.start();
    let alone = &node.wait(&["alone"])["alone"];
    assert_eq!(
        resource(alone, "tailrace.metadata_missing"),
        Some(Value::BoolValue(true))
    );
    assert_eq!(said(alone, "k8s.pod.name"), "web-0");
    assert_eq!(
        resource(alone, "k8s.container.restart_count"),
        Some(Value::IntValue(3))
    );
    let misses = "tailrace_k8s_metadata_misses_total{pipeline=\"pods\"} 1\n";
    assert!(get(&agent.admin(), "/metrics").contains(misses));
    assert!(agent.terminate().success());
}

#[test]
fn pods_opt_out_by_their_metadata() {
    let node = Node::new("pod_selector: app!=noise", "SELECT * FROM logs");
    for (name, uid, metadata) in [
        ("web-0", "u1", json!({})),
        (
            "quiet",
            "u2",
            json!({"annotations": {"tailrace.io/exclude": "true"}}),
        ),
        ("noise", "u3", json!({"labels": {"app": "noise"}})),
    ] {
        node.api.set(pod("shop", name, uid, "app", &metadata));
        let mut log = node.log(&format!("shop_{name}_{uid}"), "app/0.log");
        log.cri(TIME, Stream::Stdout, true, name);
    }
    let agent = node.bench.start();
    node.wait(&["web-0"]);
    let line = format!("{TIME} stdout F quiet\n").len() * 2;
    let skipped = format!(
        "tailrace_input_skipped_bytes_total{{pipeline=\"pods\",reason=\"excluded\"}} {line}\n"
    );
    until(
        || get(&agent.admin(), "/metrics").contains(&skipped),
        || agent.own_log(),
    );
    // What opted out comes in again from where it is.
    node.api.set(pod("shop", "quiet", "u2", "app", &json!({})));
    let mut log = node.log("shop_quiet_u2", "app/0.log");
    until(
        || {
            log.cri(TIME, Stream::Stdout, true, "no longer");
            node.collector
                .records()
                .iter()
                .any(|record| text(body(record)) == "no longer")
        },
        || agent.own_log(),
    );
    assert!(agent.terminate().success());
}

#[test]
fn queries_read_what_is_known_of_pods_pushed_down_or_not() {
    for sql in [
        r#"SELECT *, "k8s.pod.name" AS pod FROM logs WHERE "k8s.namespace.name" = 'shop' AND n > 1"#,
        r#"SELECT *, "k8s.pod.name" AS pod FROM logs WHERE ("k8s.namespace.name" = 'shop' OR n < 0) AND n + 0 > 1"#,
        r#"SELECT *, "k8s.pod.name" AS pod FROM logs WHERE "k8s.pod.label.app" LIKE 'w%' AND n IN (2, 3)"#,
    ] {
        let node = Node::new("labels: ['*']", sql);
        let mut logs = Vec::new();
        for (namespace, name, uid) in [("shop", "web-0", "u1"), ("other", "web-0", "u2")] {
            let app = if namespace == "shop" { "web" } else { "x" };
            let metadata = json!({"labels": {"app": app}});
            node.api.set(pod(namespace, name, uid, "app", &metadata));
            let log = node.log(&format!("{namespace}_{name}_{uid}"), "app/0.log");
            logs.push((namespace, log));
        }
        let agent = node.bench.start();
        let followed = || agent.own_log().matches("following file").count() == 2;
        until(followed, || agent.own_log());
        for (namespace, log) in &mut logs {
            for n in 0..4 {
                let line = format!(r#"{{"msg":"{namespace} {n}","n":{n}}}"#);
                let (head, tail) = line.split_at(7 + n);
                log.cri(TIME, Stream::Stdout, false, head);
                if n == 2 {
                    log.rotate();
                }
                log.cri(TIME, Stream::Stdout, true, tail);
            }
        }
        let records = node.wait(&["shop 2", "shop 3"]);
        let pod = crate::agent::attribute(&records["shop 2"], "pod");
        assert_eq!(text(pod), "web-0", "{sql}");
        assert!(agent.terminate().success());
        node.wait(&["shop 2", "shop 3"]);
    }
}

/// Full lines of a container's log.
fn lines(log: &mut Writer, lines: &[&str]) {
    for line in lines {
        log.cri(TIME, Stream::Stdout, true, line);
    }
}

#[test]
fn pods_choose_how_their_lines_are_read() {
    let node = Node::new("framing_from_annotations: true", "SELECT * FROM logs");
    let hostile = "\u{1b}[2J".repeat(20_000);
    for (name, uid, annotations) in [
        (
            "joined",
            "u1",
            json!({"tailrace.io/multiline": "java,start"}),
        ),
        (
            "own",
            "u2",
            // That of the container counts.
            json!({"tailrace.io/multiline": "none", "tailrace.io/multiline.app": "start:^#",
                   "tailrace.io/format": "raw"}),
        ),
        (
            "strict",
            "u3",
            json!({"tailrace.io/format.app": "json", "tailrace.io/format.other": "raw"}),
        ),
        (
            "hostile",
            "u4",
            json!({"tailrace.io/format": hostile, "tailrace.io/multiline": hostile}),
        ),
    ] {
        let metadata = json!({"annotations": annotations});
        node.api.set(pod("shop", name, uid, "app", &metadata));
    }
    let log = |name: &str, uid: &str| node.log(&format!("shop_{name}_{uid}"), "app/0.log");
    lines(&mut log("joined", "u1"), &["one", r#"{"msg":"two"}"#]);
    lines(
        &mut log("own", "u2"),
        &["#three", r#"{"msg":"four"}"#, "#five"],
    );
    lines(&mut log("strict", "u3"), &["six"]);
    lines(&mut log("hostile", "u4"), &["seven"]);
    let agent = node.bench.start();
    // The last one is complete when its log was quiet for a while.
    let bodies = [
        "#five",
        "#three\n{\"msg\":\"four\"}",
        "one",
        "seven",
        "six",
        "two",
    ];
    let records = node.wait(&bodies);
    let is_malformed = |body: &str| {
        let mut attributes = records[body].log.attributes.iter();
        attributes.any(|pair| pair.key == "tailrace.malformed")
    };
    assert!(is_malformed("six"), "text where JSON is promised");
    assert!(!is_malformed("one") && !is_malformed("seven"));

    let metrics = get(&agent.admin(), "/metrics");
    for (cause, count) in [("format", 1), ("multiline", 2)] {
        let metric = format!(
            "tailrace_k8s_invalid_annotations_total{{pipeline=\"pods\",cause=\"{cause}\"}} {count}\n"
        );
        assert!(metrics.contains(&metric), "{metrics}");
    }
    let own_log = agent.own_log();
    for text in [
        "tailrace.io/multiline",
        "joined",
        "hostile",
        "several of them",
    ] {
        assert!(own_log.contains(text), "{text} in {own_log}");
    }
    assert!(!own_log.contains('\u{1b}') && own_log.len() < 20_000);
    agent.kill();
}

#[test]
fn a_record_that_a_pod_joins_is_one_after_a_kill_in_the_middle() {
    // An open record waits for longer than the test takes.
    let options = "framing_from_annotations: true, multiline: {preset: [go], timeout: 60s}";
    let node = Node::new(options, "SELECT * FROM logs");
    let metadata = json!({"annotations": {"tailrace.io/multiline": "start:^#"}});
    node.api.set(pod("shop", "web-0", "u1", "app", &metadata));
    let mut log = node.log("shop_web-0_u1", "app/0.log");
    lines(&mut log, &["#one", "a"]);
    let agent = node.bench.start();
    let read = format!("{TIME} stdout F #one\n{TIME} stdout F a\n").len();
    let read = format!("tailrace_input_read_bytes_total{{pipeline=\"pods\"}} {read}\n");
    until(
        || get(&agent.admin(), "/metrics").contains(&read),
        || agent.own_log(),
    );
    agent.kill();
    assert!(node.collector.records().is_empty(), "its record is open");

    lines(&mut log, &["b", "#two", "c", "#three"]);
    let agent = node.bench.start();
    node.wait(&["#one\na\nb", "#two\nc"]);
    agent.kill();

    // The same again, where nobody tells what the pod said: nothing is lost, and the rest is framed as the input says.
    node.api
        .delete(pod("shop", "web-0", "u1", "app", &metadata));
    lines(&mut log, &["d", "e"]);
    let agent = node.bench.start();
    let are_apart = || {
        let bodies = node.collector.records().into_iter();
        let bodies: Vec<String> = bodies.map(|record| text(body(&record))).collect();
        ["#three", "d"]
            .iter()
            .all(|apart| bodies.iter().any(|body| body == apart))
    };
    until(are_apart, || agent.own_log());
    agent.kill();
}

#[test]
fn a_record_that_a_pod_joins_goes_on_in_the_next_file_and_ends_when_the_pod_says_so() {
    let options = "framing_from_annotations: true, multiline: {preset: [go], timeout: 60s}";
    let node = Node::new(options, "SELECT * FROM logs");
    let metadata = json!({"annotations": {"tailrace.io/multiline": "start:^#"}});
    node.api.set(pod("shop", "web-0", "u1", "app", &metadata));
    let mut log = node.log("shop_web-0_u1", "app/0.log");
    lines(&mut log, &["#one", "a", "#two"]);
    let agent = node.bench.start();
    node.wait(&["#one\na"]);
    log.rotate();
    lines(&mut log, &["b", "#three"]);
    node.wait(&["#one\na", "#two\nb"]);

    // The record that is open began in the file before; what follows is framed as the input says.
    log.rotate();
    node.api.set(pod("shop", "web-0", "u1", "app", &json!({})));
    let mut written = 5;
    let bodies = || -> Vec<String> {
        let records = node.collector.records().into_iter();
        records.map(|record| text(body(&record))).collect()
    };
    let are_apart = || {
        lines(&mut log, &["#c", "d"]);
        written += 2;
        bodies().iter().any(|body| body == "d")
    };
    until(are_apart, || agent.own_log());
    // All but the last line, which a stack trace may follow.
    let count = || {
        bodies()
            .iter()
            .map(|body| body.lines().count())
            .sum::<usize>()
    };
    until(
        || count() == written - 1,
        || format!("{written} {:?}", bodies()),
    );
    assert!(bodies().iter().any(|body| body.starts_with("#three")));
    agent.kill();
}

#[test]
fn what_a_pod_says_later_counts_for_the_lines_that_follow() {
    let node = Node::new(
        "framing_from_annotations: true, metadata_wait: 50ms",
        "SELECT * FROM logs",
    );
    node.api.hold(true);
    let mut log = node.log("shop_web-0_u1", "app/0.log");
    lines(&mut log, &["#a", "b"]);
    let agent = node.bench.start();
    node.wait(&["#a", "b"]);

    let metadata = json!({"annotations": {"tailrace.io/multiline": "start:^#"}});
    node.api.set(pod("shop", "web-0", "u1", "app", &metadata));
    node.api.hold(false);
    let mut written = 2;
    let has_joined = || {
        lines(&mut log, &["#c", "d"]);
        written += 2;
        let records = node.collector.records();
        records.iter().any(|record| text(body(record)) == "#c\nd")
    };
    until(has_joined, || agent.own_log());

    // And no more: what is open is given out, whatever its timeout.
    node.api.set(pod("shop", "web-0", "u1", "app", &json!({})));
    let is_apart = || {
        lines(&mut log, &["#e", "f"]);
        written += 2;
        let records = node.collector.records();
        records.iter().any(|record| text(body(record)) == "f")
    };
    until(is_apart, || agent.own_log());
    let is_complete = || {
        let records = node.collector.records().into_iter();
        let lines = records.map(|record| text(body(&record)).lines().count());
        lines.sum::<usize>() == written
    };
    until(is_complete, || agent.own_log());
    assert!(agent.terminate().success());
}

#[test]
fn a_record_goes_on_in_the_next_file() {
    let node = Node::new("metadata: path", "SELECT * FROM logs");
    let mut log = node.log("shop_web-0_u1", "app/0.log");
    log.cri(TIME, Stream::Stdout, false, "one ");
    log.cri(TIME, Stream::Stderr, true, "between");
    let agent = node.bench.start();
    node.wait(&["between"]);
    log.rotate();
    log.cri(TIME, Stream::Stderr, false, "also ");
    log.rotate();
    log.line("torn");
    log.cri(TIME, Stream::Stdout, true, "two");
    let ends = format!("{TIME} stderr P across\n{TIME} stderr F two\n");
    log.bytes(ends.as_bytes());
    let records = node.wait(&["also acrosstwo", "between", "one two", "torn"]);
    assert_eq!(said(&records["one two"], "service.name"), "web-0");
    // A kill in the middle: what is sent again is whole again.
    log.cri(TIME, Stream::Stdout, false, "three ");
    log.rotate();
    log.cri(TIME, Stream::Stderr, true, "last");
    node.collector.wait_records(5);
    agent.kill();
    let agent = node.bench.start();
    log.cri(TIME, Stream::Stdout, true, "four");
    let arrived = || {
        let records = node.collector.records();
        records
            .iter()
            .any(|record| text(body(record)) == "three four")
    };
    until(arrived, || agent.own_log());
    let bodies = node.collector.records();
    let bodies: Vec<String> = bodies.iter().map(|record| text(body(record))).collect();
    assert!(
        !bodies.iter().any(|body| body == "three " || body == "four"),
        "{bodies:?}"
    );
    assert!(agent.terminate().success());
}
