//! Records at which the agent panics, or its process dies: dead-lettered and accounted for, and all others arrive.

use std::collections::BTreeSet;

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use serde_json::Value as Json;
use tailrace_testkit::Collector;

use crate::support::{Bench, append, get, tailrace, until};

fn lines(range: std::ops::Range<usize>) -> Vec<u8> {
    let line = |n| format!("{{\"msg\":\"line {n}.\"}}\n").into_bytes();
    range.flat_map(line).collect()
}

/// The numbers of the lines that arrived, as often as they did.
fn arrived(collector: &Collector) -> Vec<usize> {
    let number = |record: &tailrace_testkit::Record| {
        let body = record.log.body.as_ref();
        match body.and_then(|body| body.value.as_ref()) {
            Some(Value::StringValue(text)) => {
                let text = text
                    .strip_prefix("line ")
                    .and_then(|text| text.strip_suffix('.'));
                text.unwrap().parse().unwrap()
            }
            other => panic!("not a string: {other:?}"),
        }
    };
    collector.records().iter().map(number).collect()
}

fn all_but(count: usize, missing: usize) -> BTreeSet<usize> {
    (0..count).filter(|&n| n != missing).collect()
}

fn entries(bench: &Bench) -> Vec<Json> {
    let text = std::fs::read_to_string(bench.path("data/dead-letter/app.ndjson"));
    let text = text.unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The entry is of this line of `a.log`.
fn check_entry(bench: &Bench, entry: &Json, line: usize) {
    assert_eq!(entry["output"], "otlp");
    assert_eq!(entry["path"], bench.log("a.log").display().to_string());
    let bytes: (usize, usize) = serde_json::from_value(entry["bytes"].clone()).unwrap();
    let log = std::fs::read(bench.log("a.log")).unwrap();
    let line = lines(line..line + 1);
    assert_eq!(log[bytes.0..bytes.1], *line);
    let encoded = entry["crashed"]["line"].as_str().unwrap();
    let text = line.strip_suffix(b"\n").unwrap();
    assert_eq!(encoded, base64(text));
    assert!(entry.get("otlp").is_none(), "{entry}");
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = (0..3).fold(0_u32, |bits, at| {
            bits << 8 | u32::from(*chunk.get(at).unwrap_or(&0))
        });
        for at in 0..4 {
            if at <= chunk.len() {
                text.push(char::from(DIGITS[(bits >> (18 - 6 * at) & 63) as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

#[test]
fn a_record_that_panics_is_dead_lettered_and_its_neighbours_arrive_once() {
    let (mut bench, collector) = (Bench::new(), Collector::start());
    bench.set("TAILRACE_FAILPOINT_PANIC", "line 4321.");
    let more = "workers: 2\nadmin: {listen: '127.0.0.1:0'}\n";
    let config = bench.pipeline(&collector.endpoint(), "json", more);
    append(&bench.log("a.log"), &lines(0..10_000));
    let agent = bench.start();
    collector.wait_records(9_999);
    agent.says("a record could not be processed");
    let admin = agent.admin();
    let ledger = || -> Json { serde_json::from_str(&get(&admin, "/api/v1/ledger")).unwrap() };
    until(
        || ledger()["pipelines"][0]["outputs"][0]["dead_lettered_records"] == 1,
        || ledger().to_string(),
    );
    let metrics = get(&admin, "/metrics");
    for counter in [
        "tailrace_transform_crashed_records_total{pipeline=\"app\",cause=\"panic\"} 1\n",
        "tailrace_output_dead_lettered_records_total{pipeline=\"app\",output=\"otlp\"} 1\n",
        "tailrace_frame_records_total{pipeline=\"app\"} 10000\n",
    ] {
        assert!(metrics.contains(counter), "{counter}{metrics}");
    }
    let log = agent.own_log();
    assert!(
        !log.contains("panicked at"),
        "said once, as an error: {log}"
    );
    assert!(log.contains("failpoint"), "{log}");
    // It goes on.
    append(&bench.log("a.log"), &lines(10_000..10_010));
    collector.wait_records(10_009);
    assert_eq!(agent.terminate().code(), Some(0));
    assert_eq!(arrived(&collector).len(), 10_009);
    assert_eq!(
        BTreeSet::from_iter(arrived(&collector)),
        all_but(10_010, 4321)
    );
    let found = entries(&bench);
    assert_eq!(found.len(), 1, "{found:?}");
    check_entry(&bench, &found[0], 4321);

    // There is nothing to send again; it is kept, and that is no failure.
    let output = tailrace()
        .args(["replay", "-c"])
        .arg(config)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("0 accepted, 0 not accepted"), "{said}");
    assert!(
        said.contains("1 kept that could not be processed"),
        "{said}"
    );
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(entries(&bench), found);
}

#[test]
fn a_record_at_which_the_process_dies_is_dead_lettered_at_the_fourth_start() {
    let (mut bench, collector) = (Bench::new(), Collector::start());
    bench.set("TAILRACE_FAILPOINT_ABORT", "line 4321.");
    let config = bench.pipeline(&collector.endpoint(), "json", "workers: 2\n");
    append(&bench.log("a.log"), &lines(0..10_000));
    append(&bench.log("b.log"), &lines(10_000..20_000));
    for start in 1..=3 {
        let mut agent = bench.start_args(&[], &config);
        assert_eq!(
            agent.end().code(),
            None,
            "start {start}: {}",
            agent.own_log()
        );
    }
    let agent = bench.start();
    let missing = all_but(20_000, 4321);
    until(
        || BTreeSet::from_iter(arrived(&collector)) == missing,
        || agent.own_log(),
    );
    agent.says("the process died 3 times while it worked on this record");
    let log = agent.own_log();
    let error = log
        .lines()
        .find(|line| line.contains("the process died 3 times"))
        .unwrap();
    assert!(
        error.contains("ERROR") && error.contains("a.log"),
        "{error}"
    );
    let offset = format!("start={}", lines(0..4321).len());
    assert!(error.contains(&offset), "{error}");
    assert_eq!(agent.terminate().code(), Some(0));
    let found = entries(&bench);
    assert_eq!(found.len(), 1, "{found:?}");
    check_entry(&bench, &found[0], 4321);

    // It was acked: after a restart only new records are sent.
    bench.unset();
    let before = arrived(&collector).len();
    append(&bench.log("a.log"), &lines(20_000..20_001));
    let agent = bench.start();
    collector.wait_records(before + 1);
    assert_eq!(agent.terminate().code(), Some(0));
    assert_eq!(arrived(&collector)[before..], [20_000]);
    assert_eq!(entries(&bench).len(), 1);
}

/// A stage that holds what was made of the last batches, as one with windows of time will.
#[test]
fn what_a_stage_holds_is_read_again_after_kill_9() {
    let (mut bench, collector) = (Bench::new(), Collector::start());
    let more = "workers: 1\nadmin: {listen: '127.0.0.1:0'}\n";
    let config = bench.pipeline(&collector.endpoint(), "json", more);
    let text = std::fs::read_to_string(&config).unwrap();
    let small = "batch: {max_wait: 50ms, max_bytes: 64KiB}";
    std::fs::write(&config, text.replace("batch: {max_wait: 50ms}", small)).unwrap();
    append(&bench.log("a.log"), &lines(0..40_000));

    bench.set("TAILRACE_FAILPOINT_HOLD", "5");
    let agent = bench.start();
    let admin = agent.admin();
    let all = "tailrace_frame_records_total{pipeline=\"app\"} 40000\n";
    until(
        || get(&admin, "/metrics").contains(all),
        || get(&admin, "/metrics"),
    );
    collector.wait_records(1);
    agent.kill();
    let before = collector.records().len();
    assert!(before < 40_000, "five batches are held");

    bench.unset();
    let agent = bench.start();
    let different = || BTreeSet::from_iter(arrived(&collector)).len();
    until(|| different() == 40_000, || different().to_string());
    assert_eq!(agent.terminate().code(), Some(0));
}
