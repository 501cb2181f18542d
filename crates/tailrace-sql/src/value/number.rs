//! Numbers as JSON has them: integers of any size that fits, and floats.
//!
//! Parses the text of a value as a number; compares and computes. An integer is never turned into a float, except
//! where the other operand of an operation is one. Never allocates.

use std::cmp::Ordering;
use std::fmt::Write;

use tailrace_model::json::{self, Kind};

/// One number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    Integer(i128),
    Float(f64),
    /// The float next to an integer of more than 38 digits: enough for a comparison, too little to compute with integers.
    Beyond(f64),
}

/// Floats of this magnitude or more are integers, and not all integers are floats.
const FLOAT_EXACT_MAX: f64 = (1_u64 << 53) as f64;
/// Beyond all 64-bit integers.
const INTEGERS_END: f64 = (1_u128 << 64) as f64;

/// The number that a value of this kind and text is, or that a string is exactly.
pub(super) fn parse(kind: Kind, text: &str) -> Option<Number> {
    match kind {
        Kind::Integer => Some(integer(text)),
        Kind::Float => float(text),
        Kind::String => {
            // Of what is not finite no string is a number.
            let value = json::parse_value(text).filter(|value| value.text.len() == text.len())?;
            match value.kind {
                _ if json::not_finite(text.as_bytes()).is_some() => None,
                Kind::Integer => Some(integer(text)),
                Kind::Float => float(text),
                _ => None,
            }
        }
        _ => None,
    }
}

fn integer(text: &str) -> Number {
    match text.parse() {
        Ok(integer) => Number::Integer(integer),
        Err(_) => Number::Beyond(text.parse().unwrap_or(f64::NAN)),
    }
}

fn float(text: &str) -> Option<Number> {
    let float: f64 = text.parse().ok()?;
    if float.is_infinite() && text.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if float.is_finite()
        && float.abs() >= FLOAT_EXACT_MAX
        && let Some(integer) = json::exact_integer(text)
    {
        return Some(Number::Integer(integer.into()));
    }
    Some(Number::Float(float))
}

impl Number {
    /// Appends its JSON text, gives its kind. What is neither finite nor JSON is written as Python and Go do.
    pub(crate) fn write(self, text: &mut String) -> Kind {
        match self {
            Number::Integer(integer) => {
                write!(text, "{integer}").expect("a string takes every text");
                Kind::Integer
            }
            Number::Float(float) | Number::Beyond(float) => {
                if float.is_infinite() {
                    text.push_str(if float > 0.0 { "Infinity" } else { "-Infinity" });
                } else {
                    // Either has a fraction or an exponent. The shortest text of an integer beyond 2^53 is that of another
                    // integer: it is written in full where it would be read as one.
                    let written = if (FLOAT_EXACT_MAX..INTEGERS_END).contains(&float.abs()) {
                        write!(text, "{float:.1}")
                    } else {
                        write!(text, "{float:?}")
                    };
                    written.expect("a string takes every text");
                }
                Kind::Float
            }
        }
    }

    pub(crate) fn to_f64(self) -> f64 {
        match self {
            Number::Integer(integer) => integer as f64,
            Number::Float(float) | Number::Beyond(float) => float,
        }
    }

    /// The 64-bit integer that it is exactly.
    pub(crate) fn to_i64(self) -> Option<i64> {
        self.to_integer()?.try_into().ok()
    }

    /// The unsigned 64-bit integer that it is exactly.
    pub(crate) fn to_u64(self) -> Option<u64> {
        self.to_integer()?.try_into().ok()
    }

    fn to_integer(self) -> Option<i128> {
        match self {
            Number::Integer(integer) => Some(integer),
            Number::Float(float) => {
                let is_exact = float.fract() == 0.0 && float.abs() < FLOAT_EXACT_MAX;
                is_exact.then_some(float as i128)
            }
            Number::Beyond(_) => None,
        }
    }

    /// The order of two numbers as they are written, never of their roundings. NaN is equal to itself and above all
    /// others, as it is to Arrow.
    pub(crate) fn compare(self, other: Number) -> Ordering {
        match (self, other) {
            (Number::Integer(a), Number::Integer(b)) => a.cmp(&b),
            (Number::Integer(a), b) => integer_and_float(a, b.to_f64()),
            (a, Number::Integer(b)) => integer_and_float(b, a.to_f64()).reverse(),
            (a, b) => {
                let (a, b) = (a.to_f64(), b.to_f64());
                a.partial_cmp(&b)
                    .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
            }
        }
    }

    /// `None` where the operation on two integers has no 64-bit result, and for a division by zero.
    pub(crate) fn compute(self, op: Operation, other: Number) -> Option<Number> {
        let divides = matches!(op, Operation::Remainder | Operation::Quotient);
        if divides && other.compare(Number::Integer(0)).is_eq() {
            return None;
        }
        let (a, b) = match (self, other) {
            (Number::Integer(a), Number::Integer(b)) => (a, b),
            (Number::Beyond(_), Number::Integer(_) | Number::Beyond(_))
            | (Number::Integer(_), Number::Beyond(_))
                if op != Operation::Quotient =>
            {
                return None;
            }
            (a, b) => {
                let (a, b) = (a.to_f64(), b.to_f64());
                return Some(Number::Float(match op {
                    Operation::Add => a + b,
                    Operation::Subtract => a - b,
                    Operation::Multiply => a * b,
                    Operation::Remainder => a % b,
                    Operation::Quotient => a / b,
                }));
            }
        };
        let result = match op {
            Operation::Add => a.checked_add(b),
            Operation::Subtract => a.checked_sub(b),
            Operation::Multiply => a.checked_mul(b),
            Operation::Remainder => a.checked_rem(b),
            Operation::Quotient => a.checked_div(b),
        };
        let fits = |result: &i128| i64::try_from(*result).is_ok();
        result.filter(fits).map(Number::Integer)
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        self.compare(*other).is_eq()
    }
}

/// What two numbers are combined by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operation {
    Add,
    Subtract,
    Multiply,
    Remainder,
    /// Of integers the whole part. Where an operand is a key's, the caller divides floats.
    Quotient,
}

fn integer_and_float(integer: i128, float: f64) -> Ordering {
    const I128_END: f64 = (1_u128 << 127) as f64;
    if float.is_nan() || float >= I128_END {
        return Ordering::Less;
    }
    if float < -I128_END {
        return Ordering::Greater;
    }
    let whole = float.trunc();
    let fraction = 0.0_f64.partial_cmp(&(float - whole));
    integer
        .cmp(&(whole as i128))
        .then(fraction.unwrap_or(Ordering::Equal))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        parse(Kind::String, text)
            .or_else(|| parse(Kind::Float, text))
            .unwrap()
    }

    #[test]
    fn numbers_compare_as_they_are_written() {
        let ascending = [
            "-Infinity",
            "-1e400000",
            "-1e39",
            "-9223372036854775809",
            "-9223372036854775808",
            "-9007199254740993",
            "-9007199254740992.0",
            "-1.5",
            "-1",
            "0",
            "5e-324",
            "0.1",
            "1",
            "1.0000000000000002",
            "500",
            "500.7",
            "9007199254740991",
            "9007199254740992",
            "9007199254740993",
            "9007199254740994.0",
            "9223372036854775807",
            "9223372036854775808",
            "18446744073709551615",
            "1.8446744073709552e19",
            "1e39",
            "1e308",
            "Infinity",
            "NaN",
        ];
        let ascending: Vec<_> = ascending
            .iter()
            .filter(|text| !text.contains("400000"))
            .collect();
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(number(a).compare(number(b)), i.cmp(&j), "{a} {b}");
            }
        }
        for (a, b) in [
            ("0", "-0.0"),
            ("2", "2.0"),
            ("2e2", "200"),
            ("9007199254740993.0", "9007199254740993"),
        ] {
            assert!(number(a).compare(number(b)).is_eq(), "{a} {b}");
        }
        assert!(parse(Kind::Float, "1e400").is_none());
        for text in [
            "",
            "NaN",
            "-Infinity",
            " 1",
            "1 ",
            "+1",
            "01",
            "0x1",
            "true",
            "\"1\"",
            "[1]",
        ] {
            assert!(parse(Kind::String, text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn integers_stay_integers_or_fail() {
        use Operation::{Add, Multiply, Quotient, Remainder, Subtract};
        let check = |a: &str, op, b: &str| {
            let mut text = String::new();
            match number(a).compute(op, number(b)) {
                Some(number) => _ = number.write(&mut text),
                None => text.push_str("none"),
            }
            text
        };
        assert_eq!(check("9007199254740992", Add, "1"), "9007199254740993");
        assert_eq!(check("9223372036854775807", Add, "1"), "none");
        assert_eq!(check("-9223372036854775808", Subtract, "1"), "none");
        assert_eq!(
            check("18446744073709551615", Subtract, "18446744073709551615"),
            "0"
        );
        assert_eq!(check("4294967296", Multiply, "4294967296"), "none");
        assert_eq!(check("1.5", Add, "1"), "2.5");
        assert_eq!(check("2.0", Add, "1"), "3.0");
        assert_eq!(check("-7", Remainder, "3"), "-1");
        assert_eq!(check("-9223372036854775808", Remainder, "-1"), "0");
        assert_eq!(check("5.5", Remainder, "2"), "1.5");
        assert_eq!(check("5", Remainder, "0"), "none");
        assert_eq!(check("5", Remainder, "0.0"), "none");
        assert_eq!(check("1e308", Multiply, "10.0"), "Infinity");
        assert_eq!(
            check("4611686018427387904", Subtract, "0.5"),
            "4611686018427387904.0"
        );
        assert_eq!(check("-7", Quotient, "2"), "-3");
        assert_eq!(check("-7.0", Quotient, "2"), "-3.5");
        assert_eq!(check("7", Quotient, "0"), "none");
        assert_eq!(check("-9223372036854775808", Quotient, "-1"), "none");
    }

    #[test]
    fn integers_of_more_than_38_digits_are_compared_and_not_computed_with() {
        let of = |digits: String| parse(Kind::Integer, &digits).unwrap();
        let one = Number::Integer(1);
        for huge in [of("9".repeat(40)), of("9".repeat(400))] {
            for op in [
                Operation::Add,
                Operation::Subtract,
                Operation::Multiply,
                Operation::Remainder,
            ] {
                assert!(huge.compute(op, one).is_none(), "{op:?}");
                assert!(one.compute(op, huge).is_none(), "{op:?}");
                assert!(huge.compute(op, huge).is_none(), "{op:?}");
            }
            assert!(huge.compare(one).is_gt() && one.compare(huge).is_lt());
            assert!(huge.compute(Operation::Add, Number::Float(0.5)).is_some());
            assert!(huge.to_i64().is_none());
        }
    }
}
