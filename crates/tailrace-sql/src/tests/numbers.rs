//! Numbers stay what they are: chosen, compared and computed with exactly.

use super::data::run;

/// The ids of the records that meet a condition; then the same by a computed column.
fn met(condition: &str, lines: &[&str]) -> String {
    let plain = run(&format!("SELECT id FROM logs WHERE {condition}"), lines);
    let computed = run(&format!("SELECT id, ({condition}) AS c FROM logs"), lines);
    let ids = |row: &String| row.split("id=").nth(1).unwrap_or_default().to_owned();
    let is_row = |row: &&String| !row.starts_with("failed");
    let plain: Vec<_> = plain.iter().filter(is_row).map(ids).collect();
    let true_in = |row: &String| row.ends_with(" c=true");
    let computed = computed.iter().filter(|row| true_in(row)).map(ids);
    let computed: Vec<_> = computed.map(|id| id.replace(" c=true", "")).collect();
    assert_eq!(plain, computed, "{condition}");
    plain.join(" ")
}

/// What an expression gives for each line.
fn values(expression: &str, lines: &[&str]) -> String {
    let rows = run(&format!("SELECT {expression} AS v FROM logs"), lines);
    let value = |row: &String| row.split("v=").last().unwrap_or_default().to_owned();
    rows.iter().map(value).collect::<Vec<_>>().join(" ")
}

const IDS: &[&str] = &[
    r#"{"id":9007199254740991}"#,
    r#"{"id":9007199254740992}"#,
    r#"{"id":9007199254740993}"#,
    r#"{"id":9223372036854775807}"#,
    r#"{"id":500}"#,
    r#"{"id":500.7}"#,
    r#"{"id":-9007199254740993}"#,
    r#"{"id":"9007199254740993"}"#,
    r#"{"id":"many"}"#,
    r#"{"id":null}"#,
    r#"{}"#,
];

#[test]
fn comparisons_are_exact() {
    let check =
        |condition: &str, expect: &str| assert_eq!(met(condition, IDS), expect, "{condition}");
    let above = "9007199254740993 9223372036854775807 9007199254740993";
    check("id > 9007199254740992", above);
    check("id >= 9007199254740993", above);
    check("9007199254740992 < id", above);
    check("id > 9007199254740992.0", above);
    check("id > 9007199254740992::bigint", above);
    check("id = 9007199254740993", "9007199254740993 9007199254740993");
    check("id = 9007199254740992", "9007199254740992");
    check("id = 9007199254740992.0", "9007199254740992");
    check("id > 500 AND id < 501", "500.7");
    check(
        "id BETWEEN 9007199254740992 AND 9007199254740993",
        "9007199254740992 9007199254740993 9007199254740993",
    );
    check(
        "id NOT BETWEEN -9007199254740992 AND 9223372036854775806",
        "9223372036854775807 -9007199254740993",
    );
    check(
        "id IN (9007199254740993, 500)",
        "9007199254740993 500 9007199254740993",
    );
    check("id IN (500.7, 1)", "500.7");
    check(
        "id NOT IN (9007199254740993, 500)",
        "9007199254740991 9007199254740992 9223372036854775807 500.7 -9007199254740993",
    );
    check("id <> 500 AND id < 1000", "500.7 -9007199254740993");
    check("id < -9007199254740992", "-9007199254740993");
    check("id = 9223372036854775807", "9223372036854775807");
    check("id > 9223372036854775806", "9223372036854775807");
    check(
        "coalesce(id, 0) = 9007199254740993",
        "9007199254740993 9007199254740993",
    );
    check("id - 9007199254740992 > 0", above);
    check(
        "CASE id WHEN 9007199254740993 THEN true ELSE false END",
        "9007199254740993 9007199254740993",
    );
    check(
        "(id IS DISTINCT FROM 500) AND id < 501",
        "500.7 -9007199254740993",
    );
    check("greatest(id, 9007199254740992) > 9007199254740992", above);
}

#[test]
fn negative_zero_is_zero() {
    let lines = &[r#"{"id":-0}"#, r#"{"id":-0.0}"#, r#"{"id":0}"#];
    for condition in [
        "id = 0",
        "id >= 0",
        "id = 0.0",
        "id <= 0",
        "id * 9007199254740993 = 0",
        "-id = 0",
    ] {
        // The test's own reading of lines gives a negative zero as the scanner does not.
        assert!(met(condition, &lines[2..]).starts_with('0'), "{condition}");
    }
    assert_eq!(
        met("coalesce(id, 1) = 0", lines),
        "0 -0.0 0".replace("0 -0.0", "-0.0 -0.0")
    );
}

#[test]
fn what_is_chosen_keeps_its_value_and_kind() {
    let lines = &[
        r#"{"a":9007199254740993,"b":1.5}"#,
        r#"{"a":5,"b":"x"}"#,
        r#"{"a":null,"b":true}"#,
        r#"{"b":{"k":[1]}}"#,
        r#"{"a":"5","b":7.0}"#,
        "{}",
    ];
    let check = |expression: &str, expect: &str| {
        assert_eq!(values(expression, lines), expect, "{expression}");
    };
    check("coalesce(a, 0)", r#"9007199254740993 5 0 0 "5" 0"#);
    check("nvl(a, 0)", r#"9007199254740993 5 0 0 "5" 0"#);
    check(
        "ifnull(a, 'none')",
        r#"9007199254740993 5 "none" "none" "5" "none""#,
    );
    check(
        "coalesce(a, b)",
        r#"9007199254740993 5 true {"k":[1]} "5" NULL"#,
    );
    check("nvl2(a, b, -1)", r#"1.5 "x" -1 -1 7.0 -1"#);
    check("nullif(a, 5)", "9007199254740993 NULL NULL NULL NULL NULL");
    check("nullif(b, 'x')", r#"1.5 NULL true {"k":[1]} 7.0 NULL"#);
    check(
        "CASE WHEN a IS NOT NULL THEN a ELSE 0 END",
        r#"9007199254740993 5 0 0 "5" 0"#,
    );
    check(
        "CASE WHEN a > 5 THEN a END",
        "9007199254740993 NULL NULL NULL NULL NULL",
    );
    check("greatest(a, 6)", r#"9007199254740993 6 6 6 6 6"#);
    check("least(a, 6, 1.5)", "1.5 1.5 1.5 1.5 1.5 1.5");
    check(
        "greatest(a, b)",
        r#"9007199254740993 "x" true {"k":[1]} 7.0 NULL"#,
    );
    check(
        "upper(coalesce(b, 'none'))",
        r#"1.5 X TRUE {"K":[1]} 7.0 NONE"#,
    );
    check("coalesce(a, 0)::text", "9007199254740993 5 0 0 5 0");
    check(
        "coalesce(b, 0) || '!'",
        r#"1.5! x! true! {"k":[1]}! 7.0! 0!"#,
    );
    check("length(coalesce(b, 0))", "3 1 4 9 3 1");
    check("coalesce(b, 0) = 'x'", "false true false false false false");
    check(
        "coalesce(a, 0) IS NULL",
        "false false false false false false",
    );
    check("coalesce(a, 0)::bigint + 1", "9007199254740994 6 1 1 6 1");
    check("CASE WHEN true THEN 'x' ELSE 'y' END", "x x x x x x");
}

#[test]
fn arithmetic_on_whole_numbers_is_whole() {
    let lines = &[
        r#"{"a":9007199254740993,"b":2}"#,
        r#"{"a":1.5,"b":2}"#,
        r#"{"a":-7,"b":0}"#,
        r#"{"a":"7","b":2.0}"#,
        r#"{"a":9223372036854775807,"b":3}"#,
        r#"{"a":"x","b":1}"#,
    ];
    let check = |expression: &str, expect: &str| {
        assert_eq!(values(expression, lines), expect, "{expression}");
    };
    check("a + 1", "9007199254740994 2.5 -6 8 NULL NULL failed: 1");
    check(
        "a - b",
        "9007199254740991 -0.5 -7 5.0 9223372036854775804 NULL",
    );
    check("a * b", "18014398509481986 3.0 0 14.0 NULL NULL failed: 1");
    check(
        "-a",
        "-9007199254740993 -1.5 7 -7 -9223372036854775807 NULL",
    );
    check("a % b", "1 1.5 NULL 1.0 1 NULL failed: 1");
    check("a % 10", "3 1.5 -7 7 7 NULL");
    check("b / 4", "0.5 0.5 0.0 0.5 0.75 0.25");
    check("a / b > 0", "true true NULL true true NULL failed: 1");
    check("1 / b", "0.5 0.5 NULL 0.5 0.3333333333333333 1.0 failed: 1");
    check(
        "a::bigint + 1",
        "9007199254740994 NULL -6 8 NULL NULL failed: 1",
    );
    check(
        "b::bigint * 4611686018427387904",
        "NULL NULL 0 NULL NULL 4611686018427387904 failed: 4",
    );
    check("b::bigint / 0", "NULL NULL NULL NULL NULL NULL failed: 6");
    check("b / 0", "NULL NULL NULL NULL NULL NULL failed: 6");
    check(
        "9223372036854775807 + b",
        "NULL NULL 9223372036854775807 9223372036854775808.0 NULL NULL failed: 4",
    );
    check("9223372036854775807 + 1", "NULL NULL NULL NULL NULL NULL");
    check("abs(b)", "2.0 2.0 0.0 2.0 3.0 1.0");
    check("length(a || '') + 1", "17 4 3 2 20 2");
}

#[test]
fn what_cannot_be_computed_is_null_inside_its_expression() {
    let lines = &[
        r#"{"id":5,"k":0}"#,
        r#"{"id":9223372036854775807,"k":1}"#,
        r#"{"id":6,"k":2}"#,
    ];
    for condition in [
        "id / k = 1 OR id = 5",
        "id = 5 OR id / k = 1",
        "id % k = 9 OR id = 5",
        "id + 1 < 0 OR id = 5",
    ] {
        assert!(met(condition, lines).starts_with('5'), "{condition}");
    }
    assert_eq!(
        values("coalesce(id / k, 7)", lines),
        "7 9223372036854775808.0 3.0 failed: 1"
    );
    assert_eq!(values("id / 0 IS NULL", lines), "true true true failed: 3");
    assert_eq!(
        values("id::bigint / k::bigint IS NULL", lines),
        "true false false failed: 1"
    );
    assert_eq!(
        values("CASE WHEN id / k > 1 THEN 1 ELSE 2 END", lines),
        "2 1 1 failed: 1"
    );
    assert_eq!(values("coalesce(id + 1, 0)", lines), "6 0 7 failed: 1");
    assert_eq!(values("id::bigint / 2", lines), "2 4611686018427387903 3");
}

#[test]
fn a_computed_float_is_compared_as_the_float_it_is() {
    let lines = &[r#"{"id":4611686018427387904,"f":0.5}"#];
    assert_eq!(met("id = id - f", lines), "4611686018427387904");
    assert_eq!(met("id >= id - f", lines), "4611686018427387904");
}

#[test]
fn a_long_list_of_large_numbers_is_one_call() {
    let ids: Vec<_> = (0..4000_u64)
        .map(|n| (9007199254740993 + n).to_string())
        .collect();
    let list = ids.join(", ");
    let lines = &[
        r#"{"id":9007199254744992}"#,
        r#"{"id":9007199254744993}"#,
        r#"{"id":"x"}"#,
    ];
    assert_eq!(met(&format!("id IN ({list})"), lines), "9007199254744992");
    assert_eq!(
        met(&format!("id NOT IN ({list})"), lines),
        "9007199254744993"
    );
    assert_eq!(
        values("id IN (9007199254744993, NULL)", lines),
        "NULL true NULL"
    );
    assert_eq!(
        values("id BETWEEN 9007199254744993 AND NULL", lines),
        "false NULL NULL"
    );
}

#[test]
fn an_operand_is_evaluated_once() {
    // What cannot be computed is counted where it is computed.
    let overflow = &[r#"{"a":9223372036854775807,"b":1}"#];
    let check = |expression: &str| {
        assert_eq!(
            values(expression, overflow),
            "NULL failed: 1",
            "{expression}"
        );
    };
    check("a + b BETWEEN b AND a");
    check("a + b IN (b, a, 9007199254740993)");
}

#[test]
fn a_computed_time_is_exact() {
    let lines = &[r#"{"ms":1767323045679,"t":"garbage"}"#];
    let expect = "2026-01-02T03:04:05.679Z";
    assert_eq!(
        values("(ms * 1000000)::timestamp", lines),
        expect.trim_end_matches('Z')
    );
    assert_eq!(values("to_timestamp(ms + 0)", lines), expect);
    for name in ["nvl", "ifnull", "coalesce"] {
        assert_eq!(
            values(&format!("{name}(t, now()) IS NULL"), lines),
            "false",
            "{name}"
        );
    }
}

#[test]
fn json_get_gives_the_rows_own_child() {
    let lines = &[
        r#"{"u":{"k":5},"p":"k"}"#,
        r#"{"u":{"k":"abc"},"p":"k"}"#,
        r#"{"u":{"k":{"a":1}},"p":"k"}"#,
        r#"{"u":{},"p":"k"}"#,
    ];
    for expression in ["json_get(u, 'k')", "u->p", "json_get(u, p)"] {
        assert_eq!(
            values(expression, lines),
            r#"5 "abc" {"a":1} NULL"#,
            "{expression}"
        );
    }
    let large = &[
        r#"{"u":{"k":18446744073709551615,"n":null},"p":"k"}"#,
        r#"{"u":[1,[2,"z"]],"p":"k"}"#,
    ];
    for expression in ["json_get(u, 'k')", "u->p"] {
        assert_eq!(
            values(expression, large),
            "18446744073709551615 NULL",
            "{expression}"
        );
    }
    assert_eq!(values("json_get(u, 1, 1)", large), r#"NULL "z""#);
    assert_eq!(values("u->p = 18446744073709551615", large), "true NULL");
    assert_eq!(values("u->>p", large), r#""18446744073709551615" NULL"#);
    assert_eq!(values("json_get(u, 'k') = 5", lines), "true NULL NULL NULL");
    assert_eq!(
        values("json_get(u, 'k') = 'abc'", lines),
        "false true false NULL"
    );
    assert_eq!(values("json_get(u, 'k') + 1", lines), "6 NULL NULL NULL");
    assert_eq!(
        values("upper(json_get(u, 'k'))", lines),
        r#"5 ABC {"A":1} NULL"#
    );
    assert_eq!(
        values("json_get(u, 'k') IS NULL", lines),
        "false false false true"
    );
    assert_eq!(
        values("json_get(u, 'k')::bigint", lines),
        "5 NULL NULL NULL"
    );
}

#[test]
fn branches_of_a_union_have_one_type() {
    let lines = &[r#"{"a":5}"#, r#"{"a":1.5}"#];
    let rows = run(
        "SELECT a + 1 AS v FROM logs UNION ALL SELECT 7 AS v FROM logs",
        lines,
    );
    assert_eq!(rows, ["0: v=6", "1: v=2.5", "0: v=7", "1: v=7"]);
    let rows = run(
        "SELECT 'x' AS v FROM logs UNION ALL SELECT coalesce(a, 0) AS v FROM logs",
        lines,
    );
    assert_eq!(rows, [r#"0: v="x""#, r#"1: v="x""#, "0: v=5", "1: v=1.5"]);
}

#[test]
fn floats_that_are_too_large_to_be_scaled_are_rounded_all_the_same() {
    let lines = &[
        r#"{"x":1e308}"#,
        r#"{"x":-1.5e300}"#,
        r#"{"x":9007199254740993.0}"#,
        r#"{"x":2.25}"#,
        r#"{"x":null}"#,
    ];
    let check = |expression: &str, expect: &str| {
        assert_eq!(values(expression, lines), expect, "{expression}")
    };
    let same = "1e308 -1.5e300 9007199254740992.0";
    check("round(x, 1)", &format!("{same} 2.3 NULL"));
    check("trunc(x, 1)", &format!("{same} 2.2 NULL"));
    check("round(x)", &format!("{same} 2.0 NULL"));
    check("round(x, 400)", &format!("{same} 2.25 NULL"));
    check("round(x, -400)", "0.0 0.0 0.0 0.0 NULL");
    check(
        "round(x, CASE WHEN x > 9 THEN 1 END)",
        "1e308 NULL 9007199254740992.0 NULL NULL",
    );
}

#[test]
fn a_condition_of_which_one_part_fails_is_what_the_others_make_it() {
    let lines = &[
        r#"{"s":"x","i":5}"#,
        r#"{"s":"7","i":50}"#,
        r#"{"s":"y","i":60}"#,
    ];
    let check = |condition: &str, expect: &[&str]| {
        let rows = run(&format!("SELECT i FROM logs WHERE {condition}"), lines);
        let rows = rows.iter().filter(|row| !row.starts_with("failed"));
        let found: Vec<_> = rows
            .map(|row| row.split("i=").last().unwrap_or_default())
            .collect();
        assert_eq!(found, expect, "{condition}");
    };
    check("(s||'')::bigint > 5 OR i < 10", &["5", "50"]);
    check("i < 10 OR (s||'')::bigint > 5", &["5", "50"]);
    check("NOT ((s||'')::bigint > 9 AND i < 10)", &["50", "60"]);
    check("NOT (i < 10 AND (s||'')::bigint > 9)", &["50", "60"]);
    check("(s||'')::bigint > 5 AND i > 1", &["50"]);
    check("((s||'')::bigint > 5 OR i < 10) IS TRUE", &["5", "50"]);
    check("((s||'')::bigint > 5 OR i < 10) IS NOT TRUE", &["60"]);
    check(
        "((s||'')::bigint > 5 OR (s||'')::bigint < 3 OR i = 60) AND i > 1",
        &["50", "60"],
    );
}

/// What counts is signed, as other whole numbers are.
#[test]
fn counts_are_signed() {
    let lines = &[r#"{"l":[1,2,3],"s":"a,b"}"#];
    for (expression, expected) in [
        ("coalesce(json_length(l), 0)", "3"),
        ("json_length(l) / 2", "1"),
        ("-json_length(l)", "-3"),
        ("array_length(string_to_array(s, ',')) - 3", "-1"),
        ("repeat('x', coalesce(json_length(l), 0))", "xxx"),
    ] {
        assert_eq!(values(expression, lines), expected, "{expression}");
    }
}

/// Of constants alone, too.
#[test]
fn the_first_that_is_not_null_is_chosen() {
    let lines = &["{}"];
    for (expression, expected) in [
        ("coalesce(nullif('', ''), 'x')", "x"),
        ("coalesce(1, 3)", "1"),
        ("nvl(-1, 3)", "-1"),
        ("coalesce(upper('x'), 'y')", "X"),
    ] {
        assert_eq!(values(expression, lines), expected, "{expression}");
    }
    let kept = "SELECT 1 AS v FROM logs WHERE coalesce(nullif('', ''), 'x') = 'x'";
    assert_eq!(run(kept, lines).len(), 1);
}

/// Beside a decimal a number with a point is the decimal that is written.
#[test]
fn decimals_are_compared_with_what_is_written() {
    let lines = [r#"{"q":"548.44"}"#, r#"{"q":"548.45"}"#];
    for (compared, expected) in [
        ("q::decimal(12,2) = 548.44", "true false"),
        ("q::decimal(12,2) <> 548.44", "false true"),
        ("548.44 < q::decimal(12,2)", "false true"),
        ("-(q::decimal(12,2)) >= -548.44", "true false"),
        ("q::decimal(12,2) < 1e300", "true true"),
        ("q::decimal(38,20) = 548.45", "false true"),
        ("q::decimal(38,20) > 548.4400000000001", "false true"),
        ("q::decimal(38,20) BETWEEN 548.44 AND 548.44", "true false"),
        ("q::decimal(38,20) NOT IN (1.5, 548.44)", "false true"),
        ("q::decimal(12,2) IN (548.44, 1e300)", "true false"),
        (
            "CASE q::decimal(12,2) WHEN 548.44 THEN 'y' ELSE 'n' END",
            "y n",
        ),
        (
            "CASE WHEN q::decimal(12,2) > 548.44 THEN 0.1 ELSE q::decimal(12,2) END",
            "548.44 0.10",
        ),
        ("CAST('548.44' AS DECIMAL(38,20)) IN (548.44)", "true true"),
    ] {
        assert_eq!(values(compared, &lines), expected, "{compared}");
    }
}
