//! Files that are truncated, replaced or deleted before the agent looked, also without inotify.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::Value;
use tailrace_testkit::{Answer, Collector};

use crate::agent::{arrivals, lines};
use crate::support::{Agent, Bench, append, get, until};

/// The agent's ledger of its one pipeline.
fn ledger(agent: &Agent) -> Value {
    let report: Value = serde_json::from_str(&get(&agent.admin(), "/api/v1/ledger")).unwrap();
    report["pipelines"][0].clone()
}

const ADMIN: &str = "admin: {listen: 127.0.0.1:0}\n";

/// logrotate's copytruncate with a writer that does not append: its file is a hole up to where it was.
#[test]
fn a_hole_in_a_file_that_was_cut_costs_no_record() {
    let (bench, collector) = (Bench::new(), Collector::start());
    bench.pipeline(&collector.endpoint(), "json", ADMIN);
    let agent = bench.start();
    let log = File::create(bench.log("a.log")).unwrap();
    let first = lines(0..40_000);
    log.write_all_at(&first, 0).unwrap();
    assert!(first.len() > 1 << 20);
    collector.wait_records(40_000);
    log.set_len(0).unwrap();
    let more = lines(40_000..40_010);
    log.write_all_at(&more, first.len() as u64).unwrap();
    collector.wait_records(40_010);
    let report = ledger(&agent);
    assert_eq!(report["skipped_bytes"]["nul"], first.len());
    assert_eq!(report["malformed_records"], 0);
    assert_eq!(report["truncated_unread"]["truncations"], 1);
    assert_eq!(agent.terminate().code(), Some(0));
    // And at a start whose first byte is behind the hole.
    let agent = bench.start();
    let at = first.len() + more.len();
    log.write_all_at(&lines(40_010..40_020), at as u64).unwrap();
    collector.wait_records(40_020);
    assert_eq!(agent.terminate().code(), Some(0));
    let arrived = arrivals(&collector);
    assert!(arrived.len() == 40_020 && arrived.values().all(|&times| times == 1));
}

#[test]
fn a_replacement_of_the_same_size_while_the_agent_was_down_is_read() {
    let (bench, collector) = (Bench::new(), Collector::start());
    bench.pipeline(&collector.endpoint(), "json", "");
    append(&bench.log("a.log"), &lines(100..200));
    let agent = bench.start();
    collector.wait_records(100);
    assert_eq!(agent.terminate().code(), Some(0));
    fs::write(bench.log("a.log"), lines(200..300)).unwrap();
    let agent = bench.start();
    collector.wait_records(200);
    assert_eq!(agent.terminate().code(), Some(0));
    let arrived = arrivals(&collector);
    assert!(arrived.into_iter().eq((100..300).map(|seq| (seq, 1))));
}

/// Nobody follows the files in the grace period: one that is renamed then is found all the same.
#[test]
fn an_end_in_an_outage_knows_a_file_that_is_rotated_meanwhile() {
    let (bench, collector) = (Bench::new(), Collector::start());
    collector.always(Answer::status(503));
    let settings = format!("shutdown: {{grace: 3s}}\n{ADMIN}");
    bench.pipeline(&collector.endpoint(), "json", &settings);
    append(&bench.log("a.log"), &lines(0..1000));
    let mut agent = bench.start();
    let bytes = lines(0..1000).len();
    until(
        || ledger(&agent)["read_bytes"] == bytes,
        || ledger(&agent).to_string(),
    );
    agent.signal(Signal::TERM);
    until(|| !has_reader(&agent), || agent.own_log());
    fs::rename(bench.log("a.log"), bench.log("a.log.1")).unwrap();
    append(&bench.log("a.log"), &lines(1000..1001));
    assert_eq!(agent.end().code(), Some(3));
    let said = agent.own_log();
    let last = said.lines().last().unwrap();
    assert!(last.contains("they stay in their files"), "{last}");
    let agent = recovered(&bench, &collector);
    collector.wait_records(1001);
    assert!(ledger(&agent)["lost_bytes"].as_object().unwrap().is_empty());
    assert_eq!(agent.terminate().code(), Some(0));
}

/// Whether a thread of the agent reads logs.
fn has_reader(agent: &Agent) -> bool {
    let threads = fs::read_dir(format!("/proc/{}/task", agent.pid())).unwrap();
    let name = |thread: std::io::Result<fs::DirEntry>| {
        fs::read_to_string(thread.ok()?.path().join("comm")).ok()
    };
    let mut names = threads.filter_map(name);
    names.any(|name| name.starts_with("tailrace-read"))
}

/// What was read and is in no file any more is not said to stay there; the next start counts it.
#[test]
fn an_end_in_an_outage_says_what_a_truncation_took() {
    for stays in [false, true] {
        let (bench, collector) = (Bench::new(), Collector::start());
        collector.always(Answer::status(503));
        bench.pipeline(
            &collector.endpoint(),
            "json",
            &format!("shutdown: {{grace: 100ms}}\n{ADMIN}"),
        );
        append(&bench.log("a.log"), &lines(0..1000));
        let agent = bench.start();
        collector.wait_requests(1);
        let bytes = lines(0..1000).len();
        until(
            || ledger(&agent)["read_bytes"] == bytes,
            || ledger(&agent).to_string(),
        );
        if !stays {
            fs::write(bench.log("a.log"), "").unwrap();
            until(
                || ledger(&agent)["truncated_unread"]["truncations"] == 1,
                || ledger(&agent).to_string(),
            );
        }
        let own_log = agent.log_path();
        assert_eq!(agent.terminate().code(), Some(3));
        let said = fs::read_to_string(own_log).unwrap();
        let last = said.lines().last().unwrap();
        assert!(
            last.starts_with(&format!("stopped with {bytes} bytes")),
            "{last}"
        );
        assert_eq!(last.contains("they stay in their files"), stays, "{last}");
        assert_eq!(last.contains("truncated or deleted"), !stays, "{last}");
        let agent = recovered(&bench, &collector);
        append(&bench.log("a.log"), &lines(1000..1001));
        let expected = if stays { 1001 } else { 1 };
        collector.wait_records(expected);
        let lost = &ledger(&agent)["lost_bytes"]["truncated"];
        assert_eq!(
            lost.as_u64().unwrap_or(0),
            if stays { 0 } else { bytes as u64 }
        );
        assert_eq!(agent.terminate().code(), Some(0));
    }
}

/// An agent whose server refuses everything, and that can read no more.
fn held_back(bench: &Bench, collector: &Collector) -> Agent {
    collector.always(Answer::status(503));
    let settings = format!(
        "      compression: none\n    queue: {{max_bytes: 5MiB}}\nshutdown: {{grace: 0s}}\n{ADMIN}"
    );
    bench.pipeline(&collector.endpoint(), "json", &settings);
    append(&bench.log("a.log"), &lines(0..200_000));
    let agent = bench.start();
    // Until the ledger stays as it is.
    let (mut read_before, mut alike) = (0, 0);
    until(
        || {
            let read = ledger(&agent)["read_bytes"].as_u64().unwrap();
            let is_alike = std::mem::replace(&mut read_before, read) == read && read > 0;
            alike = if is_alike { alike + 1 } else { 0 };
            alike == 50
        },
        || ledger(&agent).to_string(),
    );
    agent
}

/// The next start after an outage. Its end waits for the answers, unlike the one in the outage.
fn recovered(bench: &Bench, collector: &Collector) -> Agent {
    collector.always(Answer::ok());
    bench.pipeline(&collector.endpoint(), "json", ADMIN);
    bench.start()
}

/// What the agent knows of a file.
fn source(agent: &Agent, path: &Path) -> Option<Value> {
    let sources = ledger(agent)["sources"].as_array().unwrap().clone();
    let is_it = |source: &Value| source["path"] == path.to_str().unwrap();
    sources.into_iter().find(is_it)
}

/// Writes a file of which such an agent reads nothing, and waits until it knows how long that is.
fn unread(bench: &Bench, agent: &Agent) -> (PathBuf, u64) {
    let (path, bytes) = (bench.log("b.log"), lines(200_000..201_000));
    append(&path, &bytes);
    let len = bytes.len() as u64;
    until(
        || source(agent, &path).is_some_and(|b| b["size"] == len),
        || ledger(agent).to_string(),
    );
    assert_eq!(source(agent, &path).unwrap()["read_to"], 0);
    (path, len)
}

/// Ends an agent once a checkpoint speaks of this file: what none was written of yet, nobody knows after a kill.
fn end(bench: &Bench, agent: Agent, file: &str, is_killed: bool) {
    if !is_killed {
        assert_eq!(agent.terminate().code(), Some(3));
        return;
    }
    let checkpoint = || {
        let kept = fs::read_dir(bench.path("data")).unwrap();
        let kept = kept.map(|it| it.unwrap().path());
        let kept = kept.filter(|it| it.to_string_lossy().contains("checkpoint."));
        let texts = kept.filter_map(|it| fs::read(it).ok());
        texts
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .collect::<String>()
    };
    until(|| checkpoint().contains(file), checkpoint);
    agent.kill();
}

/// While no more can be read, a file comes and goes: no end of the agent hides that.
#[test]
fn what_is_deleted_unread_in_an_outage_is_counted() {
    for is_killed in [false, true] {
        let (bench, collector) = (Bench::new(), Collector::start());
        let agent = held_back(&bench, &collector);
        let (b, lost) = unread(&bench, &agent);
        end(&bench, agent, "b.log", is_killed);
        fs::remove_file(&b).unwrap();
        let agent = recovered(&bench, &collector);
        collector.wait_records(200_000);
        until(
            || ledger(&agent)["lost_bytes"]["vanished"] == lost,
            || ledger(&agent).to_string(),
        );
        assert_eq!(ledger(&agent)["lost_files"]["vanished"], 1);
        assert_eq!(agent.terminate().code(), Some(0));
    }
}

/// What is cut while no more can be read is counted once, by the agent that saw it.
#[test]
fn what_is_cut_unread_in_an_outage_is_counted_once() {
    for is_killed in [false, true] {
        let (bench, collector) = (Bench::new(), Collector::start());
        let agent = held_back(&bench, &collector);
        let (b, lost) = unread(&bench, &agent);
        fs::write(&b, lines(201_000..201_010)).unwrap();
        until(
            || ledger(&agent)["lost_bytes"]["truncated"] == lost,
            || ledger(&agent).to_string(),
        );
        end(&bench, agent, "\"generation\":1", is_killed);
        let agent = recovered(&bench, &collector);
        collector.wait_records(200_010);
        let lost = &ledger(&agent)["lost_bytes"];
        assert_eq!(lost["truncated"].as_u64().unwrap_or(0), 0, "{lost}");
        assert_eq!(agent.terminate().code(), Some(0));
    }
}

#[test]
fn a_file_that_nobody_saw_is_a_loss_in_the_metrics() {
    let (bench, collector) = (Bench::new(), Collector::start());
    bench.pipeline(&collector.endpoint(), "json", ADMIN);
    let agent = bench.start();
    let admin = agent.admin();
    // One may be opened before it is gone: then it is read.
    until(
        || {
            append(&bench.log("brief.log"), b"");
            fs::remove_file(bench.log("brief.log")).unwrap();
            get(&admin, "/metrics").contains(
                "tailrace_input_lost_files_total{pipeline=\"app\",reason=\"missed_file\"}",
            )
        },
        || get(&admin, "/metrics"),
    );
    assert!(ledger(&agent)["lost_files"]["missed_file"].as_u64() > Some(0));
    assert_eq!(ledger(&agent)["lost_bytes"]["missed_file"], 0);
    assert_eq!(agent.terminate().code(), Some(0));
}

/// Nothing reports a change, and the directory is empty at the first start.
#[test]
fn without_inotify_what_is_rotated_at_once_is_found() {
    let (bench, collector) = (Bench::new(), Collector::start());
    bench.pipeline(&collector.endpoint(), "json", ADMIN);
    let Some(agent) = bench.start_without_inotify() else {
        eprintln!("SKIPPED: no user namespace without inotify can be made here");
        return;
    };
    agent.says("files are polled instead");
    let mut written = 0;
    for round in 0..10 {
        for age in (1..3).rev() {
            let name = |age| bench.log(&format!("a.log.{age}"));
            let _ = fs::rename(name(age), name(age + 1));
        }
        let _ = fs::rename(bench.log("a.log"), bench.log("a.log.1"));
        append(&bench.log("a.log"), &lines(written..written + 200));
        written += 200;
        // Two files are rotated unseen in each round but the first, which no agent has seen either.
        if round % 3 == 2 {
            collector.wait_records(written);
        }
    }
    collector.wait_records(written);
    let arrived = arrivals(&collector);
    assert!(arrived.into_iter().eq((0..written).map(|seq| (seq, 1))));
    assert_eq!(agent.terminate().code(), Some(0));
}
