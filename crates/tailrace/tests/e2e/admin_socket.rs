//! The admin endpoint on a Unix socket, and the commands that ask there.

use std::fs;
use std::os::unix::fs::chown;
use std::process::Stdio;

use serde_json::Value;
use tailrace_testkit::Collector;

use crate::admin_api::{LINES, ledger, parsed, said};
use crate::health::{NOBODY, make_open, unprivileged};
use crate::support::{Bench, append, tailrace, until};

#[test]
fn what_may_not_be_read_is_a_reason_and_counted() {
    let (bench, collector) = (Bench::new(), Collector::start());
    let socket = format!("unix:{}", bench.path("admin/admin.sock").display());
    append(&bench.log("open.log"), b"{\"n\":1}\n");
    for n in 0..20 {
        append(&bench.log(&format!("closed-{n}.log")), b"{\"n\":1}\n");
        make_open(&bench.log(&format!("closed-{n}.log")), 0o000);
    }
    bench.pipeline(
        &collector.endpoint(),
        "json",
        &format!("admin: {{listen: '{socket}'}}\n"),
    );
    let mut command = unprivileged(&bench, &["run"]);
    fs::create_dir(bench.path("admin")).unwrap();
    make_open(&bench.path("admin"), 0o770);
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        chown(bench.path("admin"), Some(0), Some(NOBODY)).unwrap();
    }
    let own_log = bench.path("own.log");
    let mut agent = command
        .stdin(Stdio::null())
        .stderr(fs::File::create(&own_log).unwrap())
        .spawn()
        .unwrap();
    collector.wait_records(1);
    if is_root {
        // Nobody else could take the path here, but the directory does not say that it is this user's.
        let text = said(&ledger(&socket, &[]));
        assert!(text.contains("user 65534 listens on"), "{text}");
        chown(bench.path("admin"), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let reasons = || ledger(&socket, &["--reasons", "--json"]);
    let denied = |report: &Value| {
        let list = report["reasons"].as_array().unwrap();
        list.iter()
            .filter(|reason| reason["kind"] == "denied")
            .cloned()
            .collect::<Vec<_>>()
    };
    let ten = || reasons().status.success() && denied(&parsed(&said(&reasons()))).len() == 10;
    until(ten, || said(&reasons()));
    let reason = &denied(&parsed(&said(&reasons())))[0];
    assert!(
        reason["subject"]
            .as_str()
            .unwrap()
            .contains("/logs/closed-"),
        "{reason}"
    );
    assert!(
        reason["reason"]
            .as_str()
            .unwrap()
            .contains("CAP_DAC_READ_SEARCH"),
        "{reason}"
    );
    let text = fs::read_to_string(&own_log).unwrap();
    let warnings = text.lines().filter(|line| line.contains("closed-")).count();
    assert!(
        (1..=5).contains(&warnings),
        "{warnings} lines for 20 files: {text}"
    );
    let ready = || {
        let command = tailrace().args(["ready", "--admin", &socket]).output();
        command.unwrap()
    };
    until(|| ready().status.code() == Some(1), || said(&ready()));
    let text = said(&ready());
    assert!(text.contains("CAP_DAC_READ_SEARCH"), "{text}");
    agent.kill().unwrap();
    agent.wait().unwrap();
}

#[test]
fn a_socket_is_listened_on_and_replaced_only_when_nobody_does() {
    use std::os::unix::fs::MetadataExt;
    let (bench, collector) = (Bench::new(), Collector::start());
    let path = bench.path("admin.sock");
    let socket = format!("unix:{}", path.display());
    append(&bench.log("a.log"), LINES);
    let config = bench.pipeline(
        &collector.endpoint(),
        "json",
        &format!("admin: {{listen: '{socket}'}}\n"),
    );
    let agent = bench.start();
    assert_eq!(agent.admin(), socket);
    assert_eq!(fs::symlink_metadata(&path).unwrap().mode() & 0o777, 0o600);
    collector.wait_records(5);
    let is_ready = || {
        let ready = tailrace()
            .arg("ready")
            .env("TAILRACE_ADMIN", &socket)
            .output()
            .unwrap();
        assert!(ready.status.success(), "{}", said(&ready));
    };
    is_ready();
    assert!(said(&ledger(&socket, &[])).contains("pipeline app"));
    let validate = || {
        tailrace()
            .args(["validate", "-c"])
            .arg(&config)
            .output()
            .unwrap()
    };
    // The agent of this data directory has it: a restart frees it.
    assert!(validate().status.success(), "{}", said(&validate()));
    let other = ["--data-dir", "other"];
    let elsewhere = tailrace()
        .args(["validate", "-c"])
        .arg(&config)
        .args(other)
        .current_dir(bench.path(""))
        .output();
    let text = said(&elsewhere.unwrap());
    assert!(
        text.contains("a process listens on this socket") && text.contains("choose another path"),
        "{text}"
    );
    // Its name stays, and the next start takes it.
    agent.kill();
    assert!(path.exists());
    let unreachable = ledger(&socket, &[]);
    assert!(
        said(&unreachable).contains("does it run"),
        "{}",
        said(&unreachable)
    );
    let agent = bench.start();
    agent.says("admin endpoint");
    is_ready();
    assert_eq!(agent.terminate().code(), Some(0));
    assert!(!path.exists());

    fs::write(&path, "not a socket").unwrap();
    let text = said(&validate());
    assert!(
        text.contains("tailrace.yaml:") && text.contains("no socket is at this path"),
        "{text}"
    );
    let mut agent = bench.start();
    assert_eq!(agent.end().code(), Some(1));
    assert!(
        agent.own_log().contains("no socket is at this path"),
        "{}",
        agent.own_log()
    );
    assert_eq!(fs::read(&path).unwrap(), b"not a socket");
}
