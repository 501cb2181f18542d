//! Two phases give what one gives; which queries have them.

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use proptest::prelude::*;

use super::data::{OBSERVED_NS, batch, compile, rows};
use super::paths::{CONDITIONS, EXPRESSIONS, line};
use crate::{Conjunct, Evaluated, Query, Rows, When};

/// Conditions first, then the rest for the selected rows; rows are numbered as in `batch`. `None` without a pushdown.
pub(super) fn in_two_phases(query: &Query, batch: &RecordBatch) -> Option<Evaluated> {
    let pushdown = query.pushdown()?;
    let mut evaluator = query.evaluator();
    let first = batch.project(&pushdown.columns).unwrap();
    let selection = evaluator.select(&first, OBSERVED_NS);
    let selected: Vec<u32> = match &selection.rows {
        Rows::All => (0..batch.num_rows() as u32).collect(),
        Rows::Some(rows) => rows.clone(),
    };
    assert!(selected.is_sorted());
    let failed = selection.failures().0;
    let second = take_record_batch(batch, &UInt32Array::from(selected.clone())).unwrap();
    let mut evaluated = evaluator.compute(&second, selection, OBSERVED_NS);
    assert!(evaluated.failed_rows >= failed);
    let mut used = vec![false; selected.len()];
    for branch in &mut evaluated.branches {
        let rows = match &branch.rows {
            Rows::All => (0..selected.len() as u32).collect(),
            Rows::Some(rows) => rows.clone(),
        };
        rows.iter().for_each(|&row| used[row as usize] = true);
        let numbers = rows.iter().map(|&row| selected[row as usize]);
        branch.rows = Rows::Some(numbers.collect());
    }
    assert!(
        used.iter().all(|used| *used),
        "no branch wants a selected row"
    );
    Some(evaluated)
}

fn agree(sql: &str, lines: &[String]) {
    let query = compile(sql);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let batch = batch(&query, &lines);
    let evaluated = query.evaluator().evaluate(&batch, OBSERVED_NS);
    let Some(in_two) = in_two_phases(&query, &batch) else {
        return;
    };
    let expected = rows(&query, &batch, &evaluated);
    assert_eq!(rows(&query, &batch, &in_two), expected, "{sql}");
    assert_eq!(in_two.failed_rows, evaluated.failed_rows, "{sql}");
}

/// A division that fails for some lines, and `now()`, among the conditions.
fn condition() -> impl Strategy<Value = String> {
    let failing = ["10 / (a::bigint - 2) < 6", "s::bigint = 7", "t < now()"];
    let some = proptest::sample::select([CONDITIONS, &failing].concat());
    (some.clone(), some, 0..4).prop_map(|(one, other, joined)| match joined {
        0 => one.to_owned(),
        1 => format!("({one}) AND ({other})"),
        2 => format!("({one}) OR ({other})"),
        _ => format!("NOT ({one}) AND ({other})"),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn branches_in_two_phases(
        expression in proptest::sample::select(EXPRESSIONS),
        conditions in proptest::collection::vec(condition(), 1..4),
        lines in proptest::collection::vec(line(), 0..12),
    ) {
        let branches = conditions.iter().map(|condition| format!("SELECT {expression} AS o, s FROM logs WHERE {condition}"));
        agree(&branches.collect::<Vec<_>>().join(" UNION ALL "), &lines);
    }
}

#[test]
fn a_row_that_fails_in_both_phases_is_counted_once() {
    let sql = "SELECT trim(s)::bigint AS n FROM logs WHERE trim(s)::bigint > 0 \
               UNION ALL SELECT trim(s)::bigint AS n FROM logs WHERE s <> '3'";
    let lines = ["1", "x", "3", "y"].map(|s| format!(r#"{{"s":"{s}"}}"#));
    agree(sql, &lines);
    let query = compile(sql);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let batch = batch(&query, &lines);
    let evaluated = in_two_phases(&query, &batch).unwrap();
    assert_eq!(evaluated.failed_rows, 2);
    assert_eq!(
        rows(&query, &batch, &evaluated),
        ["0: n=1", "2: n=3", "0: n=1", "1: n=NULL", "3: n=NULL"]
    );
}

#[test]
fn which_queries_are_pushed_down() {
    let check = |sql: &str, columns: Option<&[&str]>, needles: usize| {
        let query = compile(sql);
        let found = query.pushdown().map(|pushdown| {
            let names = pushdown.columns.iter();
            let names: Vec<&str> = names.map(|&at| query.columns()[at].name.as_str()).collect();
            names
        });
        assert_eq!(found.as_deref(), columns, "{sql}");
        let prefilter = query.pushdown().map_or(0, |it| it.prefilter.len());
        assert_eq!(prefilter, needles, "{sql}");
        let conjuncts = query.branches().iter().flat_map(|it| &it.predicate);
        let after = |it: &Conjunct| it.when == When::After;
        let searched = |it: &Conjunct| matches!(it.when, When::Prefilter(_));
        for conjunct in conjuncts.clone() {
            assert_eq!(after(conjunct), columns.is_none(), "{sql}");
        }
        assert_eq!(
            conjuncts.filter(|it| searched(it)).count(),
            needles,
            "{sql}"
        );
    };
    check("SELECT a FROM logs", None, 0);
    check("SELECT * FROM logs WHERE false", None, 0);
    check(
        "SELECT * FROM logs WHERE now() > '2026-01-01'::timestamp",
        None,
        0,
    );
    check("SELECT * FROM logs WHERE a = 'x'", Some(&["a"]), 1);
    check(
        "SELECT a, b FROM logs WHERE b > 1 AND a = 'x' AND \"log.file.name\" = 'y'",
        Some(&["a", "b#float64", "\"log.file.name\""]),
        1,
    );
    check(
        "SELECT a FROM logs WHERE a = 'x' UNION ALL SELECT b FROM logs WHERE c > 0",
        Some(&["a", "c#float64"]),
        0,
    );
    check(
        "SELECT a FROM logs WHERE a = 'x' UNION ALL SELECT b FROM logs",
        None,
        0,
    );
    check(
        "SELECT a FROM logs WHERE a = 'x' UNION ALL SELECT b FROM logs WHERE true",
        None,
        0,
    );
    check(
        "SELECT unnest(string_to_array(s, ',')) AS x FROM logs WHERE a = 'x'",
        None,
        0,
    );
}
