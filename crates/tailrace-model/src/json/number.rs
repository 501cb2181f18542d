//! What the text of a number means where that is not what the standard library's `parse` says.
//!
//! Converts text to a number where it is exactly one. Never rounds an integer.

/// The number that is not finite which `text` starts with, as Python and Go write it (`NaN`, `Infinity`, `-Infinity`),
/// and its length.
pub fn not_finite(text: &[u8]) -> Option<(f64, usize)> {
    const ALL: [(&[u8], f64); 3] = [
        (b"NaN", f64::NAN),
        (b"Infinity", f64::INFINITY),
        (b"-Infinity", f64::NEG_INFINITY),
    ];
    let mut all = ALL.into_iter();
    let (literal, number) = all.find(|(literal, _)| text.starts_with(literal))?;
    Some((number, literal.len()))
}

/// The integer within `i64` that a JSON number is exactly, however it is written: `200`, `200.0`, `2e2`.
pub fn exact_integer(text: &str) -> Option<i64> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (negative, mantissa) = mantissa
        .strip_prefix('-')
        .map_or((false, mantissa), |rest| (true, rest));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = || whole.bytes().chain(fraction.bytes());
    let Some(last) = digits().rposition_nonzero() else {
        return Some(0);
    };
    // An exponent that is no i64 moves the point further than any text has digits.
    let exponent: i64 = exponent.parse().ok()?;
    // Powers of ten that the digits up to the last one that is not 0 are to be multiplied by.
    let power = exponent
        .checked_add(i64::try_from(whole.len()).ok()?)?
        .checked_sub(i64::try_from(last + 1).ok()?)?;
    let power = u32::try_from(power).ok()?;
    let magnitude = digits().take(last + 1).try_fold(0_i128, |value, digit| {
        let digit = char::from(digit).to_digit(10)?;
        let value = value * 10 + i128::from(digit);
        (value <= 1 << 64).then_some(value)
    })?;
    let magnitude = magnitude.checked_mul(10_i128.checked_pow(power)?)?;
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

trait LastNonzero {
    /// Place of the last digit that is not 0.
    fn rposition_nonzero(self) -> Option<usize>;
}

impl<I: Iterator<Item = u8>> LastNonzero for I {
    fn rposition_nonzero(self) -> Option<usize> {
        self.enumerate()
            .filter(|(_, digit)| *digit != b'0')
            .last()
            .map(|(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_finite() {
        assert!(not_finite(b"NaN").is_some_and(|(number, len)| number.is_nan() && len == 3));
        assert_eq!(not_finite(b"Infinity,1"), Some((f64::INFINITY, 8)));
        assert_eq!(not_finite(b"-Infinity"), Some((f64::NEG_INFINITY, 9)));
        for text in ["", "nan", "Inf", "-Inf", "+Infinity", "-NaN", "1"] {
            assert_eq!(not_finite(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn integers_however_they_are_written() {
        for (text, expect) in [
            ("9.0", Some(9)),
            ("90e-1", Some(9)),
            ("9.5", None),
            ("-0.0", Some(0)),
            ("9223372036854775808.0", None),
            ("NaN", None),
            ("-Infinity", None),
        ] {
            assert_eq!(exact_integer(text), expect, "{text}");
        }
    }
}
