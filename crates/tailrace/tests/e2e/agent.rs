//! The life of an agent: kill -9 and restart, shutdown, several outputs, servers that fail.

use std::collections::BTreeMap;
use std::process::Stdio;

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use rustix::process::Signal;
use tailrace_testkit::{Answer, Collector, Record};

use crate::support::{Bench, append, get, tailrace, until};

fn line(seq: usize) -> String {
    format!("{{\"level\":\"info\",\"msg\":\"line {seq}\",\"seq\":{seq}}}\n")
}

pub(crate) fn lines(range: std::ops::Range<usize>) -> Vec<u8> {
    range.flat_map(|seq| line(seq).into_bytes()).collect()
}

pub(crate) fn body(record: &Record) -> String {
    match record
        .log
        .body
        .as_ref()
        .and_then(|body| body.value.as_ref())
    {
        Some(Value::StringValue(text)) => text.clone(),
        other => panic!("not a string: {other:?}"),
    }
}

pub(crate) fn attribute(record: &Record, key: &str) -> Option<Value> {
    let pair = record.log.attributes.iter().find(|pair| pair.key == key)?;
    pair.value.as_ref()?.value.clone()
}

fn sequence(record: &Record) -> usize {
    match attribute(record, "seq") {
        Some(Value::IntValue(seq)) => usize::try_from(seq).unwrap(),
        other => panic!("no seq: {other:?}"),
    }
}

/// How often each sequence number arrived.
pub(crate) fn arrivals(collector: &Collector) -> BTreeMap<usize, usize> {
    let mut arrivals = BTreeMap::new();
    for record in collector.records() {
        *arrivals.entry(sequence(&record)).or_default() += 1;
    }
    arrivals
}

#[test]
fn what_was_written_before_and_after_the_start_arrives_once() {
    let (bench, collector) = (Bench::new(), Collector::start());
    bench.pipeline(&collector.endpoint(), "json", "");
    append(&bench.log("a.log"), &lines(0..500));
    let agent = bench.start();
    collector.wait_records(500);
    append(&bench.log("a.log"), &lines(500..600));
    append(&bench.log("later.log"), &lines(600..700));
    collector.wait_records(700);
    assert_eq!(agent.terminate().code(), Some(0));
    let all: BTreeMap<usize, usize> = (0..700).map(|seq| (seq, 1)).collect();
    assert_eq!(arrivals(&collector), all);
    let record = &collector.records()[0];
    assert_eq!(record.log.severity_number, 9);
    assert_eq!(record.log.severity_text, "info");
    assert!(record.log.observed_time_unix_nano > 0);
    assert_eq!(
        attribute(record, "log.file.name"),
        Some(Value::StringValue("a.log".to_owned()))
    );
}

#[test]
fn a_restart_goes_on_where_the_last_run_ended() {
    let (bench, collector) = (Bench::new(), Collector::start());
    bench.pipeline(&collector.endpoint(), "json", "");
    append(&bench.log("a.log"), &lines(0..100));
    let agent = bench.start();
    collector.wait_records(100);
    assert_eq!(agent.terminate().code(), Some(0));
    append(&bench.log("a.log"), &lines(100..200));
    let agent = bench.start();
    collector.wait_records(200);
    assert_eq!(agent.terminate().code(), Some(0));
    assert!(
        arrivals(&collector).values().all(|&times| times == 1),
        "none twice"
    );
}

#[test]
fn kill_9_in_mid_stream_loses_nothing() {
    let (bench, collector) = (Bench::new(), Collector::start());
    bench.pipeline(&collector.endpoint(), "json", "");
    let mut written = 0;
    for round in 0..5 {
        let agent = bench.start();
        append(&bench.log("a.log"), &lines(written..written + 20_000));
        written += 20_000;
        // Somewhere in the middle of this round.
        collector.wait_records(round * 20_000 + 3_000);
        agent.kill();
    }
    let agent = bench.start();
    let wanted: Vec<usize> = (0..written).collect();
    until(
        || arrivals(&collector).len() == written,
        || format!("{} of {written} arrived", arrivals(&collector).len()),
    );
    assert_eq!(agent.terminate().code(), Some(0));
    assert_eq!(arrivals(&collector).into_keys().collect::<Vec<_>>(), wanted);
}

#[test]
fn a_partial_line_of_a_container_outlives_kill_9() {
    let (bench, collector) = (Bench::new(), Collector::start());
    bench.pipeline(&collector.endpoint(), "cri", "");
    let log = bench.log("0.log");
    append(
        &log,
        b"2026-01-02T03:04:05.000000001Z stdout P the first half, \n",
    );
    for n in 0..40 {
        append(
            &log,
            format!("2026-01-02T03:04:06.{n:09}Z stderr F line {n}\n").as_bytes(),
        );
    }
    let agent = bench.start();
    collector.wait_records(40);
    // The checkpoint is written and does not pass over the partial line.
    until(
        || bench.path("data/checkpoint.json").exists(),
        || "no checkpoint".to_owned(),
    );
    agent.kill();
    append(
        &log,
        b"2026-01-02T03:04:07.000000000Z stdout F and the second\n",
    );
    let agent = bench.start();
    let joined = || {
        let bodies = collector.records().iter().map(body).collect::<Vec<_>>();
        bodies
            .iter()
            .filter(|body| *body == "the first half, and the second")
            .count()
    };
    until(
        || joined() == 1,
        || {
            format!(
                "{:?}",
                collector.records().iter().map(body).collect::<Vec<_>>()
            )
        },
    );
    assert_eq!(agent.terminate().code(), Some(0));
    let halves = collector
        .records()
        .iter()
        .filter(|record| body(record).ends_with(", "))
        .count();
    assert_eq!(halves, 0, "no half arrives by itself");
}

#[test]
fn rotation_by_rename_and_truncation_lose_nothing_that_was_read() {
    let (bench, collector) = (Bench::new(), Collector::start());
    bench.pipeline(&collector.endpoint(), "json", "");
    let mut writer = tailrace_testkit::Writer::open(bench.log("a.log"));
    let agent = bench.start();
    writer.bytes(&lines(0..100));
    collector.wait_records(100);
    writer.rotate();
    writer.bytes(&lines(100..200));
    collector.wait_records(200);
    writer.copytruncate();
    writer.bytes(&lines(200..300));
    collector.wait_records(300);
    assert_eq!(agent.terminate().code(), Some(0));
    let arrived = arrivals(&collector);
    assert_eq!(
        arrived.keys().copied().collect::<Vec<_>>(),
        (0..300).collect::<Vec<_>>()
    );
}

#[test]
fn a_server_that_is_down_at_the_start_gets_everything_later() {
    let (bench, mut collector) = (Bench::new(), Collector::start());
    bench.pipeline(&collector.endpoint(), "json", "");
    collector.stop();
    append(&bench.log("a.log"), &lines(0..1_000));
    let agent = bench.start();
    agent.says("will be sent again");
    collector.restart();
    collector.wait_records(1_000);
    assert_eq!(agent.terminate().code(), Some(0));
    assert_eq!(arrivals(&collector).len(), 1_000);
}

#[test]
fn a_server_that_answers_html_holds_the_output() {
    let (bench, collector) = (Bench::new(), Collector::start());
    collector.always(Answer::html());
    bench.pipeline(&collector.endpoint(), "json", "shutdown: {grace: 100ms}\n");
    append(&bench.log("a.log"), &lines(0..10));
    let agent = bench.start();
    agent.says("it holds and nothing is skipped");
    assert_eq!(
        agent.terminate().code(),
        Some(3),
        "data stays for the next start"
    );
    // Whatever was behind that page: nobody has said that he took them. The next start finds the
    // data where it was.
    collector.take_records();
    collector.always(Answer::ok());
    bench.pipeline(&collector.endpoint(), "json", "");
    let agent = bench.start();
    until(
        || arrivals(&collector).len() == 10,
        || "not all arrived".to_owned(),
    );
    assert_eq!(agent.terminate().code(), Some(0));
}

#[test]
fn a_server_without_zstd_gets_gzip() {
    let (bench, collector) = (Bench::new(), Collector::start());
    collector.refuse_compression("zstd", Answer::status(400));
    bench.pipeline(&collector.endpoint(), "json", "");
    append(&bench.log("a.log"), &lines(0..10));
    let agent = bench.start();
    collector.wait_records(10);
    assert_eq!(agent.terminate().code(), Some(0));
    let encodings: Vec<String> = collector
        .requests()
        .into_iter()
        .map(|request| request.compression)
        .collect();
    assert_eq!(encodings, ["zstd", "gzip"]);
}

#[test]
fn rejected_records_of_a_partial_success_are_counted_and_not_sent_again() {
    let (bench, collector) = (Bench::new(), Collector::start());
    collector.script([Answer::partial(3, "too old")]);
    bench.pipeline(&collector.endpoint(), "json", "");
    append(&bench.log("a.log"), &lines(0..10));
    let agent = bench.start();
    agent.says("rejected=3");
    assert_eq!(agent.terminate().code(), Some(0));
    assert_eq!(collector.requests().len(), 1);
}

#[test]
fn a_second_signal_ends_at_once() {
    let (bench, mut collector) = (Bench::new(), Collector::start());
    bench.pipeline(&collector.endpoint(), "json", "shutdown: {grace: 1h}\n");
    collector.stop();
    append(&bench.log("a.log"), &lines(0..10));
    let mut agent = bench.start();
    agent.says("will be sent again");
    // As `timeout` does, which is one.
    agent.signal(Signal::INT);
    agent.signal(Signal::TERM);
    agent.says("stopping");
    let mut code = None;
    until(
        || {
            agent.signal(Signal::INT);
            code = agent.has_ended();
            code.is_some()
        },
        || "it goes on".to_owned(),
    );
    assert_eq!(code.unwrap().code(), Some(130));
}

#[test]
fn stdin_is_read_to_its_end_and_shown_on_stdout() {
    let bench = Bench::new();
    let config = bench.config(
        "pipelines:\n  pipe:\n    input: {type: stdin, format: json}\n    transform: |\n      \
         SELECT seq, upper(msg) AS loud, http->>'path' AS path FROM logs WHERE seq >= 2\n    \
         output: {type: stdout}\n",
    );
    let mut child = tailrace()
        .args(["run", "-c"])
        .arg(config)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let input = "{\"seq\":1,\"msg\":\"a\"}\n{\"seq\":2,\"msg\":\"b\",\"http\":{\"path\":\"/x\"}}\n\
                 {\"seq\":3,\"msg\":\"c\"}";
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let rows: Vec<serde_json::Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let expected = [
        serde_json::json!({"seq": 2, "loud": "B", "path": "/x"}),
        serde_json::json!({"seq": 3, "loud": "C"}),
    ];
    assert_eq!(rows, expected);
}

#[test]
fn standard_input_that_cannot_be_read_to_its_end_is_a_failure() {
    for queue in ["memory", "disk"] {
        let bench = Bench::new();
        let config = bench.config(&format!(
            "pipelines:\n  pipe:\n    input: {{type: stdin, queue: {{type: {queue}}}}}\n    \
             output: {{type: stdout}}\n"
        ));
        let directory = std::fs::File::open(bench.path("")).unwrap();
        let mut command = tailrace();
        command.args(["run", "-c"]).arg(config).stdin(directory);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{queue}: {said}");
        assert!(said.contains("it is taken as ended"), "{queue}: {said}");
    }
}

/// As `tailrace run | head -1`.
#[test]
fn when_nobody_reads_the_standard_output_the_agent_ends_and_the_next_start_continues() {
    use std::io::{BufRead, BufReader, Read};

    let bench = Bench::new();
    let config = bench.config(
        "pipelines:\n  app:\n    input: {type: file, include: ['$DIR/logs/*.log'], format: json}\n    \
         batch: {max_wait: 50ms}\n    output: {type: stdout}\n",
    );
    let start = || {
        let mut command = tailrace();
        command.args(["run", "-c"]).arg(&config);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    append(&bench.log("a.log"), &lines(0..1));
    let mut child = start();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    out.read_line(&mut first).unwrap();
    drop(out);
    append(&bench.log("a.log"), &lines(1..3));
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains("nobody reads the standard output any more"),
        "{said}"
    );
    for line in said.lines() {
        assert!(
            serde_json::from_str::<serde_json::Value>(line).is_ok(),
            "{line}"
        );
    }
    // What was not written is not acknowledged.
    let mut child = start();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut rest = String::new();
    for _ in 1..3 {
        out.read_line(&mut rest).unwrap();
    }
    let seqs: Vec<u64> = (rest.lines())
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["seq"]
                .as_u64()
                .unwrap()
        })
        .collect();
    assert_eq!(seqs, [1, 2]);
    child.kill().unwrap();
    out.read_to_string(&mut rest).unwrap();
    child.wait().unwrap();
}

#[test]
fn a_condition_keeps_the_same_records_however_it_is_evaluated() {
    let bench = Bench::new();
    let config = bench.config(
        "pipelines:\n  pipe:\n    input: {type: stdin, format: json}\n    batch: {max_bytes: 64KiB}\n    \
         transform: |\n      SELECT seq, seq + 1 AS next FROM logs WHERE level = 'rare' AND seq % 7 <> 0\n      \
         UNION ALL SELECT seq, 0 AS next FROM logs WHERE msg LIKE '%00'\n    \
         output: {type: stdout}\n",
    );
    // Enough for the agent to stop looking at every record as a whole.
    let (input, mut expected): (String, Vec<String>) = (0..40_000)
        .map(|seq| {
            let level = if seq % 50 == 0 { "r\\u0061re" } else { "info" };
            let line = format!("{{\"level\":\"{level}\",\"msg\":\"line {seq}\",\"seq\":{seq}}}\n");
            let mut rows = String::new();
            if seq % 50 == 0 && seq % 7 != 0 {
                rows = format!("{seq} {} ", seq + 1);
            }
            if seq % 100 == 0 && seq > 0 {
                rows.push_str(&format!("{seq} 0 "));
            }
            (line, rows)
        })
        .unzip();
    expected.retain(|rows| !rows.is_empty());
    std::fs::write(bench.path("input"), input).unwrap();
    let output = tailrace()
        .args(["run", "-c"])
        .arg(config)
        .stdin(std::fs::File::open(bench.path("input")).unwrap())
        .output()
        .unwrap();
    assert!(output.status.success());
    let mut found: BTreeMap<u64, String> = BTreeMap::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let (seq, next) = (row["seq"].as_u64().unwrap(), row["next"].as_f64().unwrap());
        found
            .entry(seq)
            .or_default()
            .push_str(&format!("{seq} {next} "));
    }
    assert_eq!(found.into_values().collect::<Vec<_>>(), expected);
}

#[test]
fn a_record_has_the_same_uid_whenever_it_is_sent() {
    let (bench, collector) = (Bench::new(), Collector::start());
    let wanted = "      attributes: {record_uid: true}\n";
    let transform = "    transform: SELECT seq FROM logs WHERE seq >= 0\n";
    bench.pipeline(
        &collector.endpoint(),
        "json",
        &format!("{wanted}{transform}"),
    );
    // Equal lines, and one that is filtered away between them.
    let same = "{\"seq\":1}\n{\"seq\":-1}\n{\"seq\":1}\n";
    append(&bench.log("a.log"), same.as_bytes());
    append(&bench.log("a.log"), &lines(2..50));
    let uids = || {
        let uid = |record: &Record| match attribute(record, "log.record.uid") {
            Some(Value::StringValue(uid)) => uid,
            other => panic!("no uid: {other:?}"),
        };
        let mut uids: Vec<String> = collector.take_records().iter().map(uid).collect();
        uids.sort();
        uids
    };
    let agent = bench.start();
    collector.wait_records(50);
    assert_eq!(agent.terminate().code(), Some(0));
    let first = uids();
    assert_eq!(
        first
            .iter()
            .collect::<std::collections::BTreeSet<_>>()
            .len(),
        50
    );
    // Everything is read again, in other batches: the checkpoint is gone, and the file is renamed.
    std::fs::remove_dir_all(bench.path("data")).unwrap();
    std::fs::rename(bench.log("a.log"), bench.log("b.log")).unwrap();
    let agent = bench.start();
    collector.wait_records(100);
    assert_eq!(agent.terminate().code(), Some(0));
    assert_eq!(uids(), first);
}

#[test]
fn two_outputs_each_get_everything() {
    let (bench, first, second) = (Bench::new(), Collector::start(), Collector::start());
    bench.config(&format!(
        "pipelines:\n  app:\n    input: {{type: file, include: ['$DIR/logs/*.log']}}\n    batch: \
         {{max_wait: 50ms}}\n    outputs:\n      - {{name: one, type: otlp, endpoint: {}}}\n      \
         - {{name: two, type: otlp, endpoint: {}, protocol: grpc, compression: gzip}}\n      \
         - {{name: copy, type: file, path: $DIR/copy.ndjson}}\n",
        first.endpoint(),
        second.endpoint()
    ));
    append(&bench.log("a.log"), &lines(0..300));
    let agent = bench.start();
    first.wait_records(300);
    second.wait_records(300);
    assert_eq!(agent.terminate().code(), Some(0));
    assert_eq!(
        (arrivals(&first).len(), arrivals(&second).len()),
        (300, 300)
    );
    let copy = std::fs::read_to_string(bench.path("copy.ndjson")).unwrap();
    assert_eq!(copy.as_bytes(), lines(0..300));
}

#[test]
fn the_ledger_of_a_running_agent_says_what_became_of_everything() {
    let (bench, collector) = (Bench::new(), Collector::start());
    let more = "    transform: SELECT * FROM logs WHERE seq >= 4\nshutdown: {grace: 100ms}\n\
                admin: {listen: '127.0.0.1:0'}\n";
    bench.pipeline(&collector.endpoint(), "json", more);
    append(&bench.log("a.log"), &lines(0..10));
    let agent = bench.start();
    collector.wait_records(6);
    let admin = agent.admin();
    let ledger = |more: &[&str]| {
        let asked = tailrace()
            .args(["ledger", "--admin", &admin])
            .args(more)
            .output();
        let asked = asked.unwrap();
        assert!(
            asked.status.success(),
            "{}",
            String::from_utf8_lossy(&asked.stderr)
        );
        String::from_utf8(asked.stdout).unwrap()
    };
    let json = || serde_json::from_str::<serde_json::Value>(&ledger(&["--json"])).unwrap();
    let output = |name: &str| json()["pipelines"][0]["outputs"][0][name].as_u64().unwrap();
    // Gauges follow within a second or so.
    let unread = || json()["pipelines"][0]["unread_bytes"].as_u64().unwrap();
    until(
        || output("delivered_records") == 6 && unread() == 0,
        || json().to_string(),
    );
    let report = json();
    let pipeline = &report["pipelines"][0];
    assert_eq!(pipeline["pipeline"], "app");
    assert_eq!(pipeline["read_bytes"], lines(0..10).len());
    assert_eq!(
        (&pipeline["records"], &pipeline["filtered_records"]),
        (&10.into(), &4.into())
    );
    assert_eq!(output("in_flight_records"), 0);
    assert_eq!(pipeline["oldest_unread_seconds"], 0);
    let delay = &pipeline["outputs"][0]["delivery_delay_seconds"];
    assert!(delay["batches"].as_u64() >= Some(1), "{report}");
    let metrics = get(&admin, "/metrics");
    for wanted in [
        "tailrace_output_delivery_delay_seconds_count{pipeline=\"app\",output=\"otlp\"} ",
        "tailrace_input_oldest_unread_seconds{pipeline=\"app\"} 0",
    ] {
        assert!(metrics.contains(wanted), "{wanted} in\n{metrics}");
    }
    assert!(
        pipeline["sources"].as_array().unwrap().is_empty(),
        "{report}"
    );

    collector.always(Answer::status(503));
    append(&bench.log("a.log"), &lines(10..13));
    until(|| output("in_flight_records") == 3, || json().to_string());
    let behind = &json()["pipelines"][0]["sources"][0];
    assert_eq!(behind["behind_bytes"], lines(10..13).len());
    assert_eq!(behind["path"], bench.log("a.log").display().to_string());
    let table = ledger(&[]);
    for row in [
        "pipeline app",
        "delivered",
        "6",
        "in flight",
        "3",
        "filtered",
        "4",
    ] {
        assert!(table.contains(row), "{row:?} in\n{table}");
    }
    assert_eq!(agent.terminate().code(), Some(3));
}

#[test]
fn what_waits_in_its_file_while_the_server_is_down_gets_older() {
    let (bench, collector) = (Bench::new(), Collector::start());
    let small = "      max_request_bytes: 64KiB\n    queue: {max_bytes: 64KiB}\n\
                 admin: {listen: '127.0.0.1:0'}\n";
    bench.pipeline(&collector.endpoint(), "json", small);
    collector.always(Answer::status(503));
    append(&bench.log("a.log"), &lines(0..100_000));
    let agent = bench.start();
    let admin = agent.admin();
    let age = || {
        let report = get(&admin, "/api/v1/ledger");
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        report["pipelines"][0]["oldest_unread_seconds"]
            .as_u64()
            .unwrap()
    };
    until(|| age() >= 2, || age().to_string());
    collector.always(Answer::ok());
    until(|| age() == 0, || age().to_string());
    until(
        || arrivals(&collector).len() == 100_000,
        || arrivals(&collector).len().to_string(),
    );
    assert_eq!(agent.terminate().code(), Some(0));
}

#[test]
fn asking_for_the_ledger_where_no_agent_runs_says_so() {
    let asked = tailrace()
        .args(["ledger", "--admin", "127.0.0.1:1"])
        .output()
        .unwrap();
    assert_eq!(asked.status.code(), Some(1));
    let said = String::from_utf8(asked.stderr).unwrap();
    assert!(
        said.contains("the agent at 127.0.0.1:1 gives no ledger"),
        "{said}"
    );
}
