//! Whole numbers of 19 to 38 digits, beyond 64 bits, in the query itself. DataFusion 55 makes floats of them, which round them; decimals have
//! all digits.
//!
//! Not everywhere: with a column of floats, a decimal turns CASE, `coalesce` and UNION into decimals of 15 places, which floats do not fit
//! into, and a quotient has four places. BETWEEN is written as comparisons, and in a list of IN numbers of fewer digits are decimals too.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, CastKind, DataType, ExactNumberInfo, Expr, SelectItem, SetExpr,
    UnaryOperator, Value,
};
use tailrace_sql::walk::expressions_mut;

/// The most digits that a decimal has.
const DIGITS_MAX: usize = 38;

/// Writes such numbers as casts of texts: in comparisons, sums, differences and casts, and where one is a column of the result by itself.
pub(crate) fn as_decimals(query: &mut ast::Query) {
    as_columns(query);
    let _ = expressions_mut(query, &mut |expr| {
        as_comparisons(expr);
        match expr {
            Expr::BinaryOp { left, op, right } if keeps_floats(op) => {
                as_decimal(left);
                as_decimal(right);
            }
            Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
                as_decimal(left);
                as_decimal(right);
            }
            Expr::Cast {
                expr,
                data_type: DataType::Decimal(_) | DataType::Numeric(_),
                ..
            } => {
                as_decimal(expr);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    });
}

/// Those that are columns of the result. One of a subquery may meet floats further out.
fn as_columns(query: &mut ast::Query) {
    match &mut *query.body {
        SetExpr::Query(query) => as_columns(query),
        SetExpr::Select(select) => {
            for item in &mut select.projection {
                if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item
                {
                    as_decimal(expr);
                }
            }
        }
        _ => {}
    }
}

/// IN and BETWEEN with such a number.
fn as_comparisons(expr: &mut Expr) {
    let (negated, made) = match expr {
        Expr::Between {
            expr: value,
            negated,
            low,
            high,
        } if [&*value, &*low, &*high]
            .iter()
            .any(|it| is_wide_literal(it)) =>
        {
            let from = compared(value, BinaryOperator::GtEq, low);
            let to = compared(value, BinaryOperator::LtEq, high);
            (*negated, joined(from, BinaryOperator::And, to))
        }
        Expr::InList {
            expr: value,
            list,
            negated,
        } if is_wide_literal(value) => {
            let each = list.iter();
            let each = each.map(|it| compared(value, BinaryOperator::Eq, it));
            let any = each.reduce(|any, it| joined(any, BinaryOperator::Or, it));
            let Some(any) = any else { return };
            (*negated, any)
        }
        Expr::InList {
            expr: value,
            list,
            negated,
        } if list.iter().any(is_wide_literal) => {
            let others = list.extract_if(.., |it| !written(it, false, &|it, _| is_whole(it)));
            let others: Vec<_> = others.collect();
            if others.is_empty() {
                return;
            }
            let among = |list: Vec<Expr>| Expr::InList {
                expr: value.clone(),
                list,
                negated: false,
            };
            let of_numbers = among(std::mem::take(list));
            let any = joined(among(others), BinaryOperator::Or, of_numbers);
            (*negated, any)
        }
        _ => return,
    };
    let made = Expr::Nested(Box::new(made));
    *expr = match negated {
        true => Expr::Nested(Box::new(Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr: Box::new(made),
        })),
        false => made,
    };
}

/// A comparison whose whole numbers are decimals, of whatever size: a text that is compared with one of them may be longer.
fn compared(left: &Expr, op: BinaryOperator, right: &Expr) -> Expr {
    let (mut left, mut right) = (left.clone(), right.clone());
    written(&mut left, false, &|it, _| is_whole(it));
    written(&mut right, false, &|it, _| is_whole(it));
    joined(left, op, right)
}

fn joined(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp {
        left: Box::new(left),
        op,
        right: Box::new(right),
    }
}

fn is_wide_literal(expr: &Expr) -> bool {
    as_decimal(&mut expr.clone())
}

/// Whether a float on the other side makes the decimal a float.
fn keeps_floats(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, Minus, NotEq, Plus};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | Plus | Minus)
}

/// Writes it as a decimal if it is a number beyond 64 bits, with or without a sign; whether it is.
fn as_decimal(expr: &mut Expr) -> bool {
    written(expr, false, &is_wide)
}

/// Writes a number, which has a minus before it or not, as a cast of a text if `is_meant`; whether it is.
fn written(expr: &mut Expr, negated: bool, is_meant: &dyn Fn(&str, bool) -> bool) -> bool {
    match expr {
        Expr::Nested(inner) => written(inner, negated, is_meant),
        Expr::UnaryOp { op, expr } => match op {
            UnaryOperator::Minus => written(expr, true, is_meant),
            UnaryOperator::Plus => written(expr, negated, is_meant),
            _ => false,
        },
        Expr::Value(value) => {
            let Value::Number(number, false) = &value.value else {
                return false;
            };
            if !is_meant(number, negated) {
                return false;
            }
            let text = Value::SingleQuotedString(number.clone());
            *expr = Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(Expr::Value(text.with_span(value.span))),
                data_type: DataType::Decimal(ExactNumberInfo::PrecisionAndScale(
                    DIGITS_MAX as u64,
                    0,
                )),
                array: false,
                format: None,
            };
            true
        }
        _ => false,
    }
}

/// Whether a decimal has all of its digits.
fn is_whole(number: &str) -> bool {
    number.bytes().all(|byte| byte.is_ascii_digit())
        && number.trim_start_matches('0').len() <= DIGITS_MAX
}

/// Whether it is such a number, and no integer has it: with a minus before it, one of 63 bits.
fn is_wide(number: &str, negated: bool) -> bool {
    let is_integer = |it: u64| !negated || it <= i64::MIN.unsigned_abs();
    is_whole(number) && !number.parse().is_ok_and(is_integer)
}
