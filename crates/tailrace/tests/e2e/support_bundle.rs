//! `tailrace support-bundle`: all of it that can be had, and nothing that must not leave the machine.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use tailrace_testkit::{Answer, Collector};

use crate::support::{Bench, append, get, tailrace, until};

/// The files of an archive.
fn parts(archive: &[u8]) -> BTreeMap<String, String> {
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive));
    let mut parts = BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        assert_eq!(entry.header().mode().unwrap(), 0o600);
        let path = entry.path().unwrap().display().to_string();
        let name = path.strip_prefix("tailrace-support/").unwrap().to_owned();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        parts.insert(name, text);
    }
    parts
}

fn bundle(command: &mut Command) -> (Output, BTreeMap<String, String>) {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let parts = parts(&output.stdout);
    (output, parts)
}

#[test]
fn a_running_agent_is_described_without_secrets_or_log_lines() {
    let (mut bench, collector) = (Bench::new(), Collector::start());
    // A server that quotes the record which it refuses.
    collector.always(Answer::status(503).message("cannot take planted-line"));
    fs::create_dir_all(bench.path("data")).unwrap();
    fs::set_permissions(bench.path("data"), PermissionsExt::from_mode(0o700)).unwrap();
    fs::write(bench.path("data/planted-variable.tmp"), "planted-content").unwrap();
    fs::write(bench.path("secret"), "planted-file").unwrap();
    bench.set("PLANTED", "planted-variable");
    let secrets = bench.path("secret");
    let endpoint = collector.endpoint();
    let config = bench.config(&format!(
        "pipelines:\n  app:\n    input: {{type: file, include: ['$DIR/logs/*.log']}}\n    output:\n      \
         type: otlp\n      endpoint: {endpoint}\n      retry: {{initial: 50ms, max: 200ms}}\n      headers:\n        \
         x-a: planted-literal\n        x-b: ${{PLANTED}}\n        x-c: ${{file:{}}}\nadmin: {{listen: '127.0.0.1:0', \
         token: planted-admin-token}}\n",
        secrets.display()
    ));
    append(&bench.log("a.log"), b"{\"msg\":\"planted-line\"}\n");
    let agent = bench.start();
    let admin = agent.admin();
    let is_refused = || get(&admin, "/healthz").contains("planted-line");
    until(is_refused, || get(&admin, "/healthz"));
    let mut command = tailrace();
    command.env("PLANTED", "planted-variable");
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "x-d=planted-header");
    command.env("TAILRACE_LOG", "info");
    command
        .args(["support-bundle", "--admin", &admin, "--output", "-", "-c"])
        .arg(&config);
    let (_, parts) = bundle(&mut command);
    for name in [
        "MANIFEST.txt",
        "config.yaml",
        "validate.json",
        "explain.json",
        "data_dir.txt",
        "limits.txt",
        "variables.txt",
        "version.txt",
        "agent/status.json",
        "agent/ready.json",
        "agent/health.json",
        "agent/ledger.json",
        "agent/metrics.txt",
    ] {
        assert!(
            parts.get(name).is_some_and(|text| !text.is_empty()),
            "{name} in {parts:#?}"
        );
    }
    for (name, text) in &parts {
        let leaked = text
            .find("planted-")
            .map(|at| &text[at.saturating_sub(80)..]);
        assert_eq!(leaked, None, "in {name}");
        if name.ends_with(".json") {
            serde_json::from_str::<serde_json::Value>(text).unwrap();
        }
    }
    assert!(
        parts["config.yaml"].contains("x-b: \"${PLANTED}\""),
        "{}",
        parts["config.yaml"]
    );
    assert!(
        parts["data_dir.txt"].contains(": ${PLANTED}.tmp"),
        "{}",
        parts["data_dir.txt"]
    );
    assert!(parts["variables.txt"].contains("OTEL_EXPORTER_OTLP_HEADERS\n"));
    assert!(parts["agent/metrics.txt"].contains("tailrace_input_read_bytes_total"));
    assert!(parts["agent/health.json"].contains("[left out]"));
    // What servers said is in it only if that was asked for.
    let (_, parts) = bundle(command.arg("--with-errors"));
    assert!(parts["agent/health.json"].contains("planted-line"));
}

#[test]
fn what_was_pasted_into_a_config_stays_out() {
    let bench = Bench::new();
    let output =
        |name: &str, url: &str| format!("- {{type: http, name: {name}, endpoint: '{url}'}}");
    let config = |tests: &str| {
        let outputs = [
            output("x", "https://${HOST}/ingest?key=planted-beside"),
            output("y", "${URL:-https://127.0.0.1/x?key=planted-within}"),
        ];
        bench.config(&format!(
            "pipelines:\n  app:\n    input: {{type: stdin}}\n    outputs: [{}, {}]\ntests: [{tests}]\n",
            &outputs[0][2..],
            &outputs[1][2..],
        ))
    };
    let parts = |path: &std::path::Path| {
        let mut command = tailrace();
        command.env("HOST", "h.invalid").env_remove("URL");
        command.args(["support-bundle", "--output", "-", "-c"]);
        let (_, parts) = bundle(command.arg(path));
        for (name, text) in &parts {
            assert!(!text.contains("planted-"), "{name}: {text}");
        }
        parts
    };
    let sound = "{name: a, lines: '{\"m\":\"planted-line\"}', expect: {rows: [{m: planted-row}]}}";
    let all = parts(&config(sound));
    let yaml = &all["config.yaml"];
    for shown in [
        "https://${HOST}/ingest?[redacted]",
        "${URL:-https://127.0.0.1/x?[redacted]}",
    ] {
        assert!(yaml.contains(shown), "{shown} in {yaml}");
    }
    assert!(!yaml.contains("tests"), "{yaml}");
    let manifest = &all["MANIFEST.txt"];
    for said in [
        "the effective config without `tests`",
        "`tests` of the config, which quote them",
    ] {
        assert!(manifest.contains(said), "{said} in {manifest}");
    }
    // Nor is it quoted where it is wrong.
    let all = parts(&config(
        "{name: a, lines: x, expect: {rows: [planted-row]}}",
    ));
    let verdict = &all["validate.json"];
    assert!(
        verdict.contains("tests.0.expect.rows: [left out]"),
        "{verdict}"
    );
}

#[test]
fn half_of_it_may_be_missing() {
    let bench = Bench::new();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap().to_string();
    drop(closed);
    let broken = bench.config("pipelines: {}\nadmin: {listne: planted}\n");
    let sound = bench.path("sound.yaml");
    fs::write(
        &sound,
        format!(
            "pipelines: {{a: {{input: {{type: stdin}}, output: {{type: stdout}}}}}}\nadmin: {{listen: '{address}'}}\n\
             data_dir: {}\n",
            bench.path("none").display()
        ),
    )
    .unwrap();
    let manifest = |arguments: &[&str]| {
        let mut command = tailrace();
        command
            .args(["support-bundle", "--output", "-"])
            .args(arguments);
        let (_, mut parts) = bundle(&mut command);
        assert!(parts.contains_key("version.txt"));
        parts.remove("MANIFEST.txt").unwrap()
    };
    for (arguments, reasons) in [
        (
            &[][..],
            &[
                "no config is given",
                "no config says where",
                "name it with --admin",
            ][..],
        ),
        (
            &["-c", broken.to_str().unwrap()],
            &["the config is refused: there is no pipeline"],
        ),
        (
            &["-c", sound.to_str().unwrap()],
            &["does not answer", "No such file"],
        ),
        (&["-c", "/proc/none.yaml"], &["cannot be read"]),
    ] {
        let manifest = manifest(arguments);
        for reason in reasons {
            assert!(manifest.contains(reason), "{reason} in {manifest}");
        }
    }
}

#[test]
fn the_archive_is_for_its_user_alone_and_overwrites_nothing() {
    let bench = Bench::new();
    let path = bench.path("support.tar.gz");
    let run = || {
        let mut command = tailrace();
        command
            .args(["support-bundle", "--output"])
            .arg(&path)
            .output()
            .unwrap()
    };
    let output = run();
    assert!(output.status.success());
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        said.contains("without config.yaml: no config is given"),
        "{said}"
    );
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let written = fs::read(&path).unwrap();
    let parts = parts(&written);
    assert!(parts.contains_key("MANIFEST.txt"));
    assert!(said.contains(&format!(": {} files", parts.len())), "{said}");
    assert_eq!(run().status.code(), Some(1));
    assert_eq!(fs::read(&path).unwrap(), written);
}
