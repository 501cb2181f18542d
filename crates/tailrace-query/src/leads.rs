//! `lead(x, n) IGNORE NULLS`. DataFusion 55 gives NULL for some rows that have a value where n is 2 or more. The n-th value that is not NULL
//! of the rows behind a row is the same, and right.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, NullTreatment,
    ObjectName, UnaryOperator, Value, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowType,
};
use tailrace_sql::walk::expressions_mut;

use crate::error::{Error, place_of};

/// Writes such calls as `nth_value`.
///
/// # Errors
///
/// The window of one has a name, so that it cannot be given a frame.
pub(crate) fn as_nth_values(query: &mut ast::Query) -> Result<(), Error> {
    let mut error = None;
    let _ = expressions_mut(query, &mut |expr| {
        let Expr::Function(called) = expr else {
            return ControlFlow::Continue(());
        };
        let Some(rows) = rows_ahead(called) else {
            return ControlFlow::Continue(());
        };
        match &mut called.over {
            Some(WindowType::WindowSpec(window)) if window.window_name.is_none() => {
                let unbounded = WindowFrameBound::Following(None);
                window.window_frame = Some(WindowFrame {
                    units: WindowFrameUnits::Rows,
                    start_bound: WindowFrameBound::Following(Some(Box::new(number("1")))),
                    end_bound: Some(unbounded),
                });
            }
            Some(_) => {
                error = Some(refused(called));
                return ControlFlow::Break(());
            }
            None => return ControlFlow::Continue(()),
        }
        called.name = ObjectName::from(vec![Ident::new("nth_value")]);
        let FunctionArguments::List(list) = &mut called.args else {
            return ControlFlow::Continue(());
        };
        list.args[1] = unnamed(number(&rows.to_string()));
        let default = (list.args.len() > 2).then(|| list.args.remove(2));
        if let Some(default) = default {
            *expr = or_else(called.clone(), default);
        }
        ControlFlow::Continue(())
    });
    error.map_or(Ok(()), Err)
}

/// How many rows further a call looks that leaves out NULLs: one row further DataFusion is right.
fn rows_ahead(called: &Function) -> Option<u64> {
    let FunctionArguments::List(list) = &called.args else {
        return None;
    };
    let name = called.name.0.last()?.as_ident()?.value.to_ascii_lowercase();
    if called.null_treatment != Some(NullTreatment::IgnoreNulls)
        || !matches!(list.args.len(), 2 | 3)
    {
        return None;
    }
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(offset)) = &list.args[1] else {
        return None;
    };
    let rows = match name.as_str() {
        "lead" => whole(offset)?,
        "lag" => whole(offset)?.checked_neg()?,
        _ => return None,
    };
    u64::try_from(rows).ok().filter(|rows| *rows > 1)
}

/// The value of a whole number that is written out.
fn whole(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Nested(inner) => whole(inner),
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => whole(expr)?.checked_neg(),
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => number.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

/// What a call gives, or something else where that is NULL: there is no such row.
fn or_else(called: Function, default: FunctionArg) -> Expr {
    let mut either = called.clone();
    either.name = ObjectName::from(vec![Ident::new("coalesce")]);
    (either.over, either.null_treatment) = (None, None);
    if let FunctionArguments::List(list) = &mut either.args {
        list.args = vec![unnamed(Expr::Function(called)), default];
    }
    Expr::Function(either)
}

fn unnamed(expr: Expr) -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
}

fn number(text: &str) -> Expr {
    Expr::value(Value::Number(text.to_owned(), false))
}

fn refused(called: &Function) -> Error {
    Error {
        place: place_of(called),
        hint: Some("write the window itself behind OVER".to_owned()),
        ..Error::usage("lead with IGNORE NULLS of more than one row needs a window without a name")
    }
}
