//! Reading one key or one value of a record's top level.
//!
//! What stands between a colon and the comma or brace that ends the member must be one JSON value with nothing but
//! whitespace around it, by the grammar of `tailrace_model::json` to its bottom. Never unescapes a value, never
//! converts.

use tailrace_model::json::{self, Kind, Unescaped};

/// One JSON value of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// First byte of its text in the record: of a string what stands between the quotes.
    pub(crate) start: usize,
    /// The byte after it.
    pub(crate) end: usize,
    /// A string with a backslash.
    pub(crate) escaped: bool,
}

/// The value that `text` is; `None` if that is not exactly one value.
#[inline]
pub(crate) fn read(text: &str) -> Option<Token> {
    let bytes = text.as_bytes();
    let (start, end) = trim(bytes, 0, bytes.len());
    let token = |kind| {
        Some(Token {
            kind,
            start,
            end,
            escaped: false,
        })
    };
    match bytes[start..end].first()? {
        b'"' => string(bytes, start, end),
        b'-' | b'0'..=b'9' | b'N' | b'I' => token(any_number_kind(&bytes[start..end])?),
        b'{' | b'[' => token(json::parse_value(&text[start..end])?.kind),
        b't' if bytes[start..end] == *b"true" => token(Kind::Bool),
        b'f' if bytes[start..end] == *b"false" => token(Kind::Bool),
        b'n' if bytes[start..end] == *b"null" => token(Kind::Null),
        _ => None,
    }
}

/// The string in bytes `start..end`, quotes included; `None` if that is not exactly one string. Escapes are not looked
/// at: whoever undoes them finds the bad ones.
fn string(bytes: &[u8], start: usize, end: usize) -> Option<Token> {
    let (len, escaped) = string_len(&bytes[start..end])?;
    let inner = &bytes[start + 1..end.max(start + 2) - 1];
    if start + len != end || inner.iter().fold(u8::MAX, |low, &byte| low.min(byte)) < 0x20 {
        return None;
    }
    Some(Token {
        kind: Kind::String,
        start: start + 1,
        end: end - 1,
        escaped,
    })
}

/// If `bytes` starts with a string: its length, quotes included, and whether it holds a backslash.
#[inline]
pub(crate) fn string_len(bytes: &[u8]) -> Option<(usize, bool)> {
    if bytes.first() != Some(&b'"') {
        return None;
    }
    let mut at = 1;
    let mut has_backslash = false;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some((at + 1, has_backslash));
        }
        has_backslash = true;
        at += 2;
    }
}

/// A member's key, unescaped, if it is exactly one string, and where the colon after it ends.
pub(crate) fn read_key<'a>(
    member: &'a str,
    unescaped: &'a mut Vec<u8>,
) -> Option<(&'a str, usize)> {
    let bytes = member.as_bytes();
    let start = skip_whitespace(bytes, 0);
    let (len, has_backslash) = string_len(&bytes[start..])?;
    let colon = skip_whitespace(bytes, start + len);
    if bytes.get(colon) != Some(&b':') {
        return None;
    }
    let raw = &member[start + 1..start + len - 1];
    if raw.bytes().any(|byte| byte < 0x20) {
        return None;
    }
    if !has_backslash {
        return Some((raw, colon + 1));
    }
    unescaped.clear();
    match json::unescape(raw, unescaped) {
        Unescaped::Done { .. } => Some((std::str::from_utf8(unescaped).ok()?, colon + 1)),
        Unescaped::Invalid => None,
    }
}

/// The same, and Float if it is a number that is not finite.
fn any_number_kind(text: &[u8]) -> Option<Kind> {
    let is_not_finite = || json::not_finite(text).is_some_and(|(_, len)| len == text.len());
    number_kind(text).or_else(|| is_not_finite().then_some(Kind::Float))
}

/// Integer or Float if `text` is a number as RFC 8259 writes it, nothing around it.
#[inline]
pub(crate) fn number_kind(text: &[u8]) -> Option<Kind> {
    let digits = |at: usize| {
        text[at..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let mut at = usize::from(text.first() == Some(&b'-'));
    let whole = digits(at);
    if whole == 0 || whole > 1 && text[at] == b'0' {
        return None;
    }
    at += whole;
    if at == text.len() {
        return Some(Kind::Integer);
    }
    if text[at] == b'.' {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return None;
        }
        at += 1 + fraction;
    }
    if let Some(b'e' | b'E') = text.get(at) {
        at += 1 + usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at);
        if exponent == 0 {
            return None;
        }
        at += exponent;
    }
    (at == text.len()).then_some(Kind::Float)
}

/// `start..end` without the whitespace at both ends.
#[inline]
pub(crate) fn trim(bytes: &[u8], start: usize, end: usize) -> (usize, usize) {
    let mut end = end;
    let start = skip_whitespace(&bytes[..end], start);
    while end > start && is_whitespace(bytes[end - 1]) {
        end -= 1;
    }
    (start, end)
}

/// The first byte at or after `at` that is no whitespace, else the end.
#[inline]
pub(crate) fn skip_whitespace(bytes: &[u8], at: usize) -> usize {
    let mut at = at;
    while bytes.get(at).is_some_and(|&byte| is_whitespace(byte)) {
        at += 1;
    }
    at
}

/// JSON's whitespace: space, tab, line feed, carriage return.
#[inline]
pub(crate) fn is_whitespace(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        let cases = [
            (
                Some(Kind::Integer),
                &["0", "-0", "7", "-120", "12345678901234567890123"][..],
            ),
            (
                Some(Kind::Float),
                &["0.0", "-0.5", "1e5", "1E+5", "2.50e-07", "0e0", "1e400"],
            ),
            (
                None,
                &[
                    "", "-", "00", "01", "-01", "1.", ".5", "-.5", "1.e5", "1e", "1e+", "+1", "1 ",
                    "0x1", "1a", "1.5.5",
                ],
            ),
        ];
        for (kind, texts) in cases {
            for text in texts {
                assert_eq!(number_kind(text.as_bytes()), kind, "{text:?}");
            }
        }
    }
}
