//! Queries that are refused: the message, the place and the hint.

use proptest::prelude::*;

use super::data::{batch, compile};
use crate::{Options, Query};

/// `line:column+length message | hint`
fn refusal(sql: &str) -> String {
    match Query::compile(sql, &Options::default()) {
        Ok(query) => panic!("{sql} compiles: {:?}", query.branches()),
        Err(error) => format!(
            "{}:{}+{} {} | {}",
            error.line,
            error.column,
            error.length,
            error.message,
            error.hint.unwrap_or_default()
        ),
    }
}

const REFUSED: &[&str] = &[
    "",
    "SELECT",
    "SELECT 1 AS x",
    "SELECT * FROM",
    "SELECT * FROM log",
    "SELECT * FROM a.logs",
    "SELECT * FROM LOGS",
    "SELECT * FROM logs;\nSELECT * FROM logs",
    "INSERT INTO logs VALUES (1)",
    "SELECT * FROM logs WHERE",
    "SELECT * FROM logs WHERE a = 'x",
    "SELECT a b c FROM logs",
    "SELECT count(*) AS n FROM logs",
    "SELECT a, sum(b) AS s FROM logs GROUP BY a",
    "SELECT sum(b) AS s FROM logs",
    "SELECT DISTINCT a FROM logs",
    "SELECT a FROM logs ORDER BY a",
    "SELECT a FROM logs LIMIT 5",
    "SELECT a FROM logs\nWHERE b\nLIMIT 5",
    "SELECT a FROM logs OFFSET 5",
    "SELECT a FROM logs FETCH FIRST 5 ROWS ONLY",
    "SELECT a FROM logs HAVING a > 1",
    "SELECT row_number() OVER () AS n FROM logs",
    "SELECT rank() AS n FROM logs",
    "SELECT a FROM logs JOIN logs b ON true",
    "SELECT a FROM logs, logs b",
    "SELECT a FROM (SELECT a FROM logs)",
    "SELECT (SELECT 1) AS x FROM logs",
    "SELECT a FROM logs WHERE EXISTS (SELECT 1)",
    "SELECT a FROM logs WHERE a IN (SELECT b FROM logs)",
    "WITH x AS (SELECT 1) SELECT * FROM x",
    "SELECT a FROM logs UNION SELECT a FROM logs",
    "SELECT a FROM logs INTERSECT SELECT a FROM logs",
    "SELECT a FROM logs EXCEPT SELECT a FROM logs",
    "SELECT a FROM logs UNION ALL SELECT a, b FROM logs",
    "SELECT * FROM logs UNION ALL SELECT a FROM logs",
    "SELECT 1 AS x FROM logs UNION ALL SELECT make_array(1) AS x FROM logs",
    "SELECT a, b AS a FROM logs",
    "SELECT lower(a) FROM logs",
    "SELECT a->'b' FROM logs",
    "SELECT a.b FROM logs",
    "SELECT l.a FROM logs",
    "SELECT *, * FROM logs",
    "SELECT * RENAME (a AS b) FROM logs",
    "SELECT * REPLACE (1 AS a) FROM logs",
    "SELECT x.* FROM logs",
    "SELECT uper(a) AS x FROM logs",
    "SELECT frobnicate(a) AS x FROM logs",
    "SELECT upper(a, b, c) AS x FROM logs",
    "SELECT a FROM logs\n  WHERE lenght(a) > 5",
    "SELECT a['b'] AS x FROM logs",
    "SELECT a FROM logs WHERE unnest(a) = 1",
    "SELECT a FROM logs WHERE lower(a)",
    "SELECT a FROM logs WHERE 5",
    "SELECT a->>'b'::int AS x FROM logs",
    "SELECT a FROM logs WHERE a->'n' + 1 > 5",
    "SELECT date_trunc('hour') AS x FROM logs",
    "SELECT a FROM logs WHERE now() > interval '1 hour'",
    "SELECT a FROM logs WHERE a = ?",
    "SELECT array_length(a) AS x FROM logs",
    "SELECT a FROM generate_series(1, 5)",
    "SELECT a FROM logs CROSS JOIN unnest(a)",
    "SELECT a COLLATE x AS y FROM logs",
    "SELECT (1, 2) AS y FROM logs",
    "SELECT lower(DISTINCT a) AS y FROM logs",
    "SELECT a = ANY(b) AS y FROM logs",
    "FROM logs SELECT a",
    "SELECT TOP 5 a FROM logs",
    "SELECT a FROM logs QUALIFY a > 1",
    "SELECT a INTO b FROM logs",
    "SELECT a FROM logs FOR UPDATE",
    "VALUES (1)",
    "SELECT input_file_name() AS x FROM logs",
    "SELECT a FROM logs WHERE strftime(a, '%Y') = '2026'",
    "SELECT timestamp + 1 AS x FROM logs",
    "SELECT a AS b, 'x'::bigint AS c FROM logs",
    "SELECT a, lower(b) AS c FROM logs\nWHERE timestamp = 'noon'",
    "SELECT from FROM logs",
];

#[test]
fn refusals() {
    let line = |sql: &&str| format!("{sql}\n    {}\n", refusal(sql));
    insta::assert_snapshot!(REFUSED.iter().map(line).collect::<String>());
}

#[test]
fn what_a_name_would_not_mend_is_said_first() {
    let refused = refusal("SELECT count(*) FROM logs");
    assert!(refused.contains("combines records"), "{refused}");
    let refused = refusal("SELECT nofunction(a) FROM logs");
    assert!(refused.contains("unknown function"), "{refused}");
    let refused = refusal("SELECT upper(a) FROM logs");
    assert!(refused.contains("AS name"), "{refused}");
    let refused = refusal("SELECT ';' AS a FROM logs ; DROP TABLE logs");
    assert!(refused.starts_with("1:27+1 "), "{refused}");
}

#[test]
fn every_refusal_has_a_place_and_a_hint() {
    for sql in REFUSED {
        let error = Query::compile(sql, &Options::default()).expect_err(sql);
        let line = sql
            .split('\n')
            .nth(error.line - 1)
            .unwrap_or_else(|| panic!("{sql}: {error:?}"));
        let end = error.column + error.length - 1;
        assert!(error.column >= 1 && error.length >= 1, "{sql}: {error:?}");
        assert!(end <= line.chars().count() + 1, "{sql}: {error:?}");
        assert!(error.hint.is_some_and(|hint| !hint.is_empty()), "{sql}");
    }
}

#[test]
fn what_is_too_deep_is_refused_and_what_is_deep_runs() {
    let chain = |count: usize| {
        format!(
            "SELECT a FROM logs WHERE {}",
            vec!["a = 1"; count].join(" OR ")
        )
    };
    assert!(refusal(&chain(300)).contains("more than 200 levels deep"));
    let nested = format!(
        "SELECT a FROM logs WHERE {}a{}",
        "(".repeat(300),
        ")".repeat(300)
    );
    assert!(refusal(&nested).contains("nests too deeply"));
    let query = compile(&chain(190));
    let batch = batch(&query, &[r#"{"a":1}"#, r#"{"a":2}"#]);
    let evaluated = query.evaluator().evaluate(&batch, 0);
    assert_eq!(evaluated.branches[0].rows, crate::Rows::Some(vec![0]));
}

#[test]
fn text_that_is_no_sql_never_panics() {
    proptest!(|(text in "[a-zA-Z0-9_'\"(),.*<>=%:; \n-]{0,60}")| {
        let _ = Query::compile(&text, &Options::default());
        let _ = Query::compile(&format!("SELECT {text} FROM logs"), &Options::default());
        let _ = Query::compile(&format!("SELECT a FROM logs WHERE {text}"), &Options::default());
    });
}

/// Each is a chain of one level for each link, without parentheses: walking it must not end the process.
#[test]
fn long_chains_are_refused_or_planned() {
    let chain = |first: &str, link: &str, tokens: usize, times: usize| {
        // Just below the bound, and as long as a text may be.
        let below = 3_900 / tokens;
        for count in [below, times] {
            let chain = link.repeat(count);
            let sql = format!("SELECT * FROM logs WHERE {first}{chain} IS NULL");
            let _ = Query::compile(&sql, &Options::default());
            let sql = format!("SELECT f(1, 2) AS x, {first}{chain} AS y FROM logs");
            let _ = Query::compile(&sql, &Options::default());
        }
    };
    for (first, link, tokens) in [
        ("a", "+a", 2),
        ("a", "||a", 2),
        ("a", "->'b'", 2),
        ("a", "::text", 2),
        ("a = 1", " OR a = 1", 4),
        ("a = 1", " AND a = 1", 4),
        ("a", " IS NULL", 2),
        ("a", "[1]", 3),
        ("a", ".a", 2),
        ("a", "+f(a, a)", 7),
        ("", "- ", 1),
        ("", "NOT ", 1),
        ("a", " BETWEEN 1 AND 2", 4),
        ("a", " LIKE a", 2),
        ("a", " AT TIME ZONE 'UTC'", 4),
    ] {
        chain(first, link, tokens, 250_000 / link.len());
    }
    for link in ["UNION ALL", "EXCEPT", "INTERSECT"] {
        for count in [900, 6_000] {
            let sql =
                format!("SELECT a, b FROM logs {link} ").repeat(count) + "SELECT a, b FROM logs";
            let _ = Query::compile(&sql, &Options::default());
        }
    }
    let sql = format!(
        "SELECT * FROM logs WHERE a = 1{}",
        " OR a = 1".repeat(10_000)
    );
    assert!(refusal(&sql).contains("longer than 4000 words and signs"));
}
