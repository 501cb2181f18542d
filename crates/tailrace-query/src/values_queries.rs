//! VALUES where a query is one value, or one that others are compared with: `(VALUES (1))` and `k IN (VALUES (1), (2))`. The parser takes the first for
//! a function, and DataFusion 55 compares with queries that have a SELECT.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Query, SelectItem, SetExpr,
    TableFactor,
};
use tailrace_sql::walk::expressions_mut;

/// Writes them as SELECTs.
pub(crate) fn as_selects(query: &mut ast::Query) {
    let _ = expressions_mut(query, &mut |expr| {
        match expr {
            Expr::Nested(inner) => {
                if let Some(found) = of_call(inner) {
                    **inner = found;
                }
            }
            Expr::Subquery(query)
            | Expr::InSubquery {
                subquery: query, ..
            }
            | Expr::Exists {
                subquery: query, ..
            } => of_query(query),
            _ => {}
        }
        ControlFlow::Continue(())
    });
}

/// `VALUES (1)` as 1, and with several values as a SELECT of them.
fn of_call(expr: &Expr) -> Option<Expr> {
    let Expr::Function(called) = expr else {
        return None;
    };
    let FunctionArguments::List(list) = &called.args else {
        return None;
    };
    let is_values = called.name.to_string().eq_ignore_ascii_case("values");
    let columns = list.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => {
            Some(SelectItem::UnnamedExpr(expr.clone()))
        }
        _ => None,
    });
    let columns = columns.collect::<Option<Vec<_>>>().filter(|_| is_values)?;
    if let [SelectItem::UnnamedExpr(value)] = &columns[..] {
        return Some(value.clone());
    }
    let mut query = tailrace_sql::parse_query("SELECT 1").ok()?;
    if let SetExpr::Select(select) = &mut *query.body {
        select.projection = columns;
    }
    Some(Expr::Subquery(Box::new(query)))
}

/// `VALUES (1), (2)` as `SELECT * FROM (VALUES (1), (2)) v`.
fn of_query(query: &mut Query) {
    if !matches!(*query.body, SetExpr::Values(_)) {
        return;
    }
    let Ok(mut outer) = tailrace_sql::parse_query("SELECT * FROM (SELECT 1) v") else {
        return;
    };
    if let SetExpr::Select(select) = &mut *outer.body
        && let Some(tables) = select.from.first_mut()
        && let TableFactor::Derived { subquery, .. } = &mut tables.relation
    {
        std::mem::swap(&mut **subquery, query);
        *query = outer;
    }
}
