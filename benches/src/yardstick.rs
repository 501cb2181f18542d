//! The floor of an agent that sends everything: `zstd -1` on the OTLP bytes of a file, in one process.
//!
//! Only the CPU time of compressing is counted, not that of making the bytes. The bytes are those of the encoder without
//! a source's facts, which compress to next to nothing.

use std::fs::File;
use std::io::Read as _;
use std::process::ExitCode;
use std::time::Duration;

use cpu_time::ThreadTime;
use tailrace_benches::corpus::{CHUNK_BYTES, Chunk};
use tailrace_benches::stages::{Plan, Stages};

pub(crate) fn run(path: &str) -> ExitCode {
    match measure(path) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {path}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(path: &str) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let mut stages = Stages::new(Plan::new("SELECT * FROM logs"), true);
    let mut context = zstd::bulk::Compressor::new(1)?;
    let (mut cpu, mut lines, mut otlp_bytes, mut zstd_bytes) = (Duration::ZERO, 0, 0, 0);
    let mut rest: Vec<u8> = Vec::new();
    let mut out = Vec::new();
    loop {
        let mut bytes = std::mem::take(&mut rest);
        let missing = CHUNK_BYTES.saturating_sub(bytes.len()) as u64;
        let read = file.by_ref().take(missing.max(1)).read_to_end(&mut bytes)?;
        if read == 0 {
            break;
        }
        let whole = memchr::memrchr(b'\n', &bytes).map_or(0, |newline| newline + 1);
        rest.extend_from_slice(&bytes[whole..]);
        bytes.truncate(whole);
        let chunk = Chunk::new(bytes);
        lines += chunk.records.len();
        let selection = stages.select(&chunk);
        stages.encode(&selection, &mut |request| {
            out.clear();
            out.reserve(zstd::zstd_safe::compress_bound(request.bytes.len()));
            let started = ThreadTime::now();
            zstd_bytes += context
                .compress_to_buffer(&request.bytes, &mut out)
                .expect("the buffer holds the bound");
            cpu += started.elapsed();
            otlp_bytes += request.bytes.len();
        });
    }
    let cpu_us = cpu.as_micros();
    Ok(format!(
        "{{\"lines\":{lines},\"cpu_us\":{cpu_us},\"otlp_bytes\":{otlp_bytes},\"zstd_bytes\":{zstd_bytes}}}"
    ))
}
