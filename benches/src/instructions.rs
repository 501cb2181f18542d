//! One stage over a fixed input. Callgrind counts while [`measured`] runs and at no other time, so that the count holds
//! neither start-up nor warm-up, and does not vary with the load of the machine.

use std::hint::black_box;
use std::process::ExitCode;

use tailrace_benches::corpus::{Chunk, Corpus};
use tailrace_benches::stages::{Plan, Stages};
use tailrace_benches::{Generator, Shape};

/// Bytes of the input: two chunks' worth is too slow under valgrind.
const BYTES: usize = 1 << 19;
/// The chunks before the one that is counted.
const WARM_UP: usize = 2;

pub(crate) fn run(stage: &str, shape: &str) -> ExitCode {
    let Some(shape) = Shape::ALL.into_iter().find(|s| s.name() == shape) else {
        eprintln!("no shape {shape}");
        return ExitCode::FAILURE;
    };
    let errors = Plan::new("SELECT * FROM logs WHERE level = 'ERROR'");
    let all = Plan::new("SELECT * FROM logs");
    let (plan, pushdown) = match stage {
        "scan without pushdown" => (all, false),
        "scan" | "encode" | "compress" => (all, true),
        "filter" => (errors, true),
        _ => {
            eprintln!("no stage {stage}");
            return ExitCode::FAILURE;
        }
    };
    let mut stages = Stages::new(plan, pushdown);
    let corpus = Corpus::generated(shape.name(), Generator::new(shape, 1), BYTES);
    let chunk = &corpus.chunks[0];
    for _ in 0..WARM_UP {
        stages.work(chunk);
    }
    count(stage, &mut stages, chunk);
    println!("{{\"lines\":{},\"bytes\":{}}}", corpus.lines, corpus.bytes);
    ExitCode::SUCCESS
}

fn count(stage: &str, stages: &mut Stages, chunk: &Chunk) {
    match stage {
        "encode" => {
            let selection = stages.select(chunk);
            measured(&mut || stages.encode(&selection, &mut |_| ()));
        }
        "compress" => {
            let selection = stages.select(chunk);
            let mut requests = Vec::new();
            stages.encode(&selection, &mut |request| requests.push(request.clone()));
            measured(&mut || {
                for request in &requests {
                    black_box(stages.compress(request));
                }
            });
        }
        _ => measured(&mut || {
            black_box(stages.select(chunk));
        }),
    }
}

/// The name that callgrind is told.
#[inline(never)]
fn measured(work: &mut dyn FnMut()) {
    work();
    // What comes last must not become a jump, or the count would not stop here.
    black_box(());
}
