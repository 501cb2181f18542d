//! Lines into columns, beside the libraries that people would pick instead.
//!
//! For every shape: simdutf8 over the same bytes as the yardstick, ours, then the rivals, one after the other so that
//! the machine is the same for all. Every contender's answer is checked before it is timed.

use criterion::{BatchSize, BenchmarkId, Criterion};
use tailrace_benches::Shape;
use tailrace_benches::corpus::{Answer, Corpus};
use tailrace_benches::cpu::{CpuTime, group_of};
use tailrace_benches::rivals::{self, Contender};

pub(crate) fn run(criterion: &mut Criterion<CpuTime>) {
    let shapes = [
        Shape::Narrow,
        Shape::Simple,
        Shape::Wide,
        Shape::Mixed,
        Shape::Escaped,
        Shape::Nested,
    ];
    for corpus in shapes.map(Corpus::of) {
        compare(criterion, "scan", &corpus, rivals::all_fields(&corpus));
        if corpus.name == "wide" {
            compare(
                criterion,
                "scan 2 of 20",
                &corpus,
                rivals::two_fields(&corpus),
            );
        }
    }
    if let Some(corpus) = Corpus::nginxplus() {
        compare(criterion, "scan", &corpus, rivals::all_fields(&corpus));
    }
}

fn compare(
    criterion: &mut Criterion<CpuTime>,
    name: &str,
    corpus: &Corpus,
    contenders: Vec<Box<dyn Contender>>,
) {
    let expected = corpus.answer();
    let mut group = group_of(criterion, name, corpus);
    for mut contender in contenders {
        check(corpus, contender.as_mut(), expected);
        let id = BenchmarkId::new(contender.name(), &corpus.name);
        if contender.writes() {
            group.bench_function(id, |bencher| {
                let work = |copies: &mut Vec<Vec<u8>>| -> usize {
                    let chunks = corpus.chunks.iter().zip(copies);
                    chunks.map(|(chunk, copy)| contender.run(chunk, copy)).sum()
                };
                bencher.iter_batched_ref(|| copies(corpus), work, BatchSize::PerIteration);
            });
        } else {
            group.bench_function(id, |bencher| {
                bencher.iter(|| -> usize {
                    let chunks = corpus.chunks.iter();
                    chunks.map(|chunk| contender.run(chunk, &mut [])).sum()
                });
            });
        }
    }
}

/// Twice, since a contender may remember the lines it has seen.
fn check(corpus: &Corpus, contender: &mut dyn Contender, expected: Answer) {
    let expected = match contender.answers() {
        true => expected,
        false => Answer {
            rows: expected.rows,
            ..Answer::default()
        },
    };
    for _ in 0..2 {
        let mut found = Answer::default();
        for (chunk, mut copy) in corpus.chunks.iter().zip(copies(corpus)) {
            found += contender.check(chunk, &mut copy);
        }
        let name = contender.name();
        assert_eq!(found, expected, "{name} on {} lines", corpus.name);
    }
}

fn copies(corpus: &Corpus) -> Vec<Vec<u8>> {
    let chunks = corpus.chunks.iter();
    chunks.map(|chunk| chunk.bytes().to_vec()).collect()
}
