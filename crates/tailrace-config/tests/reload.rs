//! What a reload asks of a configuration: whether it means the same, and which files it is made of.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;

use tailrace_config::{Config, load_with_files};

fn loaded(text: &str) -> Config {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.yaml");
    fs::write(&path, text).unwrap();
    load_with_files(&[path], &|_| None).config.unwrap()
}

fn app(input: &str, more: &str) -> String {
    format!(
        "pipelines: {{app: {{input: {{type: file, include: [{input}]}}, {more}output: {{type: otlp}}}}}}"
    )
}

#[test]
fn pipelines_are_equal_that_mean_the_same() {
    let plain = loaded(&app("/a", ""));
    let same = "# moved\n\npipelines:\n  app:\n    outputs:\n      - type: otlp\n        timeout: 10000ms\n    \
                inputs:\n      - {include: ['/a'], type: file}\n    transform: SELECT * FROM logs\n";
    assert_eq!(plain.pipelines, loaded(same).pipelines);
    for other in [
        app("/b", ""),
        app("/a", "transform: SELECT a FROM logs, "),
        app("/a", "columns: {a: int64}, "),
        app("/a", "batch: {max_wait: 2s}, "),
        app("/a", "queue: {max_bytes: 9MiB}, "),
        app("/a", "dead_letter: {on_full: drop}, "),
        app("/a", "limits: {columns: 9}, "),
        app("/a", "").replace("{type: otlp}", "{type: otlp, headers: {a: b}}"),
        app("/a", "").replace("{type: otlp}", "{type: discard}"),
        app("/a", "").replace("{type: otlp}", "{type: otlp, required: false}"),
        app("/a", "").replace("{type: file, include: [/a]}", "{type: stdin}"),
    ] {
        assert_ne!(plain.pipelines, loaded(&other).pipelines, "{other}");
    }
}

#[test]
fn every_file_is_named_that_was_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.yaml");
    let output = "{type: otlp, endpoint: 'https://a', headers: {a: '${file:/no/a}', b: '${X:-${file:/no/b}}'}, \
                  tls: {ca_file: /no/ca}}";
    let text = app("/a", "").replace("{type: otlp}", output);
    fs::write(&path, &text).unwrap();
    let loaded = load_with_files(std::slice::from_ref(&path), &|_| None);
    assert!(loaded.config.is_err());
    assert_eq!(loaded.files, std::slice::from_ref(&path));
    assert_eq!(loaded.others, ["/no/a", "/no/b"].map(PathBuf::from).into());
    fs::write(
        &path,
        text.replace("${file:/no/a}", "a")
            .replace("${X:-${file:/no/b}}", "b"),
    )
    .unwrap();
    let loaded = load_with_files(std::slice::from_ref(&path), &|_| None);
    assert!(loaded.config.is_ok());
    assert_eq!(loaded.others, ["/no/ca"].map(PathBuf::from).into());
}
