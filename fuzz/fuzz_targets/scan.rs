//! `bodies/scan.rs` under libFuzzer. Instrumented it is slow: the length of the input chooses one of the queries.
#![no_main]

#[path = "../bodies/scan.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run_query(data, data.len()));
