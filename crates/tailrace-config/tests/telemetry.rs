//! Where the agent's own logs and metrics go, by the configuration.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::time::Duration;

use tailrace_config::{Config, LogLevel, load};

fn loaded(telemetry: &str, output: &str) -> Config {
    let text = format!(
        "telemetry: {telemetry}
pipelines:
  a: {{input: {{type: file, include: /a}}, output: {output}}}
  b: {{input: {{type: file, include: /b}}, outputs: [{output}, {{type: stdout, name: y}}]}}
"
    );
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.yaml");
    fs::write(&path, text).unwrap();
    load(&[path], &|_| None).unwrap()
}

#[test]
fn without_the_section_nothing_is_sent() {
    let config = loaded("{}", "{type: otlp, name: x}");
    assert!(config.telemetry_output().is_none());
    assert_eq!(config.telemetry_metrics_url(), None);
}

#[test]
fn the_urls_follow_from_the_output() {
    let url = |telemetry: &str, output: &str| {
        let config = loaded(telemetry, output);
        assert_eq!(config.telemetry_output().unwrap().name, "x");
        config.telemetry_metrics_url()
    };
    let cases = [
        (
            "{output: x}",
            "endpoint: 'http://h:1/base/'",
            "http://h:1/base/v1/metrics",
        ),
        ("{output: a/x}", "protocol: grpc", "http://localhost:4317"),
        (
            "{output: b/x}",
            "protocol: grpc, logs_endpoint: 'http://h:1'",
            "http://h:1",
        ),
        (
            "{output: x, metrics_endpoint: 'https://h/m?k=v'}",
            "logs_endpoint: 'http://h/l'",
            "https://h/m?k=v",
        ),
        (
            "{output: x, metrics_endpoint: 'https://h/m'}",
            "endpoint: 'http://h'",
            "https://h/m",
        ),
    ];
    for (telemetry, output, expected) in cases {
        let output = format!("{{type: otlp, name: x, {output}}}");
        assert_eq!(
            url(telemetry, &output).as_deref(),
            Some(expected),
            "{output}"
        );
    }
    let only_logs = "{output: x, metrics_interval: off}";
    assert_eq!(
        url(
            only_logs,
            "{type: otlp, name: x, logs_endpoint: 'http://h/l'}"
        ),
        None
    );
}

#[test]
fn both_can_be_switched_off_in_every_spelling() {
    let telemetry = |text: &str| loaded(text, "{type: otlp, name: x}").telemetry;
    let default = telemetry("{output: x}");
    assert_eq!(default.logs, Some(LogLevel::Warn));
    assert_eq!(default.metrics_interval, Some(Duration::from_secs(60)));
    // Helm reads `off` as a boolean.
    for off in ["off", "false"] {
        let both = telemetry(&format!(
            "{{output: x, logs: {off}, metrics_interval: {off}}}"
        ));
        assert_eq!((both.logs, both.metrics_interval), (None, None), "{off}");
    }
    for zero in ["0", "0s", "0ms"] {
        let none = telemetry(&format!("{{output: x, metrics_interval: {zero}}}"));
        assert_eq!(none.metrics_interval, None, "{zero}");
    }
    let some = telemetry("{output: x, logs: debug, metrics_interval: 1m30s}");
    assert_eq!(some.logs, Some(LogLevel::Debug));
    assert_eq!(some.metrics_interval, Some(Duration::from_secs(90)));
}
