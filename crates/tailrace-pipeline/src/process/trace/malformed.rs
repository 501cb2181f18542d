//! Why a record is malformed, in words.

use serde_json::error::Category;
use tailrace_frame::{Flags, Record};
use tailrace_model::json::not_finite;

/// Why a malformed record is, with the place if it is known.
pub(super) fn reason(record: &Record, bytes: &[u8]) -> String {
    if record.flags.contains(Flags::BROKEN) {
        return "the line has no envelope of a container runtime".to_owned();
    }
    let text = bytes.trim_ascii_start();
    if text.first() != Some(&b'{') {
        return "not a JSON object".to_owned();
    }
    let parsed = serde_json::from_slice::<serde::de::IgnoredAny>(text);
    // The scanner is the judge: what the parser does not object to has no known place.
    let Some(error) = parsed.err() else {
        return "not JSON".to_owned();
    };
    let at = offset(text, error.line(), error.column());
    let rest = text.get(at.saturating_sub(1)..).unwrap_or_default();
    if error.classify() == Category::Eof {
        return "not JSON: it ends before it is complete".to_owned();
    }
    if not_finite(rest).is_some() {
        // The parser stops at a number that the scanner reads.
        return "not JSON".to_owned();
    }
    let message = error.to_string();
    let what = message.split(" at line ").next().unwrap_or_default();
    let place = bytes.len() - text.len() + at;
    format!("not JSON: {what} at byte {place}")
}

/// The place that the parser names, as a number of bytes, the one at fault included.
fn offset(text: &[u8], line: usize, column: usize) -> usize {
    let lines = text.split_inclusive(|&byte| byte == b'\n');
    let before = lines.take(line.saturating_sub(1));
    before.map(<[u8]>::len).sum::<usize>() + column
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailrace_frame::Stream;

    #[test]
    fn reasons_name_the_place() {
        let check = |flags, text: &str, expect: &str| {
            let record = Record {
                buffer: 0,
                start: 0,
                end: 0,
                flags,
                stream: Stream::None,
                time_ns: 0,
            };
            assert_eq!(reason(&record, text.as_bytes()), expect, "{text}");
        };
        let none = Flags::NONE;
        check(none, "plain", "not a JSON object");
        check(none, "[1]", "not a JSON object");
        check(none, r#"{"a":1"#, "not JSON: it ends before it is complete");
        check(none, r#"{"a":x}"#, "not JSON: expected value at byte 6");
        check(none, " {\n\"a\":x}", "not JSON: expected value at byte 8");
        check(none, r#"{"a":NaN,"b":x}"#, "not JSON");
        check(none, r#"{"a":1}"#, "not JSON");
        let envelope = "the line has no envelope of a container runtime";
        check(Flags::BROKEN, "plain", envelope);
    }
}
