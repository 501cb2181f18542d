//! JSON strings: undoing escapes, comparing, writing.
//!
//! Unescapes what stands between the quotes into UTF-8. A lone surrogate (`\ud83d` without its other half) cannot
//! be UTF-8: it becomes U+FFFD and is counted, as invalid bytes are elsewhere. Never changes an unescaped
//! character.

use std::borrow::Cow;

use memchr::memchr;

use super::grammar::skip_plain;
use super::sixteen::{STEP, backslashes, before};
use super::value::{Kind, Value};

/// How [`unescape`] went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unescaped {
    /// The text was written out; this many lone surrogates became U+FFFD.
    Done {
        /// Number of lone surrogates.
        replaced: u32,
    },
    /// A backslash is followed by something that is no escape: nothing was written.
    Invalid,
}

/// Appends the text that `raw` (what stands between the quotes) means to `out`. What is appended is valid UTF-8.
/// Control characters, which the grammar forbids, are copied: refusing them is left to the walk.
pub fn unescape(raw: &str, out: &mut Vec<u8>) -> Unescaped {
    unescape_bytes(raw.as_bytes(), out)
}

/// As [`unescape`], of the bytes of a `str`.
pub fn unescape_bytes(raw: &[u8], out: &mut Vec<u8>) -> Unescaped {
    let before = out.len();
    // No escape means more bytes than it has; the last bytes are written sixteen at a time, too.
    out.resize(before + raw.len() + STEP, 0);
    let (read, replaced, written) = unescape_all(raw, &mut out[before..]);
    let is_good = read == raw.len();
    out.truncate(before + if is_good { written } else { 0 });
    if is_good {
        Unescaped::Done { replaced }
    } else {
        Unescaped::Invalid
    }
}

/// As [`unescape_bytes`], to the start of `out`, which has sixteen bytes more than `raw` at least. Gives how many bytes were written and
/// how many lone surrogates were replaced; `None` where an escape is bad.
///
/// # Panics
/// If `out` is shorter.
pub fn unescape_into(raw: &[u8], out: &mut [u8]) -> Option<(usize, u32)> {
    let (read, replaced, written) = unescape_all(raw, out);
    (read == raw.len()).then_some((written, replaced))
}

/// Writes what `raw` means, up to a bad escape. Gives how many bytes were read, how many surrogates were replaced, and how
/// many bytes were written.
fn unescape_all(raw: &[u8], out: &mut [u8]) -> (usize, u32, usize) {
    let (mut read, mut replaced, mut written) = (0, 0, 0);
    loop {
        let rest = &raw[read..];
        let chunk = rest.first_chunk().copied();
        let chunk = chunk.unwrap_or_else(|| padded(rest));
        // Not as many as there are: strings are short, and a call for each would cost more than the copy.
        out[written..][..STEP].copy_from_slice(&chunk);
        let plain = before(backslashes(&chunk)).min(rest.len());
        read += plain;
        written += plain;
        let code = match raw[read..] {
            [b'\\', code, ..] => code,
            [] | [b'\\'] => return (read, replaced, written),
            _ => continue,
        };
        if let Some(byte) = short_escape(code) {
            out[written] = byte;
            read += 2;
            written += 1;
            continue;
        }
        let Some((decoded, length)) = escape(&raw[read..]) else {
            return (read, replaced, written);
        };
        replaced += u32::from(decoded.is_none());
        let decoded = decoded.unwrap_or(char::REPLACEMENT_CHARACTER);
        written += decoded.encode_utf8(&mut out[written..]).len();
        read += length;
    }
}

/// Fewer than sixteen bytes, and zeros after them.
#[inline]
fn padded(bytes: &[u8]) -> [u8; STEP] {
    let len = bytes.len();
    // The first half and the last one, which may overlap.
    let number = if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (first, last) = (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
        u128::from(first) | u128::from(last) << (8 * (len - 8))
    } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        u128::from(u64::from(first) | u64::from(last) << (8 * (len - 4)))
    } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (first, last) = (u16::from_le_bytes(*first), u16::from_le_bytes(*last));
        (u32::from(first) | u32::from(last) << (8 * (len - 2))).into()
    } else {
        bytes.first().map_or(0, |&byte| byte.into())
    };
    number.to_le_bytes()
}

/// The character that a backslash and `code` are; `None` for longer escapes, and where that is no escape.
#[inline]
pub fn short_escape(code: u8) -> Option<u8> {
    let byte = SHORT_ESCAPES[usize::from(code)];
    (byte != 0).then_some(byte)
}

/// By the byte after the backslash; 0 where that is no escape, or a longer one.
static SHORT_ESCAPES: [u8; 256] = {
    let mut bytes = [0; 256];
    bytes[b'"' as usize] = b'"';
    bytes[b'\\' as usize] = b'\\';
    bytes[b'/' as usize] = b'/';
    bytes[b'b' as usize] = 0x08;
    bytes[b'f' as usize] = 0x0c;
    bytes[b'n' as usize] = b'\n';
    bytes[b'r' as usize] = b'\r';
    bytes[b't' as usize] = b'\t';
    bytes
};

/// The text of a string value: borrowed if nothing is escaped. `None` for other kinds and for a bad escape.
pub fn unescaped<'a>(value: &Value<'a>) -> Option<Cow<'a, str>> {
    if value.kind != Kind::String {
        return None;
    }
    if !value.escaped {
        return Some(Cow::Borrowed(value.text));
    }
    let mut out = Vec::with_capacity(value.text.len());
    match unescape(value.text, &mut out) {
        Unescaped::Done { .. } => String::from_utf8(out).ok().map(Cow::Owned),
        Unescaped::Invalid => None,
    }
}

/// Whether a string value means exactly `text`, decided without allocating.
pub fn string_equals(value: &Value<'_>, text: &str) -> bool {
    if value.kind != Kind::String {
        return false;
    }
    if !value.escaped {
        return value.text == text;
    }
    let mut raw = value.text.as_bytes();
    let mut text = text.as_bytes();
    loop {
        let plain = memchr(b'\\', raw).unwrap_or(raw.len());
        let Some(behind) = text.strip_prefix(&raw[..plain]) else {
            return false;
        };
        (raw, text) = (&raw[plain..], behind);
        if raw.is_empty() {
            return text.is_empty();
        }
        let Some((decoded, length)) = escape(raw) else {
            return false;
        };
        let decoded = decoded.unwrap_or(char::REPLACEMENT_CHARACTER);
        let Some(behind) = text.strip_prefix(decoded.encode_utf8(&mut [0; 4]).as_bytes()) else {
            return false;
        };
        (raw, text) = (&raw[length..], behind);
    }
}

/// Appends `text` as a JSON string literal, quotes included: only `"`, `\` and control characters are escaped.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let (mut written, mut at) = (0, 0);
    let bytes = text.as_bytes();
    loop {
        at = skip_plain(bytes, at);
        let Some(&byte) = bytes.get(at) else { break };
        let short = match byte {
            b'"' | b'\\' => byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0c => b'f',
            0..0x20 => b'u',
            _ => {
                at += 1;
                continue;
            }
        };
        out.extend_from_slice(&bytes[written..at]);
        out.extend_from_slice(&[b'\\', short]);
        if short == b'u' {
            out.extend_from_slice(&[
                b'0',
                b'0',
                HEX[usize::from(byte >> 4)],
                HEX[usize::from(byte & 15)],
            ]);
        }
        at += 1;
        written = at;
    }
    out.extend_from_slice(&bytes[written..]);
    out.push(b'"');
}

/// The escape at the start of `bytes` (a backslash): its character, or `None` within for a lone surrogate, and its
/// length in bytes. `None` if it is no escape.
pub fn escape(bytes: &[u8]) -> Option<(Option<char>, usize)> {
    let code = *bytes.get(1)?;
    if let Some(byte) = short_escape(code) {
        return Some((Some(char::from(byte)), 2));
    }
    match code {
        b'u' => {
            let first = code_unit(bytes)?;
            let second = bytes.get(6..).and_then(code_unit);
            match (first, second) {
                (0xd800..0xdc00, Some(second @ 0xdc00..0xe000)) => {
                    let scalar = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                    Some((char::from_u32(scalar), 12))
                }
                _ => Some((char::from_u32(first), 6)),
            }
        }
        _ => None,
    }
}

/// The UTF-16 code unit of `\uXXXX` at the start of `bytes`.
fn code_unit(bytes: &[u8]) -> Option<u32> {
    let &[b'\\', b'u', a, b, c, d] = bytes.first_chunk()? else {
        return None;
    };
    let [a, b, c, d] = [a, b, c, d].map(|digit| u32::from(HEX_VALUES[usize::from(digit)]));
    let are_digits = (a | b | c | d) < 16;
    are_digits.then_some(a << 12 | b << 8 | c << 4 | d)
}

/// By hexadecimal digit; 16 where that is none.
static HEX_VALUES: [u8; 256] = {
    let mut values = [16; 256];
    let mut value = 0;
    while value < 16 {
        let digit = b"0123456789abcdef"[value as usize];
        values[digit as usize] = value;
        values[digit.to_ascii_uppercase() as usize] = value;
        value += 1;
    }
    values
};

#[cfg(test)]
mod tests {
    use super::*;

    fn check(raw: &str, expect: &str, replaced: u32) {
        let mut out = b"kept".to_vec();
        assert_eq!(
            unescape(raw, &mut out),
            Unescaped::Done { replaced },
            "{raw:?}"
        );
        assert_eq!(
            String::from_utf8_lossy(&out),
            format!("kept{expect}"),
            "{raw:?}"
        );
        let value = Value {
            kind: Kind::String,
            text: raw,
            escaped: raw.contains('\\'),
        };
        assert_eq!(unescaped(&value).as_deref(), Some(expect));
        assert!(string_equals(&value, expect));
        assert!(!string_equals(&value, &format!("{expect}x")));
        assert!(expect.is_empty() || !string_equals(&value, ""));
    }

    #[test]
    fn escapes_and_surrogate_pairs() {
        check("", "", 0);
        check("plain ü", "plain ü", 0);
        check(r#"\"\\\/\b\f\n\r\t"#, "\"\\/\u{8}\u{c}\n\r\t", 0);
        check(r"a\u0041\u00e9z", "aAéz", 0);
        check(r"\u20AC\u20ac", "€€", 0);
        check(r"\u0000", "\0", 0);
        check(r"\ud83d\ude00!", "😀!", 0);
        check(r"\uD83D\uDE00", "😀", 0);
        check(r"\uffff", "\u{ffff}", 0);
    }

    #[test]
    fn an_escape_stands_anywhere() {
        for (before, behind) in (0..20).flat_map(|before| (0..20).map(move |it| (before, it))) {
            let (before, behind) = (
                &"abcdefghijklmnopqrst"[..before],
                "\u{dc}".repeat(behind / 2) + &"ABCDEFGHIJ"[..behind.div_ceil(2)],
            );
            for (escape, text, replaced) in [
                (r"\n", "\n", 0),
                (r"\\", "\\", 0),
                (r"\u00e9", "\u{e9}", 0),
                (r"\ud83d\ude00", "\u{1f600}", 0),
                (r"\ud83d", "\u{fffd}", 1),
                (r"\ud83d\u0041", "\u{fffd}A", 1),
            ] {
                let mut out = b"kept".to_vec();
                let raw = [before, escape, &behind].concat();
                assert_eq!(unescape(&raw, &mut out), Unescaped::Done { replaced });
                assert_eq!(out, ["kept", before, text, &behind].concat().into_bytes());
            }
            for bad in ["\\", r"\u", r"\u12", r"\u12g4", r"\x"] {
                let mut out = b"kept".to_vec();
                let raw = [before, r"\n", &behind, bad].concat();
                assert_eq!(unescape(&raw, &mut out), Unescaped::Invalid, "{raw:?}");
                assert_eq!(out, b"kept");
            }
        }
    }

    #[test]
    fn lone_surrogates_become_one_replacement_each() {
        check(r"\ud83d", "\u{fffd}", 1);
        check(r"\ude00\ud83d", "\u{fffd}\u{fffd}", 2);
        check(r"\ud83d\ud83d\ude00", "\u{fffd}😀", 1);
        check(r"\ud83d\u0041", "\u{fffd}A", 1);
        check(r"\ud83dA", "\u{fffd}A", 1);
        check(r"\ud83d\n", "\u{fffd}\n", 1);
        check(r"\ud83d tail", "\u{fffd} tail", 1);
    }

    #[test]
    fn a_bad_escape_writes_nothing() {
        for raw in [
            "\\",
            r"ok\x",
            r"\u12",
            r"\u12g4",
            r"a\n\u",
            r"\ud83d\u",
            r"\ué00",
        ] {
            let mut out = b"kept".to_vec();
            assert_eq!(unescape(raw, &mut out), Unescaped::Invalid, "{raw:?}");
            assert_eq!(out, b"kept");
            let value = Value {
                kind: Kind::String,
                text: raw,
                escaped: true,
            };
            assert_eq!(unescaped(&value), None);
            assert!(!string_equals(&value, "ok"));
        }
    }

    #[test]
    fn only_strings_have_text() {
        let number = Value {
            kind: Kind::Integer,
            text: "1",
            escaped: false,
        };
        assert_eq!(unescaped(&number), None);
        assert!(!string_equals(&number, "1"));
    }

    #[test]
    fn written_strings_are_minimal() {
        let mut out = Vec::new();
        write_string("a\"\\/\n\r\t\u{8}\u{c}\u{0}\u{1f}\u{7f}ü😀", &mut out);
        assert_eq!(
            String::from_utf8_lossy(&out),
            "\"a\\\"\\\\/\\n\\r\\t\\b\\f\\u0000\\u001f\u{7f}ü😀\""
        );
    }
}
