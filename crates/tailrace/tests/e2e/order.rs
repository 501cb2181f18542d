//! Outputs that write lines keep the order of each file, however many workers there are.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::support::{Bench, append, until};

#[test]
fn a_file_output_keeps_the_order_of_each_file() {
    const FILES: usize = 3;
    const LINES: usize = 30_000;
    let bench = Bench::new();
    bench.config(
        "pipelines:\n  app:\n    input: {type: file, include: ['$DIR/logs/*.log'], format: json}\n    \
         batch: {max_bytes: 64KiB, max_wait: 10ms}\n    \
         transform: SELECT file, n, repeat(text, 4) AS text FROM logs WHERE n % 7 <> 0\n    \
         output: {type: file, path: $DIR/out.ndjson}\nworkers: 4\nlimits: {memory: 128MiB}\n",
    );
    let text = |n: usize| "x".repeat(n % 300);
    for file in 0..FILES {
        let line = |n| format!("{{\"file\":{file},\"n\":{n},\"text\":\"{}\"}}\n", text(n));
        let lines: String = (0..LINES).map(line).collect();
        append(&bench.log(&format!("{file}.log")), lines.as_bytes());
    }
    let agent = bench.start();
    let out = bench.path("out.ndjson");
    let expect: Vec<u64> = (0..LINES as u64).filter(|n| n % 7 != 0).collect();
    let count = || fs::read(&out).map_or(0, |out| out.iter().filter(|b| **b == b'\n').count());
    until(|| count() >= FILES * expect.len(), || agent.own_log());
    assert_eq!(agent.terminate().code(), Some(0));
    let mut found: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for line in fs::read_to_string(&out).unwrap().lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let number = |key: &str| row[key].as_u64().unwrap();
        found.entry(number("file")).or_default().push(number("n"));
    }
    assert_eq!(found.len(), FILES);
    for (file, numbers) in found {
        assert!(
            numbers == expect,
            "the lines of file {file} are not in order"
        );
    }
}
