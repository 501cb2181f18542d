//! Scanned columns into OTLP bytes, beside prost with opentelemetry-proto building the same message.
//!
//! Bytes are those of the lines, so that the figures stand beside those of the scan. The two messages are compared after
//! decoding.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use prost::Message as _;
use tailrace_benches::Shape;
use tailrace_benches::corpus::Corpus;
use tailrace_benches::cpu::{CpuTime, group_of};
use tailrace_benches::reference;
use tailrace_benches::stages::{Plan, Selection, Stages};

pub(crate) fn run(criterion: &mut Criterion<CpuTime>) {
    for shape in [Shape::Narrow, Shape::Simple, Shape::Wide, Shape::Mixed] {
        let corpus = Corpus::of(shape);
        let mut stages = Stages::new(Plan::new("SELECT * FROM logs"), true);
        let selections: Vec<Selection> = corpus.chunks.iter().map(|c| stages.select(c)).collect();
        let mut group = group_of(criterion, "encode", &corpus);
        group.bench_function(BenchmarkId::new("tailrace", &corpus.name), |b| {
            b.iter(|| -> usize {
                let mut bytes = 0;
                for selection in &selections {
                    let selection = black_box(selection);
                    stages.encode(selection, &mut |request| bytes += request.bytes.len());
                }
                bytes
            });
        });
        if shape == Shape::Mixed {
            continue; // The reference knows no nesting.
        }
        let messages: Vec<_> = selections
            .iter()
            .map(|s| reference::message(&s.scanned))
            .collect();
        for (selection, message) in selections.iter().zip(&messages) {
            let mut requests = Vec::new();
            stages.encode(selection, &mut |request| {
                requests.push(request.bytes.clone())
            });
            let decoded = ExportLogsServiceRequest::decode(requests.concat().as_slice());
            assert!(&decoded.expect("it decodes") == message, "{shape:?}");
        }
        group.bench_function(BenchmarkId::new("prost", &corpus.name), |b| {
            b.iter(|| -> usize {
                let selections = selections.iter().map(black_box);
                selections
                    .map(|s| reference::message(&s.scanned).encode_to_vec().len())
                    .sum()
            });
        });
        group.bench_function(
            BenchmarkId::new("prost, message given", &corpus.name),
            |b| {
                let mut out = Vec::new();
                b.iter(|| -> usize {
                    let mut bytes = 0;
                    for message in &messages {
                        out.clear();
                        black_box(message).encode(&mut out).expect("a vector grows");
                        bytes += out.len();
                    }
                    bytes
                });
            },
        );
    }
}
