//! The grammar of RFC 8259 over bytes: where a value ends, or that it is none.
//!
//! Finds the end of the value that starts at a given byte of valid UTF-8. Beyond the RFC it takes the numbers that
//! are not finite, as Python and Go write them. Never recurses (nesting is one bit per level), allocates only where
//! nesting is deeper than a word has bits, never looks past the end of the value it was asked for.

use super::number::not_finite;
use super::sixteen::{STEP, before, special};
use super::value::Kind;

/// Where a value ends and what it is. Of a string the end is after the closing quote.
#[derive(Clone, Copy)]
pub(super) struct ValueEnd {
    pub(super) kind: Kind,
    pub(super) end: usize,
    pub(super) escaped: bool,
}

/// The value that starts exactly at `at`.
#[inline]
pub(super) fn value(bytes: &[u8], at: usize) -> Option<ValueEnd> {
    let plain = |kind, end| {
        Some(ValueEnd {
            kind,
            end,
            escaped: false,
        })
    };
    match *bytes.get(at)? {
        b'{' => plain(Kind::Object, container_end(bytes, at)?),
        b'[' => plain(Kind::Array, container_end(bytes, at)?),
        _ => scalar(bytes, at),
    }
}

/// The offset of the first byte at or after `at` that is not JSON whitespace.
#[inline]
pub(super) fn skip_whitespace(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(at) {
        at += 1;
    }
    at
}

/// The string whose opening quote is at `at`: the offset after the closing quote, and whether a backslash occurs.
pub(super) fn string_end(bytes: &[u8], at: usize) -> Option<(usize, bool)> {
    debug_assert_eq!(bytes.get(at), Some(&b'"'));
    let mut at = at + 1;
    let mut escaped = false;
    loop {
        at = skip_plain(bytes, at);
        match *bytes.get(at)? {
            b'"' => return Some((at + 1, escaped)),
            b'\\' => {
                escaped = true;
                at += escape_length(bytes, at)?;
            }
            0..0x20 => return None,
            _ => at += 1,
        }
    }
}

/// The length of the escape that starts with the backslash at `at`: 2, or 6 for `\uXXXX`.
fn escape_length(bytes: &[u8], at: usize) -> Option<usize> {
    match *bytes.get(at + 1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => {
            let digits = bytes.get(at + 2..at + 6)?;
            digits.iter().all(u8::is_ascii_hexdigit).then_some(6)
        }
        _ => None,
    }
}

/// The offset of the first quote, backslash or control character at or after `at`; in a short text perhaps that of a byte
/// before it.
#[inline]
pub(super) fn skip_plain(bytes: &[u8], mut at: usize) -> usize {
    while let Some(group) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let plain = before(special(group));
        at += plain;
        if plain < STEP {
            return at;
        }
    }
    // The last bytes, behind some that were looked at.
    match (bytes.last_chunk(), bytes.len().saturating_sub(at)) {
        (Some(group), left) => at + before(special(group) >> (STEP - left)).min(left),
        (None, _) => at,
    }
}

/// Anything but an object or array.
fn scalar(bytes: &[u8], at: usize) -> Option<ValueEnd> {
    let literal = |text: &[u8], kind| {
        let rest = bytes.get(at..)?;
        rest.starts_with(text).then_some(ValueEnd {
            kind,
            end: at + text.len(),
            escaped: false,
        })
    };
    match *bytes.get(at)? {
        b'"' => {
            let (end, escaped) = string_end(bytes, at)?;
            Some(ValueEnd {
                kind: Kind::String,
                end,
                escaped,
            })
        }
        b'0'..=b'9' => number(bytes, at),
        b'-' | b'N' | b'I' => number(bytes, at).or_else(|| {
            let (_, len) = not_finite(&bytes[at..])?;
            Some(ValueEnd {
                kind: Kind::Float,
                end: at + len,
                escaped: false,
            })
        }),
        b't' => literal(b"true", Kind::Bool),
        b'f' => literal(b"false", Kind::Bool),
        b'n' => literal(b"null", Kind::Null),
        _ => None,
    }
}

fn number(bytes: &[u8], at: usize) -> Option<ValueEnd> {
    let digits = |at: usize| {
        let count = bytes
            .get(at..)?
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        (count > 0).then_some(at + count)
    };
    let mut kind = Kind::Integer;
    let integer = at + usize::from(bytes.get(at) == Some(&b'-'));
    let mut end = digits(integer)?;
    if bytes.get(integer) == Some(&b'0') && end > integer + 1 {
        return None;
    }
    if bytes.get(end) == Some(&b'.') {
        kind = Kind::Float;
        end = digits(end + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(end) {
        kind = Kind::Float;
        let signed = matches!(bytes.get(end + 1), Some(b'+' | b'-'));
        end = digits(end + 1 + usize::from(signed))?;
    }
    Some(ValueEnd {
        kind,
        end,
        escaped: false,
    })
}

/// What may come next inside an object or array.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// After `[`: a value or `]`.
    FirstElement,
    /// After `:` or after a comma in an array.
    Value,
    /// After `{`: a key or `}`.
    FirstKey,
    /// After a comma in an object.
    Key,
    /// After a value: a comma, or the end of what holds it.
    Separator,
}

/// What is open, the innermost at bit 0: 1 an object, 0 an array.
#[derive(Default)]
struct Levels {
    bits: u128,
    depth: usize,
    /// Those further out, a full word each.
    outer: Vec<u128>,
}

impl Levels {
    fn is_in_object(&self) -> bool {
        self.bits & 1 == 1
    }

    fn open(&mut self, is_object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(WORD_LEVELS) {
            self.outer.push(self.bits);
        }
        self.depth += 1;
        self.bits = self.bits << 1 | u128::from(is_object);
    }

    /// Closes the innermost level; says whether it was the last one.
    fn close(&mut self) -> bool {
        self.bits >>= 1;
        self.depth -= 1;
        if self.depth > 0 && self.depth.is_multiple_of(WORD_LEVELS) {
            self.bits = self.outer.pop().unwrap_or_default();
        }
        self.depth == 0
    }
}

const WORD_LEVELS: usize = u128::BITS as usize;

/// The offset after the object or array that opens at `at`.
fn container_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut levels = Levels::default();
    let mut next = Next::Value;
    loop {
        at = skip_whitespace(bytes, at);
        let byte = *bytes.get(at)?;
        let in_object = levels.is_in_object();
        let closes = match next {
            Next::FirstElement => byte == b']',
            Next::FirstKey => byte == b'}',
            Next::Separator => byte == if in_object { b'}' } else { b']' },
            Next::Value | Next::Key => false,
        };
        if closes {
            at += 1;
            if levels.close() {
                return Some(at);
            }
            next = Next::Separator;
            continue;
        }
        next = match (next, byte) {
            (Next::Value | Next::FirstElement, b'{' | b'[') => {
                levels.open(byte == b'{');
                at += 1;
                if byte == b'{' {
                    Next::FirstKey
                } else {
                    Next::FirstElement
                }
            }
            (Next::Value | Next::FirstElement, _) => {
                at = scalar(bytes, at)?.end;
                Next::Separator
            }
            (Next::Key | Next::FirstKey, b'"') => {
                at = skip_whitespace(bytes, string_end(bytes, at)?.0);
                if bytes.get(at) != Some(&b':') {
                    return None;
                }
                at += 1;
                Next::Value
            }
            (Next::Separator, b',') => {
                at += 1;
                if in_object { Next::Key } else { Next::Value }
            }
            _ => return None,
        };
    }
}
