//! Queries that are valid and surely not meant so: warned of, with what to write.

use super::literals::outcome;

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
    let refused = outcome("SELECT CASE WHEN level = \"ERROR\" THEN 1 ELSE 0 END AS x FROM logs");
    assert!(refused.starts_with("26+7 "), "{refused}");
}
