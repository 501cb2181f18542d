//! Numbers that say which row a function takes, and into how many parts one cuts: DataFusion 55 wants literals there, and takes some for
//! others.

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::Expr;
use tailrace_sql::tree::each_part;

use super::defaults::constant;
use crate::error::{Error, place_of_argument};

/// A number of a window function or of an aggregate that is none, or that is not the same for all rows.
pub(super) fn wrong_place(call: &Expr, sql: &str) -> Option<Error> {
    let mut error = None;
    // The closure gives no error.
    let _ = each_part(call, &mut |expr| {
        let (name, args, is_window) = match expr {
            Expr::WindowFunction(called) => (called.fun.name(), &called.params.args, true),
            Expr::AggregateFunction(called) => (called.func.name(), &called.params.args, false),
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        let found = || of_call(name, args, is_window, sql);
        error = error.take().or_else(found);
        Ok(TreeNodeRecursion::Continue)
    });
    error
}

fn of_call(name: &str, args: &[Expr], is_window: bool, sql: &str) -> Option<Error> {
    let rows = |number: i64| number.checked_neg().is_some();
    let row = |number: i64| number != 0 && rows(number);
    let parts = |number: i64| number > 0;
    let (at, takes, is_taken): (_, _, &dyn Fn(i64) -> bool) = match name {
        "lag" | "lead" => (1, "a whole number of rows", &rows),
        "nth_value" => (1, "the number of a row, from 1 on", &row),
        "ntile" => (0, "a number of parts, which is at least 1", &parts),
        _ => return None,
    };
    let example = match at {
        0 => format!("{name}(4)"),
        _ => format!("{name}(x, 2)"),
    };
    let refused = |at: usize, message: String, hint: String| {
        Some(Error {
            place: place_of_argument(sql, name, at),
            hint: Some(hint),
            ..Error::usage(message)
        })
    };
    let number = args.get(at)?;
    match constant(number) {
        None if differs(number) => {
            let message = format!("`{name}` takes {takes}, the same for all rows");
            let hint = format!("write the number itself, as in {example}");
            return refused(at, message, hint);
        }
        // No row has the number NULL.
        Some(value) if value.is_null() && is_window && name == "nth_value" => {}
        Some(value) if !whole(&value).is_some_and(is_taken) => {
            let message = format!("`{name}` takes {takes}");
            return refused(at, message, format!("write {example}"));
        }
        _ => {}
    }
    let default = args.get(2).filter(|it| differs(it));
    default.and_then(|_| {
        refused(
            2,
            format!("the default of `{name}` is one value, the same for all rows"),
            format!("coalesce({name}(x) OVER (...), y) takes y where there is no such row, and where x is NULL"),
        )
    })
}

/// Whether an expression may have other values in other rows, or is a subquery, which DataFusion takes for one of them.
fn differs(expr: &Expr) -> bool {
    let is_unknown = |part: &Expr| {
        Ok(matches!(
            part,
            Expr::Column(_) | Expr::OuterReferenceColumn(..) | Expr::ScalarSubquery(_)
        ))
    };
    expr.is_volatile() || expr.exists(is_unknown).unwrap_or(true)
}

/// The whole number that a value is.
fn whole(value: &ScalarValue) -> Option<i64> {
    let is_whole = value.data_type().is_integer();
    let number = value.cast_to(&DataType::Int64).ok()?;
    match number {
        ScalarValue::Int64(number) => number.filter(|_| is_whole),
        _ => None,
    }
}
