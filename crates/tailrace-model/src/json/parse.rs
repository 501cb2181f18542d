//! One JSON value in a text: what it is, and where it ends.

use super::value::{Kind, Value};
use super::{grammar, sixteen};

/// The value that `text` is, if it is exactly one JSON value with nothing but whitespace around it.
pub fn parse_value(text: &str) -> Option<Value<'_>> {
    let (value, end) = first_value(text, 0)?;
    let rest = grammar::skip_whitespace(text.as_bytes(), end);
    (rest == text.len()).then_some(value)
}

/// The value that starts at byte `at` of `text` (or after whitespace there) and the offset of the byte after it.
/// What follows the value is not looked at, except that a number takes all bytes that belong to it.
#[inline]
pub fn first_value(text: &str, at: usize) -> Option<(Value<'_>, usize)> {
    let bytes = text.as_bytes();
    let start = grammar::skip_whitespace(bytes, at);
    let span = grammar::value(bytes, start)?;
    let quotes = usize::from(span.kind == Kind::String);
    let value = Value {
        kind: span.kind,
        text: text.get(start + quotes..span.end - quotes)?,
        escaped: span.escaped,
    };
    Some((value, span.end))
}

/// The string whose opening quote is at byte `at`: the offset after its closing quote, and whether anything in it is
/// escaped. The bytes are those of a `str`.
pub fn string_end(text: &[u8], at: usize) -> Option<(usize, bool)> {
    grammar::string_end(text, at)
}

/// The offset after the value that starts at byte `at`. The bytes are those of a `str`.
pub fn value_end(text: &[u8], at: usize) -> Option<usize> {
    grammar::value(text, at).map(|span| span.end)
}

/// How many bytes [`plain_len`] looks at.
pub const PLAIN_STEP: usize = sixteen::STEP;

/// How many bytes stand before the first quote, backslash or control character.
#[inline(always)]
pub fn plain_len(text: &[u8; PLAIN_STEP]) -> usize {
    sixteen::before(sixteen::special(text))
}

/// The offset of the first byte of `text` at or after `at` that is not whitespace.
#[inline]
pub fn skip_whitespace(text: &str, at: usize) -> usize {
    grammar::skip_whitespace(text.as_bytes(), at)
}
