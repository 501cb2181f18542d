//! Queries that are valid and surely not meant so: warned of, with what to write.

use super::literals::outcome;
use crate::{Options, Query, Type};

const CONDITIONS: &[&str] = &[
    "level",
    "NOT level AND ok",
    "body OR malformed",
    "severity_number",
    "ok",
    "severity_text >= 17",
    "severity_text = 'ERROR'",
    "level >= 30",
    "severity_number = 'ERROR'",
    "severity_number IN ('17', 'warn')",
    "severity_number BETWEEN 9 AND 17",
    "\"log.iostream\" = 1",
    "http->status = 200",
    "http->>\"status\" = '200'",
    "http->'status' = 200",
    "a || ' ' || b->>'c' = 'x'",
    "a || (b->>'c') = 'x'",
    "'x' || a->'b'->>'c' = 'x'",
    "n + http->>'took' > 5",
    "a < b",
    "a >= b::bigint",
    "x = NULL",
    "x NOT IN ('a', NULL)",
    "x IS NULL",
    "false",
    "1 = 2",
    "1 = 1",
    "\"x\" = \"ERROR\"",
    "x = \"error\"",
    "x IN ('a', \"GET\")",
    "x LIKE \"%boom%\"",
    "x <> \"two words\"",
    "x = \"bob\"",
    "\"x\" = \"y\"",
    "x = \"a.b\"",
    "x = \"log.file.name\"",
    "\"x\" = 'ERROR'",
    "'ERROR' = \"x\"",
    "to_timestamp(a, '%H:%M') > now()",
];

#[test]
fn valid_and_surely_wrong() {
    let line = |condition: &&str| {
        let outcome = outcome(&format!("SELECT z FROM logs WHERE {condition}"));
        format!("{condition}\n    {outcome}\n")
    };
    insta::assert_snapshot!(CONDITIONS.iter().map(line).collect::<String>());
}

#[test]
fn outputs_are_looked_at_too() {
    let warned = outcome("SELECT a || ' ' || b->>'c' AS x FROM logs");
    assert!(warned.contains("write `a || ' ' || (b->>'c')`"), "{warned}");
    let warned = outcome("SELECT to_char(timestamp, 'YYYY-MM-DD') AS day FROM logs");
    assert!(warned.contains("write '%Y-%m-%d'"), "{warned}");
    let refused = outcome("SELECT CASE WHEN level = \"ERROR\" THEN 1 ELSE 0 END AS x FROM logs");
    assert!(refused.starts_with("26+7 "), "{refused}");
}

#[test]
fn types_under_columns_that_change_nothing() {
    let warned = |sql: &str, declared: &[(&str, Type)]| -> Vec<String> {
        let columns = declared.iter().map(|(key, ty)| ((*key).to_owned(), *ty));
        let options = Options {
            columns: columns.collect(),
        };
        let query = Query::compile(sql, &options).unwrap();
        let warnings = query.warnings().iter();
        warnings.map(|warning| warning.message.clone()).collect()
    };
    let path = "http->'status'";
    for (sql, declared) in [
        ("SELECT * FROM logs WHERE id = '7'", ("id", Type::Int64)),
        ("SELECT id + 1 AS id FROM logs", ("id", Type::Int64)),
        (
            "SELECT z FROM logs WHERE http->'status' > 1",
            (path, Type::Int64),
        ),
        ("SELECT a IS NULL AS a FROM logs", ("a", Type::Text)),
    ] {
        assert_eq!(warned(sql, &[declared]), [""; 0], "{sql}");
    }
    for (sql, declared, written) in [
        ("SELECT * FROM logs", ("id", Type::Text), "`id::TEXT AS"),
        ("SELECT id FROM logs", ("id", Type::Int64), "`id::BIGINT AS"),
        (
            "SELECT http FROM logs",
            (path, Type::Int64),
            "(http->'status')::BIGINT",
        ),
    ] {
        let warned = warned(sql, &[declared]);
        assert!(
            warned.len() == 1 && warned[0].contains(written),
            "{warned:?}"
        );
    }
}
