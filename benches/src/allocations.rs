//! Heap allocations of each stage for one chunk, after warm-up.
//!
//! Counts what Rust code allocates, growth included; zstd's own memory is C's and is made once with its context. Printed
//! as a table; nothing is timed. A stage that allocates per row shows in the column of the smaller batch.
#![allow(clippy::print_stdout)]

use allocation_counter::{AllocationInfo, measure};
use tailrace_benches::Shape;
use tailrace_benches::corpus::{Chunk, Corpus};
use tailrace_benches::stages::{Plan, Selection, Stages};

/// Chunks that a worker has seen before it is counted.
const WARM_UP: usize = 4;

fn main() {
    println!(
        "| shape | stage | allocations per batch | with a quarter of the rows | KiB per batch | rows | columns |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|");
    for shape in [Shape::Narrow, Shape::Simple, Shape::Wide, Shape::Mixed] {
        let corpus = Corpus::of(shape);
        let (seen, last) = corpus.chunks.split_at(WARM_UP);
        let whole = &last[0];
        let quarter = quarter_of(whole);
        let errors = Plan::new("SELECT * FROM logs WHERE level = 'ERROR'");
        let cases = [
            (Plan::new("SELECT * FROM logs"), count_stages as Count),
            (errors, count_filter),
        ];
        for (plan, count) in cases {
            let mut stages = Stages::new(plan, true);
            for chunk in seen {
                stages.work(chunk);
            }
            let few = count(&mut stages, &quarter);
            for (one, few) in count(&mut stages, whole).iter().zip(few) {
                let (name, allocations, kib) =
                    (one.stage, one.info.count_total, one.info.bytes_total >> 10);
                println!(
                    "| {} | {name} | {allocations} | {} | {kib} | {} | {} |",
                    shape.name(),
                    few.info.count_total,
                    whole.records.len(),
                    one.columns,
                );
            }
        }
    }
}

type Count = fn(&mut Stages, &Chunk) -> Vec<Counted>;

/// One stage of one chunk.
struct Counted {
    stage: &'static str,
    info: AllocationInfo,
    columns: usize,
}

fn quarter_of(chunk: &Chunk) -> Chunk {
    let end = chunk.records[chunk.records.len() / 4].start as usize;
    Chunk::new(chunk.bytes()[..end].to_vec())
}

/// The stages of an unfiltered query one by one.
fn count_stages(stages: &mut Stages, chunk: &Chunk) -> Vec<Counted> {
    let frame = measure(|| {
        stages.frame(chunk);
    });
    let (mut scanned, mut rows) = (None, None);
    let scan = measure(|| scanned = Some(stages.scan(chunk)));
    let scanned = scanned.expect("it was just made");
    let evaluate = measure(|| rows = Some(stages.evaluate(&scanned)));
    let selection = Selection {
        rows: rows.expect("it was just made"),
        scanned,
    };
    let encode = measure(|| stages.encode(&selection, &mut |_| ()));
    let mut requests = Vec::new();
    stages.encode(&selection, &mut |request| {
        requests.push(request.clone());
    });
    let compress = measure(|| {
        for request in &requests {
            stages.compress(request);
        }
    });
    let counted = |stage, info| Counted {
        stage,
        info,
        columns: selection.scanned.star.len(),
    };
    vec![
        counted("frame", frame),
        counted("scan", scan),
        counted("evaluate, no condition", evaluate),
        counted("encode", encode),
        counted("compress", compress),
    ]
}

/// Scan and filter together, of the query that keeps a tenth.
fn count_filter(stages: &mut Stages, chunk: &Chunk) -> Vec<Counted> {
    let mut selection = None;
    let info = measure(|| selection = Some(stages.select(chunk)));
    vec![Counted {
        stage: "scan and filter, 10 % kept",
        info,
        columns: selection.map_or(0, |selection| selection.scanned.star.len()),
    }]
}
