//! Bad input is data, and a bad neighbour harms nobody: each case gets a clear message or a
//! counted record, and the good file beside it arrives whole.

use std::fs;

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use tailrace_testkit::{Collector, Record};

use crate::support::{Bench, append, tailrace};

fn body(record: &Record) -> String {
    match record
        .log
        .body
        .as_ref()
        .and_then(|body| body.value.as_ref())
    {
        Some(Value::StringValue(text)) => text.clone(),
        None => String::new(),
        other => panic!("not a string: {other:?}"),
    }
}

pub(crate) fn flag(record: &Record, key: &str) -> bool {
    let pair = record.log.attributes.iter().find(|pair| pair.key == key);
    let value = pair
        .and_then(|pair| pair.value.as_ref())
        .and_then(|value| value.value.as_ref());
    value == Some(&Value::BoolValue(true))
}

/// A bench with a good file of ten lines.
fn with_a_good_file(format: &str) -> (Bench, Collector) {
    let (bench, collector) = (Bench::new(), Collector::start());
    bench.pipeline(&collector.endpoint(), format, "");
    append(
        &bench.log("good.log"),
        "{\"msg\":\"good\"}\n".repeat(10).as_bytes(),
    );
    (bench, collector)
}

fn good(collector: &Collector) -> usize {
    collector
        .records()
        .iter()
        .filter(|record| body(record) == "good")
        .count()
}

#[test]
fn malformed_records_arrive_raw_and_flagged() {
    let (bench, collector) = with_a_good_file("json");
    let bad: [&[u8]; 6] = [
        b"not json",
        b"{\"a\":1",
        b"[1,2]",
        b"{\"a\":\"\xff\xfe\"}",
        b"\x00\x01\x02",
        b"{}}",
    ];
    for line in bad {
        append(&bench.log("bad.log"), &[line, b"\n"].concat());
    }
    let agent = bench.start();
    collector.wait_records(16);
    assert_eq!(agent.terminate().code(), Some(0));
    assert_eq!(good(&collector), 10);
    let flagged = |record: &&Record| flag(record, "tailrace.malformed");
    let records = collector.records();
    let mut bodies: Vec<String> = records.iter().filter(flagged).map(body).collect();
    bodies.sort();
    let mut expected = ["not json", "{\"a\":1", "[1,2]", "\0\u{1}\u{2}", "{}}"].map(str::to_owned);
    expected.sort();
    assert_eq!(bodies, expected);
    // Invalid UTF-8 inside a good object is repaired, not malformed.
    let repaired = records
        .iter()
        .flat_map(|record| &record.log.attributes)
        .any(|pair| {
            let value = pair.value.as_ref().and_then(|value| value.value.clone());
            pair.key == "a" && value == Some(Value::StringValue("\u{fffd}\u{fffd}".to_owned()))
        });
    assert!(repaired);
}

/// Each line has a fault that only `SELECT *` reads, and members that are right.
#[test]
fn not_a_byte_of_an_invalid_line_is_lost() {
    let (bench, collector) = with_a_good_file("json");
    let bad = [
        "{'id': 1, 'msg': 'x'}",
        "{\"id\":2,\"v\":tru}",
        "{\"id\":3,\"v\":\"a\tb\"}",
        "{\"id\":4,\"v\":\"he said \"hi\" there\"}",
        "{\"id\":5 \"v\":1}",
        "{\"id\":6,\"v\":\"C:\\path\"}",
        "{\"id\":7,\"msg\":\"own\",\"v\":01}",
        "{\"id\":8,\"msg\":\"own\",}",
        "{\"tailrace.malformed\":false,\"log.record.original\":\"forged\",\"msg\":\"own\",\"v\":01}",
    ];
    append(
        &bench.log("bad.log"),
        format!("{}\n", bad.join("\n")).as_bytes(),
    );
    let deep = format!("{{\"id\":9,\"v\":{}{}}}", "[".repeat(200), "]".repeat(200));
    let valid = format!("\u{feff}{{\"id\":10,\"v\":NaN}}\n{deep}\n");
    append(&bench.log("valid.log"), valid.as_bytes());
    let agent = bench.start();
    collector.wait_records(21);
    assert_eq!(agent.terminate().code(), Some(0));
    let records = collector.records();
    let text = |record: &Record, key: &str| {
        let pair = record.log.attributes.iter().find(|pair| pair.key == key);
        match pair.and_then(|pair| pair.value.clone()?.value) {
            Some(Value::StringValue(text)) => Some(text),
            _ => None,
        }
    };
    let flagged = |record: &&Record| flag(record, "tailrace.malformed");
    let raw = |record: &Record| text(record, "log.record.original").unwrap_or(body(record));
    let mut found: Vec<String> = records.iter().filter(flagged).map(raw).collect();
    found.sort();
    let mut expected = bad.map(str::to_owned);
    expected.sort();
    assert_eq!(found, expected);
    let own = records.iter().filter(|record| body(record) == "own");
    assert!(own.clone().all(|record| flagged(&record)));
    assert_eq!(own.count(), 3);
    let valid = records.iter().filter(|record| {
        let mut attributes = record.log.attributes.iter();
        !flagged(record) && attributes.any(|pair| pair.key == "v")
    });
    assert_eq!(valid.count(), 2, "the deep one and the one behind the mark");
}

#[test]
fn a_line_of_64_mib_is_cut_and_the_file_goes_on() {
    let (bench, collector) = with_a_good_file("json");
    append(&bench.log("long.log"), b"{\"msg\":\"good\"}\n");
    append(&bench.log("long.log"), &vec![b'x'; 64 << 20]);
    append(&bench.log("long.log"), b"\n{\"msg\":\"good\"}\n");
    let agent = bench.start();
    collector.wait_records(13);
    assert_eq!(agent.terminate().code(), Some(0));
    assert_eq!(good(&collector), 12);
    let records = collector.records();
    let cut: Vec<&Record> = records
        .iter()
        .filter(|record| flag(record, "tailrace.truncated"))
        .collect();
    assert_eq!(cut.len(), 1);
    assert_eq!(body(cut[0]).len(), 1 << 20);
}

#[test]
fn what_is_no_file_is_named_and_left_alone() {
    let (bench, collector) = with_a_good_file("json");
    fs::create_dir(bench.log("directory.log")).unwrap();
    std::os::unix::fs::symlink(bench.log("loop.log"), bench.log("loop.log")).unwrap();
    let fifo = bench.log("fifo.log");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR).unwrap();
    let agent = bench.start();
    collector.wait_records(10);
    for name in ["directory.log", "loop.log", "fifo.log"] {
        agent.says(name);
    }
    assert_eq!(agent.terminate().code(), Some(0));
    assert_eq!(good(&collector), 10);
}

#[test]
fn globs_without_a_match_and_missing_directories_are_named() {
    let bench = Bench::new();
    let collector = Collector::start();
    bench.config(&format!(
        "pipelines:\n  app:\n    input: {{type: file, include: ['$DIR/logs/*.log', \
         '$DIR/missing/*.log']}}\n    batch: {{max_wait: 50ms}}\n    output: {{type: otlp, \
         endpoint: {}}}\n",
        collector.endpoint()
    ));
    let agent = bench.start();
    agent.says("matches no file yet");
    agent.says("there is no directory");
    // Both are waited for.
    fs::create_dir(bench.path("missing")).unwrap();
    append(&bench.path("missing/a.log"), b"{\"msg\":\"good\"}\n");
    append(&bench.log("b.log"), b"{\"msg\":\"good\"}\n");
    collector.wait_records(2);
    assert_eq!(agent.terminate().code(), Some(0));
}

#[test]
fn a_corrupt_checkpoint_is_kept_apart_and_nothing_is_lost() {
    let (bench, collector) = with_a_good_file("json");
    let agent = bench.start();
    collector.wait_records(10);
    assert_eq!(agent.terminate().code(), Some(0));
    for name in ["checkpoint.json", "checkpoint.json.prev"] {
        let path = bench.path("data").join(name);
        if path.exists() {
            fs::write(path, b"{ not a checkpoint").unwrap();
        }
    }
    append(&bench.log("good.log"), b"{\"msg\":\"good\"}\n");
    let agent = bench.start();
    agent.says("is corrupt");
    collector.wait_records(21);
    assert_eq!(agent.terminate().code(), Some(0));
    assert!(bench.path("data/checkpoint.json.corrupt-1").exists());
}

#[test]
fn an_unwritable_data_directory_is_said_at_the_start() {
    let bench = Bench::new();
    // Root may write anywhere, but not beneath a file.
    fs::write(bench.path("data"), b"").unwrap();
    bench.pipeline("http://127.0.0.1:1", "json", "");
    let mut agent = bench.start();
    assert_eq!(agent.end().code(), Some(1));
    assert!(agent.own_log().contains("data_dir"), "{}", agent.own_log());
}

#[test]
fn a_column_that_never_appears_is_warned_of_once() {
    let (bench, collector) = (Bench::new(), Collector::start());
    bench.pipeline(
        &collector.endpoint(),
        "json",
        "    transform: SELECT msg, levle FROM logs\n",
    );
    append(
        &bench.log("good.log"),
        "{\"msg\":\"good\",\"level\":\"info\"}\n"
            .repeat(20_000)
            .as_bytes(),
    );
    let agent = bench.start();
    collector.wait_records(20_000);
    agent.says("levle");
    let warnings = agent
        .own_log()
        .matches("no record has had this key")
        .count();
    assert_eq!(warnings, 1);
    assert_eq!(agent.terminate().code(), Some(0));
}

#[test]
fn two_agents_do_not_share_a_data_directory() {
    let (bench, collector) = with_a_good_file("json");
    let first = bench.start();
    collector.wait_records(10);
    let mut second = bench.start();
    assert_eq!(second.end().code(), Some(1));
    assert!(
        second.own_log().contains("data_dir"),
        "{}",
        second.own_log()
    );
    assert_eq!(first.terminate().code(), Some(0));
}

#[test]
fn sql_that_names_an_unknown_function_does_not_start() {
    let bench = Bench::new();
    bench.pipeline(
        "http://127.0.0.1:1",
        "json",
        "    transform: SELECT uper(msg) AS m FROM logs\n",
    );
    let output = tailrace()
        .args(["run", "-c"])
        .arg(bench.path("tailrace.yaml"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(78));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("tailrace.yaml") && said.contains("upper"),
        "{said}"
    );
}

#[test]
fn records_longer_than_a_pipelines_share_of_memory_arrive_whole() {
    let (bench, collector) = (Bench::new(), Collector::start());
    let pipeline = |n: usize| {
        format!(
            "  p{n}:\n    input: {{type: file, include: ['$DIR/logs/{n}.log'], format: json}}\n    \
             output: {{type: otlp, endpoint: '{}'}}\n",
            collector.endpoint()
        )
    };
    let pipelines: String = (0..8).map(pipeline).collect();
    bench.config(&format!(
        "limits: {{memory: 32MiB}}\npipelines:\n{pipelines}"
    ));
    for n in 0..8 {
        let long = "x".repeat(900_000 + n);
        let line = format!("{{\"msg\":\"{long}\"}}\n");
        append(&bench.log(&format!("{n}.log")), line.repeat(3).as_bytes());
    }
    let agent = bench.start();
    collector.wait_records(24);
    assert_eq!(agent.terminate().code(), Some(0));
    let mut lengths: Vec<usize> = collector
        .records()
        .iter()
        .map(|record| body(record).len())
        .collect();
    lengths.sort_unstable();
    let expected: Vec<usize> = (0..8).flat_map(|n| [900_000 + n; 3]).collect();
    assert_eq!(lengths, expected);
}
