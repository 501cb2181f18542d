//! Whole numbers of 20 to 38 digits in the query itself. DataFusion 55 makes floats of them, which round them; decimals have all digits.
//!
//! Not everywhere: with a column of floats, a decimal turns CASE, `coalesce` and UNION into decimals of 15 places, which floats do not fit
//! into, and a quotient has four places. IN and BETWEEN are written as comparisons.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, CastKind, DataType, ExactNumberInfo, Expr, SelectItem, SetExpr,
    UnaryOperator, Value, VisitorMut,
};
use tailrace_sql::walk::{expressions_mut, walk_mut};

/// The most digits that a decimal has.
const DIGITS_MAX: usize = 38;

/// Writes such numbers as casts of texts: in comparisons, sums, differences and casts, and where one is a column of the result by itself.
pub(crate) fn as_decimals(query: &mut ast::Query) {
    let _ = walk_mut(query, &mut Columns);
    let _ = expressions_mut(query, &mut |expr| {
        as_comparisons(expr);
        match expr {
            Expr::BinaryOp { left, op, right } if keeps_floats(op) => {
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

/// IN and BETWEEN with such a number, as comparisons.
fn as_comparisons(expr: &mut Expr) {
    let compared = |left: &Expr, op: BinaryOperator, right: &Expr| {
        let (mut left, mut right) = (left.clone(), right.clone());
        as_decimal(&mut left);
        as_decimal(&mut right);
        joined(left, op, right)
    };
    let (negated, made) = match &*expr {
        Expr::Between {
            expr: value,
            negated,
            low,
            high,
        } if [value, low, high].iter().any(|it| is_wide_literal(it)) => {
            let from = compared(value, BinaryOperator::GtEq, low);
            let to = compared(value, BinaryOperator::LtEq, high);
            (*negated, joined(from, BinaryOperator::And, to))
        }
        Expr::InList {
            expr: value,
            list,
            negated,
        } if list.iter().chain([&**value]).any(is_wide_literal) => {
            let each = list
                .iter()
                .map(|it| compared(value, BinaryOperator::Eq, it));
            let any = each.reduce(|any, it| joined(any, BinaryOperator::Or, it));
            let Some(any) = any else { return };
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

struct Columns;

impl VisitorMut for Columns {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<()> {
        if let SetExpr::Select(select) = &mut *query.body {
            for item in &mut select.projection {
                if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item
                {
                    as_decimal(expr);
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// Whether a float on the other side makes the decimal a float.
fn keeps_floats(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, Minus, NotEq, Plus};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | Plus | Minus)
}

/// Writes it as a cast of a text, if it is such a number, with or without a sign; whether it is.
fn as_decimal(expr: &mut Expr) -> bool {
    match expr {
        Expr::Nested(inner)
        | Expr::UnaryOp {
            op: UnaryOperator::Minus | UnaryOperator::Plus,
            expr: inner,
        } => as_decimal(inner),
        Expr::Value(value) => {
            let Value::Number(number, false) = &value.value else {
                return false;
            };
            if !is_wide(number) {
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

/// Whether it has digits alone, beyond 64 bits.
fn is_wide(number: &str) -> bool {
    number.bytes().all(|byte| byte.is_ascii_digit())
        && number.trim_start_matches('0').len() <= DIGITS_MAX
        && number.parse::<u64>().is_err()
}
