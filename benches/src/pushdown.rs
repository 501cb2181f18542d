//! A filter over wide lines, three ways: arrow-json's reader and then DataFusion's filter, ours with every column built
//! before the filter, ours with the filter before the columns.
//!
//! The share of lines kept is the generator's; 5 % of the lines that do not match hold the literal in another field.
//! All three start from bytes: ours finds the newlines in its search, arrow-json by itself. `status >= 500` keeps the very
//! same lines and has no literal to search for.

use std::hint::black_box;
use std::sync::Arc;

use arrow::array::{AsArray as _, RecordBatch};
use arrow::compute::filter_record_batch;
use criterion::{BenchmarkId, Criterion};
use datafusion::common::DFSchema;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::prelude::{Expr, SessionContext, col, lit};
use tailrace_benches::corpus::{Answer, Chunk, Corpus, corpus_bytes};
use tailrace_benches::cpu::{CpuTime, group_of};
use tailrace_benches::rivals::{ArrowJson, columns_answer, schema_of};
use tailrace_benches::stages::{Plan, Stages, answer};
use tailrace_benches::{Generator, Shape};

pub(crate) fn run(criterion: &mut Criterion<CpuTime>) {
    for percent in [1, 10, 50, 90] {
        let generator = Generator::new(Shape::Wide, 1)
            .with_errors(percent)
            .with_decoys(5);
        let corpus = Corpus::generated("wide", generator, corpus_bytes());
        let level = || Plan::new("SELECT * FROM logs WHERE level = 'ERROR'");
        let is_error = col("level").eq(lit("ERROR"));
        three_ways(
            criterion,
            "level = 'ERROR'",
            percent,
            &corpus,
            level,
            is_error,
        );
        let status = || Plan::new("SELECT * FROM logs WHERE status >= 500");
        let is_fault = col("status").gt_eq(lit(500_i64));
        three_ways(
            criterion,
            "status >= 500",
            percent,
            &corpus,
            status,
            is_fault,
        );
    }
}

fn three_ways(
    criterion: &mut Criterion<CpuTime>,
    condition: &str,
    percent: u64,
    corpus: &Corpus,
    plan: impl Fn() -> Plan,
    expr: Expr,
) {
    let expected = matching(corpus);
    let kept = expected.rows as f64 * 100.0 / corpus.lines as f64;
    assert!((kept - percent as f64).abs() < 2.0, "{kept} % kept");
    let case = format!("{percent} % {condition}");
    let mut group = group_of(criterion, "filter", corpus);

    let mut conventional = Conventional::new(corpus, expr);
    check(corpus, expected, |chunk| {
        columns_answer(&conventional.filter(chunk))
    });
    group.bench_function(BenchmarkId::new("arrow-json and DataFusion", &case), |b| {
        b.iter(|| -> usize {
            let chunks = corpus.chunks.iter();
            chunks
                .map(|chunk| conventional.filter(chunk).num_rows())
                .sum()
        });
    });
    for (name, pushdown) in [("tailrace, pushdown off", false), ("tailrace", true)] {
        let mut stages = Stages::new(plan(), pushdown);
        check(corpus, expected, |chunk| answer(&stages.select(chunk)));
        group.bench_function(BenchmarkId::new(name, &case), |b| {
            b.iter(|| -> usize {
                let chunks = corpus.chunks.iter();
                chunks
                    .map(|chunk| stages.select(black_box(chunk)).scanned.star.len())
                    .sum()
            });
        });
    }
}

/// The rows that match, by serde_json.
fn matching(corpus: &Corpus) -> Answer {
    let mut expected = Answer::default();
    for line in corpus.chunks.iter().flat_map(Chunk::lines) {
        let value: serde_json::Value = serde_json::from_slice(line).expect("valid JSON");
        if value["level"] == "ERROR" {
            expected.add(value["level"].as_str(), value["status"].as_u64());
        }
    }
    expected
}

/// Twice, since a scanner remembers what it has seen.
fn check(corpus: &Corpus, expected: Answer, mut find: impl FnMut(&Chunk) -> Answer) {
    for _ in 0..2 {
        let mut found = Answer::default();
        for chunk in &corpus.chunks {
            found += find(chunk);
        }
        assert_eq!(found, expected);
    }
}

/// What an agent does that is put together from the usual parts.
struct Conventional {
    reader: ArrowJson,
    condition: Arc<dyn PhysicalExpr>,
}

impl Conventional {
    fn new(corpus: &Corpus, expr: Expr) -> Conventional {
        let schema = schema_of("wide");
        let schema = DFSchema::try_from(schema).expect("the names are unique");
        let condition = SessionContext::new().create_physical_expr(expr, &schema);
        Conventional {
            reader: ArrowJson::all_fields(corpus),
            condition: condition.expect("it compiles"),
        }
    }

    fn filter(&mut self, chunk: &Chunk) -> RecordBatch {
        let batch = self.reader.decode(chunk);
        let passed = self.condition.evaluate(&batch).expect("it evaluates");
        let passed = passed.into_array(batch.num_rows()).expect("one per row");
        filter_record_batch(&batch, passed.as_boolean()).expect("as long as the batch")
    }
}
