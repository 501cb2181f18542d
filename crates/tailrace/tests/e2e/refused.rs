//! Records that a server refuses: dead-lettered, accounted for, and sent again.

use std::collections::BTreeSet;

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use tailrace_testkit::{Answer, Collector, Gate, Record};

use crate::support::{Bench, append, get, tailrace, until};

fn lines(range: std::ops::Range<usize>) -> Vec<u8> {
    let line = |n| format!("{{\"msg\":\"line {n}\"}}\n").into_bytes();
    range.flat_map(line).collect()
}

fn body(record: &Record) -> String {
    let body = record.log.body.as_ref();
    match body.and_then(|body| body.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        other => panic!("not a string: {other:?}"),
    }
}

fn bodies(collector: &Collector) -> BTreeSet<String> {
    collector.records().iter().map(body).collect()
}

/// Refuses every request with one of these.
fn poison(collector: &Collector, poison: &'static [&'static str]) {
    let is_poison = |record: &Record| poison.contains(&body(record).as_str());
    collector.answer_if(
        move |records| records.iter().any(is_poison),
        Answer::status(400).message("cannot be"),
    );
}

fn entries(bench: &Bench) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(bench.path("data/dead-letter/app.ndjson"));
    let text = text.unwrap_or_default();
    let parse = |line| serde_json::from_str(line).unwrap();
    text.lines().map(parse).collect()
}

fn metric(address: &str, name: &str) -> u64 {
    let text = get(address, "/metrics");
    let line = text.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.rsplit(' ').next());
    value.map_or(0, |value| value.parse().unwrap())
}

fn free_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

#[test]
fn bad_records_of_a_quiet_output_hold_nobody() {
    let (bench, collector) = (Bench::new(), Collector::start());
    poison(&collector, &["line 3", "line 500", "line 997"]);
    let admin = free_address();
    let admin_yaml = format!("admin: {{listen: '{admin}'}}\n");
    bench.pipeline(&collector.endpoint(), "json", &admin_yaml);
    append(&bench.log("a.log"), &lines(0..1000));
    let agent = bench.start();
    agent.says("admin endpoint");
    collector.wait_records(997);
    let dead = "tailrace_output_dead_lettered_records_total";
    until(|| metric(&admin, dead) == 3, || get(&admin, "/metrics"));
    let delivered = "tailrace_output_delivered_records_total";
    assert_eq!(metric(&admin, delivered), 997);
    assert!(!agent.own_log().contains("it holds"), "{}", agent.own_log());
    assert_eq!(agent.terminate().code(), Some(0));
    assert_eq!(bodies(&collector).len(), 997);
    assert_eq!(collector.records().len(), 997);
    assert_eq!(entries(&bench).len(), 3);
}

/// A record that a server answers with 500: what is known of it is said at once, and its neighbours are counted.
#[test]
fn a_record_that_waits_for_evidence_is_told_and_its_neighbours_are_counted() {
    let (bench, collector) = (Bench::new(), Collector::start());
    let is_bad = |record: &Record| body(record) == "line 507";
    let answer = Answer::status(500).message("broken");
    collector.answer_if(move |records| records.iter().any(is_bad), answer);
    let admin = free_address();
    let more = format!("admin: {{listen: '{admin}'}}\nshutdown: {{grace: 100ms}}\n");
    bench.pipeline(&collector.endpoint(), "json", &more);
    append(&bench.log("a.log"), &lines(0..1000));
    let agent = bench.start();
    agent.says("the server refuses a request");
    let json = |path: &str| serde_json::from_str::<serde_json::Value>(&get(&admin, path)).unwrap();
    let ledger = || json("/api/v1/ledger")["pipelines"][0]["outputs"][0].clone();
    until(
        || ledger()["delivered_records"] == 999,
        || get(&admin, "/api/v1/ledger"),
    );
    let output = ledger();
    assert_eq!(output["in_flight_records"], 1, "{output}");
    agent.says("they wait until it has accepted a few more");
    let output = json("/api/v1/overview")["pipelines"][0]["outputs"][0].clone();
    assert_eq!(output["state"], "retrying", "{output}");
    assert!(
        output["last_error"].to_string().contains("broken"),
        "{output}"
    );
    assert!(output["retry_in_s"].as_f64().is_some(), "{output}");
    let reasons = json("/api/v1/reasons").to_string();
    assert!(
        reasons.contains("refused") && reasons.contains("broken"),
        "{reasons}"
    );
    assert!(get(&admin, "/healthz").contains("\"healthy\":true"));
    // The watermark waits for all of the batch.
    assert_eq!(agent.terminate().code(), Some(3));
}

#[test]
fn a_server_that_answers_in_json_is_believed_and_noted_once() {
    let (bench, collector) = (Bench::new(), Collector::start());
    let json = Answer::ok().header("content-type", "application/json");
    collector.always(json.body("{}"));
    let admin = free_address();
    let admin_yaml = format!("admin: {{listen: '{admin}'}}\n");
    bench.pipeline(&collector.endpoint(), "json", &admin_yaml);
    append(&bench.log("a.log"), &lines(0..10));
    let agent = bench.start();
    agent.says("admin endpoint");
    let delivered = "tailrace_output_delivered_records_total";
    until(
        || metric(&admin, delivered) == 10,
        || get(&admin, "/metrics"),
    );
    append(&bench.log("a.log"), &lines(10..20));
    until(
        || metric(&admin, delivered) == 20,
        || get(&admin, "/metrics"),
    );
    assert!(metric(&admin, "tailrace_output_odd_responses_total") >= 2);
    let warnings = agent.own_log().matches("no OTLP response").count();
    assert_eq!(warnings, 1, "{}", agent.own_log());
    assert_eq!(agent.terminate().code(), Some(0));
}

#[test]
fn a_poison_record_is_dead_lettered_and_its_neighbours_arrive_once() {
    let (bench, collector) = (Bench::new(), Collector::start());
    poison(&collector, &["line 7777"]);
    let admin = free_address();
    bench.pipeline(
        &collector.endpoint(),
        "json",
        &format!("admin: {{listen: '{admin}'}}\n"),
    );
    append(&bench.log("a.log"), &lines(0..10_000));
    let agent = bench.start();
    collector.wait_records(9_999);
    agent.says("it is in the dead-letter file");
    let dead = "tailrace_output_dead_lettered_records_total";
    until(|| metric(&admin, dead) == 1, || get(&admin, "/metrics"));
    let of = |name| metric(&admin, name);
    assert_eq!(of("tailrace_frame_records_total"), 10_000);
    assert_eq!(of("tailrace_output_delivered_records_total"), 9_999);
    assert_eq!(of("tailrace_output_in_flight_requests"), 0);
    assert_eq!(agent.terminate().code(), Some(0));

    // The entry says where the record came from.
    let found = entries(&bench);
    assert_eq!(found.len(), 1, "{found:?}");
    let entry = &found[0];
    assert_eq!(entry["output"], "otlp");
    assert!(entry["reason"].as_str().unwrap().ends_with("cannot be"));
    assert_eq!(entry["path"], bench.log("a.log").display().to_string());
    let bytes: (usize, usize) = serde_json::from_value(entry["bytes"].clone()).unwrap();
    let log = std::fs::read(bench.log("a.log")).unwrap();
    assert_eq!(log[bytes.0..bytes.1], *lines(7777..7778));

    // After a restart nothing is sent again: it was acked.
    append(&bench.log("a.log"), &lines(10_000..10_010));
    let agent = bench.start();
    collector.wait_records(10_009);
    assert_eq!(agent.terminate().code(), Some(0));
    assert_eq!(entries(&bench).len(), 1);
    assert_eq!(collector.records().len(), 10_009);
    assert_eq!(bodies(&collector).len(), 10_009);
}

#[test]
fn dead_letters_are_sent_again_when_the_server_takes_them() {
    let (bench, collector) = (Bench::new(), Collector::start());
    poison(&collector, &["line 3"]);
    let config = bench.pipeline(&collector.endpoint(), "json", "");
    append(&bench.log("a.log"), &lines(0..100));
    let agent = bench.start();
    until(|| entries(&bench).len() == 1, || agent.own_log());
    assert_eq!(agent.terminate().code(), Some(0));
    let replay = || {
        let mut command = tailrace();
        command.args(["replay", "--pipeline", "app", "-c"]);
        command.arg(&config).output().unwrap()
    };
    // Refused still: it says so and keeps them.
    let output = replay();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("0 accepted, 1 not accepted"), "{said}");
    assert_eq!(entries(&bench).len(), 1);

    collector.answer_all();
    let output = replay();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("1 accepted, 0 not accepted"), "{said}");
    assert_eq!(entries(&bench).len(), 0);
    let record = |text: &str| {
        let records = collector.records();
        records.into_iter().find(|record| body(record) == text)
    };
    let (sent, again) = (record("line 4").unwrap(), record("line 3").unwrap());
    assert_eq!(sent.log.attributes, again.log.attributes, "as it was");
}

#[test]
fn a_full_dead_letter_file_keeps_or_drops_as_configured() {
    for (on_full, says) in [
        ("hold", "is full"),
        ("drop", "the dead-letter file is full, so it is dropped"),
    ] {
        let (bench, collector) = (Bench::new(), Collector::start());
        poison(&collector, &["line 2"]);
        let admin = free_address();
        // What waits would hold up the end.
        let grace = if on_full == "drop" { "30s" } else { "100ms" };
        let more = format!(
            "    dead_letter: {{max_bytes: 64KiB, on_full: {on_full}}}\nadmin: {{listen: '{admin}'}}\n\
             shutdown: {{grace: {grace}}}\n"
        );
        bench.pipeline(&collector.endpoint(), "json", &more);
        std::fs::create_dir_all(bench.path("data/dead-letter")).unwrap();
        std::fs::write(
            bench.path("data/dead-letter/app.ndjson"),
            vec![b'\n'; 64 * 1024],
        )
        .unwrap();
        append(&bench.log("a.log"), &lines(0..10));
        let agent = bench.start();
        agent.says(says);
        collector.wait_records(9);
        let dropped = "tailrace_output_dropped_records_total{pipeline=\"app\",output=\"otlp\",reason=\"dead_letter_full\"}";
        let expected = u64::from(on_full == "drop");
        until(
            || metric(&admin, dropped) == expected,
            || get(&admin, "/metrics"),
        );
        // What waits stays for the next start.
        let code = if on_full == "drop" { 0 } else { 3 };
        assert_eq!(agent.terminate().code(), Some(code));
    }
}

#[test]
fn what_is_refused_is_dropped_only_where_the_config_says_so() {
    let (bench, collector) = (Bench::new(), Collector::start());
    collector.always(Answer::status(401));
    bench.config(&format!(
        "pipelines:\n  app:\n    input: {{type: file, include: ['$DIR/logs/*.log']}}\n    batch: \
         {{max_wait: 50ms}}\n    output: {{type: otlp, endpoint: {}, on_refused: drop}}\n",
        collector.endpoint()
    ));
    append(&bench.log("a.log"), &lines(0..10));
    let agent = bench.start();
    agent.says("records are dropped, as on_refused says");
    assert_eq!(agent.terminate().code(), Some(0));
    collector.always(Answer::ok());
    append(&bench.log("a.log"), &lines(10..11));
    let agent = bench.start();
    collector.wait_records(1);
    assert_eq!(agent.terminate().code(), Some(0));
    assert_eq!(bodies(&collector).len(), 1, "the others are acked");
}

#[test]
fn a_line_that_cannot_be_read_is_kept_and_one_that_a_crash_cut_off_is_not() {
    let (bench, collector) = (Bench::new(), Collector::start());
    let config = bench.pipeline(&collector.endpoint(), "json", "");
    let folder = bench.path("data/dead-letter");
    std::fs::create_dir_all(&folder).unwrap();
    let (typo, cut) = (
        r#"{"time":"","payload":"not base64!"}"#,
        r#"{"time":"2026-"#,
    );
    std::fs::write(
        folder.join("app.ndjson"),
        format!("{typo}\n{cut}\nby hand\n"),
    )
    .unwrap();
    let left = folder.join("renamed.ndjson");
    std::fs::write(&left, "").unwrap();
    let mut replay = tailrace();
    let replay = replay.args(["replay", "-c"]).arg(config).output().unwrap();
    assert_eq!(replay.status.code(), Some(1), "{replay:?}");
    let said = String::from_utf8(replay.stdout).unwrap();
    assert!(said.contains("0 accepted, 2 not accepted"), "{said}");
    assert!(
        said.contains(&format!("{}: left", left.display())),
        "{said}"
    );
    let text = std::fs::read_to_string(folder.join("app.ndjson")).unwrap();
    assert_eq!(text, format!("{typo}\nby hand\n"));
}

/// A replay that is killed between two records: the next one continues, and repeats at most the one in flight.
#[test]
fn a_replay_that_is_killed_continues() {
    const BAD: [&str; 20] = [
        "line 1", "line 3", "line 5", "line 7", "line 9", "line 11", "line 13", "line 15",
        "line 17", "line 19", "line 21", "line 23", "line 25", "line 27", "line 29", "line 31",
        "line 33", "line 35", "line 37", "line 39",
    ];
    let (bench, collector) = (Bench::new(), Collector::start());
    poison(&collector, &BAD);
    let config = bench.pipeline(&collector.endpoint(), "json", "");
    append(&bench.log("a.log"), &lines(0..100));
    let agent = bench.start();
    until(|| entries(&bench).len() == BAD.len(), || agent.own_log());
    assert_eq!(agent.terminate().code(), Some(0));
    collector.answer_all();
    let gate = Gate::new();
    let first = (0..10).map(|_| Answer::ok());
    collector.script(first.chain([Answer::ok().after(&gate)]));
    let before = collector.records().len();

    let mut killed = tailrace();
    killed.args(["replay", "-c"]).arg(&config);
    let mut killed = killed.spawn().unwrap();
    collector.wait_records(before + 10);
    killed.kill().unwrap();
    killed.wait().unwrap();
    gate.open();

    let mut replay = tailrace();
    let output = replay.args(["replay", "-c"]).arg(&config).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(entries(&bench).len(), 0);
    let sent: Vec<String> = collector.records()[before..].iter().map(body).collect();
    for line in BAD {
        assert!(sent.iter().any(|sent| sent == line), "{line} is lost");
    }
    assert!(sent.len() <= BAD.len() + 1, "{sent:?}");
}
