//! Reading JSON text byte by byte.
//!
//! A walk reads the text of a value. It may also read the memory after the text where that is faster, but the result never
//! depends on it. It writes nothing.

use tailrace_model::json;

use super::scalar::Scalar;
use crate::any::Flat;
use crate::number::integer;

/// JSON text, and where in it the walk is.
pub(super) struct Walk<'t> {
    text: &'t [u8],
    /// The text and what is behind it.
    wide: &'t [u8],
    at: usize,
}

/// What stands between two quotes.
#[derive(Clone, Copy)]
pub(super) struct Quoted {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) escaped: bool,
}

impl<'t> Walk<'t> {
    /// The text is the first `len` bytes of `wide`.
    pub(super) fn new(wide: &'t [u8], len: usize) -> Walk<'t> {
        Walk {
            text: &wide[..len],
            wide,
            at: 0,
        }
    }

    /// The text from `start` on, and what is behind it.
    #[inline]
    pub(super) fn from(&self, start: usize) -> &'t [u8] {
        &self.wide[start..]
    }

    #[inline]
    pub(super) fn between(&self, start: usize, end: usize) -> &'t [u8] {
        &self.text[start..end]
    }

    #[inline]
    fn byte(&self, at: usize) -> Option<u8> {
        self.text.get(at).copied()
    }

    /// The first byte that is not whitespace; the walk is then before it.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<u8> {
        let byte = self.byte(self.at)?;
        if byte > b' ' {
            return Some(byte);
        }
        self.peek_behind_whitespace()
    }

    fn peek_behind_whitespace(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.byte(self.at) {
            self.at += 1;
        }
        self.byte(self.at)
    }

    /// Passes over the byte that was peeked at.
    #[inline]
    pub(super) fn next(&mut self) -> u8 {
        self.at += 1;
        self.text[self.at - 1]
    }

    /// Passes over this byte, if it is next.
    #[inline]
    pub(super) fn take(&mut self, byte: u8) -> Option<()> {
        let is_next = self.peek()? == byte;
        self.at += 1;
        is_next.then_some(())
    }

    /// Skips what is between two values. Returns whether there is another value.
    #[inline]
    pub(super) fn goes_on(&mut self, close: u8) -> Option<bool> {
        let byte = self.peek()?;
        self.at += 1;
        match byte {
            b',' => Some(true),
            _ if byte == close => Some(false),
            _ => None,
        }
    }

    /// Skips the next value, of any kind, and returns its text.
    pub(super) fn value(&mut self) -> Option<&'t [u8]> {
        let start = self.at;
        self.at = json::value_end(self.text, start)?;
        Some(&self.text[start..self.at])
    }

    /// Passes over the string whose opening quote is next.
    #[inline]
    pub(super) fn string(&mut self) -> Option<Quoted> {
        let start = self.at + 1;
        if let Some(group) = self.wide.get(start..).and_then(<[u8]>::first_chunk) {
            let end = start + json::plain_len(*group);
            if end < start + 8 && self.byte(end) == Some(b'"') {
                self.at = end + 1;
                return Some(Quoted {
                    start,
                    end,
                    escaped: false,
                });
            }
        }
        let (end, escaped) = json::string_end(self.text, self.at)?;
        self.at = end;
        Some(Quoted {
            start,
            end: end - 1,
            escaped,
        })
    }

    /// Passes over a number, a truth value or null that starts with the byte `first`.
    #[inline]
    pub(super) fn plain(&mut self, first: u8) -> Option<Scalar<'t>> {
        match first {
            b'-' | b'0'..=b'9' => self.number(),
            b'N' | b'I' => self.any_number(self.at),
            b't' => self.literal(b"true", Scalar::Bool(true)),
            b'f' => self.literal(b"false", Scalar::Bool(false)),
            b'n' => self.literal(b"null", Scalar::Null),
            _ => None,
        }
    }

    #[inline]
    fn literal(&mut self, text: &[u8], scalar: Scalar<'t>) -> Option<Scalar<'t>> {
        let is_it = self.text[self.at..].starts_with(text);
        self.at += text.len();
        is_it.then_some(scalar)
    }

    #[inline]
    fn digits(&mut self, mut number: u64) -> u64 {
        while let Some(byte @ b'0'..=b'9') = self.byte(self.at) {
            number = number.wrapping_mul(10).wrapping_add(u64::from(byte & 15));
            self.at += 1;
        }
        number
    }

    #[inline]
    fn number(&mut self) -> Option<Scalar<'t>> {
        /// So many digits are below 2^53.
        const EXACT_MAX: usize = 15;
        let all = self.at;
        let is_negative = self.text[all] == b'-';
        self.at += usize::from(is_negative);
        let start = self.at;
        let mut number = self.digits(0);
        let count = self.at - start;
        if count == 0 {
            return self.any_number(all);
        }
        if count > 1 && self.text[start] == b'0' {
            return None;
        }
        match self.byte(self.at) {
            Some(b'.') => {
                self.at += 1;
                let point = self.at;
                number = self.digits(number);
                let behind = self.at - point;
                let has_exponent = matches!(self.byte(self.at), Some(b'e' | b'E'));
                if behind == 0 || has_exponent || count + behind > EXACT_MAX {
                    return self.any_number(all);
                }
                let number = number as f64 / POWERS[behind];
                Some(Scalar::Double(if is_negative { -number } else { number }))
            }
            Some(b'e' | b'E') => self.any_number(all),
            _ if count <= 18 => {
                let number = number as i64;
                Some(Scalar::Int(if is_negative { -number } else { number }))
            }
            _ => self.any_number(all),
        }
    }

    /// The number that starts at `start`.
    #[inline(never)]
    fn any_number(&mut self, start: usize) -> Option<Scalar<'t>> {
        self.at = start;
        let text = std::str::from_utf8(self.value()?).ok()?;
        let is_integer = !text
            .bytes()
            .any(|byte| matches!(byte, b'.' | b'e' | b'E' | b'N' | b'I'));
        // Beyond i64 (or f64) as text: never rounded.
        let flat = if is_integer {
            integer(text).map(Flat::Int)
        } else {
            Some(Flat::of_number(text))
        };
        Some(match flat {
            Some(Flat::Int(number)) => Scalar::Int(number),
            Some(Flat::Double(number)) => Scalar::Double(number),
            _ => Scalar::Text(self.from(start), text.len()),
        })
    }
}

const POWERS: [f64; 16] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
];

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    use crate::any::Values;

    /// The number at the start of a text as the general way reads it.
    fn check_number(text: &str) {
        let mut walk = Walk::new(text.as_bytes(), text.len());
        let first = text.as_bytes()[0];
        let quick = walk.plain(first).map(|scalar| (scalar.bits(), walk.at));
        let mut walk = Walk::new(text.as_bytes(), text.len());
        let general = walk.any_number(0).map(|scalar| (scalar.bits(), walk.at));
        assert_eq!(quick, general, "{text}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn numbers_are_read_as_any_are(
            text in "-?(0|[1-9][0-9]{0,20}|00)([.][0-9]{0,18})?([eE][-+]?[0-9]{0,3})?[,x ]?|-?(NaN|Infin(ity|x)?)[,x ]?",
        ) {
            check_number(&text);
        }

        #[test]
        fn what_is_behind_a_text_decides_nothing(
            text in r#"[{\[]("[a-c]{0,9}\\?["n]?:?|[0-9.e-]{0,5}|[\]},: ]|true|\[|\{){0,12}[}\]]"#,
            behind in r#"["0-9\]},:a]{0,80}"#,
        ) {
            let mut alone = Values::default();
            alone.json(text.as_bytes(), text.len(), 0);
            let mut before = Values::default();
            let all = format!("{text}{behind}");
            before.json(all.as_bytes(), text.len(), 0);
            prop_assert_eq!(alone.out.from(0), before.out.from(0));
            prop_assert_eq!(alone.stats, before.stats);
        }
    }
}
