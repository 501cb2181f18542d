//! The agent against the real OpenTelemetry Collector: what its file exporter wrote equals, field
//! by field, what `oracle` computes from the lines. `cargo xtask test` builds the collector and
//! names it in `TAILRACE_OTELCOL`; without it these tests say that they were skipped, and fail in
//! CI.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tailrace::generate::{Generator, Shape};

use crate::oracle::{self, LogRecord};
use crate::support::{Bench, append, data, until};

/// A running collector that writes what it receives to a file.
struct RealCollector {
    child: Child,
    received: PathBuf,
    /// The metrics that it received.
    metrics: PathBuf,
    http: u16,
    grpc: u16,
}

/// Lines of the large run; a million by `TAILRACE_E2E_LINES=1000000`.
fn lines_wanted() -> u64 {
    std::env::var("TAILRACE_E2E_LINES").map_or(100_000, |lines| lines.parse().unwrap())
}

impl RealCollector {
    fn start(bench: &Bench) -> Option<Self> {
        let Some(program) = std::env::var_os("TAILRACE_OTELCOL") else {
            assert!(
                std::env::var_os("CI").is_none(),
                "TAILRACE_OTELCOL must be set in CI"
            );
            eprintln!("skipped: TAILRACE_OTELCOL names no collector; run `cargo xtask test`");
            return None;
        };
        let [http, grpc] = free_ports();
        let received = bench.path("received.json");
        let metrics = bench.path("received-metrics.json");
        let config = bench.path("otelcol.yaml");
        let text = format!(
            "receivers:\n  otlp:\n    protocols:\n      http: {{endpoint: '127.0.0.1:{http}'}}\n      \
             grpc: {{endpoint: '127.0.0.1:{grpc}'}}\nexporters:\n  file: {{path: '{}', \
             flush_interval: 100ms}}\n  file/metrics: {{path: '{}', flush_interval: 100ms}}\nservice:\n  telemetry: {{metrics: {{level: none}}}}\n  \
             pipelines:\n    logs: {{receivers: [otlp], exporters: [file]}}\n    metrics: {{receivers: [otlp], exporters: \
             [file/metrics]}}\n",
            received.display(),
            metrics.display()
        );
        fs::write(&config, text).unwrap();
        let mut child = Command::new(program)
            .arg("--config")
            .arg(&config)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let ready = said
            .by_ref()
            .any(|line| line.is_ok_and(|line| line.contains("Everything is ready")));
        assert!(ready, "the collector did not start");
        // Keep its pipe empty.
        std::thread::spawn(move || said.for_each(drop));
        Some(Self {
            child,
            received,
            metrics,
            http,
            grpc,
        })
    }

    /// Ends the collector and gives what it received.
    fn finish(mut self) -> Vec<LogRecord> {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
        let lines = BufReader::new(File::open(&self.received).unwrap()).lines();
        lines
            .flat_map(|line| oracle::arrived(&line.unwrap()))
            .collect()
    }
}

impl Drop for RealCollector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_ports() -> [u16; 2] {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

/// How the agent reaches the collector.
#[derive(Clone, Copy)]
enum Protocol {
    Http,
    Grpc,
}

/// Sends `lines` through the agent with a WHERE, and compares what arrived with what `keep` says.
fn check(
    file: &str,
    lines: &[u8],
    protocol: Protocol,
    query: &str,
    keep: impl Fn(&str) -> bool,
    key: impl Fn(&LogRecord) -> String,
) {
    let bench = Bench::new();
    let Some(collector) = RealCollector::start(&bench) else {
        return;
    };
    let (port, name) = match protocol {
        Protocol::Http => (collector.http, "http/protobuf"),
        Protocol::Grpc => (collector.grpc, "grpc"),
    };
    bench.pipeline(
        &format!("http://127.0.0.1:{port}"),
        "json",
        &format!(
            "      protocol: {name}\n    transform: {query}\nadmin: {{listen: '127.0.0.1:0'}}\n"
        ),
    );
    append(&bench.log(file), lines);
    let text = std::str::from_utf8(lines).unwrap();
    let mut expected: BTreeMap<String, LogRecord> = BTreeMap::new();
    for line in text.lines().filter(|line| keep(line)) {
        let record = oracle::expected(line, file);
        assert!(
            expected.insert(key(&record), record).is_none(),
            "keys are unique: {line}"
        );
    }
    assert!(!expected.is_empty());
    let agent = bench.start();
    let (records, kept) = (text.lines().count(), expected.len());
    wait_resolved(&bench, &agent, records as u64);
    assert_eq!(agent.terminate().code(), Some(0));
    let arrived = collector.finish();
    assert_eq!(arrived.len(), kept, "none missing, none twice");
    for record in arrived {
        let key = key(&record);
        let expected = expected
            .remove(&key)
            .unwrap_or_else(|| panic!("not expected or twice: {key}"));
        assert_eq!(record, expected);
    }
    assert!(expected.is_empty());
}

/// Waits until every record has its outcome, as the agent's own metrics report it.
fn wait_resolved(bench: &Bench, agent: &crate::support::Agent, records: u64) {
    let address = agent.admin();
    let sum = || -> u64 {
        let metrics = crate::support::get(&address, "/metrics");
        let names = [
            "tailrace_transform_filtered_records_total",
            "tailrace_output_delivered_records_total",
        ];
        let value = |line: &str| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
        let ours = |line: &&str| names.iter().any(|name| line.starts_with(name));
        metrics.lines().filter(ours).map(value).sum()
    };
    until(
        || sum() >= records,
        || format!("{} of {records} resolved in {:?}", sum(), bench.path("")),
    );
    assert_eq!(sum(), records);
}

/// Mixed lines that can be distinguished: each has a stream and a number.
fn mixed(lines: u64) -> Vec<u8> {
    let mut generator = Generator::new(Shape::Mixed, 42).with_accounting("e2e");
    let mut text = Vec::new();
    (0..lines).for_each(|_| generator.next_line(&mut text));
    text
}

fn sequence(record: &LogRecord) -> String {
    record.attributes["seq"]["intValue"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn is_level(line: &str, level: &str) -> bool {
    let members = oracle::members(line);
    members
        .get("level")
        .is_some_and(|value| value.get() == format!("\"{level}\""))
}

#[test]
fn mixed_lines_arrive_over_http_field_by_field() {
    let query = "SELECT * FROM logs WHERE level <> 'INFO'";
    let has_level = |line: &str| oracle::members(line).contains_key("level");
    let keep = |line: &str| has_level(line) && !is_level(line, "INFO");
    check(
        "mixed.log",
        &mixed(lines_wanted()),
        Protocol::Http,
        query,
        keep,
        sequence,
    );
}

#[test]
fn mixed_lines_arrive_over_grpc_field_by_field() {
    let query = "SELECT * FROM logs WHERE level = 'ERROR'";
    let keep = |line: &str| is_level(line, "ERROR");
    check(
        "mixed.log",
        &mixed(lines_wanted()),
        Protocol::Grpc,
        query,
        keep,
        sequence,
    );
}

#[test]
fn nginx_status_documents_arrive_over_both_protocols() {
    let Some(lines) = data("nginxplus.ndjson") else {
        return;
    };
    let query = "SELECT * FROM logs WHERE connections->>'active' <> '1'";
    let keep = |line: &str| {
        let connections = &oracle::members(line)["connections"];
        oracle::members(connections.get())["active"].get() != "1"
    };
    let key =
        |record: &LogRecord| format!("{}/{:?}", record.time_ns, record.attributes["requests"]);
    for protocol in [Protocol::Http, Protocol::Grpc] {
        check("nginxplus.log", &lines, protocol, query, keep, key);
    }
}

#[test]
fn the_agents_own_logs_and_metrics_arrive_over_both_protocols() {
    for (protocol, name) in [(Protocol::Http, "http/protobuf"), (Protocol::Grpc, "grpc")] {
        let bench = Bench::new();
        let Some(collector) = RealCollector::start(&bench) else {
            return;
        };
        let port = match protocol {
            Protocol::Http => collector.http,
            Protocol::Grpc => collector.grpc,
        };
        bench.pipeline(
            &format!("http://127.0.0.1:{port}"),
            "json",
            &format!(
                "      protocol: {name}\nadmin: {{listen: '127.0.0.1:0'}}\ntelemetry: {{output: otlp, logs: info, \
                 metrics_interval: 1s}}\n"
            ),
        );
        let agent = bench.start();
        let (address, metrics) = (agent.admin(), collector.metrics.clone());
        let accepted = |signal: &str| {
            let scraped = crate::support::get(&address, "/metrics");
            let name = "tailrace_telemetry_requests_total";
            let none = format!("{name}{{signal=\"{signal}\",result=\"success\"}} 0");
            scraped.contains(name) && !scraped.contains(&none)
        };
        until(
            || accepted("logs") && accepted("metrics"),
            || agent.own_log(),
        );
        let log = agent.log_path();
        assert_eq!(agent.terminate().code(), Some(0));
        let bodies: Vec<String> = collector
            .finish()
            .iter()
            .map(|record| record.body["stringValue"].as_str().unwrap().to_owned())
            .collect();
        assert!(bodies.iter().any(|body| body == "running"), "{bodies:?}");
        let received = fs::read_to_string(metrics).unwrap();
        for part in [
            "\"name\":\"tailrace_queue_size_bytes\"",
            "\"name\":\"tailrace_output_request_duration_seconds\",\"description\":\"time of one attempt",
            "\"name\":\"tailrace_build_info\"",
            "\"explicitBounds\":[",
            "\"isMonotonic\":true",
        ] {
            assert!(received.contains(part), "{part}: {received}");
        }
        let log = fs::read_to_string(log).unwrap();
        assert!(
            !log.contains("cannot be sent") && !log.contains("in part"),
            "{log}"
        );
    }
}

#[test]
fn text_logs_arrive_complete_as_raw_bodies() {
    for name in [
        "Apache_2k.log",
        "OpenSSH_2k.log",
        "HDFS_2k.log",
        "Hadoop_2k.log",
    ] {
        let Some(lines) = data(name) else { return };
        let bench = Bench::new();
        let Some(collector) = RealCollector::start(&bench) else {
            return;
        };
        let endpoint = format!("http://127.0.0.1:{}", collector.http);
        bench.pipeline(&endpoint, "auto", "admin: {listen: '127.0.0.1:0'}\n");
        append(&bench.log(name), &lines);
        if !lines.ends_with(b"\n") {
            append(&bench.log(name), b"\n");
        }
        let text = String::from_utf8_lossy(&lines);
        let expected: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        let agent = bench.start();
        wait_resolved(&bench, &agent, expected.len() as u64);
        assert_eq!(agent.terminate().code(), Some(0));
        let arrived = collector.finish();
        let bodies: Vec<&str> = arrived
            .iter()
            .map(|record| record.body["stringValue"].as_str().unwrap())
            .collect();
        // Requests may overtake one another; lines that repeat must repeat as often.
        let sorted = |mut lines: Vec<&str>| {
            lines.sort_unstable();
            lines.into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(sorted(bodies), sorted(expected), "{name}");
    }
}
