//! Numbers that are integers, however they are written.
//!
//! Takes the text of a JSON number, gives the integer that it is exactly. Never goes through a floating-point number.

/// The 64-bit integer that a number with a fraction or an exponent is exactly (`200.0`, `2e2`), if it is one. `text` is a
/// number by JSON's grammar.
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
        let value = value * 10 + i128::from(digit - b'0');
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
