//! A line of docker's json-file driver: `{"log":"...\n","stream":"stdout","time":"..."}`, perhaps with `attrs`.
//!
//! Parses one line (without its newline) and returns where the text of `log` stands in it and the values of the other
//! members. It is a reader for what that driver writes, not of JSON at large: members come in any order and unknown
//! ones are stepped over by their brackets and quotes. A line without a string `log`, or with more after its closing
//! brace, is none.

use std::ops::Range;

use memchr::{memchr, memchr2};

use crate::frames::Stream;
use crate::stamp;

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Where the text of `log` stands between its quotes, still escaped.
    pub(crate) log: Range<usize>,
    /// `None` without a known stream.
    pub(crate) stream: Stream,
    /// 0 without a readable time.
    pub(crate) time_ns: i64,
}

pub(crate) fn read(line: &[u8]) -> Option<Entry> {
    let mut log = None;
    let mut stream = Stream::None;
    let mut time_ns = 0;
    let mut at = expect(line, 0, b'{')?;
    loop {
        let key = string(line, at)?;
        at = expect(line, key.end + 1, b':')?;
        let value = value(line, at)?;
        at = skip_whitespace(line, value.end);
        // A string's span holds its quotes: what is not a string matches none of these.
        let text = line[value.clone()]
            .strip_prefix(b"\"")
            .and_then(|text| text.strip_suffix(b"\""));
        match (&line[key], text) {
            (b"log", text) => {
                text?;
                log = log.or(Some(value.start + 1..value.end - 1));
            }
            (b"stream", Some(b"stdout")) => stream = Stream::Stdout,
            (b"stream", Some(b"stderr")) => stream = Stream::Stderr,
            (b"time", Some(text)) => time_ns = stamp::parse(text).unwrap_or(0),
            _ => {}
        }
        match *line.get(at)? {
            b',' => at += 1,
            b'}' => break,
            _ => return None,
        }
    }
    let ends = skip_whitespace(line, at + 1) == line.len();
    log.filter(|_| ends).map(|log| Entry {
        log,
        stream,
        time_ns,
    })
}

/// The text of a `log` that is one whole line without escapes, except the newline that ends it and is left out.
pub(crate) fn plain_line(log: &[u8]) -> Option<&[u8]> {
    let text = log.strip_suffix(b"\\n")?;
    memchr(b'\\', text).is_none().then_some(text)
}

/// Appends what `raw` means to `out`; a surrogate without its other half becomes U+FFFD. False at a bad escape: then
/// `out` holds the text before it.
pub(crate) fn unescape(mut raw: &[u8], out: &mut Vec<u8>) -> bool {
    while let Some(backslash) = memchr(b'\\', raw) {
        out.extend_from_slice(&raw[..backslash]);
        raw = &raw[backslash..];
        let (character, length) = match raw.get(1) {
            Some(byte @ (b'"' | b'\\' | b'/')) => (char::from(*byte), 2),
            Some(b'n') => ('\n', 2),
            Some(b't') => ('\t', 2),
            Some(b'r') => ('\r', 2),
            Some(b'b') => ('\u{8}', 2),
            Some(b'f') => ('\u{c}', 2),
            Some(b'u') => match unicode_escape(raw) {
                Some(decoded) => decoded,
                None => return false,
            },
            _ => return false,
        };
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        raw = &raw[length..];
    }
    out.extend_from_slice(raw);
    true
}

/// The character of the `\uXXXX`, or pair of them, at the start of `raw`, and its length.
fn unicode_escape(raw: &[u8]) -> Option<(char, usize)> {
    let unit = |raw: &[u8]| {
        let digits = raw.strip_prefix(b"\\u")?.get(..4)?;
        digits.iter().try_fold(0, |unit, &digit| {
            Some(unit << 4 | char::from(digit).to_digit(16)?)
        })
    };
    let first = unit(raw)?;
    if let 0xd800..0xdc00 = first
        && let Some(second @ 0xdc00..0xe000) = raw.get(6..).and_then(unit)
    {
        let scalar = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        return Some((char::from_u32(scalar)?, 12));
    }
    Some((
        char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER),
        6,
    ))
}

fn skip_whitespace(line: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\r') = line.get(at) {
        at += 1;
    }
    at
}

/// The offset after `byte`, which must be the next but for whitespace.
fn expect(line: &[u8], at: usize, byte: u8) -> Option<usize> {
    let at = skip_whitespace(line, at);
    (line.get(at) == Some(&byte)).then_some(at + 1)
}

/// What stands between the quotes of the string at `at`.
fn string(line: &[u8], at: usize) -> Option<Range<usize>> {
    let start = expect(line, at, b'"')?;
    let mut at = start;
    loop {
        at += memchr2(b'"', b'\\', line.get(at..)?)?;
        if line[at] == b'"' {
            return Some(start..at);
        }
        at += 2;
    }
}

/// The value at `at`, quotes and brackets included.
fn value(line: &[u8], at: usize) -> Option<Range<usize>> {
    let start = skip_whitespace(line, at);
    let mut at = start;
    let mut depth = 0u32;
    loop {
        match *line.get(at)? {
            b'"' => at = string(line, at)?.end + 1,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' if depth > 0 => {
                depth -= 1;
                at += 1;
            }
            b',' | b':' | b' ' | b'\t' if depth > 0 => at += 1,
            b'0'..=b'9' | b'+' | b'-' | b'.' | b'a'..=b'z' | b'E' => {
                let letters = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'a'..=b'z' | b'E');
                at += line[at..].iter().take_while(letters).count();
            }
            _ => return None,
        }
        if depth == 0 {
            return Some(start..at);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    fn check(line: &str, expect: Option<(&str, Stream, i64)>) {
        let found = read(line.as_bytes());
        let found = found.map(|entry| (&line[entry.log], entry.stream, entry.time_ns));
        assert_eq!(found, expect, "{line}");
    }

    #[test]
    fn lines_of_the_driver() {
        let time_ns = 1_767_323_045_678_901_234;
        check(
            r#"{"log":"hello\n","stream":"stdout","time":"2026-01-02T03:04:05.678901234Z"}"#,
            Some((r"hello\n", Stream::Stdout, time_ns)),
        );
        check(
            r#" { "time" : "2026-01-02T03:04:05.678901234Z" , "attrs":{"a":"}","b":[1,{}]}, "stream":"stderr","log":"\"}\\" } "#,
            Some((r#"\"}\\"#, Stream::Stderr, time_ns)),
        );
        check(
            r#"{"log":"","n":-1.5e+3,"t":true}"#,
            Some(("", Stream::None, 0)),
        );
        check(
            r#"{"stream":7,"time":"now","log":"x"}"#,
            Some(("x", Stream::None, 0)),
        );
        check(
            r#"{"log":"first","log":"second"}"#,
            Some(("first", Stream::None, 0)),
        );
    }

    #[test]
    fn what_is_no_such_line() {
        for line in [
            "",
            "{",
            "{}",
            "log",
            r#"{"log"}"#,
            r#"{"log":}"#,
            r#"{"log":null}"#,
            r#"{"log":{"log":"x"}}"#,
            r#"{"log":["x"]}"#,
            r#"{"log":"x"#,
            r#"{"log":"x\"}"#,
            r#"{"log":"x""#,
            r#"{"log":"x"}}"#,
            r#"{"log":"x"} {}"#,
            r#"{"log":"x",}"#,
            r#"{"log":"x" "a":1}"#,
            r#"{"a":{"log":"x"}}"#,
            r#"["log","x"]"#,
            r#"{log:"x"}"#,
            r#"{"a":[1,"log":"x"}"#,
            "{\"log\":\"x\\",
        ] {
            check(line, None);
        }
    }

    #[test]
    fn escapes() {
        for (raw, text) in [
            (r#"\"\\\/\b\f\n\r\t"#, Some("\"\\/\u{8}\u{c}\n\r\t")),
            (r"<b>ü\ud83d\ude00", Some("<b>ü😀")),
            (r"\ud83dx\ude00", Some("\u{fffd}x\u{fffd}")),
            (r"\ud83d\u0041", Some("\u{fffd}A")),
            (r"\x", None),
            (r"\u12", None),
            (r"\u12g4", None),
            ("\\", None),
        ] {
            let mut out = Vec::new();
            let done = unescape(raw.as_bytes(), &mut out);
            assert_eq!(
                done.then(|| String::from_utf8(out).unwrap()).as_deref(),
                text,
                "{raw}"
            );
        }
    }

    #[test]
    fn plain_lines() {
        assert_eq!(plain_line(br"a\n"), Some(&b"a"[..]));
        assert_eq!(plain_line(br"\n"), Some(&b""[..]));
        assert_eq!(plain_line(b"a"), None);
        assert_eq!(plain_line(br"a\\n"), None);
        assert_eq!(plain_line(br"a\n\n"), None);
        assert_eq!(plain_line(br"\ta\n"), None);
    }

    proptest! {
        /// What serde_json reads as an object with a string `log` is read alike, damaged or not.
        #[test]
        fn agrees_with_serde_json(
            log in "[a-z\"\\\\\n\r\t<ü😀\u{0}\u{2028}]{0,12}",
            attrs in prop_oneof![Just("{}"), Just(r#"{"a":"b","c":["}\"]",1,null]}"#), Just("-1.0E5"), Just("true")],
            order in Just([0, 1, 2, 3]).prop_shuffle(),
            damage in prop::option::of((any::<prop::sample::Index>(), 0usize..3, "[\"\\\\{},: x0]{0,2}")),
        ) {
            let members = [
                format!("\"log\":{}", serde_json::to_string(&log).unwrap()),
                r#""stream":"stderr""#.to_owned(),
                r#""time" : "2026-01-02T03:04:05.678901234Z""#.to_owned(),
                format!("\"attrs\":{attrs}"),
            ];
            let mut line = format!("{{{}}}", order.map(|index| members[index].clone()).join(", "));
            if let Some((at, removed, inserted)) = damage {
                let mut characters: Vec<char> = line.chars().collect();
                let at = at.index(characters.len());
                let end = (at + removed).min(characters.len());
                characters.splice(at..end, inserted.chars());
                line = characters.into_iter().collect();
            }
            let theirs = serde_json::from_str::<Map<String, Value>>(&line).ok();
            if let Some(object) = theirs && let Some(Value::String(text)) = object.get("log") {
                let entry = read(line.as_bytes());
                prop_assert!(entry.is_some(), "{}", line);
                let entry = entry.unwrap();
                let mut out = Vec::new();
                prop_assert!(unescape(&line.as_bytes()[entry.log], &mut out));
                prop_assert_eq!(std::str::from_utf8(&out).unwrap(), text);
                let stream = match object.get("stream").and_then(Value::as_str) {
                    Some("stdout") => Stream::Stdout,
                    Some("stderr") => Stream::Stderr,
                    _ => Stream::None,
                };
                prop_assert_eq!(entry.stream, stream);
            }
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut line = b"{\"log\":\"".to_vec();
            line.extend_from_slice(&bytes);
            for line in [&line, &bytes] {
                if let Some(entry) = read(line) {
                    unescape(&line[entry.log], &mut Vec::new());
                }
            }
        }
    }
}
