//! What others put into the data directory, and what the agent leaves there: links, pipes, modes.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rustix::fs::{CWD, Mode, mkfifoat};
use tailrace_testkit::Collector;

use crate::support::{Bench, append, tailrace, until};

fn lines(range: std::ops::Range<usize>) -> Vec<u8> {
    let line = |n| format!("{{\"msg\":\"line {n}\"}}\n").into_bytes();
    range.flat_map(line).collect()
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn validate(config: &Path) -> Output {
    let mut command = tailrace();
    command
        .args(["validate", "-c"])
        .arg(config)
        .output()
        .unwrap()
}

/// Everything below a directory.
fn below(dir: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in fs::read_dir(dir).unwrap().flatten() {
        found.push(entry.path());
        if entry.path().is_dir() {
            found.extend(below(&entry.path()));
        }
    }
    found
}

#[test]
fn a_directory_that_others_can_change_is_refused_by_run_and_validate() {
    let bench = Bench::new();
    let (data, victim) = (bench.path("data"), bench.path("victim"));
    let config = bench.pipeline("http://127.0.0.1:1", "json", "");
    fs::write(&victim, "precious").unwrap();
    let open_to_all = || fs::set_permissions(&data, Permissions::from_mode(0o777)).unwrap();
    let link = || symlink(&victim, data.join("lock")).unwrap();
    let pipe = || mkfifoat(CWD, data.join("lock"), Mode::RUSR | Mode::WUSR).unwrap();
    let cases: [(&dyn Fn(), &str); 3] = [
        (&open_to_all, "everybody may write"),
        (&link, "a symbolic link"),
        (&pipe, "a named pipe"),
    ];
    for (prepare, says) in cases {
        let _ = fs::remove_dir_all(&data);
        fs::create_dir(&data).unwrap();
        assert_eq!(validate(&config).status.code(), Some(0));
        prepare();
        let mut agent = bench.start();
        assert_eq!(agent.end().code(), Some(1), "{says}");
        assert!(agent.own_log().contains(says), "{}", agent.own_log());
        let validated = validate(&config);
        let text = String::from_utf8_lossy(&validated.stderr);
        assert_eq!(validated.status.code(), Some(78), "{text}");
        assert!(text.contains(says), "{text}");
    }
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
}

#[test]
fn two_agents_do_not_share_a_data_directory() {
    let (bench, collector) = (Bench::new(), Collector::start());
    bench.pipeline(&collector.endpoint(), "json", "");
    let agent = bench.start();
    agent.says("running");
    let mut second = bench.start();
    assert_eq!(second.end().code(), Some(1));
    let said = second.own_log();
    let (mut paths, mut advice) = (said.matches("data_dir "), said.matches("give each agent"));
    assert!(paths.next().is_some() && paths.next().is_none(), "{said}");
    assert!(advice.next().is_some() && advice.next().is_none(), "{said}");
    assert!(!said.contains("the data directory"), "{said}");
    assert_eq!(agent.terminate().code(), Some(0));
}

#[test]
fn a_data_directory_that_is_removed_is_made_again() {
    let (bench, collector) = (Bench::new(), Collector::start());
    let (data, log) = (bench.path("data"), bench.log("a.log"));
    bench.pipeline(&collector.endpoint(), "json", "");
    append(&log, &lines(0..10));
    let agent = bench.start();
    collector.wait_records(10);
    until(
        || data.join("checkpoint.json").exists(),
        || "no checkpoint".to_owned(),
    );
    fs::remove_dir_all(&data).unwrap();
    agent.says("was removed or replaced while the agent runs");
    append(&log, &lines(10..20));
    collector.wait_records(20);
    let own_log = agent.log_path();
    assert_eq!(agent.terminate().code(), Some(0));
    let said = fs::read_to_string(own_log).unwrap();
    assert_eq!(said.matches("removed or replaced").count(), 1, "{said}");
    append(&log, &lines(20..30));
    let agent = bench.start();
    collector.wait_records(30);
    assert_eq!(agent.terminate().code(), Some(0));
    let arrived = collector.records().len();
    assert_eq!(arrived, 30, "nothing twice");
}

#[test]
fn links_and_pipes_in_place_of_state_are_replaced_and_nothing_is_lost() {
    let (bench, collector) = (Bench::new(), Collector::start());
    let (data, victim) = (bench.path("data"), bench.path("victim"));
    bench.pipeline(&collector.endpoint(), "json", "");
    fs::write(&victim, "precious").unwrap();
    let pipe = |path: &Path| mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR).unwrap();
    let link = |path: &Path| symlink(&victim, path).unwrap();
    let ways: [&dyn Fn(&Path); 2] = [&pipe, &link];
    append(&bench.log("a.log"), &lines(0..10));
    for way in ways {
        for name in [
            "checkpoint.json",
            "checkpoint.json.tmp",
            "checkpoint.journal",
            "starts",
            "in-progress/0",
        ] {
            let path = data.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let _ = fs::remove_file(&path);
            way(&path);
            let before = collector.records().len();
            append(&bench.log("a.log"), &lines(10..11));
            let agent = bench.start();
            collector.wait_records(before + 1);
            assert_eq!(agent.terminate().code(), Some(0), "{name}");
        }
    }
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
}

/// A shell that takes everything from its umask starts the agent.
#[test]
fn modes_do_not_depend_on_the_umask() {
    let bench = Bench::new();
    let config = bench.config(
        "pipelines:\n  app:\n    input: {type: stdin, queue: {type: disk}}\n    batch: {max_wait: 50ms}\n    output: \
         {type: file, path: '$DIR/out/deep/records.ndjson'}\n",
    );
    let script = "umask 0; printf '{\"msg\":\"a\"}\\n' | \"$0\" run -c \"$1\"";
    let mut command = Command::new("sh");
    command
        .args(["-c", script])
        .arg(tailrace().get_program())
        .arg(&config);
    let status = command.output().unwrap();
    assert!(status.status.success(), "{status:?}");
    let records = bench.path("out/deep/records.ndjson");
    assert!(fs::read_to_string(&records).unwrap().contains("\"a\""));
    let out = [bench.path("out"), bench.path("out/deep"), records];
    for path in out {
        assert_eq!(
            mode(&path) & 0o027,
            0,
            "{}: {:o}",
            path.display(),
            mode(&path)
        );
    }
    let state = below(&bench.path("data"));
    assert!(
        state.iter().any(|path| path.ends_with("queue/app")),
        "{state:?}"
    );
    for path in state.iter().chain([&bench.path("data")]) {
        assert_eq!(
            mode(path) & 0o077,
            0,
            "{}: {:o}",
            path.display(),
            mode(path)
        );
    }
}
