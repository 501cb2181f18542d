//! The texts that a record must hold to meet a condition, for the scanner's search before it reads anything.
//!
//! Only comparisons of a column of a key with texts are looked at: `=`, `IN`, `LIKE`, and `OR` of them. The condition
//! itself is evaluated all the same.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Expr, Like, Operator};
use tailrace_scan::{ColumnSource, Needle, Needles, Type};

use crate::sample::Column;

/// What a record must hold for `expr` to be true, if that is known.
pub(crate) fn needles(expr: &Expr, columns: &[Column]) -> Option<Needles> {
    let any = match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::Eq if is_text(left, columns) => vec![Needle::whole(text(right)?)?],
            Operator::Eq if is_text(right, columns) => vec![Needle::whole(text(left)?)?],
            Operator::Or => {
                let mut any = needles(left, columns)?.any;
                any.extend(needles(right, columns)?.any);
                any
            }
            _ => return None,
        },
        Expr::InList(InList {
            expr,
            list,
            negated: false,
        }) if is_text(expr, columns) => list
            .iter()
            .map(|item| Needle::whole(text(item)?))
            .collect::<Option<Vec<_>>>()?,
        Expr::Like(Like {
            negated: false,
            expr,
            pattern,
            escape_char: None,
            case_insensitive: false,
        }) if is_text(expr, columns) => vec![Needle::like(text(pattern)?)?],
        _ => return None,
    };
    (!any.is_empty()).then_some(Needles { any })
}

/// Whether it is a column whose values are the texts of a key's values.
fn is_text(expr: &Expr, columns: &[Column]) -> bool {
    let Expr::Column(named) = expr else {
        return false;
    };
    columns.iter().any(|column| {
        column.name == named.name
            && column.ty == Type::Text
            && matches!(column.source, ColumnSource::Key(_))
    })
}

fn text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(
            ScalarValue::Utf8(Some(text))
            | ScalarValue::Utf8View(Some(text))
            | ScalarValue::LargeUtf8(Some(text)),
            _,
        ) => Some(text),
        _ => None,
    }
}
