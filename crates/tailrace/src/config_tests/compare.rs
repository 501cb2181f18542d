//! Compares JSON values, rows and fields, and says in what they differ.

use std::borrow::Cow;

use tailrace_config::write_text;
use tailrace_model::json::{Elements, Kind, Members, Value, exact_integer, parse_value, unescaped};

/// A line of what differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    /// Which row it is, or why.
    Text(String),
    /// What the test expects.
    Expected(String),
    /// What leaves.
    Actual(String),
}

/// Whether two JSON values are the same: keys in any order, numbers by their values.
pub(super) fn is_same(a: &str, b: &str) -> bool {
    match (parse_value(a), parse_value(b)) {
        (Some(a), Some(b)) => same(&a, &b),
        _ => a == b,
    }
}

fn same(a: &Value<'_>, b: &Value<'_>) -> bool {
    use Kind::{Array, Float, Integer, Object, String};
    match (a.kind, b.kind) {
        (String, String) => unescaped(a).is_some_and(|a| Some(a) == unescaped(b)),
        (Integer | Float, Integer | Float) => a.text == b.text || is_same_number(a, b),
        (Object, Object) => {
            let (a, b) = (members(a.text), members(b.text));
            let mut pairs = a.iter().zip(&b);
            a.len() == b.len() && pairs.all(|(a, b)| a.0 == b.0 && same(&a.1, &b.1))
        }
        (Array, Array) => {
            let (a, b): (Vec<_>, Vec<_>) = (
                Elements::new(a.text).collect(),
                Elements::new(b.text).collect(),
            );
            a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| same(a, b))
        }
        (a_kind, b_kind) => a_kind == b_kind && a.text == b.text,
    }
}

fn is_same_number(a: &Value<'_>, b: &Value<'_>) -> bool {
    match (exact_integer(a.text), exact_integer(b.text)) {
        (Some(a), Some(b)) => a == b,
        (None, None) if a.kind != Kind::Integer && b.kind != Kind::Integer => {
            let number = |value: &Value<'_>| value.text.parse::<f64>().ok();
            number(a).is_some_and(|a| a.is_finite() && Some(a) == number(b))
        }
        _ => false,
    }
}

/// The members of an object by key; those of one key in their order.
fn members(object: &str) -> Vec<(Cow<'_, str>, Value<'_>)> {
    let mut members: Vec<_> = keys_and_values(object).collect();
    members.sort_by(|a, b| a.0.cmp(&b.0));
    members
}

fn keys_and_values(object: &str) -> impl Iterator<Item = (Cow<'_, str>, Value<'_>)> {
    let object = parse_value(object).map_or("{}", |value| value.text);
    Members::new(object).map(|(key, value)| {
        let text = key.text;
        (unescaped(&key).unwrap_or(Cow::Borrowed(text)), value)
    })
}

/// What is written deeper than this stays as it is.
const DEPTH_MAX: usize = 64;

/// A JSON value on one line as people write it: spaces behind `:` and `,`, and no escape that is not needed.
pub(super) fn readable(json: &str) -> String {
    let mut out = String::new();
    match parse_value(json) {
        Some(value) => write(&value, 0, &mut out),
        None => out.push_str(json),
    }
    out
}

fn write(value: &Value<'_>, depth: usize, out: &mut String) {
    match value.kind {
        Kind::String => write_text(&unescaped(value).unwrap_or(Cow::Borrowed(value.text)), out),
        Kind::Object if depth < DEPTH_MAX => {
            out.push('{');
            for (index, (key, value)) in keys_and_values(value.text).enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write_text(&key, out);
                out.push_str(": ");
                write(&value, depth + 1, out);
            }
            out.push('}');
        }
        Kind::Array if depth < DEPTH_MAX => {
            out.push('[');
            for (index, value) in Elements::new(value.text).enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write(&value, depth + 1, out);
            }
            out.push(']');
        }
        _ => out.push_str(value.text),
    }
}

fn of_value(value: &Value<'_>) -> String {
    let mut out = String::new();
    write(value, 0, &mut out);
    out
}

/// Beyond this many pairs, rows are compared by their numbers only.
const PAIRS_MAX: usize = 4_000_000;

/// In what rows differ: nothing if they are the same, in the same order.
pub(super) fn rows(expected: &[String], actual: &[String]) -> Vec<Line> {
    let mut lines = Vec::new();
    let (mut e, mut a) = (0, 0);
    let end = (expected.len(), actual.len());
    for (next_e, next_a) in matches(expected, actual).into_iter().chain([end]) {
        // Between two rows that are the same, the others are compared in their order.
        while e < next_e && a < next_a {
            lines.push(Line::Text(format!("row {}:", e + 1)));
            changed(&expected[e], &actual[a], &mut lines);
            (e, a) = (e + 1, a + 1);
        }
        for (number, row) in (e..).zip(&expected[e..next_e]) {
            lines.push(Line::Text(format!("row {} does not leave:", number + 1)));
            lines.push(Line::Expected(readable(row)));
        }
        for (number, row) in (a..).zip(&actual[a..next_a]) {
            lines.push(Line::Text(format!("row {} is not expected:", number + 1)));
            lines.push(Line::Actual(readable(row)));
        }
        (e, a) = (next_e + 1, next_a + 1);
    }
    lines
}

/// Pairs of rows that are the same, ascending, as many as possible.
fn matches(expected: &[String], actual: &[String]) -> Vec<(usize, usize)> {
    let is_same_at = |e: usize, a: usize| is_same(&expected[e], &actual[a]);
    let shorter = expected.len().min(actual.len());
    let head = (0..shorter).take_while(|&at| is_same_at(at, at)).count();
    let (e_left, a_left) = (expected.len() - head, actual.len() - head);
    let mut pairs: Vec<(usize, usize)> = (0..head).map(|at| (at, at)).collect();
    if e_left * a_left > PAIRS_MAX {
        let rest = head..shorter;
        pairs.extend(rest.filter(|&at| is_same_at(at, at)).map(|at| (at, at)));
        return pairs;
    }
    // The length of the longest common subsequence of what follows each pair.
    let width = a_left + 1;
    let mut longest = vec![0_u32; (e_left + 1) * width];
    let mut same = vec![false; e_left * a_left];
    for e in (0..e_left).rev() {
        for a in (0..a_left).rev() {
            let is_same = is_same_at(head + e, head + a);
            same[e * a_left + a] = is_same;
            longest[e * width + a] = match is_same {
                true => longest[(e + 1) * width + a + 1] + 1,
                false => longest[(e + 1) * width + a].max(longest[e * width + a + 1]),
            };
        }
    }
    let (mut e, mut a) = (0, 0);
    while e < e_left && a < a_left {
        if same[e * a_left + a] {
            pairs.push((head + e, head + a));
            (e, a) = (e + 1, a + 1);
        } else if longest[(e + 1) * width + a] >= longest[e * width + a + 1] {
            e += 1;
        } else {
            a += 1;
        }
    }
    pairs
}

/// The keys in which two rows differ.
fn changed(expected: &str, actual: &str, lines: &mut Vec<Line>) {
    let (expected, actual): (Vec<_>, Vec<_>) = (
        keys_and_values(expected).collect(),
        keys_and_values(actual).collect(),
    );
    let line = |(key, value): &(Cow<'_, str>, Value<'_>)| format!("{key}: {}", of_value(value));
    for member in &expected {
        let found = actual.iter().find(|(key, _)| *key == member.0);
        if !found.is_some_and(|found| same(&member.1, &found.1)) {
            lines.push(Line::Expected(line(member)));
            lines.extend(found.map(|found| Line::Actual(line(found))));
        }
    }
    let is_new = |member: &&(Cow<'_, str>, _)| expected.iter().all(|(key, _)| *key != member.0);
    lines.extend(
        actual
            .iter()
            .filter(is_new)
            .map(|it| Line::Actual(line(it))),
    );
}

/// In what the fields of a LogRecord, a JSON object, differ from those expected of it.
pub(super) fn fields(expected: &str, actual: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let null = "null";
    for (field, value) in keys_and_values(expected) {
        let found = keys_and_values(actual).find(|(key, _)| *key == field);
        let found = found.map_or(null, |(_, value)| value.text);
        let mut differ = |name: &str, expected: &Value<'_>, found: &str| {
            lines.push(Line::Expected(format!("{name}: {}", of_value(expected))));
            lines.push(Line::Actual(format!("{name}: {}", readable(found))));
        };
        if value.kind == Kind::Object && matches!(&*field, "attributes" | "resource") {
            for (name, value) in keys_and_values(value.text) {
                let attribute = keys_and_values(found).find(|(key, _)| *key == name);
                let is_same = match &attribute {
                    Some((_, attribute)) => same(&value, attribute),
                    None => value.kind == Kind::Null,
                };
                if !is_same {
                    let found = attribute.map_or(null.to_owned(), |(_, it)| of_value(&it));
                    differ(&format!("{field}.{name}"), &value, &found);
                }
            }
        } else {
            let found_value = keys_and_values(actual).find(|(key, _)| *key == field);
            let is_same = match &found_value {
                Some((_, found)) => same(&value, found),
                None => value.kind == Kind::Null,
            };
            if !is_same {
                let found = found_value.map_or(null.to_owned(), |(_, it)| of_value(&it));
                differ(&field, &value, &found);
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests;
