//! `tailrace-bench`: what `cargo xtask bench` runs in a process of its own.
//!
//!     tailrace-bench instructions STAGE SHAPE   one stage over a fixed input, for callgrind to count
//!     tailrace-bench zstd FILE                  CPU and bytes of `zstd -1` on a file's OTLP requests
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::env;
use std::process::ExitCode;

mod instructions;
mod yardstick;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["instructions", stage, shape] => instructions::run(stage, shape),
        ["zstd", file] => yardstick::run(file),
        _ => {
            eprintln!("usage: tailrace-bench instructions STAGE SHAPE | zstd FILE");
            ExitCode::FAILURE
        }
    }
}
