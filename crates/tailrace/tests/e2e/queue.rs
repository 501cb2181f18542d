//! Standard input by way of the disk: kill -9, bit rot, the cap, and `tailrace queue check`.

use std::fs;
use std::io::{PipeWriter, Write, pipe};
use std::path::PathBuf;
use std::thread::JoinHandle;

use tailrace_testkit::{Answer, Collector};

use crate::agent::{arrivals, lines};
use crate::bad_input::flag;
use crate::support::{Agent, Bench, tailrace, until};

/// A pipeline that reads standard input into a queue.
fn queued(bench: &Bench, endpoint: &str, more: &str) {
    bench.config(&format!(
        "pipelines:\n  app:\n    input: {{type: stdin, format: json, queue: {{type: disk, max_bytes: 8MiB}}}}\n    \
         batch: {{max_bytes: 64KiB, max_wait: 50ms}}\n    limits: {{replay: 2MiB}}\n    output:\n      type: otlp\n      \
         endpoint: {endpoint}\n      retry: {{initial: 50ms, max: 200ms}}\n{more}"
    ));
}

/// The segments on the disk, oldest first.
fn segments(bench: &Bench) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(bench.path("data/queue/app")) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|e| e == "segment"))
        .collect();
    paths.sort();
    paths
}

/// Bytes of the stream in them.
fn queued_bytes(bench: &Bench) -> usize {
    let bytes = |path: &PathBuf| fs::metadata(path).map_or(0, |meta| meta.len().saturating_sub(40));
    let bytes: u64 = segments(bench).iter().map(bytes).sum();
    usize::try_from(bytes).unwrap()
}

/// Writes until all is written or nobody reads any more.
fn feed(mut pipe: PipeWriter, bytes: Vec<u8>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let _ = pipe.write_all(&bytes);
    })
}

/// How far the stream is on the disk.
fn queued_to(bench: &Bench) -> Option<u64> {
    let last = segments(bench).pop()?;
    let name = last.file_stem()?.to_str()?.split_once('-')?.1;
    let offset: u64 = name.parse().ok()?;
    Some(offset + fs::metadata(&last).ok()?.len().saturating_sub(40))
}

/// An agent that was given all of this, and has the last of it on the disk.
fn agent_with_some_queued(bench: &Bench, bytes: &[u8]) -> Agent {
    let (read, write) = pipe().unwrap();
    let agent = bench.start_with(read);
    feed(write, bytes.to_vec()).join().unwrap();
    until(
        || queued_to(bench) == Some(bytes.len() as u64),
        || format!("queued to {:?}", queued_to(bench)),
    );
    agent
}

/// An agent whose standard input was all synced while the server refused everything.
fn agent_with_all_queued(bench: &Bench, bytes: &[u8]) -> Agent {
    let (read, write) = pipe().unwrap();
    let agent = bench.start_with(read);
    feed(write, bytes.to_vec()).join().unwrap();
    until(
        || queued_bytes(bench) == bytes.len(),
        || {
            format!(
                "{} of {} bytes are queued",
                queued_bytes(bench),
                bytes.len()
            )
        },
    );
    agent
}

#[test]
fn kill_9_of_an_agent_that_reads_stdin_loses_nothing_that_was_queued() {
    let (bench, collector) = (Bench::new(), Collector::start());
    queued(&bench, &collector.endpoint(), "");
    collector.always(Answer::status(503));
    agent_with_all_queued(&bench, &lines(0..20_000)).kill();
    // Killed again in the middle of delivering what the first one left.
    collector.always(Answer::ok());
    let (read, _open) = pipe().unwrap();
    let agent = bench.start_with(read);
    collector.wait_records(3_000);
    agent.kill();
    let (read, write) = pipe().unwrap();
    let mut agent = bench.start_with(read);
    feed(write, lines(20_000..30_000)).join().unwrap();
    assert_eq!(
        agent.end().code(),
        Some(0),
        "the stream ended and all is delivered"
    );
    let arrived = arrivals(&collector);
    assert_eq!(
        arrived.into_keys().collect::<Vec<_>>(),
        (0..30_000).collect::<Vec<_>>()
    );
    assert_eq!(segments(&bench), Vec::<PathBuf>::new());
}

#[test]
fn what_a_detached_output_needs_stays_in_the_queue() {
    let (bench, up, down) = (Bench::new(), Collector::start(), Collector::start());
    bench.config(&format!(
        "pipelines:\n  app:\n    input: {{type: stdin, format: json, max_record_bytes: 256KiB, queue: {{type: disk, \
         max_bytes: 8MiB}}}}\n    batch: {{max_bytes: 64KiB, max_wait: 50ms}}\n    limits: {{replay: 1MiB}}\n    \
         outputs:\n      - {{type: otlp, name: up, endpoint: {}}}\n      \
         - {{type: otlp, name: down, endpoint: {}, retry: {{initial: 50ms, max: 200ms}}}}\n",
        up.endpoint(),
        down.endpoint()
    ));
    down.always(Answer::status(503));
    let (read, mut write) = pipe().unwrap();
    let agent = bench.start_with(read);
    // Whole lines at a time, so that nothing is unfinished when reading pauses for the output that is down.
    let (mut written, mut bytes) = (0, 0);
    let count = 48 * 1024 / lines(0..1).len();
    while bytes < 1400 * 1024 {
        let some = lines(written..written + count);
        write.write_all(&some).unwrap();
        (written, bytes) = (written + count, bytes + some.len() as u64);
        until(
            || queued_to(&bench) == Some(bytes),
            || format!("{:?}", queued_to(&bench)),
        );
    }
    agent.says("the output is behind the others");
    agent.kill();
    down.always(Answer::ok());
    let mut agent = bench.start();
    assert_eq!(agent.end().code(), Some(0));
    let all: Vec<usize> = (0..written).collect();
    for collector in [&down, &up] {
        assert_eq!(arrivals(collector).into_keys().collect::<Vec<_>>(), all);
    }
}

#[test]
fn kill_9_while_stdin_is_read_leaves_a_whole_beginning() {
    let (bench, collector) = (Bench::new(), Collector::start());
    queued(&bench, &collector.endpoint(), "");
    let (read, write) = pipe().unwrap();
    let agent = bench.start_with(read);
    let feeding = feed(write, lines(0..400_000));
    collector.wait_records(3_000);
    agent.kill();
    feeding.join().unwrap();
    let mut agent = bench.start();
    assert_eq!(agent.end().code(), Some(0));
    let arrived: Vec<usize> = arrivals(&collector).into_keys().collect();
    assert!(arrived.len() >= 3_000);
    assert_eq!(
        arrived,
        (0..arrived.len()).collect::<Vec<_>>(),
        "no hole, nothing torn"
    );
}

#[test]
fn what_is_not_delivered_at_the_end_stays_and_is_delivered_once() {
    let (bench, collector) = (Bench::new(), Collector::start());
    let one_by_one = "      concurrency: 1\nworkers: 1\nshutdown: {grace: 100ms}\n";
    queued(&bench, &collector.endpoint(), one_by_one);
    // Of many requests the first one only: the watermark stands within a segment.
    collector.always(Answer::status(503));
    collector.script([Answer::ok()]);
    let agent = agent_with_some_queued(&bench, &lines(0..20_000));
    collector.wait_records(1);
    agent.says("will be sent again");
    let own_log = agent.log_path();
    assert_eq!(
        agent.terminate().code(),
        Some(3),
        "data stays for the next start"
    );
    let said = fs::read_to_string(own_log).unwrap();
    assert!(said.contains("they stay in their files"), "{said}");
    let first = arrivals(&collector).len();
    assert!(first > 0 && first < 20_000, "{first}");
    assert!(!segments(&bench).is_empty());
    collector.always(Answer::ok());
    let mut agent = bench.start();
    assert_eq!(agent.end().code(), Some(0));
    let arrived = arrivals(&collector);
    assert_eq!(arrived.len(), 20_000);
    assert!(arrived.values().all(|&times| times == 1), "none twice");
}

#[test]
fn what_waits_in_the_queue_at_a_stop_is_not_delivered_yet() {
    let (bench, collector) = (Bench::new(), Collector::start());
    queued(&bench, &collector.endpoint(), "");
    let (read, mut write) = pipe().unwrap();
    let agent = bench.start_with(read);
    // One read takes both; the end of the second line is still to come.
    let both = lines(0..2);
    write.write_all(&both[..both.len() - 1]).unwrap();
    collector.wait_records(1);
    let own_log = agent.log_path();
    assert_eq!(agent.terminate().code(), Some(3));
    let said = fs::read_to_string(own_log).unwrap();
    assert!(said.contains("queued_bytes"), "{said}");
    let mut agent = bench.start();
    assert_eq!(agent.end().code(), Some(0));
    let arrived = arrivals(&collector);
    assert_eq!(arrived.len(), 2, "{arrived:?}");
}

/// Only the agent's end cuts a record: a stream that ends with half a line has it as its last record.
#[test]
fn what_an_agents_end_cuts_is_marked_and_what_a_streams_end_leaves_is_not() {
    for is_ended in [false, true] {
        let (bench, collector) = (Bench::new(), Collector::start());
        queued(&bench, &collector.endpoint(), "");
        collector.always(Answer::status(503));
        let text = b"{\"msg\":\"whole\"}\n{\"msg\":\"ha";
        let (read, mut write) = pipe().unwrap();
        let agent = bench.start_with(read);
        write.write_all(text).unwrap();
        if is_ended {
            drop(write);
            until(
                || queued_bytes(&bench) == text.len(),
                || format!("{} bytes", queued_bytes(&bench)),
            );
        } else {
            until(
                || queued_bytes(&bench) > 0,
                || format!("{} bytes", queued_bytes(&bench)),
            );
        }
        assert!(agent.terminate().code().is_some());
        collector.always(Answer::ok());
        let mut agent = bench.start();
        assert_eq!(agent.end().code(), Some(0));
        let records = collector.records();
        let marked: Vec<bool> = records
            .iter()
            .map(|record| flag(record, "tailrace.truncated"))
            .collect();
        assert_eq!(marked, [false, !is_ended], "{records:?}");
        assert!(segments(&bench).is_empty());
    }
}

#[test]
fn a_damaged_segment_is_found_put_aside_and_counted() {
    let (bench, collector) = (Bench::new(), Collector::start());
    queued(
        &bench,
        &collector.endpoint(),
        "admin: {listen: '127.0.0.1:0'}\n",
    );
    collector.always(Answer::status(503));
    // Two runs: two segments at least.
    agent_with_all_queued(&bench, &lines(0..10)).kill();
    let (read, write) = pipe().unwrap();
    let agent = bench.start_with(read);
    feed(write, lines(10..20)).join().unwrap();
    until(
        || queued_bytes(&bench) == lines(0..20).len(),
        || "not queued".to_owned(),
    );
    agent.kill();
    let check = || {
        let mut command = tailrace();
        command
            .args(["queue", "check", "-c"])
            .arg(bench.path("tailrace.yaml"));
        let output = command.output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    let (code, said) = check();
    assert_eq!(
        (code, said.matches("sound").count()),
        (Some(0), segments(&bench).len()),
        "{said}"
    );

    let damaged = segments(&bench).remove(0);
    let mut bytes = fs::read(&damaged).unwrap();
    let lost = bytes.len() - 40;
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&damaged, bytes).unwrap();
    let (code, said) = check();
    assert!(
        code == Some(1) && said.contains("corrupt: has a checksum"),
        "{said}"
    );

    collector.always(Answer::ok());
    let (read, open) = pipe().unwrap();
    let mut agent = bench.start_with(read);
    agent.says("the rest goes on");
    collector.wait_records(10);
    let ledger = crate::support::get(&agent.admin(), "/api/v1/ledger");
    let ledger: serde_json::Value = serde_json::from_str(&ledger).unwrap();
    assert_eq!(
        ledger["pipelines"][0]["lost_bytes"]["corrupt"], lost,
        "{ledger}"
    );
    drop(open);
    assert_eq!(agent.end().code(), Some(0));
    assert_eq!(
        arrivals(&collector).into_keys().collect::<Vec<_>>(),
        (10..20).collect::<Vec<_>>()
    );
    let (code, said) = check();
    assert!(code == Some(1) && said.contains("quarantined"), "{said}");
}
