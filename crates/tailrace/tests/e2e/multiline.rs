//! Multi-line records: joined over batches and restarts, complete after silence, the same for every output.

use std::io::Write as _;

use tailrace_testkit::{Answer, Collector};

use crate::agent::body;
use crate::support::{Bench, append, until};

/// A config of one pipeline that joins; `more` is appended to the pipeline.
fn config(bench: &Bench, timeout: &str, outputs: &str) {
    bench.config(&format!(
        "pipelines:\n  app:\n    input: {{type: file, include: ['$DIR/logs/*.log'], \
         format: auto, multiline: {{preset: [java, python], timeout: {timeout}}}}}\n    batch: {{max_wait: 50ms, max_bytes: \
         256KiB}}\n    queue: {{max_bytes: 4MiB}}\n    limits: {{replay: 3MiB}}\n{outputs}\n"
    ));
}

fn output(name: &str, collector: &Collector) -> String {
    let endpoint = collector.endpoint();
    format!(
        "{{type: otlp, name: {name}, endpoint: {endpoint}, retry: {{initial: 50ms, max: 200ms}}}}"
    )
}

fn bodies(collector: &Collector) -> Vec<String> {
    let records = collector.records();
    let mut bodies: Vec<String> = records.iter().map(body).collect();
    bodies.sort();
    bodies
}

fn trace(n: usize) -> String {
    let frames: String = (0..20)
        .map(|k| format!("\tat app.Handler{k}.run(Handler.java:{n})\n"))
        .collect();
    format!(
        "java.lang.IllegalStateException: {n:06}\n{frames}Caused by: java.lang.Error\n\t... 3 more\n"
    )
}

#[test]
fn the_last_record_of_a_file_is_complete_after_silence() {
    let (bench, collector) = (Bench::new(), Collector::start());
    config(
        &bench,
        "50ms",
        &format!("    output: {}", output("otlp", &collector)),
    );
    append(&bench.log("a.log"), trace(1).as_bytes());
    append(
        &bench.log("pod.log"),
        b"2026-01-02T03:04:05Z stderr F java.lang.Error: x\n2026-01-02T03:04:05Z stdout F out\n\
          2026-01-02T03:04:05Z stderr P \tat A.f\n2026-01-02T03:04:05Z stderr F (A.java)\n",
    );
    let agent = bench.start();
    collector.wait_records(3);
    let trace = trace(1);
    let expect = [
        trace.trim_end(),
        "java.lang.Error: x\n\tat A.f(A.java)",
        "out",
    ];
    let mut expect = expect.map(str::to_owned);
    expect.sort();
    assert_eq!(bodies(&collector), expect);
    // What comes later is a record of its own.
    append(&bench.log("a.log"), b"later\n");
    collector.wait_records(4);
    assert_eq!(agent.terminate().code(), Some(0));
}

#[test]
fn what_is_held_of_a_pipe_is_given_out_when_the_agent_is_stopped() {
    let (bench, collector) = (Bench::new(), Collector::start());
    bench.config(&format!(
        "pipelines:\n  app:\n    input: {{type: stdin, multiline: {{preset: [java], timeout: 60s}}}}\n    output: {}\n",
        output("otlp", &collector)
    ));
    let (read, mut write) = std::io::pipe().unwrap();
    let agent = bench.start_with(read);
    write
        .write_all(b"one\njava.lang.Error: x\n\tat A.f(A.java)\n\tat A.g(")
        .unwrap();
    collector.wait_records(1);
    assert_eq!(agent.terminate().code(), Some(0));
    let expect = ["java.lang.Error: x\n\tat A.f(A.java)\n\tat A.g(", "one"];
    assert_eq!(bodies(&collector), expect);
}

#[test]
fn a_join_that_is_held_and_a_long_line_fit_into_the_smallest_replay() {
    let (bench, collector) = (Bench::new(), Collector::start());
    bench.config(&format!(
        "pipelines:\n  app:\n    input: {{type: file, include: ['$DIR/logs/*.log'], format: cri, \
         multiline: {{preset: [java], timeout: 60s}}}}\n    batch: {{max_wait: 50ms, max_bytes: 256KiB}}\n    \
         limits: {{replay: 2MiB}}\n    output: {}\n",
        output("otlp", &collector)
    ));
    let line = |stream: &str, text: &str| format!("2026-01-02T03:04:05Z {stream} F {text}\n");
    let frame = line("stderr", &format!("\tat {}", "f".repeat(960)));
    // The join may span half of 2 MiB; the line of the other stream ends beyond 2 MiB.
    let held = line("stderr", "java.lang.Error: x") + &frame.repeat(990_000 / frame.len());
    append(&bench.log("pod.log"), held.as_bytes());
    append(
        &bench.log("pod.log"),
        line("stdout", &"x".repeat(1_150_000)).as_bytes(),
    );
    let agent = bench.start();
    collector.wait_records(1);
    append(&bench.log("pod.log"), line("stderr", "later").as_bytes());
    collector.wait_records(2);
    let bodies = bodies(&collector);
    assert!(bodies[0].starts_with("java.lang.Error: x\n\tat ff"));
    assert_eq!(bodies[1], "x".repeat(1024 * 1024));
    agent.terminate();
}

#[test]
fn an_open_join_outlives_kill_9() {
    let (bench, collector) = (Bench::new(), Collector::start());
    config(
        &bench,
        "60s",
        &format!("    output: {}", output("otlp", &collector)),
    );
    let log = bench.log("a.log");
    append(&log, b"one\njava.lang.Error: x\n\tat A.f(A.java)\n");
    let agent = bench.start();
    collector.wait_records(1);
    until(
        || bench.path("data/checkpoint.json").exists(),
        || "no checkpoint".to_owned(),
    );
    agent.kill();
    append(&log, b"\tat A.g(A.java)\ntwo\n");
    let agent = bench.start();
    let join = "java.lang.Error: x\n\tat A.f(A.java)\n\tat A.g(A.java)";
    until(
        || bodies(&collector).iter().any(|body| body == join),
        || format!("{:?}", bodies(&collector)),
    );
    assert_eq!(agent.terminate().code(), Some(0));
    let parts = bodies(&collector)
        .into_iter()
        .filter(|body| body.contains("java") && body != join);
    assert_eq!(parts.count(), 0, "no part arrives by itself");
}

#[test]
fn an_output_that_was_detached_gets_the_same_records_and_rejoins() {
    let (bench, well, ill) = (Bench::new(), Collector::start(), Collector::start());
    ill.always(Answer::status(503));
    let outputs = [output("well", &well), output("ill", &ill)];
    config(
        &bench,
        "50ms",
        &format!(
            "    outputs:\n      - {}\n      - {}",
            outputs[0], outputs[1]
        ),
    );
    let traces: String = (0..12_000).map(trace).collect();
    append(&bench.log("a.log"), traces.as_bytes());
    let agent = bench.start();
    agent.says("the output is behind the others");
    well.wait_records(12_000);
    ill.always(Answer::ok());
    ill.wait_records(12_000);
    agent.says("takes part in the shared reading again");
    append(&bench.log("a.log"), trace(12_000).as_bytes());
    well.wait_records(12_001);
    ill.wait_records(12_001);
    let expect: Vec<String> = (0..=12_000)
        .map(|n| trace(n).trim_end().to_owned())
        .collect();
    assert_eq!(bodies(&well), expect);
    assert_eq!(bodies(&ill), expect);
    assert_eq!(agent.terminate().code(), Some(0));
}
