//! `tailrace-bench`: what `cargo xtask bench` runs.
//!
//! ```text
//! tailrace-bench scan|pushdown|encode|compress|worker [FILTER]
//!                                           times the cases whose names hold FILTER, with criterion
//! tailrace-bench instructions STAGE SHAPE   one stage over a fixed input, for callgrind to count
//! tailrace-bench zstd FILE                  CPU and bytes of `zstd -1` on a file's OTLP requests
//! ```
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::env;
use std::process::ExitCode;

use criterion::Criterion;
use tailrace_benches::cpu::{CpuTime, criterion};

mod scan;

#[cfg(feature = "stages")]
mod compress;
#[cfg(feature = "stages")]
mod encode;
#[cfg(feature = "stages")]
mod pushdown;
#[cfg(feature = "stages")]
mod worker;

#[cfg(feature = "stages")]
mod instructions;
#[cfg(feature = "stages")]
mod yardstick;

/// The agent's allocator, for the rivals too.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        #[cfg(feature = "stages")]
        ["instructions", stage, shape] => instructions::run(stage, shape),
        #[cfg(feature = "stages")]
        ["zstd", file] => yardstick::run(file),
        [bench, filter @ ..] => time(bench, filter),
        [] => usage(),
    }
}

/// Times one bench.
fn time(bench: &str, filter: &[&str]) -> ExitCode {
    let run: fn(&mut Criterion<CpuTime>) = match bench {
        "scan" => scan::run,
        #[cfg(feature = "stages")]
        "pushdown" => pushdown::run,
        #[cfg(feature = "stages")]
        "encode" => encode::run,
        #[cfg(feature = "stages")]
        "compress" => compress::run,
        #[cfg(feature = "stages")]
        "worker" => worker::run,
        _ => return usage(),
    };
    let criterion = criterion();
    run(&mut match filter {
        [] => criterion,
        [filter] => criterion.with_filter(*filter),
        _ => return usage(),
    });
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("usage: tailrace-bench BENCH [FILTER] | instructions STAGE SHAPE | zstd FILE");
    ExitCode::FAILURE
}
