//! The row-wise path, the general path and DataFusion itself agree.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema, UInt32Type};
use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use proptest::prelude::*;

use super::data::{OBSERVED_NS, batch, compile, rows};
use crate::evaluate::Evaluator;
use crate::{Evaluated, Query, Rows, Selected};

pub(super) const EXPRESSIONS: &[&str] = &[
    "a + 1",
    "a * b",
    "upper(s)",
    "s || '!'",
    "length(s)",
    "coalesce(a, 0)",
    "CASE WHEN a > 2 THEN s ELSE 'small' END",
    "nullif(s, 'x')",
    "substr(s, 2, 1)",
    "a IS NULL",
    "s IN ('x', 'yy')",
    "abs(b)",
    "round(b, 1)",
    "n->>'k'",
    "(n->>'k')::bigint",
    "n->>s",
    "json_get_int(n, 'k')",
    "regexp_replace(s, 'y', 'z')",
    "a = 1 OR s = 'x'",
    "date_trunc('hour', t)",
    "extract(hour from t)",
    "to_char(t, '%Y-%m-%d')",
    "split_part(s, 'y', 1)",
    "concat(s, a, b)",
    "1",
    "'c'",
    "NULL",
];

pub(super) const CONDITIONS: &[&str] = &[
    "true",
    "false",
    "a > 1",
    "a = 1",
    "s = 'x'",
    "s LIKE '%y%'",
    "a > 1 AND s <> 'x'",
    "a > 1 OR s = 'x'",
    "NOT (a > 1)",
    "a IS NULL",
    "s IS NOT NULL",
    "a BETWEEN 1 AND 3",
    "a IN (1, 2)",
    "a % 2 = 0",
    "f",
    "f IS NOT TRUE",
    "n->>'k' = '1'",
    "n->>'k' > 0",
    "t > '2026-01-02T03:00:00Z'::timestamp",
    "lower(s) ~ 'x|y'",
    "coalesce(b, 0) > a",
];

const UNNESTS: &[&str] = &[
    "unnest(string_to_array(s, 'y'))",
    "unnest(json_get_array(n, 'l'))",
    "upper(unnest(string_to_array(s, 'y')))",
];

pub(super) fn line() -> impl Strategy<Value = String> {
    let a = prop_oneof![
        Just("1"),
        Just("2"),
        Just("3.5"),
        Just("\"2\""),
        Just("null"),
        Just("\"x\""),
        Just("9007199254740993")
    ];
    let s = prop_oneof![
        Just("\"x\""),
        Just("\"yy\""),
        Just("\"XyX\""),
        Just("7"),
        Just("null"),
        Just("\"\""),
        Just("\"a long text beyond twelve bytes\"")
    ];
    let n = prop_oneof![
        Just("{\"k\":1,\"l\":[1,2]}"),
        Just("{\"k\":\"z\",\"x\":5}"),
        Just("[1]"),
        Just("\"{\\\"k\\\":3}\""),
        Just("null"),
        Just("{\"l\":[]}")
    ];
    let t = prop_oneof![
        Just("\"2026-01-02T03:04:05Z\""),
        Just("1767323045"),
        Just("\"soon\""),
        Just("null")
    ];
    let f = prop_oneof![Just("true"), Just("false"), Just("null"), Just("1")];
    (a, s, n, t, f, proptest::bool::ANY).prop_map(|(a, s, n, t, f, all)| {
        if all {
            format!(r#"{{"a":{a},"b":{a},"s":{s},"n":{n},"t":{t},"f":{f}}}"#)
        } else {
            format!(r#"{{"s":{s},"n":{n}}}"#)
        }
    })
}

fn query() -> impl Strategy<Value = String> {
    let expressions = proptest::sample::subsequence(EXPRESSIONS, 1..4);
    let conditions = proptest::sample::subsequence(CONDITIONS, 0..3);
    let unnest = proptest::option::weighted(0.3, proptest::sample::select(UNNESTS));
    (expressions, conditions, unnest, any::<bool>()).prop_map(
        |(expressions, conditions, unnest, any)| {
            let mut items: Vec<String> = expressions
                .iter()
                .chain(&unnest)
                .enumerate()
                .map(|(i, e)| format!("{e} AS o{i}"))
                .collect();
            items.push("s".to_owned());
            let conditions: Vec<String> = conditions
                .iter()
                .map(|condition| format!("({condition})"))
                .collect();
            let condition = conditions.join(if any { " OR " } else { " AND " });
            let filter = if conditions.is_empty() {
                String::new()
            } else {
                format!(" WHERE {condition}")
            };
            format!("SELECT {} FROM logs{filter}", items.join(", "))
        },
    )
}

/// DataFusion's own answer to the rewritten SQL; `None` where it fails as a whole.
fn plain(query: &Query, batch: &RecordBatch) -> Option<Evaluated> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let numbers: ArrayRef = Arc::new(UInt32Array::from_iter_values(0..batch.num_rows() as u32));
    let mut fields: Vec<_> = batch.schema().fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new("#row", DataType::UInt32, false)));
    let columns = batch.columns().iter().cloned().chain([numbers]).collect();
    let numbered = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
    let mut config = SessionConfig::new().with_target_partitions(1);
    config.options_mut().execution.time_zone = Some("UTC".to_owned());
    let mut context = SessionContext::new_with_config(config);
    datafusion_functions_json::register_all(&mut context).unwrap();
    crate::value::all().for_each(|udf| context.register_udf(udf));
    let table = MemTable::try_new(numbered.schema(), vec![vec![numbered]]).unwrap();
    context.register_table("logs", Arc::new(table)).unwrap();
    let mut branches = Vec::new();
    for branch in query.branches() {
        let sql = if branch.row_wise {
            branch.sql.replacen("SELECT ", "SELECT \"#row\", ", 1)
        } else {
            branch.sql.clone()
        };
        let frame = runtime
            .block_on(context.sql(&sql))
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
        let schema = Arc::clone(frame.schema().inner());
        let result = runtime.block_on(frame.collect()).ok()?;
        let all = concat_batches(&schema, &result).unwrap();
        let rows = all.column(0).as_primitive::<UInt32Type>().values().to_vec();
        branches.push(Selected {
            rows: Rows::Some(rows),
            computed: all.columns()[1..]
                .iter()
                .cloned()
                .map(crate::value::with_nulls_inside)
                .collect(),
            failed: Vec::new(),
        });
    }
    Some(Evaluated {
        branches,
        failed_rows: 0,
        failures: Vec::new(),
        type_mismatches: 0,
    })
}

fn agree(sql: &str, lines: &[String]) {
    let query = compile(sql);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let batch = batch(&query, &lines);
    let evaluated = query.evaluator().evaluate(&batch, OBSERVED_NS);
    let expected = rows(&query, &batch, &evaluated);
    let general = Evaluator::all_general(&query).evaluate(&batch, OBSERVED_NS);
    assert_eq!(
        rows(&query, &batch, &general),
        expected,
        "general path: {sql}"
    );
    assert_eq!(general.failed_rows, evaluated.failed_rows, "{sql}");
    if let Some(in_two) = super::phases::in_two_phases(&query, &batch) {
        assert_eq!(rows(&query, &batch, &in_two), expected, "two phases: {sql}");
        assert_eq!(in_two.failed_rows, evaluated.failed_rows, "{sql}");
    }
    match plain(&query, &batch) {
        Some(plain) => {
            assert_eq!(
                rows_of_plain(&query, &batch, plain),
                expected,
                "plain DataFusion: {sql}"
            );
            assert!(evaluated.failures.is_empty(), "{sql}");
        }
        None => assert!(
            !evaluated.failures.is_empty(),
            "{sql}: only DataFusion fails"
        ),
    }
}

// A query without computed outputs has one of ours.
fn rows_of_plain(query: &Query, batch: &RecordBatch, mut plain: Evaluated) -> Vec<String> {
    for (branch, selected) in query.branches().iter().zip(&mut plain.branches) {
        let computed = branch
            .outputs
            .iter()
            .filter(|output| matches!(output.value, crate::OutputValue::Computed(_)));
        selected.computed.truncate(computed.count());
    }
    rows(query, batch, &plain)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_paths_agree(sql in query(), lines in proptest::collection::vec(line(), 0..12)) {
        agree(&sql, &lines);
    }

    #[test]
    fn a_split_changes_nothing(sql in query(), lines in proptest::collection::vec(line(), 1..12), cut in any::<proptest::sample::Index>()) {
        let query = compile(&sql);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let cut = cut.index(lines.len() + 1);
        let mut evaluator = query.evaluator();
        let whole = batch(&query, &lines);
        let evaluated = evaluator.evaluate(&whole, OBSERVED_NS);
        let expected = values(rows(&query, &whole, &evaluated));
        let mut failed = 0;
        let mut parts = Vec::new();
        for part in [&lines[..cut], &lines[cut..]] {
            let part = batch(&query, part);
            let evaluated = evaluator.evaluate(&part, OBSERVED_NS);
            failed += evaluated.failed_rows;
            parts.extend(values(rows(&query, &part, &evaluated)));
        }
        prop_assert_eq!(parts, expected);
        prop_assert_eq!(failed, evaluated.failed_rows);
    }
}

fn values(rows: Vec<String>) -> Vec<String> {
    rows.into_iter()
        .map(|row| row.split_once(':').unwrap().1.to_owned())
        .collect()
}
