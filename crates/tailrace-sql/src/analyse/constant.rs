//! Constants in expressions: what they say about the type of a key beside them.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType as SqlType, Expr, UnaryOperator, Value,
};
use tailrace_model::json::{self, Step};

use super::build::{is_sign, of_values};
use crate::value::Function;

/// Integers below this magnitude are exact as 64-bit floats, and no other number rounds to them.
const FLOAT_EXACT_END: f64 = (1_u64 << 53) as f64;

/// What a constant is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Constant {
    /// A whole number, or arithmetic on such; `big` if a 64-bit float may not hold it.
    Integer {
        big: bool,
    },
    /// `big` if its magnitude is at least 2^53.
    Float {
        big: bool,
    },
    Text,
    Boolean,
    Null,
    Time,
    Interval,
}

impl Constant {
    fn is_number(self) -> bool {
        matches!(self, Constant::Integer { .. } | Constant::Float { .. })
    }
}

/// What `expr` is, if it is a constant. Never looks through functions.
pub(super) fn constant(expr: &Expr) -> Option<Constant> {
    match expr {
        Expr::Nested(inner) => constant(inner),
        Expr::Value(value) => match &value.value {
            Value::Number(text, _) => Some(number(text)),
            Value::Boolean(_) => Some(Constant::Boolean),
            Value::Null => Some(Constant::Null),
            _ => text(&value.value).map(|_| Constant::Text),
        },
        Expr::UnaryOp { op, expr } if is_sign(*op) => {
            constant(expr).filter(|inner| inner.is_number())
        }
        Expr::BinaryOp { left, op, right } => {
            use BinaryOperator::{Divide, Minus, Modulo, Multiply, Plus};
            if !matches!(op, Plus | Minus | Multiply | Divide | Modulo) {
                return None;
            }
            let (left, right) = (constant(left)?, constant(right)?);
            // What may overflow is computed by functions that find out.
            if !left.is_number() || !right.is_number() || magnitude(expr) >= FLOAT_EXACT_END {
                return None;
            }
            match (left, right) {
                (Constant::Integer { .. }, Constant::Integer { .. }) => {
                    Some(Constant::Integer { big: false })
                }
                _ => Some(Constant::Float { big: false }),
            }
        }
        Expr::TypedString(typed) => match typed.data_type {
            SqlType::Timestamp(..) | SqlType::Date | SqlType::Date32 | SqlType::Datetime(_) => {
                Some(Constant::Time)
            }
            _ => None,
        },
        Expr::Interval(_) => Some(Constant::Interval),
        _ => None,
    }
}

fn number(text: &str) -> Constant {
    let big = text
        .parse()
        .map_or(true, |number: f64| number >= FLOAT_EXACT_END);
    if text.contains(['.', 'e', 'E']) {
        Constant::Float { big }
    } else {
        Constant::Integer { big }
    }
}

/// A bound for the magnitude of arithmetic on constants.
fn magnitude(expr: &Expr) -> f64 {
    match expr {
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => magnitude(inner),
        Expr::Value(value) => match &value.value {
            Value::Number(text, _) => text.parse().unwrap_or(f64::INFINITY),
            _ => f64::INFINITY,
        },
        Expr::BinaryOp { left, op, right } => {
            let (left, right) = (magnitude(left), magnitude(right));
            match op {
                BinaryOperator::Multiply => left * right,
                BinaryOperator::Plus | BinaryOperator::Minus => left + right,
                _ => left.max(right),
            }
        }
        _ => f64::INFINITY,
    }
}

/// A constant as an operand of functions over values of any kind. DataFusion's planner makes floats of integers beyond
/// 64 bits: such a one becomes a value that keeps its digits. With `is_compared`, a float literal that is an integer
/// becomes that integer, since numbers are compared as they are written.
pub(super) fn exact(expr: Expr, is_compared: bool) -> Expr {
    let Some(text) = written(&expr) else {
        return expr;
    };
    if text.contains(['.', 'e', 'E']) {
        return match json::exact_integer(&text).filter(|_| is_compared) {
            Some(integer) if integer.unsigned_abs() as f64 >= FLOAT_EXACT_END => {
                digits(&integer.to_string())
            }
            _ => expr,
        };
    }
    let (is_negative, magnitude) = match text.strip_prefix('-') {
        Some(magnitude) => (true, magnitude),
        None => (false, text.as_str()),
    };
    let is_kept =
        magnitude.parse::<i64>().is_ok() || !is_negative && magnitude.parse::<u64>().is_ok();
    if is_kept { expr } else { digits(&text) }
}

/// A value of any kind that is this integer.
fn digits(text: &str) -> Expr {
    let text = Expr::value(Value::SingleQuotedString(text.to_owned()));
    of_values(Function::Digits, vec![text])
}

/// Whether a constant is an integer that is compared as a float, because it has too many digits.
pub(super) fn is_rounded(expr: &Expr) -> bool {
    let is_integer = |text: &String| !text.contains(['.', 'e', 'E']);
    written(expr)
        .filter(is_integer)
        .is_some_and(|text| text.parse::<i128>().is_err())
}

/// The integer that a constant of more than 64 bits is, if it has at most 38 digits.
pub(super) fn wide_integer(expr: &Expr) -> Option<String> {
    const DECIMAL_END: u128 = 10_u128.pow(38);
    let text = written(expr)?;
    let is_wide = text.parse::<i64>().is_err();
    let integer = text.parse::<i128>().ok()?;
    (is_wide && integer.unsigned_abs() < DECIMAL_END).then_some(text)
}

/// A number as it is written, with its sign.
fn written(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Nested(inner) => written(inner),
        Expr::Value(value) => match &value.value {
            Value::Number(text, _) => Some(text.replace('_', "")),
            _ => None,
        },
        Expr::UnaryOp {
            op: UnaryOperator::Plus,
            expr,
        } => written(expr),
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => {
            let text = written(expr)?;
            Some(match text.strip_prefix('-') {
                Some(magnitude) => magnitude.to_owned(),
                None => format!("-{text}"),
            })
        }
        _ => None,
    }
}

/// The text of a string literal.
pub(super) fn text(value: &Value) -> Option<&str> {
    match value {
        Value::SingleQuotedString(text)
        | Value::EscapedStringLiteral(text)
        | Value::UnicodeStringLiteral(text)
        | Value::NationalStringLiteral(text) => Some(text),
        Value::DollarQuotedString(quoted) => Some(&quoted.value),
        _ => None,
    }
}

/// A step of a JSON path, if `expr` is a literal one.
pub(super) fn step(expr: &Expr) -> Option<Step> {
    match expr {
        Expr::Nested(inner) => step(inner),
        Expr::Value(value) => match &value.value {
            Value::Number(text, _) => text.parse().ok().map(Step::Index),
            value => text(value).map(|key| Step::Key(key.to_owned())),
        },
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => match step(expr)? {
            Step::Index(index) => index.checked_neg().map(Step::Index),
            Step::Key(_) => None,
        },
        _ => None,
    }
}

/// Whole numbers as string literals, for keys that are text.
pub(super) fn quoted(expr: Expr) -> Expr {
    match constant(&expr) {
        Some(Constant::Integer { .. } | Constant::Float { .. }) => {
            let text = expr.to_string();
            match expr {
                Expr::Value(mut value) => {
                    value.value = Value::SingleQuotedString(text);
                    Expr::Value(value)
                }
                Expr::UnaryOp { .. } => Expr::value(Value::SingleQuotedString(text)),
                Expr::Nested(inner) => Expr::Nested(Box::new(quoted(*inner))),
                other => other,
            }
        }
        _ => expr,
    }
}
