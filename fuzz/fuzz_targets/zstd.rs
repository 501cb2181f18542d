//! `bodies/zstd.rs` under libFuzzer.
#![no_main]

#[path = "../bodies/zstd.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
