//! YAML values as JSON text, as they are written: `${...}` is not expanded. Pure.

use crate::node::{Node, Value};
use crate::printable::is_unsafe;

/// A value as JSON. A text without quotes is a number, a boolean or null if JSON writes it the same way (of null, as YAML
/// does); anything else is a string.
pub fn to_json(node: &Node) -> String {
    let mut out = String::new();
    write(node, &mut out);
    out
}

fn write(node: &Node, out: &mut String) {
    match &node.value {
        Value::Scalar(_) if node.is_null() => out.push_str("null"),
        Value::Scalar(scalar) if scalar.plain && is_typed(&scalar.text) => {
            out.push_str(&scalar.text);
        }
        Value::Scalar(scalar) => write_text(&scalar.text, out),
        Value::Sequence(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write(item, out);
            }
            out.push(']');
        }
        Value::Mapping(entries) => {
            out.push('{');
            for (index, entry) in entries.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write_text(&entry.key, out);
                out.push_str(": ");
                write(&entry.value, out);
            }
            out.push('}');
        }
    }
}

/// Appends a text as a string of JSON, quotes included. What could steer a terminal is written as an escape, also where
/// JSON allows it; except what lies beyond U+FFFF, of which YAML and JSON have different escapes.
pub fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if is_unsafe(c) && c <= '\u{ffff}' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Whether a text without quotes is a boolean or a number in JSON.
fn is_typed(text: &str) -> bool {
    matches!(text, "true" | "false") || is_number(text)
}

/// Whether a text is a number as JSON writes it.
fn is_number(text: &str) -> bool {
    let digits =
        |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let rest = text.strip_prefix('-').unwrap_or(text);
    let whole = digits(rest);
    if whole == 0 || (whole > 1 && rest.starts_with('0')) {
        return false;
    }
    let mut rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = &fraction[count..];
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let count = digits(exponent);
        return count > 0 && count == exponent.len();
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    #[test]
    fn values_keep_their_kinds() {
        let check = |yaml: &str, json: &str| {
            let source = Source::new("t", yaml.to_owned());
            let node = crate::yaml::parse(&source, &mut Vec::new()).expect("valid YAML");
            assert_eq!(to_json(&node), json, "{yaml}");
        };
        check(
            "{a: 1, b: [true, null, ~, x]}",
            r#"{"a": 1, "b": [true, null, null, "x"]}"#,
        );
        check(
            "- -0.5e+7\n- 007\n- .5\n- 1.\n- '1'\n- 1e\n-\n- 9007199254740993\n- 1e400",
            r#"[-0.5e+7, "007", ".5", "1.", "1", "1e", null, 9007199254740993, 1e400]"#,
        );
        check(
            r#"{"a\n\x1b\"": "${A} $$ \\"}"#,
            r#"{"a\n\u001b\"": "${A} $$ \\"}"#,
        );
        check("[]", "[]");
        check("{a: {}}", r#"{"a": {}}"#);
        check("a: |\n  x\n  y\n", r#"{"a": "x\ny\n"}"#);
    }
}
