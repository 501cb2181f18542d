//! Reading JSON text byte by byte.
//!
//! A walk reads the text of a value. It may also read the memory after the text where that is faster, but the result never
//! depends on it. It writes nothing.

use tailrace_model::json;

use super::scalar::{Scalar, unescape};
use crate::any::Flat;
use crate::number::{few_digits, integer};

/// JSON text, and where in it the walk is.
#[derive(Clone)]
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

    /// How many bytes of the text are left.
    #[inline(always)]
    pub(super) fn left(&self) -> usize {
        self.text.len() - self.at
    }

    /// The next bytes, of which some may be behind the text.
    #[inline(always)]
    pub(super) fn ahead<const N: usize>(&self) -> Option<&'t [u8; N]> {
        self.wide.get(self.at..)?.first_chunk()
    }

    /// Passes over so many bytes, if so many are left.
    #[inline(always)]
    pub(super) fn skip(&mut self, count: usize) -> Option<()> {
        self.at += count;
        (self.at <= self.text.len()).then_some(())
    }

    /// What is before the next quote. Nothing that is escaped.
    #[inline(always)]
    pub(super) fn plain_text(&mut self) -> Option<Scalar<'t>> {
        let (start, mut end) = (self.at, self.at);
        loop {
            let len = json::plain_len(self.wide.get(end..)?.first_chunk()?);
            end += len;
            // What is behind the text may be much.
            if len < json::PLAIN_STEP || end > self.text.len() {
                break;
            }
        }
        if self.byte(end) != Some(b'"') {
            return None;
        }
        self.at = end;
        Some(Scalar::Text(self.from(start), end - start))
    }

    /// What is before the next quote that is not escaped, unescaped.
    #[inline(never)]
    pub(super) fn any_text<'o>(&mut self, out: &'o mut Vec<u8>) -> Option<Scalar<'o>>
    where
        't: 'o,
    {
        let (end, escaped) = json::string_end(self.text, self.at - 1)?;
        let start = self.at;
        self.at = end - 1;
        match escaped {
            true => Some(unescape(self.between(start, end - 1), out)),
            false => Some(Scalar::Text(self.from(start), end - 1 - start)),
        }
    }

    /// As [`Self::plain`], without whitespace before it.
    #[inline(always)]
    pub(super) fn plain_value(&mut self) -> Option<Scalar<'t>> {
        let first = self.byte(self.at)?;
        self.plain(first)
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
    #[inline(always)]
    pub(super) fn peek(&mut self) -> Option<u8> {
        let byte = self.byte(self.at)?;
        if byte > b' ' {
            return Some(byte);
        }
        self.at = behind_whitespace(self.text, self.at);
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
    #[inline(always)]
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
    #[inline(always)]
    pub(super) fn string(&mut self) -> Option<Quoted> {
        let start = self.at + 1;
        let mut end = start;
        for _ in 0..GROUPS {
            let Some(group) = self.wide.get(end..).and_then(<[u8]>::first_chunk) else {
                break;
            };
            let len = json::plain_len(group);
            end += len;
            if len < json::PLAIN_STEP {
                if self.byte(end) != Some(b'"') {
                    break;
                }
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
    #[inline(always)]
    pub(super) fn plain(&mut self, first: u8) -> Option<Scalar<'t>> {
        if let b'0'..=b'9' = first
            && let Some((number, len)) = self.short_integer()
        {
            self.at += len;
            return Some(Scalar::Int(number as i64));
        }
        let (scalar, end) = self.any_plain(self.at, first)?;
        self.at = end;
        Some(scalar)
    }

    /// The integer of up to seven digits that is next, and its length. Not one with a zero before it.
    #[inline(always)]
    fn short_integer(&self) -> Option<(u64, usize)> {
        const ONES: u64 = u64::from_ne_bytes([1; 8]);
        let text = u64::from_le_bytes(*self.ahead()?);
        let digits = text ^ (ONES * u64::from(b'0'));
        // The highest bit of each byte says whether it is no digit.
        let low = digits & (ONES * 0x7f);
        let others = ((low + ONES * (0x80 - 10)) | digits) & (ONES << 7);
        let len = others.trailing_zeros() as usize / 8;
        // What is behind decides what it is. And the text may end before.
        if len == 0 || len >= 8 || len >= self.left() {
            return None;
        }
        let behind = (text >> (8 * len)) as u8;
        let has_zero = len > 1 && text as u8 == b'0';
        if has_zero || matches!(behind, b'.' | b'e' | b'E') {
            return None;
        }
        Some((few_digits(text, len)?, len))
    }

    /// The number, truth value or null at `at`, and where it ends.
    #[inline(never)]
    fn any_plain(&self, at: usize, first: u8) -> Option<(Scalar<'t>, usize)> {
        let literal = |text: &[u8], scalar| {
            let is_it = self.text[at..].starts_with(text);
            is_it.then_some((scalar, at + text.len()))
        };
        match first {
            b'-' | b'0'..=b'9' => self.number(at),
            b'N' | b'I' => self.any_number(at),
            b't' => literal(b"true", Scalar::Bool(true)),
            b'f' => literal(b"false", Scalar::Bool(false)),
            b'n' => literal(b"null", Scalar::Null),
            _ => None,
        }
    }

    #[inline]
    fn digits(&self, at: &mut usize, mut number: u64) -> u64 {
        while let Some(byte @ b'0'..=b'9') = self.byte(*at) {
            number = number.wrapping_mul(10).wrapping_add(u64::from(byte & 15));
            *at += 1;
        }
        number
    }

    #[inline]
    fn number(&self, all: usize) -> Option<(Scalar<'t>, usize)> {
        /// So many digits are below 2^53.
        const EXACT_MAX: usize = 15;
        let is_negative = self.text[all] == b'-';
        let start = all + usize::from(is_negative);
        let mut at = start;
        let mut number = self.digits(&mut at, 0);
        let count = at - start;
        if count == 0 {
            return self.any_number(all);
        }
        if count > 1 && self.text[start] == b'0' {
            return None;
        }
        match self.byte(at) {
            Some(b'.') => {
                at += 1;
                let point = at;
                number = self.digits(&mut at, number);
                let behind = at - point;
                let has_exponent = matches!(self.byte(at), Some(b'e' | b'E'));
                if behind == 0 || has_exponent || count + behind > EXACT_MAX {
                    return self.any_number(all);
                }
                let number = number as f64 / POWERS[behind];
                let number = if is_negative { -number } else { number };
                Some((Scalar::Double(number), at))
            }
            Some(b'e' | b'E') => self.any_number(all),
            _ if count <= 18 => {
                let number = number as i64;
                let number = if is_negative { -number } else { number };
                Some((Scalar::Int(number), at))
            }
            _ => self.any_number(all),
        }
    }

    /// The number that starts at `start`.
    #[inline(never)]
    fn any_number(&self, start: usize) -> Option<(Scalar<'t>, usize)> {
        let end = json::value_end(self.text, start)?;
        let text = std::str::from_utf8(&self.text[start..end]).ok()?;
        let is_integer = !text
            .bytes()
            .any(|byte| matches!(byte, b'.' | b'e' | b'E' | b'N' | b'I'));
        // Beyond i64 (or f64) as text: never rounded.
        let flat = if is_integer {
            integer(text).map(Flat::Int)
        } else {
            Some(Flat::of_number(text))
        };
        let scalar = match flat {
            Some(Flat::Int(number)) => Scalar::Int(number),
            Some(Flat::Double(number)) => Scalar::Double(number),
            _ => Scalar::Text(self.from(start), text.len()),
        };
        Some((scalar, end))
    }
}

/// Behind whitespace that starts at `at`.
#[inline(never)]
fn behind_whitespace(text: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\n' | b'\r') = text.get(at) {
        at += 1;
    }
    at
}

/// So many groups of bytes of a string are looked at before it is given to [`json::string_end`].
const GROUPS: usize = 3;

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
        let general = Walk::new(text.as_bytes(), text.len()).any_number(0);
        let general = general.map(|(scalar, end)| (scalar.bits(), end));
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
