//! Integers beyond 64 bits are compared as they are written, in every form that compares, against an oracle that compares
//! digits.

use std::cmp::Ordering;

use super::data::run;
use super::literals::outcome;

/// Bases whose neighbours a float cannot tell apart.
const BASES: [i128; 9] = [
    500,
    1 << 53,
    1 << 63,
    1 << 64,
    99_999_999_999_999_999_999,
    10_i128.pow(37),
    10_i128.pow(38) - 1,
    i128::MAX - 1,
    12_345_678_901_234_567_890_123,
];

/// The order of two integers of any length, by their digits alone.
fn oracle(a: &str, b: &str) -> Ordering {
    let parts = |text: &str| match text.strip_prefix('-') {
        Some(digits) => (true, digits.to_owned()),
        None => (false, text.to_owned()),
    };
    let by_digits = |a: &str, b: &str| a.len().cmp(&b.len()).then_with(|| a.cmp(b));
    match (parts(a), parts(b)) {
        ((false, a), (false, b)) => by_digits(&a, &b),
        ((true, a), (true, b)) => by_digits(&b, &a),
        ((is_negative, _), _) if is_negative => Ordering::Less,
        _ => Ordering::Greater,
    }
}

fn integers() -> Vec<String> {
    let near = |base: i128| [base - 1, base, base + 1];
    let all = BASES.into_iter().flat_map(near);
    all.flat_map(|n| [n.to_string(), format!("-{n}")]).collect()
}

#[test]
fn an_unsigned_integer_has_all_64_bits() {
    let lines = &[
        r#"{"n":18446744073709551615}"#,
        r#"{"n":"9223372036854775808"}"#,
        r#"{"n":7.0}"#,
        r#"{"n":-1}"#,
        r#"{"n":18446744073709551616}"#,
        r#"{"n":"x"}"#,
        "{}",
    ];
    for cast in ["n::bigint unsigned", "arrow_cast(n, 'UInt64')"] {
        let rows = run(&format!("SELECT {cast} AS u FROM logs"), lines);
        let expect = [
            "0: u=18446744073709551615",
            "1: u=9223372036854775808",
            "2: u=7",
            "3: u=NULL",
            "4: u=NULL",
            "5: u=NULL",
            "6: u=NULL",
        ];
        assert_eq!(rows, expect, "{cast}");
        let rows = run(&format!("SELECT 1 AS x FROM logs WHERE {cast} > 9"), lines);
        assert_eq!(rows, ["0: x=1", "1: x=1"]);
    }
}

#[test]
fn every_form_of_comparison_agrees_with_the_oracle() {
    let integers = integers();
    let lines: Vec<String> = integers
        .iter()
        .map(|n| format!("{{\"b\":\"{n}\"}}"))
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    for literal in &integers {
        let forms = [
            format!("b = {literal}"),
            format!("b IN (7, ({literal}))"),
            format!("b BETWEEN {literal} AND {literal}"),
            format!("CASE b WHEN 7 THEN false WHEN {literal} THEN true ELSE false END"),
            format!("b IS NOT DISTINCT FROM {literal}"),
            format!("coalesce(b, 0) = {literal}"),
            format!("nullif(b, {literal}) IS NULL"),
            format!("NOT b <> {literal}"),
            match literal.len() {
                ..=38 => format!("b::decimal(38, 0) = {literal}"),
                _ => format!("b = {literal}"),
            },
        ];
        let orders = [format!("b < {literal}"), format!("({literal}) > b")];
        let all: Vec<_> = forms.iter().chain(&orders).collect();
        let columns = all.iter().enumerate();
        let columns: Vec<_> = columns.map(|(i, form)| format!("{form} AS v{i}")).collect();
        let rows = run(&format!("SELECT {} FROM logs", columns.join(", ")), &lines);
        for (integer, row) in integers.iter().zip(&rows) {
            let order = oracle(integer, literal);
            for (i, form) in all.iter().enumerate() {
                if form.contains("decimal") && integer.len().max(literal.len()) > 38 {
                    continue;
                }
                let expect = match order {
                    Ordering::Less => orders.contains(form),
                    Ordering::Equal => forms.contains(form),
                    Ordering::Greater => false,
                };
                let expect = format!("v{i}={expect}");
                let is_met = row.split(' ').any(|value| value == expect);
                assert!(is_met, "{integer}: {form}: {row}");
            }
        }
    }
}

#[test]
fn a_constant_keeps_its_digits_in_choices_and_arithmetic() {
    let lines = &[r#"{"b":"99999999999999999998"}"#, "{}"];
    let values = |expression: &str| {
        let rows = run(&format!("SELECT {expression} AS v FROM logs"), lines);
        rows.join(" ")
    };
    assert_eq!(
        values("coalesce(b, 99999999999999999999)"),
        r#"0: v="99999999999999999998" 1: v=99999999999999999999"#
    );
    assert_eq!(values("99999999999999999999 - b"), "0: v=1 1: v=NULL");
    assert_eq!(
        values("greatest(b, 99999999999999999999) = 99999999999999999999"),
        "0: v=true 1: v=true"
    );
}

#[test]
fn a_float_literal_that_is_an_integer_is_that_integer() {
    let lines = &[r#"{"b":9007199254740993}"#, r#"{"b":9007199254740992}"#];
    let rows = run("SELECT b = 9007199254740993.0 AS v FROM logs", lines);
    assert_eq!(rows, ["0: v=true", "1: v=false"]);
}

#[test]
fn a_constant_of_too_many_digits_is_warned_of() {
    let constant = "9".repeat(39);
    let warned = outcome(&format!("SELECT z FROM logs WHERE b = {constant}"));
    assert!(warned.contains("more than 38 digits"), "{warned}");
    let largest = "9".repeat(38);
    let silent = outcome(&format!("SELECT z FROM logs WHERE b = {largest}"));
    assert!(!silent.contains("digits"), "{silent}");
}
