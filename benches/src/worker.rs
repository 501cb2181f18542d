//! The whole step of a worker: frame, scan, filter, encode, compress, one chunk after the other.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion};
use tailrace_benches::Shape;
use tailrace_benches::corpus::Corpus;
use tailrace_benches::cpu::{CpuTime, group_of};
use tailrace_benches::stages::{Plan, Stages};

pub(crate) fn run(criterion: &mut Criterion<CpuTime>) {
    for shape in [Shape::Narrow, Shape::Simple, Shape::Wide, Shape::Mixed] {
        let corpus = Corpus::of(shape);
        let expected = corpus.answer();
        let all = Plan::new("SELECT * FROM logs");
        let errors = Plan::new("SELECT * FROM logs WHERE level = 'ERROR'");
        let cases = [
            ("all", all, expected.rows),
            ("10 %", errors, expected.errors),
        ];
        for (selected, plan, rows) in cases {
            let mut stages = Stages::new(plan, true);
            let mut found = 0;
            for chunk in &corpus.chunks {
                let selection = stages.select(chunk);
                stages.encode(&selection, &mut |request| {
                    found += request.ends.len() as u64
                });
            }
            assert_eq!(found, rows, "{shape:?} {selected}");
            let mut group = group_of(criterion, "worker", &corpus);
            let case = format!("{} {selected}", corpus.name);
            group.bench_function(BenchmarkId::new("tailrace", case), |b| {
                b.iter(|| -> usize {
                    let chunks = corpus.chunks.iter();
                    chunks.map(|chunk| stages.work(black_box(chunk))).sum()
                });
            });
        }
    }
}
