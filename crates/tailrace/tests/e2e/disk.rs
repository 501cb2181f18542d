//! A start with a data directory that cannot be written. A small tmpfs plays the disk, so only root can; without
//! it the tests say so and pass.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use tailrace_testkit::{Answer, Collector, Record};

use crate::support::{Bench, append, until};

/// A mounted tmpfs; dropping it unmounts.
struct Disk(PathBuf);

impl Disk {
    fn mount(dir: &Path) -> Option<Self> {
        std::fs::create_dir_all(dir).unwrap();
        let arguments = ["-t", "tmpfs", "-o", "size=256k", "tailrace-e2e"];
        if mount(&arguments, dir) {
            return Some(Self(dir.to_owned()));
        }
        eprintln!("SKIPPED: no tmpfs can be mounted here, which takes root");
        None
    }

    fn fill(&self) {
        let page = vec![b'x'; 4096];
        let pages = page.repeat(100);
        // The error is what is wanted.
        let _ = std::fs::write(self.0.join("filler"), pages);
    }

    fn remount(&self, how: &str) {
        assert!(mount(&["-o", &format!("remount,{how}")], &self.0));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn mount(arguments: &[&str], dir: &Path) -> bool {
    let status = Command::new("mount").args(arguments).arg(dir).status();
    status.is_ok_and(|status| status.success())
}

fn lines(range: std::ops::Range<usize>) -> Vec<u8> {
    let line = |n| format!("{{\"msg\":\"line {n}\"}}\n").into_bytes();
    range.flat_map(line).collect()
}

fn distinct(collector: &Collector) -> usize {
    let records = collector.records();
    records.iter().map(body).collect::<BTreeSet<_>>().len()
}

fn body(record: &Record) -> String {
    let body = record.log.body.as_ref();
    match body.and_then(|body| body.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        other => panic!("not a string: {other:?}"),
    }
}

fn arrive(collector: &Collector, count: usize) {
    until(
        || distinct(collector) == count,
        || format!("{} of {count} arrived", distinct(collector)),
    );
}

#[test]
fn a_data_directory_that_cannot_be_written_keeps_nobody_from_starting() {
    for is_full in [true, false] {
        let (bench, collector) = (Bench::new(), Collector::start());
        let Some(disk) = Disk::mount(&bench.path("data")) else {
            return;
        };
        bench.pipeline(&collector.endpoint(), "raw", "");
        append(&bench.log("a.log"), &lines(0..10));
        let agent = bench.start();
        arrive(&collector, 10);
        assert!(agent.terminate().success());
        // Even the lock file is missing; and no journal, whose last page would have room for a line.
        for name in ["lock", "checkpoint.journal"] {
            std::fs::remove_file(bench.path("data").join(name)).unwrap();
        }
        if is_full {
            disk.fill();
        } else {
            disk.remount("ro");
        }
        // Twice: what was delivered meanwhile is sent again, and nothing is left out.
        for end in [20, 30] {
            append(&bench.log("a.log"), &lines(end - 10..end));
            let agent = bench.start();
            arrive(&collector, end);
            agent.says("the checkpoint cannot be written");
            agent.kill();
        }
        let agent = bench.start();
        agent.says("the checkpoint cannot be written");
        disk.remount("rw");
        let _ = std::fs::remove_file(bench.path("data/filler"));
        agent.says("the checkpoint can be written again");
        assert!(agent.terminate().success());
        let before = collector.records().len();
        append(&bench.log("a.log"), &lines(30..31));
        let agent = bench.start();
        arrive(&collector, 31);
        assert!(agent.terminate().success());
        assert_eq!(collector.records().len(), before + 1, "nothing is repeated");
    }
}

#[test]
fn a_first_start_that_would_leave_something_out_each_time_is_refused() {
    let (bench, collector) = (Bench::new(), Collector::start());
    let Some(disk) = Disk::mount(&bench.path("data")) else {
        return;
    };
    disk.remount("ro");
    bench.config(&format!(
        "pipelines:\n  app:\n    input: {{type: file, include: ['$DIR/logs/*.log'], start_at: end}}\n    \
         output: {{type: otlp, endpoint: {}}}\n",
        collector.endpoint()
    ));
    let mut agent = bench.start();
    assert_eq!(agent.end().code(), Some(1));
    let text = agent.own_log();
    let data = bench.path("data").display().to_string();
    assert!(
        text.contains(&data) && text.contains("set data_dir"),
        "{text}"
    );
}

/// Records that the server refuses wait while the disk of the dead-letter file is full; the others arrive meanwhile,
/// and those that wait are dead-lettered when there is room.
#[test]
fn a_full_disk_for_dead_letters_delays_only_what_belongs_there() {
    let (bench, collector) = (Bench::new(), Collector::start());
    let Some(disk) = Disk::mount(&bench.path("data/dead-letter")) else {
        return;
    };
    // Lines 100, 200, ... 900.
    let is_poison = |record: &Record| {
        let body = body(record);
        body.len() == "line 100".len() && body.ends_with("00")
    };
    collector.answer_if(
        move |records| records.iter().any(is_poison),
        Answer::status(400).message("cannot be"),
    );
    disk.fill();
    bench.pipeline(&collector.endpoint(), "json", "");
    append(&bench.log("a.log"), &lines(0..1000));
    let agent = bench.start();
    let (poison, mut written) = (9, 1000);
    // More comes all the time, so that no bad record is left with nothing to compare it with.
    let mut more = || {
        append(&bench.log("a.log"), &lines(written..written + 1));
        written += 1;
        written
    };
    until(
        || more() > 1020 && agent.own_log().contains("cannot be set aside and wait"),
        || agent.own_log(),
    );
    until(
        || more() < distinct(&collector) + poison + 20,
        || agent.own_log(),
    );
    let dead_letter_file = bench.path("data/dead-letter/app.ndjson");
    let dead_lettered =
        || std::fs::read_to_string(&dead_letter_file).map_or(0, |text| text.lines().count());
    assert_eq!(dead_lettered(), 0);
    std::fs::remove_file(bench.path("data/dead-letter/filler")).unwrap();
    until(
        || more() > 0 && dead_lettered() == poison,
        || agent.own_log(),
    );
    let written = more();
    arrive(&collector, written - poison);
    agent.says("the output holds no longer");
    assert_eq!(agent.terminate().code(), Some(0), "every record is acked");
    assert_eq!(dead_lettered(), poison);
    let refused = collector
        .records()
        .iter()
        .filter(|record| is_poison(record))
        .count();
    assert_eq!(refused, 0);
}

/// A limit on the size of files (`ulimit -f`) ends nothing: it is waited for, as for space.
#[test]
fn a_file_that_may_not_grow_is_waited_for() {
    const COUNT: usize = 10_000;
    let bench = Bench::new();
    bench.config(
        "pipelines:\n  app:\n    input: {type: file, include: ['$DIR/logs/*.log'], format: json}\n    batch: {max_wait: \
         20ms}\n    output: {type: file, path: $DIR/out.ndjson}\n",
    );
    let agent = bench.start();
    let limit = |bytes: Option<u64>| {
        let pid = Pid::from_raw(agent.pid().try_into().unwrap());
        let limit = Rlimit {
            current: bytes,
            maximum: None,
        };
        prlimit(pid, Resource::Fsize, limit).unwrap();
    };
    limit(Some(64 << 10));
    append(&bench.log("app.log"), &lines(0..COUNT));
    agent.says("cannot write to");
    limit(None);
    let out = bench.path("out.ndjson");
    let written = || std::fs::read_to_string(&out).unwrap().lines().count();
    until(|| written() == COUNT, || agent.own_log());
    assert_eq!(agent.terminate().code(), Some(0));
}
