//! The conditions of a query one by one: they say of each record what the query as a whole says.

use proptest::prelude::*;

use super::data::{OBSERVED_NS, batch, compile};
use super::paths::{CONDITIONS, line};
use crate::{NOT_EXACT, Outcome, Rows, Unmet};

/// The condition that each line does not meet first, in words; empty for one that passes.
fn unmet(sql: &str, lines: &[&str]) -> Vec<String> {
    let query = compile(sql);
    let batch = batch(&query, lines);
    let found = query.conditions().first_unmet(0, &batch, OBSERVED_NS);
    let words = |unmet: Unmet| {
        let text = &query.branches()[0].predicate[unmet.condition].text;
        match unmet.outcome {
            Outcome::False => format!("{text}: false"),
            Outcome::Null => format!("{text}: null"),
            Outcome::Failed(reason) => format!("{text}: {reason}"),
        }
    };
    let found = found.into_iter();
    found
        .map(|unmet| unmet.map(words).unwrap_or_default())
        .collect()
}

#[test]
fn the_first_condition_that_is_not_true() {
    let sql = "SELECT * FROM logs WHERE a > 1 AND (s = 'x' OR s = 'y') AND (t < now() AND 10 / (a::bigint - 3) > 0)";
    let lines = [
        r#"{"a":2,"s":"z"}"#,
        r#"{"a":1,"s":"z"}"#,
        r#"{"s":"x"}"#,
        r#"{"a":4,"s":"y","t":"2025-01-01T00:00:00Z"}"#,
        r#"{"a":4,"s":"y","t":"2027-01-01T00:00:00Z"}"#,
        r#"{"a":3,"s":"y","t":"2025-01-01T00:00:00Z"}"#,
    ];
    let found = unmet(sql, &lines);
    assert_eq!(
        found[..5],
        [
            "(s = 'x' OR s = 'y'): false",
            "a > 1: false",
            "a > 1: null",
            "",
            "t < now(): false"
        ]
    );
    assert_eq!(found[5], format!("10 / (a::BIGINT - 3) > 0: {NOT_EXACT}"));
    let sql = "SELECT * FROM logs WHERE now() > s::timestamp AND chr(a::bigint) = 'A'";
    let found = unmet(sql, &[r#"{"a":-1,"s":"2025-01-01T00:00:00Z"}"#]);
    assert!(found[0].contains("chr(a::BIGINT) = 'A': "), "{found:?}");
    assert!(!found[0].ends_with(": null"), "{found:?}");
    assert_eq!(unmet("SELECT a FROM logs", &[r#"{"a":2}"#]), [""]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_record_passes_if_every_condition_is_true(
        conditions in proptest::collection::vec(proptest::sample::select(CONDITIONS), 1..4),
        lines in proptest::collection::vec(line(), 0..12),
    ) {
        let sql = format!("SELECT s FROM logs WHERE ({})", conditions.join(") AND ("));
        let query = compile(&sql);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let batch = batch(&query, &lines);
        let evaluated = query.evaluator().evaluate(&batch, OBSERVED_NS);
        let kept: Vec<u32> = match &evaluated.branches[0].rows {
            Rows::All => (0..lines.len() as u32).collect(),
            Rows::Some(rows) => rows.clone(),
        };
        let unmet = query.conditions().first_unmet(0, &batch, OBSERVED_NS);
        let met = (0_u32..).zip(&unmet).filter(|(_, unmet)| unmet.is_none());
        prop_assert_eq!(met.map(|(row, _)| row).collect::<Vec<_>>(), kept, "{}", sql);
    }
}
