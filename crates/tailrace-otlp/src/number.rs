//! Reading the text of JSON numbers, eight digits at a time.
//!
//! The input is a text, or a string view with inline text. The result is exactly that of the standard library's `parse`, or
//! `None` if the caller has to call `parse` itself. It never rounds.

use tailrace_model::json::{eight_digits, not_finite};

/// The number that the text of a JSON number is; nothing beyond what `f64` holds.
pub(crate) fn float(text: &str) -> Option<f64> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.or_else(|| not_finite(text.as_bytes()).map(|(number, _)| number))
}

/// The number that the text of an integer is; nothing beyond `i64`.
#[inline]
pub(crate) fn integer(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes() {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match unsigned(digits) {
        Some(number) if negative => Some(-number),
        Some(number) => Some(number),
        None => text.parse().ok(),
    }
}

/// 1 to 18 digits.
#[inline]
fn unsigned(digits: &[u8]) -> Option<i64> {
    const DIGITS_MAX: usize = 18;
    if digits.is_empty() || digits.len() > DIGITS_MAX {
        return None;
    }
    let (groups, rest) = digits.as_chunks::<8>();
    let mut number = 0;
    for group in groups {
        let group = u64::from_le_bytes(*group);
        number = number * 100_000_000 + eight_digits(group)?;
    }
    for digit in rest {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + u64::from(digit);
    }
    Some(number as i64)
}

/// Length of the text of a view.
#[inline]
pub(crate) const fn view_len(view: u128) -> usize {
    view as u32 as usize
}

/// A view of up to so many bytes holds its text itself.
pub(crate) const INLINE_MAX: usize = 12;

/// The integer whose text a view holds itself.
#[inline]
pub(crate) fn inline_integer(view: u128) -> Option<i64> {
    let (text, len) = (view >> 32, view_len(view));
    if text as u8 == b'-' {
        return inline_digits(text >> 8, len.wrapping_sub(1)).map(|number| -(number as i64));
    }
    inline_digits(text, len).map(|number| number as i64)
}

/// The decimal number `123.456` whose text a view holds itself; not one with an exponent. Its digits, and the power of
/// ten they are divided by, are exact as `f64`, so that the quotient is the nearest `f64`.
#[inline]
pub(crate) fn inline_float(view: u128) -> Option<f64> {
    let (text, len) = (view >> 32, view_len(view));
    if text as u8 == b'-' {
        unsigned_float(text >> 8, len.wrapping_sub(1)).map(|number| -number)
    } else {
        unsigned_float(text, len)
    }
}

#[inline]
fn unsigned_float(text: u128, len: usize) -> Option<f64> {
    const POWERS: [f64; INLINE_MAX] =
        [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11];
    const POINTS: u64 = ONES * b'.' as u64;
    // The lowest bit that is set is that of the first zero byte.
    let zeros_of = |word: u64| word.wrapping_sub(ONES) & !word & (ONES << 7);
    let point = match zeros_of(text as u64 ^ POINTS) {
        0 => 8 + zeros_of((text >> 64) as u64 ^ POINTS).trailing_zeros() as usize / 8,
        points => points.trailing_zeros() as usize / 8,
    };
    if point == 0 || point + 1 >= len || len > INLINE_MAX {
        return None;
    }
    let digits = if len <= 8 {
        let text = text as u64;
        let before = text & ((1 << (8 * point)) - 1);
        let behind = text >> (8 * point) >> 8 << (8 * point);
        few_digits(before | behind, len - 1)?
    } else {
        let before = text & ((1 << (8 * point)) - 1);
        let behind = text >> (8 * (point + 1)) << (8 * point);
        inline_digits(before | behind, len - 1)?
    };
    Some(digits as f64 / POWERS[len - 1 - point])
}

const ONES: u64 = u64::from_ne_bytes([1; 8]);
const ZEROS: u64 = ONES * b'0' as u64;

/// The number that the first `len` bytes of `text` are, at most [`INLINE_MAX`] digits; the first byte is the lowest,
/// what is above the text is anything.
#[inline]
fn inline_digits(text: u128, len: usize) -> Option<u64> {
    match len {
        1..=8 => few_digits(text as u64, len),
        9..=INLINE_MAX => {
            let first = eight_digits(text as u64)?;
            let rest = few_digits((text >> 64) as u64, len - 8)?;
            const POWERS: [u64; INLINE_MAX - 7] = [1, 10, 100, 1000, 10_000];
            Some(first * POWERS[len - 8] + rest)
        }
        _ => None,
    }
}

/// As [`inline_digits`], of 1 to 8 digits.
#[inline]
pub(crate) fn few_digits(text: u64, len: usize) -> Option<u64> {
    // To the right, with zeros before it.
    let free = 64 - 8 * len;
    eight_digits(text << free | ZEROS & ((1 << free) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    /// The view that Arrow makes of a short text, with something behind the text.
    fn view(text: &str, garbage: u8) -> u128 {
        let mut bytes = [garbage; 16];
        bytes[..4].copy_from_slice(&(text.len() as u32).to_le_bytes());
        bytes[4..4 + text.len()].copy_from_slice(text.as_bytes());
        u128::from_le_bytes(bytes)
    }

    fn check(text: &str) {
        assert_eq!(integer(text), text.parse().ok(), "{text:?}");
        if text.len() > INLINE_MAX {
            return;
        }
        for garbage in [0, b'1', b'.', b'-', 0xff] {
            if let Some(number) = inline_integer(view(text, garbage)) {
                assert_eq!(text.parse(), Ok(number), "{text:?}");
            }
            if let Some(number) = inline_float(view(text, garbage)) {
                let bits = text.parse::<f64>().map(f64::to_bits);
                assert_eq!(bits, Ok(number.to_bits()), "{text:?}");
            }
        }
    }

    #[test]
    fn bounds_and_what_is_no_number() {
        for text in [
            "",
            "-",
            "+1",
            "0",
            "-0",
            "007",
            "1.",
            ".5",
            "-.5",
            "1.5e3",
            "1e5",
            "1:5",
            "1/2",
            "--1",
            "-0.0",
            "1.2.3",
            "9223372036854775807",
            "9223372036854775808",
            "-9223372036854775808",
            "-9223372036854775809",
            "999999999999999999",
            "-999999999999999999",
            "00000000000000000000001",
            "12345678901x",
            "1234567:",
            "ü1",
            "99999999.999",
            "-9999999.999",
            "0.0000000001",
        ] {
            check(text);
        }
    }

    #[test]
    fn the_quick_way_is_taken() {
        assert_eq!(
            inline_integer(view("-12345678901", 0)),
            Some(-12_345_678_901)
        );
        assert_eq!(inline_integer(view("7", b'7')), Some(7));
        assert_eq!(inline_float(view("12.5", b'.')), Some(12.5));
        assert_eq!(inline_float(view("-0.000000001", 0)), Some(-1e-9));
        assert_eq!(
            unsigned(b"123456789012345678"),
            Some(123_456_789_012_345_678)
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn numbers_are_those_of_the_standard_library(
            text in prop_oneof!["-?[0-9]{1,20}", "-?[0-9]{1,8}[.][0-9]{1,9}", "[-+0-9.eE:/]{0,13}"],
        ) {
            check(&text);
        }
    }
}
