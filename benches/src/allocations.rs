//! Heap allocations of each stage for one chunk, after warm-up.
//!
//! Counts what Rust code allocates, growth included; zstd's own memory is C's and is made once with its context. Printed
//! as a table; nothing is timed.
#![allow(clippy::print_stdout)]

use allocation_counter::{AllocationInfo, measure};
use tailrace_benches::Shape;
use tailrace_benches::corpus::{Chunk, Corpus};
use tailrace_benches::stages::{Plan, Selection, Stages};

/// Chunks that a worker has seen before it is counted.
const WARM_UP: usize = 4;

fn main() {
    println!(
        "| shape | stage | allocations per batch | per row | KiB per batch | rows | columns |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|");
    for shape in [Shape::Narrow, Shape::Simple, Shape::Wide, Shape::Mixed] {
        let corpus = Corpus::of(shape);
        let mut stages = Stages::new(Plan::new("SELECT * FROM logs"), true);
        let (seen, last) = corpus.chunks.split_at(WARM_UP);
        for chunk in seen {
            stages.work(chunk);
        }
        all(shape, &mut stages, &last[0]);
        let errors = Plan::new("SELECT * FROM logs WHERE level = 'ERROR'").with_literal("ERROR");
        let mut stages = Stages::new(errors, true);
        for chunk in seen {
            stages.work(chunk);
        }
        let mut selection = None;
        let info = measure(|| selection = Some(stages.select(&last[0])));
        row(
            shape,
            "scan and filter, 10 % kept",
            info,
            &last[0],
            selection.as_ref(),
        );
    }
}

/// The stages of an unfiltered query one by one.
fn all(shape: Shape, stages: &mut Stages, chunk: &Chunk) {
    let info = measure(|| {
        stages.frame(chunk);
    });
    row(shape, "frame", info, chunk, None);
    let mut scanned = None;
    let info = measure(|| scanned = Some(stages.scan(chunk)));
    let scanned = scanned.expect("it was just made");
    let mut rows = None;
    let filter = measure(|| rows = Some(stages.evaluate(&scanned)));
    let rows = rows.expect("it was just made");
    let selection = Selection { scanned, rows };
    row(shape, "scan", info, chunk, Some(&selection));
    row(shape, "evaluate, no condition", filter, chunk, None);
    let info = measure(|| stages.encode(&selection, &mut |_| ()));
    row(shape, "encode", info, chunk, None);
    let mut requests = Vec::new();
    stages.encode(&selection, &mut |request| {
        requests.push(request.bytes.clone())
    });
    let info = measure(|| {
        for request in &requests {
            stages.compress(request);
        }
    });
    row(shape, "compress", info, chunk, None);
}

fn row(
    shape: Shape,
    stage: &str,
    info: AllocationInfo,
    chunk: &Chunk,
    selection: Option<&Selection>,
) {
    let rows = chunk.records.len();
    let columns = selection.map_or(String::new(), |s| s.scanned.star.len().to_string());
    println!(
        "| {} | {stage} | {} | {:.4} | {} | {rows} | {columns} |",
        shape.name(),
        info.count_total,
        info.count_total as f64 / rows as f64,
        info.bytes_total >> 10,
    );
}
