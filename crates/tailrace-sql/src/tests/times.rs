//! Times made of text: one type wherever they meet, and no record that stops the others.

use super::data::run;

const LINES: &[&str] = &[
    r#"{"d":"2026-01-02","h":"03:04:05","t":"2026-01-02"}"#,
    r#"{"d":"-","h":"-","t":"-"}"#,
    r#"{"d":"2099-12-31","h":"00:00:00","t":"2099-12-31"}"#,
    "{}",
];

fn values(expression: &str) -> Vec<String> {
    let rows = run(&format!("SELECT {expression} AS v FROM logs"), LINES);
    rows.iter()
        .map(|row| row.split("v=").last().unwrap().to_owned())
        .collect()
}

#[test]
fn a_time_that_cannot_be_read_is_null_for_its_record_only() {
    let times = [
        "2026-01-02T03:04:05Z",
        "NULL",
        "2099-12-31T00:00:00Z",
        "NULL",
        "failed: 1",
    ];
    let days = [
        "2026-01-02T00:00:00Z",
        "NULL",
        "2099-12-31T00:00:00Z",
        "NULL",
        "failed: 1",
    ];
    for kin in ["", "_seconds", "_millis", "_micros", "_nanos"] {
        let of_text = format!("to_timestamp{kin}(d || 'T' || h || 'Z')");
        assert_eq!(values(&of_text), times, "{of_text}");
        let with_format = format!("to_timestamp{kin}(d || ' ' || h, '%Y-%m-%d %H:%M:%S')");
        assert_eq!(values(&with_format), times, "{with_format}");
        let case = format!("CASE WHEN true THEN {of_text} ELSE now() END");
        assert_eq!(values(&case), times, "{case}");
        let truncated = format!("date_trunc('day', {of_text})");
        assert_eq!(values(&truncated), days, "{truncated}");
        let chosen = format!("coalesce({of_text}, {with_format})");
        assert_eq!(values(&chosen), times, "{chosen}");
        let listed = format!("array_length(make_array({of_text}, now()))");
        assert_eq!(
            values(&listed),
            ["2", "NULL", "2", "2", "failed: 1"],
            "{listed}"
        );
    }
}

#[test]
fn a_time_of_a_format_is_compared() {
    let met = |condition: &str| run(&format!("SELECT t FROM logs WHERE {condition}"), LINES);
    assert_eq!(
        met("to_timestamp(t, '%Y-%m-%d') > now()"),
        ["2: t=2099-12-31", "failed: 1"]
    );
    assert_eq!(
        met("to_timestamp(t, '%Y-%m-%d') < now()"),
        ["0: t=2026-01-02", "failed: 1"]
    );
    assert_eq!(
        met("now() - to_timestamp(d || 'T' || h || 'Z') < interval '1 hour'"),
        ["0: t=2026-01-02", "2: t=2099-12-31", "failed: 1"]
    );
    assert_eq!(
        met("to_timestamp(d || 'T' || h || 'Z') IN (now(), timestamp '2026-01-02 03:04:05')"),
        ["0: t=2026-01-02", "failed: 1"]
    );
}

/// Days and months are as long as 24 hours and 30 days, and a part of a day is not forgotten.
#[test]
fn intervals_are_compared_by_their_length() {
    let lines = &[r#"{"t":"2026-01-02T12:00:00Z"}"#];
    for condition in [
        "timestamp - to_timestamp('2026-01-01') > interval '1 day'",
        "timestamp - to_timestamp('2025-11-01') > interval '2 months'",
        "timestamp - to_timestamp('2026-01-01') between interval '1 day' and interval '2 days'",
        "timestamp > cast('2026-01-02' as date) + interval '11 hours'",
        "timestamp < cast('2026-01-02' as date) + interval '13 hours'",
    ] {
        let condition = condition.replace("timestamp ", "to_timestamp(t) ");
        let rows = run(&format!("SELECT 1 AS x FROM logs WHERE {condition}"), lines);
        assert_eq!(rows, ["0: x=1"], "{condition}");
    }
}

/// What an interval is multiplied with or divided by is a number, not a time.
#[test]
fn intervals_are_multiplied_and_divided() {
    let lines = &[r#"{"t":"2026-01-02T12:00:00Z","n":2}"#];
    for condition in [
        "to_timestamp(t) > to_timestamp('2026-01-01') + n * interval '12 hours'",
        "to_timestamp(t) < to_timestamp('2026-01-01') + interval '1 day' * (n + 1)",
        "interval '1 day' / n = interval '12 hours'",
    ] {
        let rows = run(&format!("SELECT 1 AS x FROM logs WHERE {condition}"), lines);
        assert_eq!(rows, ["0: x=1"], "{condition}");
    }
}

#[test]
fn a_time_is_truncated_downwards_or_fails() {
    let lines = &[
        r#"{"t":"1969-12-31T23:59:59.123456789Z"}"#,
        r#"{"t":"1677-09-21T00:12:43.145224192Z"}"#,
    ];
    for (unit, expect) in [
        ("microsecond", "1969-12-31T23:59:59.123456Z"),
        ("millisecond", "1969-12-31T23:59:59.123Z"),
        ("minute", "1969-12-31T23:59:00Z"),
        ("week", "1969-12-29T00:00:00Z"),
        ("year", "1969-01-01T00:00:00Z"),
    ] {
        let rows = run(
            &format!("SELECT date_trunc('{unit}', t) AS v FROM logs"),
            lines,
        );
        let expect = [&format!("0: v={expect}"), "1: v=NULL", "failed: 1"];
        assert_eq!(rows, expect);
    }
}

#[test]
fn reserved_times_are_subtracted() {
    let lines = &[
        r#"{"ts":"2026-01-02T03:04:04Z","t":"2026-01-02T03:04:00Z"}"#,
        "{}",
    ];
    for (expression, expect) in [
        ("observed_timestamp - timestamp", "PT1S"),
        ("observed_timestamp - t", "PT5S"),
        ("coalesce(timestamp, observed_timestamp) - t", "PT4S"),
        ("observed_timestamp - (timestamp)", "PT1S"),
    ] {
        let rows = run(&format!("SELECT {expression} AS v FROM logs"), lines);
        assert_eq!(
            rows,
            [&format!("0: v={expect}"), "1: v=NULL"],
            "{expression}"
        );
    }
    let sql = "SELECT 1 AS x FROM logs WHERE observed_timestamp - timestamp > interval '500 ms'";
    assert_eq!(run(sql, lines), ["0: x=1"]);
}
