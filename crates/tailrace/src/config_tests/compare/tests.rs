//! Values that are the same though they are written differently, and what is said of those that differ.

use super::Line::{Actual, Expected, Text};
use super::*;

#[test]
fn values_are_compared_by_what_they_mean() {
    let same = [
        (
            r#"{"a":1,"b":[true,null]}"#,
            r#"{ "b": [true, null], "a": 1.0 }"#,
        ),
        ("500", "5e2"),
        ("0.5", "5e-1"),
        (r#""\u0041\/""#, r#""A/""#),
        ("12345678901234567890123", "12345678901234567890123"),
        ("-0", "0"),
    ];
    for (a, b) in same {
        assert!(is_same(a, b), "{a} {b}");
    }
    let different = [
        ("1", "\"1\""),
        ("null", "false"),
        ("9007199254740993", "9007199254740992"),
        ("9007199254740993", "9007199254740992.0"),
        ("12345678901234567890123", "12345678901234567890124"),
        ("[1,2]", "[2,1]"),
        ("{}", r#"{"a":null}"#),
        (r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#),
        ("1e999", "2e999"),
    ];
    for (a, b) in different {
        assert!(!is_same(a, b), "{a} {b}");
    }
}

fn list(rows: &[&str]) -> Vec<String> {
    rows.iter().map(|&row| row.to_owned()).collect()
}

fn expected(text: &str) -> Line {
    Expected(text.to_owned())
}

fn actual(text: &str) -> Line {
    Actual(text.to_owned())
}

fn text(text: &str) -> Line {
    Text(text.to_owned())
}

#[test]
fn rows_that_are_the_same_are_not_shown() {
    let before = list(&[
        r#"{"n":1}"#,
        r#"{"n":2,"a":"x"}"#,
        r#"{"n":3}"#,
        r#"{"n":4}"#,
    ]);
    assert_eq!(rows(&before, &before), []);
    let after = list(&[
        r#"{"n":1}"#,
        r#"{"n":2,"b":"x\u001b"}"#,
        r#"{"n":4}"#,
        r#"{"n":5}"#,
    ]);
    let expect = [
        text("row 2:"),
        expected("a: \"x\""),
        actual("b: \"x\\u001b\""),
        text("row 3 does not leave:"),
        expected("{\"n\": 3}"),
        text("row 4 is not expected:"),
        actual("{\"n\": 5}"),
    ];
    assert_eq!(rows(&before, &after), expect);
    assert_eq!(
        rows(&[], &list(&["{}"])),
        [text("row 1 is not expected:"), actual("{}")]
    );
}

#[test]
fn many_rows_are_compared_by_number() {
    let before: Vec<String> = (0..3000).map(|n| format!("{{\"n\":{n}}}")).collect();
    let mut after = before.clone();
    after[0] = "{\"n\":7}".to_owned();
    after[2999] = "{\"n\":8}".to_owned();
    let expect = [
        text("row 1:"),
        expected("n: 0"),
        actual("n: 7"),
        text("row 3000:"),
        expected("n: 2999"),
        actual("n: 8"),
    ];
    assert_eq!(rows(&before, &after), expect);
}

#[test]
fn only_fields_that_are_named_are_compared() {
    let record = r#"{"severity_number":17,"body":"x","attributes":{"a":1,"b":{"c":2}}}"#;
    assert_eq!(fields("{}", record), []);
    let same =
        r#"{"severity_number": 17, "attributes": {"b": {"c": 2}, "gone": null}, "trace_id": null}"#;
    assert_eq!(fields(same, record), []);
    let other =
        r#"{"body": "y", "attributes": {"a": 2, "d": 3}, "resource": {"x": "y"}, "span_id": "00"}"#;
    let expect = [
        expected("body: \"y\""),
        actual("body: \"x\""),
        expected("attributes.a: 2"),
        actual("attributes.a: 1"),
        expected("attributes.d: 3"),
        actual("attributes.d: null"),
        expected("resource.x: \"y\""),
        actual("resource.x: null"),
        expected("span_id: \"00\""),
        actual("span_id: null"),
    ];
    assert_eq!(fields(other, record), expect);
}
