//! Sizes that come from the data, and expressions in each other: one record's value is NULL, nothing else is touched.

use proptest::prelude::*;
use proptest::sample::select;

use super::data::{OBSERVED_NS, batch, run};
use crate::guard::size::VALUE_BYTES_MAX;
use crate::{Options, Query};

const LINES: &[&str] = &[
    r#"{"s":"ab","n":3,"f":"é"}"#,
    r#"{"s":"ab","n":-1,"f":""}"#,
    r#"{"s":"ab","n":2000000000,"f":"x"}"#,
    r#"{"s":"ab","n":9223372036854775807}"#,
    r#"{"s":"ab","n":-9223372036854775808,"f":"x"}"#,
];

/// What `expression` is for each line, and how many failed.
fn values(expression: &str) -> String {
    let rows = run(&format!("SELECT {expression} AS v FROM logs"), LINES);
    let rows = rows
        .iter()
        .map(|row| row.split_once(": v=").map_or(row.as_str(), |row| row.1));
    rows.collect::<Vec<_>>().join("|")
}

#[test]
fn a_size_from_the_data_fails_its_record_only() {
    for (expression, expected) in [
        ("lpad(s, n)", " ab||NULL|NULL||failed: 2"),
        ("rpad(s, n, f)", "abé||NULL|NULL||failed: 1"),
        ("lpad(s, -1)", "||||"),
        ("length(repeat(s, n))", "6|0|NULL|NULL|0|failed: 2"),
        (
            "length(repeat(repeat(s, 8000000), n))",
            "NULL|0|NULL|NULL|0|failed: 3",
        ),
        (
            "array_length(array_repeat(s, n))",
            "3|0|NULL|NULL|0|failed: 2",
        ),
        (
            "array_length(array_resize(make_array(1), n::bigint))",
            "3|NULL|NULL|NULL|NULL|failed: 4",
        ),
        ("array_length(range(n))", "3|0|NULL|NULL|0|failed: 2"),
        (
            "array_length(generate_series(0, n::bigint, 1))",
            "4|0|NULL|NULL|0|failed: 2",
        ),
        (
            "length(replace(repeat(s, 4000000), 'a', repeat('x', (n::bigint % 4 + 1))))",
            "NULL|4000000|8000000|NULL|8000000|failed: 2",
        ),
        (
            "length(repeat(s, 7000000) || repeat(s, n::bigint * 0 + 2000000))",
            "NULL|NULL|NULL|NULL|NULL|failed: 5",
        ),
        (
            "array_length(string_to_array(repeat(s, 4000000), NULL))",
            "NULL|NULL|NULL|NULL|NULL|failed: 5",
        ),
        (
            "array_length(string_to_array(repeat(s, 1000), 'b'))",
            "1001|1001|1001|1001|1001",
        ),
        ("split_part(s, 'a', n::bigint)", "|b|||"),
        (
            "array_position(make_array(3, 1), 1, n::bigint)",
            "NULL|NULL|NULL|NULL|NULL|failed: 4",
        ),
        ("n::bigint << 200", "768|-256|512000000000|-256|0"),
    ] {
        assert_eq!(values(expression), expected, "{expression}");
    }
}

#[test]
fn rows_that_together_are_too_much_are_made_in_parts() {
    let lines: Vec<String> = (0..9)
        .map(|n| format!(r#"{{"n":{}}}"#, 8_000_000 + n))
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let rows = run("SELECT length(lpad('x', n)) AS v FROM logs", &lines);
    assert_eq!(rows.len(), 9);
    for (index, row) in rows.iter().enumerate() {
        assert_eq!(*row, format!("{index}: v={}", 8_000_000 + index));
    }
}

const LEAVES: &[&str] = &[
    "s",
    "n",
    "f",
    "NULL",
    "0",
    "-1",
    "1.5",
    "9223372036854775807",
    "2000000000",
    "'x'",
    "''",
    "'%d'",
    "now()",
    "true",
    "make_array(1, 2)",
    "interval '1 day'",
    "struct(s, n)",
    "json_get(json, 's')",
    "map(['a'], [n])",
];

const FUNCTIONS: &[&str] = &[
    "lpad",
    "rpad",
    "repeat",
    "replace",
    "array_repeat",
    "array_resize",
    "range",
    "concat",
    "substr",
    "to_char",
    "date_trunc",
    "date_bin",
    "make_date",
    "power",
    "gcd",
    "lcm",
    "factorial",
    "round",
    "split_part",
    "regexp_replace",
    "array_to_string",
    "string_to_array",
    "translate",
    "overlay",
    "to_timestamp",
    "from_unixtime",
    "abs",
    "map_keys",
    "map_extract",
    "get_field",
    "coalesce",
    "array_slice",
    "array_position",
    "left",
    "chr",
    "arrow_cast",
    "length",
    "json_get",
    "generate_series",
    "flatten",
];

const OPERATORS: &[&str] = &[
    "+", "-", "*", "/", "%", "||", "<<", ">>", "&", "=", "<", "LIKE", "~", "AND", "->",
];

const TYPES: &[&str] = &["bigint", "int", "text", "double", "date", "timestamp"];

/// Expressions over keys, constants and each other; some have no meaning.
fn expressions() -> impl Strategy<Value = String> {
    let leaves = select(LEAVES).prop_map(str::to_owned);
    leaves.prop_recursive(4, 12, 3, |inner| {
        let arguments = proptest::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            (select(FUNCTIONS), arguments)
                .prop_map(|(name, args)| format!("{name}({})", args.join(", "))),
            (inner.clone(), select(OPERATORS), inner.clone())
                .prop_map(|(left, operator, right)| format!("({left} {operator} {right})")),
            (inner.clone(), select(TYPES)).prop_map(|(inner, ty)| format!("({inner})::{ty}")),
            inner.prop_map(|inner| format!("CASE WHEN n > 0 THEN {inner} END")),
        ]
    })
}

#[test]
fn no_nesting_of_expressions_panics() {
    proptest!(ProptestConfig::with_cases(200), |(expression in expressions())| {
        for sql in [
            format!("SELECT {expression} AS v FROM logs"),
            format!("SELECT unnest(make_array({expression})) AS v FROM logs"),
        ] {
            let Ok(query) = Query::compile(&sql, &Options::default()) else {
                continue;
            };
            let evaluated = query.evaluator().evaluate(&batch(&query, LINES), OBSERVED_NS);
            let made = evaluated.branches[0].computed.iter();
            let bytes: usize = made.map(|array| array.get_buffer_memory_size()).sum();
            prop_assert!(bytes <= 8 * LINES.len() * VALUE_BYTES_MAX, "{} bytes", bytes);
        }
    });
}

#[test]
fn lists_that_become_rows_are_bounded_too() {
    let rows = run(
        "SELECT unnest(array_repeat(s, n)) AS v, upper(s) AS u FROM logs",
        &LINES[..3],
    );
    let made = ["0: v=ab u=AB"; 3].into_iter();
    let failed = ["2: v=NULL u=AB", "failed: 1"];
    assert_eq!(rows, made.chain(failed).collect::<Vec<_>>());
}

fn compiled(sql: &str) -> Result<Query, String> {
    Query::compile(sql, &Options::default()).map_err(|error| error.message)
}

#[test]
fn the_constants_of_a_query_are_bounded_together() {
    let many = |count: usize, expression: &str| {
        let columns =
            (0..count).map(|n| format!("{} AS c{n}", expression.replace('#', &n.to_string())));
        format!(
            "SELECT {} FROM logs",
            columns.collect::<Vec<_>>().join(", ")
        )
    };
    for (count, expression) in [
        (1, "repeat('a', 16000000)"),
        (2, "levenshtein(repeat('a', 1000), repeat('b', 100#))"),
        (100, "upper('abc#')"),
    ] {
        let query = compiled(&many(count, expression)).expect(expression);
        assert!(query.constant_bytes() > count, "{expression}");
    }
    for expression in [
        "repeat('a', 16000000 + #)",
        "length(repeat('a', 16000000 + #))",
        "levenshtein(repeat('a', 8000), repeat('b', 80#))",
        "[repeat('a', 15000000), repeat('b', 15000000), repeat('c', 15000000), repeat('d', 15000000)]",
        "msg || (repeat('a', 15000000) || repeat('b', #))",
        "CASE WHEN level = 'a' THEN repeat('a', 16000000 + #) END",
    ] {
        let message = compiled(&many(40, expression)).expect_err(expression);
        assert!(
            message.contains("the constants of this query"),
            "{expression}: {message}"
        );
    }
}

#[test]
fn a_query_has_a_greatest_number_of_selects_and_computed_outputs() {
    let selects = |count: usize| vec!["SELECT a FROM logs"; count].join(" UNION ALL ");
    assert!(compiled(&selects(20)).is_ok());
    let message = compiled(&selects(501)).expect_err("too many");
    assert_eq!(message, "the query has 501 SELECTs, more than 500");
    let computed = |count: usize| {
        let outputs: Vec<_> = (0..count).map(|n| format!("a + {n} AS c{n}")).collect();
        format!("SELECT {} FROM logs", outputs.join(", "))
    };
    assert!(compiled(&computed(20)).is_ok());
    let message = compiled(&computed(1001)).expect_err("too many");
    assert_eq!(
        message,
        "the query has 1001 computed outputs, more than 1000"
    );
}
