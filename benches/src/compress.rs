//! OTLP requests into payloads, beside `zstd -1` on the same bytes with a context of its own.
//!
//! Bytes are those of the lines, so that the figures stand beside those of the other stages.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion};
use tailrace_benches::Shape;
use tailrace_benches::corpus::Corpus;
use tailrace_benches::cpu::{CpuTime, group_of};
use tailrace_benches::stages::{Plan, Stages};
use tailrace_otlp::Request;

pub(crate) fn run(criterion: &mut Criterion<CpuTime>) {
    for shape in [
        Shape::Narrow,
        Shape::Simple,
        Shape::Wide,
        Shape::Mixed,
        Shape::Nested,
        Shape::Text,
    ] {
        let corpus = Corpus::of(shape);
        let mut stages = Stages::new(Plan::new("SELECT * FROM logs"), true);
        let mut requests: Vec<Request> = Vec::new();
        for chunk in &corpus.chunks {
            let selection = stages.select(chunk);
            stages.encode(&selection, &mut |request| requests.push(request.clone()));
        }
        for request in &requests {
            let payload = stages.compress(request);
            let len = request.bytes.len();
            let plain = zstd::bulk::decompress(&payload, len).expect("it is zstd");
            assert!(plain == request.bytes, "{shape:?}");
        }
        let mut group = group_of(criterion, "compress", &corpus);
        group.bench_function(BenchmarkId::new("tailrace", &corpus.name), |b| {
            b.iter(|| -> usize {
                requests
                    .iter()
                    .map(|r| stages.compress(black_box(r)).len())
                    .sum()
            });
        });
        let mut context = zstd::bulk::Compressor::new(1).expect("level 1 exists");
        let longest = requests.iter().map(|r| r.bytes.len()).max().unwrap_or(0);
        let mut out = vec![0; zstd::zstd_safe::compress_bound(longest)];
        group.bench_function(BenchmarkId::new("zstd -1", &corpus.name), |b| {
            b.iter(|| -> usize {
                let mut bytes = 0;
                for request in &requests {
                    bytes += context
                        .compress_to_buffer(black_box(&request.bytes), &mut out)
                        .expect("the buffer holds the bound");
                }
                bytes
            });
        });
    }
}
