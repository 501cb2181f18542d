//! 200 configs that went wrong in the ways in which they do: `validate` refuses what `run` refuses, and says where and why.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod mutate;

use std::fs;
use std::path::Path;

use tailrace_config::Diagnostic;

use super::*;
use crate::validate;

/// Mutated configs.
const CONFIGS: usize = 200;

const BASE: &str = r#"# The shop.
version: 1
data_dir: ./unused
x-retry: &retry {initial: 1s, max: 30s}

pipelines:
  app:
    inputs:
      - type: file
        include: ['$DIR/logs/*.log', "$DIR/more/[a-z]*.log"]
        exclude: [$DIR/logs/debug-*.log]
        format: auto
        multiline: {preset: [java, python], timeout: 1s}
        max_record_bytes: 1MiB
        ignore_older: 7d
        timezone: +02:00
    columns: {status: int64}
    transform: |
      SELECT *, upper(level) AS severity
      FROM logs
      WHERE status >= 400 AND host IN ('a', 'b')
    outputs:
      - name: main
        type: otlp
        endpoint: http://127.0.0.1:1
        compression: gzip
        headers: {x-scope: "${HOME:-none}"}
        retry: *retry
        timeout: 10s
        concurrency: 2
      - {name: copy, type: file, path: $DIR/copy.ndjson}
    batch: {max_bytes: 256KiB, max_wait: 1s}
    queue:
      max_bytes: 8MiB
  raw:
    input: {type: file, include: $DIR/raw/*.log, format: raw}
    output: {type: discard}

resource:
  service.name: shop
  home: ${HOME:-none}
admin: {listen: '127.0.0.1:0'}
shutdown: {grace: 5s}
limits: {memory: 128MiB}
workers: 1
"#;

/// What `run` does with a config: everything up to reading, and an end at once.
fn start(config: &ConfigArgs) -> Result<(), Failure> {
    let args = Args {
        config: config.clone(),
        watch: false,
    };
    let launched = launch(&args, reload::triggers(), &Notify::default())?;
    launched.agent.run(async {}, launched.reloads);
    drop(launched.admin);
    Ok(())
}

/// Both verdicts on a text.
fn verdicts(dir: &Path, text: &str) -> (Vec<Diagnostic>, Result<(), Failure>) {
    fs::create_dir_all(dir).unwrap();
    let path = dir.join("t.yaml");
    fs::write(&path, text.replace("$DIR", &dir.display().to_string())).unwrap();
    let config = ConfigArgs {
        config: vec![path],
        // Whatever became of the config's own.
        data_dir: Some(dir.join("data")),
        ..ConfigArgs::default()
    };
    (validate::errors(&config).unwrap(), start(&config))
}

#[test]
fn validate_and_run_agree_on_200_mutated_configs() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let root = tempfile::tempdir().unwrap();
    let (found, started) = verdicts(&root.path().join("base"), BASE);
    assert!(found.is_empty() && started.is_ok(), "{found:?} {started:?}");

    let (mut refused, mut messages, mut with_hint) = (0, 0, 0);
    let mut faults = Vec::new();
    for n in 0..CONFIGS {
        let (what, text) = mutate::mutated(BASE, n);
        let (found, started) = verdicts(&root.path().join(n.to_string()), &text);
        let is_same = match &started {
            Ok(()) => found.is_empty(),
            Err(Failure::Config(of_run)) => found == *of_run,
            Err(_) => !found.is_empty(),
        };
        let has_place =
            |it: &Diagnostic| it.line > 0 && it.column > 0 && !it.message.trim().is_empty();
        if !is_same || !found.iter().all(has_place) {
            faults.push(format!("{n} {what}\nvalidate {found:?}\nrun {started:?}"));
        }
        refused += usize::from(!found.is_empty());
        messages += found.len();
        for diagnostic in &found {
            with_hint += usize::from(diagnostic.hint.is_some());
            eprintln!("--- {n} {what}\n{diagnostic}");
        }
    }
    eprintln!("{refused} of {CONFIGS} refused, {with_hint} of {messages} messages with a hint");
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
    assert!(refused * 2 > CONFIGS, "{refused}");
    assert!(
        with_hint * 100 >= messages * 97,
        "{with_hint} of {messages}"
    );
}
