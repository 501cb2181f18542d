//! From a value's text to a column's type, exactly.
//!
//! Converts a kind and its text (of a string the unescaped text) to a number, boolean or time, or to `None` where the
//! value does not fit. Never rounds an integer, never goes through `f64` for one.

use tailrace_model::json::{self, Kind};
use tailrace_model::time;

use crate::token::number_kind;

/// The integer that a number, or a string that is exactly a number, is.
#[inline]
pub(crate) fn int64(kind: Kind, text: &str) -> Option<i64> {
    match number(kind, text)? {
        // The grammar is checked, so this fails only where the integer is out of range.
        Kind::Integer => text.parse().ok(),
        _ => json::exact_integer(text),
    }
}

/// The nearest `f64` to a number, or to a string that is exactly a number as the RFC writes it; `None` beyond its range.
/// A negative zero is zero: Arrow compares by IEEE 754's total order, which tells them apart.
#[inline]
pub(crate) fn float64(kind: Kind, text: &str) -> Option<f64> {
    number(kind, text)?;
    fast_float2::parse(text)
        .ok()
        .filter(|value: &f64| value.is_finite() || json::not_finite(text.as_bytes()).is_some())
        .map(|value| value + 0.0)
}

/// The truth of `true` or `false`, or of a string that is exactly one of them.
#[inline]
pub(crate) fn boolean(kind: Kind, text: &str) -> Option<bool> {
    match (kind, text) {
        (Kind::Bool | Kind::String, "true") => Some(true),
        (Kind::Bool | Kind::String, "false") => Some(false),
        _ => None,
    }
}

/// The time that a string or a number names, nanoseconds since the Unix epoch; text without a zone is `offset_s`
/// seconds east of UTC.
#[inline]
pub(crate) fn timestamp(kind: Kind, text: &str, offset_s: i32) -> Option<i64> {
    match kind {
        Kind::String | Kind::Integer | Kind::Float => time::parse(text, offset_s),
        _ => None,
    }
}

/// The kind of number that the text is, if the value is a number or a string that is one.
#[inline]
fn number(kind: Kind, text: &str) -> Option<Kind> {
    match kind {
        Kind::Integer | Kind::Float => Some(kind),
        Kind::String => number_kind(text.as_bytes()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers() {
        let cases = [
            ("200", Some(200)),
            ("200.0", Some(200)),
            ("2e2", Some(200)),
            ("20000e-2", Some(200)),
            ("2.5e1", Some(25)),
            ("200.5", None),
            ("2e-1", None),
            ("-0", Some(0)),
            ("-0.0e99999999999999999999", Some(0)),
            ("0e-99999999999999999999", Some(0)),
            ("1e99999999999999999999", None),
            ("1e-99999999999999999999", None),
            ("1e9223372036854775807", None),
            ("1.5e-9223372036854775808", None),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("-9223372036854775808", Some(i64::MIN)),
            ("-9223372036854775808.0", Some(i64::MIN)),
            ("-9223372036854775809", None),
            ("9.223372036854775807e18", Some(i64::MAX)),
            ("9.223372036854775808e18", None),
            ("1e18", Some(1_000_000_000_000_000_000)),
            ("1e19", None),
            ("100000000000000000000000000000000000000000e-40", Some(10)),
            ("0.00000000000000000000000000000000000000001e41", Some(1)),
        ];
        for (text, expect) in cases {
            let kind = number_kind(text.as_bytes()).expect("a number");
            assert_eq!(int64(kind, text), expect, "{text}");
            assert_eq!(int64(Kind::String, text), expect, "\"{text}\"");
        }
        for text in ["", " 1", "1 ", "+1", "01", "1_0", "0x10", "١"] {
            assert_eq!(int64(Kind::String, text), None, "{text:?}");
        }
        for text in ["NaN", "Infinity", "-Infinity"] {
            assert_eq!(int64(Kind::Float, text), None, "{text}");
            assert_eq!(timestamp(Kind::Float, text, 0), None, "{text}");
        }
        assert_eq!(int64(Kind::Bool, "true"), None);
        assert_eq!(int64(Kind::Array, "[1]"), None);
    }

    #[test]
    fn floats() {
        for text in [
            "0.1",
            "-0",
            "123456789012345678901234567890",
            "5e-324",
            "1.7976931348623157e308",
            "1e-400",
        ] {
            let expect = text.parse::<f64>().expect("a float") + 0.0;
            let kind = number_kind(text.as_bytes()).expect("a number");
            assert_eq!(
                float64(kind, text).map(f64::to_bits),
                Some(expect.to_bits()),
                "{text}"
            );
        }
        assert_eq!(float64(Kind::Float, "1e400"), None);
        assert_eq!(float64(Kind::Float, "Infinity"), Some(f64::INFINITY));
        assert_eq!(float64(Kind::Float, "-Infinity"), Some(f64::NEG_INFINITY));
        assert!(float64(Kind::Float, "NaN").is_some_and(f64::is_nan));
        for text in ["inf", "NaN", "Infinity", "1.", ".5", "1e", ""] {
            assert_eq!(float64(Kind::String, text), None, "{text:?}");
        }
    }
}
