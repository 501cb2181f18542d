//! Literals that fail for every record: errors at their place.

use crate::{Options, Query};

/// `column+length message | hint`, or `ok`, with warnings after.
pub(super) fn outcome(sql: &str) -> String {
    match Query::compile(sql, &Options::default()) {
        Err(error) => {
            let hint = error.hint.unwrap_or_default();
            format!(
                "{}+{} {} | {hint}",
                error.column, error.length, error.message
            )
        }
        Ok(query) => {
            let warned = query.warnings().iter();
            let warned: String = warned
                .map(|warning| format!("\n    ! {} {}", warning.column, warning.message))
                .collect();
            format!("ok{warned}")
        }
    }
}

const EXPRESSIONS: &[&str] = &[
    "regexp_like(a, '(')",
    "regexp_replace(a, '(?=x)', '***')",
    "regexp_replace(a, '[0-9]+', '***', 'gq')",
    "regexp_match(a, 'a{2000000000}')",
    "regexp_count(a, '\\d+')",
    "regexp_count(a, '*')",
    "a ~ '('",
    "a !~* '[z-a]'",
    "a ~ b",
    "a SIMILAR TO '('",
    "a SIMILAR TO b",
    "a SIMILAR TO 'x{3,1}'",
    "a SIMILAR TO 'x!%' ESCAPE '!'",
    "a LIKE 'x!%' ESCAPE '!'",
    "date_trunc('fortnight', ts)",
    "date_trunc(unit, ts)",
    "date_trunc(CASE WHEN a = 'x' THEN 'day' ELSE 'hour' END, ts)",
    "date_trunc(lower('DAY'), ts)",
    "date_part(user, ts)",
    "date_bin(interval '1 hour', ts, b)",
    "encode(a, b)",
    "upper(decode(a, coalesce(b, 'hex'))::text)",
    "date_part('epoch', ts)",
    "date_part('century', ts)",
    "extract(fortnight FROM ts)",
    "extract(year FROM ts)",
    "date_bin(interval '0 seconds', ts)",
    "date_bin(interval '5 minutes', ts)",
    "ts AT TIME ZONE 'Mars/Olympus'",
    "ts AT TIME ZONE 'Europe/Berlin'",
    "to_char(ts, '%Q')",
    "to_char(ts, '%Y-%m-%d')",
    "to_timestamp(a, '%Y-%m-%d %H:%M:%S')",
    "to_timestamp(a, '%d/%b/%Y:%H:%M:%S %z')",
    "to_timestamp(a, '%Y-%m-%d %H:%M:%S %Z')",
    "to_timestamp(a, '%s')",
    "to_timestamp(a, '%b %d %H:%M:%S')",
    "to_timestamp(a, '%!')",
    "to_timestamp(a, '%H:%M:%S')",
    "to_date(a, '%Y-%m-%d', '%Y')",
    "to_date(a, '%d.%m.%Y')",
    "arrow_cast(a, 'Int65')",
    "CAST('abc' AS INT)",
    "'2026-13-01'::date",
    "try_cast('abc' AS int)",
    "TIMESTAMP 'noon'",
    "interval '1 fortnight'",
    "lpad('x', 2000000000, 'y')",
    "length(repeat(repeat('x', 16000000), 2))",
    "CASE WHEN a = 'x' THEN 'abc'::int END",
    "decode(a, 'base65')",
    "1 / 0 + 1",
    "a / 0",
    "chr(-1 - 1)",
];

#[test]
fn literals_are_tried() {
    let line = |expression: &&str| {
        let outcome = outcome(&format!("SELECT {expression} AS x FROM logs"));
        format!("{expression}\n    {outcome}\n")
    };
    insta::assert_snapshot!(EXPRESSIONS.iter().map(line).collect::<String>());
}

#[test]
fn the_place_is_that_of_the_literal() {
    let sql = "SELECT a\nFROM logs\nWHERE b > 1\n  AND regexp_like(lower(a), '(x')";
    let error = Query::compile(sql, &Options::default()).unwrap_err();
    assert_eq!((error.line, error.column, error.length), (4, 29, 4));
}

#[test]
fn similar_to_is_about_the_whole_text() {
    let lines = [
        r#"{"a":"abc"}"#,
        r#"{"a":"xabcx"}"#,
        r#"{"a":"ab\nc"}"#,
        r#"{"a":null}"#,
    ];
    let check = |condition: &str, rows: &[u32]| {
        let found = super::data::run(&format!("SELECT a FROM logs WHERE {condition}"), &lines);
        let found: Vec<u32> = found
            .iter()
            .map(|line| line.split_once(':').unwrap().0.parse().unwrap())
            .collect();
        // A line feed within a value is a line of its own in the text of rows.
        assert_eq!(found, rows, "{condition}");
    };
    check("a SIMILAR TO 'abc'", &[0]);
    check("a SIMILAR TO '%abc%'", &[0, 1]);
    check("a SIMILAR TO 'ab_?c'", &[0, 2]);
    check("a NOT SIMILAR TO 'abc'", &[1, 2]);
    check("a SIMILAR TO 'b|abc'", &[0]);
}

#[test]
fn a_backslash_in_a_regular_expression_stands_for_itself() {
    let lines = &[r#"{"s":"DOM\\user"}"#, r#"{"s":"DOMuser"}"#];
    for condition in [
        r"s ~ 'M\\user'",
        r"s ~ '\\'",
        r"s ~ '[\\]user'",
        r"s ~ '^DOM\\'",
        r"s ~* 'zz|m\\U'",
        r"regexp_like(s, 'M\x5cuser')",
        r"NOT s !~ 'M\\user'",
    ] {
        let rows = super::data::run(&format!("SELECT 1 AS x FROM logs WHERE {condition}"), lines);
        assert_eq!(rows, ["0: x=1"], "{condition}");
    }
}

#[test]
fn each_group_of_a_match_has_its_place() {
    let lines = &[
        r#"{"s":"status=500"}"#,
        r#"{"s":"user=x status=1"}"#,
        r#"{"s":"-"}"#,
        "{}",
    ];
    let sql = r"SELECT regexp_match(s, '(?:user=(\w+) )?status=(\d+)')[1] AS u, regexp_match(s, '(?:user=(\w+) )?status=(\d+)')[2] AS n FROM logs";
    let rows = super::data::run(sql, lines);
    assert_eq!(
        rows,
        [
            "0: u=NULL n=500",
            "1: u=x n=1",
            "2: u=NULL n=NULL",
            "3: u=NULL n=NULL"
        ]
    );
}
