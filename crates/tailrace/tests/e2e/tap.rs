//! Taps of a running agent: what they show, who may see it, and that none of them stops a pipeline.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Agent, Bench, append, get, post, request, tailrace, until};

/// A config of one pipeline with this query, whose output keeps nothing.
fn config(bench: &Bench, query: &str, more: &str) -> PathBuf {
    bench.config(&format!(
        "pipelines:\n  app:\n    input: {{type: file, include: ['$DIR/logs/*.log'], format: json}}\n    \
         batch: {{max_wait: 50ms}}\n    transform: \"{query}\"\n    output: {{type: discard}}\n{more}"
    ))
}

const ADMIN: &str = "admin: {listen: '127.0.0.1:0'}\n";

/// Writes the same lines again and again until it is dropped.
struct Feeder {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Feeder {
    fn start(path: &Path, lines: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (path, lines, stopped) = (path.to_owned(), lines.to_owned(), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                append(&path, lines.as_bytes());
                std::thread::sleep(Duration::from_millis(20)); // tidy: an application that logs
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Feeder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || !matches!(ended, Some(Err(_))));
    }
}

/// An agent that passes every record and can be tapped, and what writes to the file that it reads.
fn fed(bench: &Bench) -> (Agent, Feeder) {
    config(bench, "SELECT * FROM logs", "");
    let agent = bench.start();
    until(|| is_tapped(bench), || agent.own_log());
    let feeder = Feeder::start(&bench.log("a.log"), LINES);
    (agent, feeder)
}

/// Runs `tailrace tap` to its end.
fn tap(bench: &Bench, args: &[&str]) -> Output {
    let mut command = tailrace();
    command.arg("tap").arg("--data-dir").arg(bench.path("data"));
    command.args(args).output().unwrap()
}

/// The records that it prints.
fn tapped(bench: &Bench, args: &[&str]) -> Vec<Value> {
    let output = tap(bench, args);
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{args:?}: {err}");
    let parsed = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
    out.lines().map(parsed).collect()
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

/// A client of the socket, and the first line that it was answered.
fn connect(bench: &Bench, request: &Value) -> (BufReader<UnixStream>, Value) {
    let mut stream = UnixStream::connect(bench.path("data/tap.sock")).unwrap();
    // Who refuses a client does not read.
    let _ = writeln!(stream, "{request}");
    let mut client = BufReader::new(stream);
    let first = next(&mut client);
    (client, first)
}

fn next(client: &mut BufReader<UnixStream>) -> Value {
    let mut line = String::new();
    client.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or(Value::Null)
}

/// Whether the agent listens on its socket. It is a file a moment before.
fn is_tapped(bench: &Bench) -> bool {
    let path = bench.path("data/tap.sock");
    let sockets = std::fs::read_to_string("/proc/net/unix").unwrap();
    // The fourth field is `__SO_ACCEPTCON` of a socket that listens.
    let listens = |line: &str| line.split_whitespace().nth(3) == Some("00010000");
    let path = path.to_str().unwrap();
    sockets
        .lines()
        .any(|line| line.ends_with(path) && listens(line))
}

fn records(agent: &Agent) -> (u64, u64) {
    let ledger: Value = serde_json::from_str(&get(&agent.admin(), "/api/v1/ledger")).unwrap();
    let pipeline = &ledger["pipelines"][0];
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    (
        count(&pipeline["records"]),
        count(&pipeline["outputs"][0]["delivered_records"]),
    )
}

const LINES: &str = "{\"level\":\"ERROR\",\"msg\":\"bad\",\"n\":1}\n{\"level\":\"INFO\",\"msg\":\"good\",\"n\":2}\n\
                     {\"level\":\"ERROR\",\"n\":x}\n";

#[test]
fn it_shows_what_becomes_of_records() {
    let bench = Bench::new();
    config(&bench, "SELECT msg, n FROM logs WHERE level = 'ERROR'", "");
    let agent = bench.start();
    agent.says("running");
    let _feeder = Feeder::start(&bench.log("a.log"), LINES);

    for entry in tapped(&bench, &["-n", "6"]) {
        assert_eq!(entry["pipeline"], "app");
        assert!(
            entry["source"].as_str().unwrap().ends_with("/logs/a.log"),
            "{entry}"
        );
        assert!(entry["raw"].as_str().unwrap().contains("ERROR"), "{entry}");
        assert_eq!(entry["rows"].as_array().unwrap().len(), 1, "{entry}");
    }
    let all = tapped(&bench, &["app", "--verdict", "-n", "12"]);
    let of = |verdict: &str| {
        all.iter()
            .find(|entry| entry["verdict"] == verdict)
            .unwrap()
    };
    assert_eq!(of("kept")["rows"], json!([{"msg": "bad", "n": 1}]));
    assert_eq!(
        of("filtered")["reason"],
        "`level = 'ERROR'` is false: level = \"INFO\""
    );
    assert!(
        of("malformed")["reason"]
            .as_str()
            .unwrap()
            .starts_with("not JSON")
    );

    let raw = tapped(&bench, &["--stage", "input", "-n", "12"]);
    assert!(
        raw.iter()
            .any(|entry| entry["raw"].as_str().unwrap().contains("INFO"))
    );
    assert!(raw.iter().all(|entry| entry.get("rows").is_none()));
    let otlp = tapped(
        &bench,
        &["--stage", "output", "--where", "n = 1", "-n", "3"],
    );
    for entry in otlp {
        let record = &entry["rows"][0]["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0];
        assert_eq!(record["body"]["stringValue"], "bad", "{entry}");
    }
    let filtered = [
        "--where",
        "level <> 'ERROR' -- others",
        "--verdict",
        "-n",
        "4",
        "-o",
        "text",
    ];
    let (out, err) = texts(&tap(&bench, &filtered));
    assert_eq!(out.lines().count(), 4, "{out}");
    assert!(
        out.lines()
            .all(|line| line.contains("a.log filtered") && line.contains("is false")),
        "{out}"
    );
    assert!(err.contains("4 records"), "{err}");
}

#[test]
fn what_cannot_be_tapped_is_said() {
    let bench = Bench::new();
    let path = config(&bench, "SELECT * FROM logs", "");
    let (_, err) = texts(&tap(&bench, &[]));
    assert!(
        err.contains("no agent runs") && err.contains("tailrace run"),
        "{err}"
    );
    let agent = bench.start();
    agent.says("running");
    until(|| is_tapped(&bench), || agent.own_log());
    let refused = |args: &[&str], expected: &[&str]| {
        let output = tap(&bench, args);
        let (out, err) = texts(&output);
        assert_eq!((output.status.code(), out.as_str()), (Some(1), ""), "{err}");
        assert!(
            expected.iter().all(|text| err.contains(text)),
            "{expected:?}: {err}"
        );
    };
    refused(
        &["--where", "lenght(msg) > 3"],
        &["lenght(msg) > 3\n  ^^^^^^\n", "length", "pipeline app"],
    );
    refused(&["--where", ""], &["the condition is empty"]);
    refused(
        &["--where", &format!("n = 1{}", " ".repeat(69_000))],
        &["too long (69005 bytes, at most 16384)"],
    );
    let (_, answer) = connect(&bench, &json!({"where": "x".repeat(20_000)}));
    assert!(
        answer
            .to_string()
            .contains("too long (20000 bytes, at most 16384)"),
        "{answer}"
    );
    let (_, answer) = connect(&bench, &json!({"where": "x".repeat(200_000)}));
    assert!(
        answer.to_string().contains("the request is too long"),
        "{answer}"
    );
    refused(
        &["--where", "n = 1 UNION ALL SELECT 1 AS is_wanted FROM logs"],
        &["more than a condition"],
    );
    refused(&["ap"], &["no pipeline `ap`", "app"]);
    // The config names the data directory, too.
    let mut command = tailrace();
    command.args(["tap", "--where", ")", "-c"]).arg(&path);
    let (_, err) = texts(&command.output().unwrap());
    assert!(err.contains("--where"), "{err}");
    assert!(agent.terminate().success());
    assert!(!bench.path("data/tap.sock").exists());
    let (_, err) = texts(&tap(&bench, &[]));
    assert!(err.contains("no agent runs"), "{err}");
}

#[test]
fn a_condition_that_costs_too_much_ends_its_own_tap_only() {
    let bench = Bench::new();
    let (agent, _feeder) = fed(&bench);
    let expensive = "levenshtein(repeat(msg,2000),repeat(reverse(msg),2000)) < 0";
    let (mut costly, first) = connect(&bench, &json!({"where": expensive}));
    assert_eq!(first, json!({"tapping": true}));
    // Others are served beside it.
    assert_eq!(tapped(&bench, &["-n", "1", "--where", "n > 0"]).len(), 1);
    let (_, err) = texts(&tap(&bench, &["--where", "n >"]));
    assert!(err.contains("--where"), "{err}");
    let ended = loop {
        let line = next(&mut costly);
        if line.get("not_sampled").is_none() {
            break line.to_string();
        }
    };
    assert!(
        ended.contains("costs too much") && ended.contains("levenshtein(repeat"),
        "{ended}"
    );
    assert_eq!(tapped(&bench, &["-n", "1", "--where", "n > 0"]).len(), 1);
    assert!(agent.terminate().success());
}

#[test]
fn a_condition_that_no_record_meets_is_said_to_be_so() {
    let bench = Bench::new();
    let (agent, _feeder) = fed(&bench);
    let mut command = tailrace();
    command.arg("tap").arg("--data-dir").arg(bench.path("data"));
    command.args(["--where", "n > 100"]).stderr(Stdio::piped());
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        line.starts_with("no record matched yet (") && line.contains("seen"),
        "{line}"
    );
    assert!(agent.terminate().success());
}

#[test]
fn its_own_reader_may_stop_reading() {
    let bench = Bench::new();
    let (_agent, _feeder) = fed(&bench);
    let mut command = tailrace();
    command.arg("tap").arg("--data-dir").arg(bench.path("data"));
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.contains("\"raw\""), "{line}");
    let mut err = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    assert!(child.wait().unwrap().success() && err.is_empty(), "{err}");
}

#[test]
fn clients_that_never_read_stop_nothing_and_make_room() {
    const RECORDS: u64 = 200_000;
    let bench = Bench::new();
    config(&bench, "SELECT * FROM logs", ADMIN);
    let agent = bench.start();
    until(|| is_tapped(&bench), || agent.own_log());
    let request = json!({"stage": "input"});
    let silent: Vec<_> = (0..4).map(|_| connect(&bench, &request)).collect();
    assert!(silent.iter().all(|(_, first)| first["tapping"] == true));
    let refused = connect(&bench, &request).1;
    assert!(
        refused["error"].as_str().unwrap().contains("4 clients"),
        "{refused}"
    );

    let line = |n| format!("{{\"n\":{n},\"msg\":\"a line of the log\"}}\n");
    append(
        &bench.log("many.log"),
        (0..RECORDS).map(line).collect::<String>().as_bytes(),
    );
    // Until the sockets are full and one of the clients is known not to read.
    let large = format!("{{\"msg\":\"{}\"}}\n", "x".repeat(20_000));
    let feeder = Feeder::start(&bench.log("large.log"), &large);
    let mut reading = None;
    let has_room = || {
        let (client, first) = connect(&bench, &request);
        reading = (first["tapping"] == true).then_some(client);
        reading.is_some()
    };
    until(has_room, || agent.own_log());
    let mut client = reading.unwrap();
    let entries = (0..10)
        .filter(|_| next(&mut client).get("raw").is_some())
        .count();
    assert!(entries > 0);
    // One of the others has lost its place.
    drop(feeder);
    let all_delivered = || {
        let (records, delivered) = records(&agent);
        records >= RECORDS && delivered == records
    };
    until(all_delivered, || format!("{:?}", records(&agent)));
    drop(client);
    assert!(agent.terminate().success());
    // Each has what was written before it stopped to be sampled.
    for (mut client, _) in silent {
        let mut rest = String::new();
        client.read_to_string(&mut rest).unwrap();
        assert!(rest.contains("\"raw\""));
    }
}

#[test]
fn it_works_after_kill_9_and_across_a_reload() {
    let bench = Bench::new();
    config(&bench, "SELECT n FROM logs", ADMIN);
    let agent = bench.start();
    until(|| is_tapped(&bench), || agent.own_log());
    agent.kill();
    assert!(bench.path("data/tap.sock").exists());
    let agent = bench.start();
    agent.admin();
    let (mut client, first) = connect(&bench, &json!({"where": "n = 1"}));
    assert_eq!(first["tapping"], true);
    let _feeder = Feeder::start(&bench.log("a.log"), LINES);
    let mut rows = move || loop {
        let entry = next(&mut client);
        assert_ne!(entry, Value::Null);
        if entry.get("rows").is_some() {
            return entry["rows"].clone();
        }
    };
    assert_eq!(rows(), json!([{"n": 1}]));
    config(&bench, "SELECT n + 1 AS m FROM logs", ADMIN);
    assert_eq!(post(&agent.admin(), "/-/reload").0, 200);
    until(|| rows() == json!([{"m": 2}]), || agent.own_log());
}

#[test]
fn hostile_records_are_plain_and_short() {
    let bench = Bench::new();
    config(&bench, "SELECT * FROM logs", "");
    let agent = bench.start();
    agent.says("running");
    let steer = "\u{1b}]0;x\u{7}\u{9b}2J\u{202e}\u{e0041}";
    let lines = format!(
        "{{\"k{steer}\":\"{steer}\"}}\n{{\"long\":\"{}\"}}\n",
        "ä".repeat(150_000)
    );
    let _feeder = Feeder::start(&bench.log(&format!("a{steer}.log")), &lines);
    for how in ["text", "jsonl"] {
        let (out, _) = texts(&tap(&bench, &["--verdict", "-n", "6", "-o", how]));
        let is_plain = |c: char| c == '\n' || !tailrace_config::is_unsafe(c);
        assert!(out.chars().all(is_plain), "{how}");
        assert!(out.contains("u{1b}") || out.contains("u001b"), "{how}");
    }
    let long = tapped(&bench, &["--where", "long IS NOT NULL", "-n", "1"]);
    assert_eq!(long[0]["raw_bytes"], 300_011);
    assert!(long[0]["raw"].as_str().unwrap().len() <= 65_536);
    assert!(long[0]["rows"][0]["bytes"].as_u64().unwrap() > 300_000);
}

#[test]
fn the_socket_is_for_the_agents_user_and_never_keeps_it_from_starting() {
    let bench = Bench::new();
    let path = config(&bench, "SELECT * FROM logs", "");
    let agent = bench.start();
    until(|| is_tapped(&bench), || agent.own_log());
    let meta = fs::symlink_metadata(bench.path("data/tap.sock")).unwrap();
    agent.says("running");
    assert_eq!(meta.permissions().mode() & 0o7777, 0o600);
    assert!(agent.terminate().success());
    // Something else has its name.
    fs::write(bench.path("victim"), "precious").unwrap();
    std::os::unix::fs::symlink(bench.path("victim"), bench.path("data/tap.sock")).unwrap();
    let agent = bench.start();
    agent.says("that is no socket is at this path");
    assert!(agent.terminate().success());
    assert_eq!(fs::read(bench.path("victim")).unwrap(), b"precious");
    let long = bench.path(&"d".repeat(120));
    let agent = bench.start_args(&["--data-dir", long.to_str().unwrap()], &path);
    agent.says("the path of a socket at most 107");
    assert!(agent.terminate().success());
}

#[test]
fn a_client_that_says_nonsense_is_answered() {
    let bench = Bench::new();
    config(&bench, "SELECT * FROM logs", "");
    let agent = bench.start();
    until(|| is_tapped(&bench), || agent.own_log());
    for (asked, expected) in [
        (json!([1]), "JSON object"),
        (json!({"stage": "x"}), "`stage`"),
        (json!({"where": "x".repeat(30_000)}), "too long"),
        (json!({"where": "x".repeat(300_000)}), "too long"),
    ] {
        let (_, first) = connect(&bench, &asked);
        assert!(
            first["error"]
                .as_str()
                .is_some_and(|text| text.contains(expected)),
            "{first}"
        );
    }
    // One that leaves at once, and one that asks and leaves.
    drop(UnixStream::connect(bench.path("data/tap.sock")).unwrap());
    drop(connect(&bench, &json!({})));
    assert_eq!(connect(&bench, &json!({})).1["tapping"], true);
}

#[test]
fn the_admin_endpoint_shows_samples_to_whoever_may_see_records() {
    let bench = Bench::new();
    config(
        &bench,
        "SELECT msg, n FROM logs WHERE level = 'ERROR'",
        ADMIN,
    );
    let agent = bench.start();
    let (status, body) = request("GET", &agent.admin(), "/api/v1/tap");
    assert_eq!(status, 403, "{body}");
    assert!(body.contains("admin.examples"), "{body}");
    drop(agent);
    // Over a socket of its own user's it may be asked.
    config(
        &bench,
        "SELECT * FROM logs",
        "admin: {listen: 'unix:$DIR/admin.sock'}\n",
    );
    let agent = bench.start();
    agent.says("admin endpoint");
    let mut stream = UnixStream::connect(bench.path("admin.sock")).unwrap();
    write!(
        stream,
        "GET /api/v1/tap HTTP/1.1\r\nhost: localhost\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    drop(agent);
    config(
        &bench,
        "SELECT msg, n FROM logs WHERE level = 'ERROR'",
        "admin: {listen: '127.0.0.1:0', examples: true}\n",
    );
    let agent = bench.start();
    let _feeder = Feeder::start(&bench.log("a.log"), LINES);
    let ask = |path: &str| {
        let (status, body) = request("GET", &agent.admin(), path);
        let lines: Vec<Value> = body
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        (status, lines)
    };
    let mut lines = Vec::new();
    let has_all = || {
        lines.extend(ask("/api/v1/tap?pipeline=app&stage=transform&where=&n=10").1);
        let has = |verdict: &str| lines.iter().any(|line| line["verdict"] == verdict);
        has("kept") && has("filtered") && has("malformed")
    };
    until(has_all, || agent.own_log());
    let kept = lines.iter().find(|line| line["verdict"] == "kept").unwrap();
    assert_eq!(kept["rows"], json!([{"msg": "bad", "n": 1}]));
    let of_two = || {
        let (status, lines) = ask("/api/v1/tap?where=n%20%3D%202&n=2");
        assert!(status == 200 && lines.len() <= 2, "{lines:?}");
        assert!(
            lines.iter().all(|line| line["verdict"] == "filtered"),
            "{lines:?}"
        );
        !lines.is_empty()
    };
    until(of_two, || agent.own_log());
    for (path, expected) in [
        ("where=lenght(n)%20%3E%201", "line 1, column 1"),
        ("pipeline=x", "no pipeline `x`"),
        ("n=x", "`n`"),
    ] {
        let (status, body) = request("GET", &agent.admin(), &format!("/api/v1/tap?{path}"));
        assert!(status == 400 && body.contains(expected), "{status} {body}");
    }
}

#[test]
fn the_page_works() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tap.md");
    let page = fs::read_to_string(page).unwrap();
    let blocks = |fence: &str| {
        let fence = format!("```{fence}\n");
        let rest = page.split(&fence).skip(1);
        let blocks: Vec<&str> = rest.filter_map(|rest| rest.split("```").next()).collect();
        blocks.concat()
    };
    let dir = tempfile::tempdir().unwrap();
    fs::write(
        dir.path().join("tailrace.yaml"),
        blocks("yaml tailrace.yaml"),
    )
    .unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_tailrace"), dir.path().join("tailrace"))
        .unwrap();
    let script = format!(
        "PATH=\"$PWD:$PATH\"; trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{}",
        blocks("sh")
    );
    let mut command = std::process::Command::new("timeout");
    command.args([
        "--kill-after=10",
        "120",
        "bash",
        "-euo",
        "pipefail",
        "-c",
        &script,
    ]);
    let output = command.current_dir(dir.path()).output().unwrap();
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{out}\n{err}");
    assert_eq!(
        out.lines().filter(|line| line.contains("\"raw\"")).count(),
        13,
        "{out}"
    );
}
