//! The texts that a record must hold to meet a condition, for the scanner's search before it reads anything.
//!
//! Only comparisons of a column of a key with texts are looked at: the record must hold the text, as it is or with
//! escapes. The condition itself is evaluated all the same.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use tailrace_scan::{ColumnSource, Needle, Needles, Type};

use crate::sample::Column;

/// What a record must hold for `expr` to be true, if that is known.
pub(crate) fn needles(expr: &Expr, columns: &[Column]) -> Option<Needles> {
    let texts = match expr {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Eq,
            right,
        }) => match (&**left, &**right) {
            (column, literal) if is_text(column, columns) => vec![text(literal)?],
            (literal, column) if is_text(column, columns) => vec![text(literal)?],
            _ => return None,
        },
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Or,
            right,
        }) => {
            let mut both = needles(left, columns)?;
            both.any.extend(needles(right, columns)?.any);
            return Some(both);
        }
        Expr::InList(InList {
            expr,
            list,
            negated: false,
        }) if is_text(expr, columns) => list.iter().map(text).collect::<Option<Vec<_>>>()?,
        _ => return None,
    };
    let needle = |text: String| Needle {
        text,
        quoted: false,
    };
    (!texts.is_empty() && texts.iter().all(|text| !text.is_empty())).then(|| Needles {
        any: texts.into_iter().map(needle).collect(),
    })
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

fn text(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Literal(
            ScalarValue::Utf8(Some(text))
            | ScalarValue::Utf8View(Some(text))
            | ScalarValue::LargeUtf8(Some(text)),
            _,
        ) => Some(text.clone()),
        _ => None,
    }
}
