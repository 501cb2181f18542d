//! `lead(x, n) IGNORE NULLS`. DataFusion 55 gives NULL for some rows that have a value where n is 2 or more. `lag` over the rows in the opposite
//! order is the same, and right.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, Expr, Function, FunctionArguments, Ident, NullTreatment, ObjectName, OrderByExpr,
    WindowType,
};
use tailrace_sql::walk::expressions_mut;

use crate::error::{Error, place_of};

/// Writes such calls as `lag`.
///
/// # Errors
///
/// The order of one is that of a named window, or there is none.
pub(crate) fn as_lags(query: &mut ast::Query) -> Result<(), Error> {
    let mut error = None;
    let _ = expressions_mut(query, &mut |expr| {
        let Expr::Function(called) = expr else {
            return ControlFlow::Continue(());
        };
        if !is_lead(called) {
            return ControlFlow::Continue(());
        }
        let order = match &mut called.over {
            Some(WindowType::WindowSpec(window)) if window.window_name.is_none() => {
                window.order_by.as_mut_slice()
            }
            _ => &mut [],
        };
        if order.is_empty() {
            error = Some(refused(called));
            return ControlFlow::Break(());
        }
        order.iter_mut().for_each(turned);
        called.name = ObjectName::from(vec![Ident::new("lag")]);
        ControlFlow::Continue(())
    });
    error.map_or(Ok(()), Err)
}

/// Whether it leaves out NULLs and says how far to look: one row further DataFusion is right.
fn is_lead(called: &Function) -> bool {
    let FunctionArguments::List(list) = &called.args else {
        return false;
    };
    called.null_treatment == Some(NullTreatment::IgnoreNulls)
        && list.args.len() > 1
        && called.name.to_string().eq_ignore_ascii_case("lead")
}

/// The opposite order.
fn turned(key: &mut OrderByExpr) {
    key.options.asc = Some(key.options.asc == Some(false));
    // By default NULL is the largest value, whatever the direction.
    key.options.nulls_first = key.options.nulls_first.map(|is_first| !is_first);
}

fn refused(called: &Function) -> Error {
    Error {
        place: place_of(called),
        hint: Some("write OVER (... ORDER BY ...) behind it".to_owned()),
        ..Error::usage("lead with IGNORE NULLS needs an order of its own")
    }
}
