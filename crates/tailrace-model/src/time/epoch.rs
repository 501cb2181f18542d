//! Numbers since the Unix epoch, in the unit their magnitude tells.
//!
//! Converts the text of a decimal number to nanoseconds. The digits themselves are shifted: nothing is rounded, only
//! what is finer than a nanosecond is cut off (towards zero).

/// The time of a decimal number, as JSON writes numbers: below 1e11 it counts seconds, below 1e14 milliseconds, below
/// 1e17 microseconds, else nanoseconds (by absolute value, so 1e11 s is the year 5138 and 1e11 ms is 1973).
pub fn parse_epoch(text: &str) -> Option<i64> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let number = Decimal::parse(unsigned)?;
    let magnitude = number.magnitude();
    let scale = match magnitude {
        ..=11 => 9,
        12..=14 => 6,
        15..=17 => 3,
        _ => 0,
    };
    let ns = i128::from(number.leading_digits(magnitude + scale)?);
    i64::try_from(if negative { -ns } else { ns }).ok()
}

/// As [`parse_epoch`], of a whole number.
#[inline]
pub fn of_number(number: i64) -> Option<i64> {
    number.checked_mul(match number.unsigned_abs() {
        ..100_000_000_000 => 1_000_000_000,
        100_000_000_000..100_000_000_000_000 => 1_000_000,
        100_000_000_000_000..100_000_000_000_000_000 => 1_000,
        _ => 1,
    })
}

/// A number by its digits: 0.`digits` times ten to the power of `point`, the decimal point left out of the digits.
struct Decimal<'a> {
    integer: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
}

impl<'a> Decimal<'a> {
    fn parse(text: &'a str) -> Option<Decimal<'a>> {
        let bytes = text.as_bytes();
        let digits = |from: usize| {
            bytes[from..]
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count()
        };
        let integer = &bytes[..digits(0)];
        let mut end = integer.len();
        let mut fraction: &[u8] = &[];
        if bytes.get(end) == Some(&b'.') {
            fraction = &bytes[end + 1..end + 1 + digits(end + 1)];
            end += 1 + fraction.len();
            if fraction.is_empty() {
                return None;
            }
        }
        let exponent = match text.get(end..)?.strip_prefix(['e', 'E']) {
            Some(exponent) => parse_exponent(exponent)?,
            None if end == text.len() => 0,
            None => return None,
        };
        (!integer.is_empty()).then_some(Decimal {
            integer,
            fraction,
            exponent,
        })
    }

    fn digits(&self) -> impl Iterator<Item = u8> {
        self.integer
            .iter()
            .chain(self.fraction)
            .map(|byte| byte - b'0')
    }

    fn leading_zeros(&self) -> usize {
        self.digits().take_while(|digit| *digit == 0).count()
    }

    /// The smallest m with |number| < 10^m; very small for zero.
    fn magnitude(&self) -> i64 {
        let zeros = self.leading_zeros();
        if zeros == self.integer.len() + self.fraction.len() {
            return i64::MIN / 2;
        }
        length(self.integer.len()) - length(zeros) + self.exponent
    }

    /// The first `count` significant digits as a number, padded with zeros. `None` beyond what a `u64` surely holds.
    fn leading_digits(&self, count: i64) -> Option<u64> {
        const COUNT_MAX: i64 = 19;
        if count > COUNT_MAX {
            return None;
        }
        let count = usize::try_from(count).unwrap_or(0);
        let significant = self.digits().skip(self.leading_zeros());
        Some(
            significant
                .chain(std::iter::repeat(0))
                .take(count)
                .fold(0, |sum, digit| sum * 10 + u64::from(digit)),
        )
    }
}

/// An exponent's value, clamped to where the result no longer depends on it.
fn parse_exponent(text: &str) -> Option<i64> {
    const CLAMP: i64 = i64::MAX / 8;
    let (sign, digits) = match text.as_bytes() {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] | digits => (1, digits),
    };
    let all_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let value = digits.iter().fold(0i64, |sum, byte| {
        (sum.min(CLAMP / 16) * 10 + i64::from(*byte & 15)).min(CLAMP)
    });
    all_digits.then_some(sign * value)
}

/// A length in memory as a signed number; no slice is longer than `isize::MAX`.
fn length(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    #[test]
    fn the_magnitude_tells_the_unit() {
        for (text, ns) in [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("0.000", Some(0)),
            ("1", Some(S)),
            ("9223372036", Some(9_223_372_036 * S)),
            ("9223372037", None),
            ("99999999999", None),
            ("100000000000", Some(100_000_000 * S)),
            ("9223372036854", Some(9_223_372_036_854_000_000)),
            ("99999999999999", None),
            ("100000000000000", Some(100_000_000 * S)),
            ("1700000000123456", Some(1_700_000_000_123_456_000)),
            ("99999999999999999", None),
            ("100000000000000000", Some(100_000_000 * S)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("-9223372036854775808", Some(i64::MIN)),
            ("-9223372036854775809", None),
        ] {
            assert_eq!(parse_epoch(text), ns, "{text}");
            if !text.contains('.') {
                assert_eq!(independent(text), ns, "{text}");
            }
            if let Ok(number) = text.parse() {
                assert_eq!(of_number(number), ns, "{text}");
            }
        }
    }

    #[test]
    fn decimals_are_exact() {
        for (text, ns) in [
            ("1700000000.123456789", 1_700_000_000_123_456_789),
            ("1700000000.1234567899", 1_700_000_000_123_456_789),
            ("1700000000123.456789", 1_700_000_000_123_456_789),
            ("1700000000123456.789", 1_700_000_000_123_456_789),
            ("1700000000123456789.9", 1_700_000_000_123_456_789),
            ("1.7000000001234567e9", 1_700_000_000_123_456_700),
            ("17E8", 1_700_000_000 * S),
            ("1700000000000e-3", 1_700_000_000 * S),
            ("0.000000001", 1),
            ("0.0000000009", 0),
            ("-0.5", -500_000_000),
            ("-1.0000000019", -1_000_000_001),
            ("007", 7 * S),
            ("1e-999999999999999999999999", 0),
            ("0e999999999999999999999999", 0),
        ] {
            assert_eq!(parse_epoch(text), Some(ns), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_or_does_not_fit_is_none() {
        for text in [
            "",
            "-",
            "+1",
            "1.",
            ".5",
            "1e",
            "1e+",
            "e5",
            "1x",
            "0x10",
            " 1",
            "1 ",
            "--1",
            "1.2.3",
            "NaN",
            "inf",
            "1e30",
            "1e999999999999999999999999",
            "99999999999999999999",
            "1_000",
            "١",
        ] {
            assert_eq!(parse_epoch(text), None, "{text:?}");
        }
    }

    /// Whole numbers by plain arithmetic.
    fn independent(text: &str) -> Option<i64> {
        let number: i128 = text.parse().ok()?;
        let factor = match number.unsigned_abs() {
            ..100_000_000_000 => 1_000_000_000,
            100_000_000_000..100_000_000_000_000 => 1_000_000,
            100_000_000_000_000..100_000_000_000_000_000 => 1_000,
            _ => 1,
        };
        i64::try_from(number * factor).ok()
    }

    proptest::proptest! {
        #[test]
        fn whole_numbers_agree_with_arithmetic(number in proptest::prelude::any::<i64>(), shift in 0u32..63) {
            let text = (number >> shift).to_string();
            proptest::prop_assert_eq!(parse_epoch(&text), independent(&text));
            proptest::prop_assert_eq!(of_number(number >> shift), independent(&text));
        }

        #[test]
        fn seconds_with_a_fraction_agree_with_their_parts(
            seconds in 0i64..9_000_000_000, digits in "[0-9]{1,12}", zeros in 0usize..3,
        ) {
            let nine: String = digits.chars().chain("000000000".chars()).take(9).collect();
            let ns: i64 = nine.parse().expect("nine digits");
            let expect = seconds * S + ns;
            let zeros = "0".repeat(zeros);
            proptest::prop_assert_eq!(parse_epoch(&format!("{zeros}{seconds}.{digits}")), Some(expect));
            proptest::prop_assert_eq!(parse_epoch(&format!("-{seconds}.{digits}")), Some(-expect));
            let shifted = format!("{seconds}{nine}e-9");
            proptest::prop_assert_eq!(parse_epoch(&shifted), Some(expect));
        }
    }
}
