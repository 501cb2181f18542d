//! Lists that are written out in `unnest`. DataFusion 55 does not look for columns of other tables in them, but does so in calls.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments,
    Ident, ObjectName, TableFactor, TableWithJoins, VisitorMut,
};
use tailrace_sql::walk::{expressions_mut, walk_mut};

use super::column_of;

/// Writes them as calls.
pub(super) fn as_calls(query: &mut ast::Query) {
    let _ = walk_mut(query, &mut Lists);
}

struct Lists;

impl VisitorMut for Lists {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<()> {
        select.from.iter_mut().for_each(of_tables);
        ControlFlow::Continue(())
    }
}

fn of_tables(tables: &mut TableWithJoins) {
    let joined = tables.joins.iter_mut().map(|join| &mut join.relation);
    for table in std::iter::once(&mut tables.relation).chain(joined) {
        match table {
            TableFactor::UNNEST { array_exprs, .. } => {
                let lists = array_exprs.iter_mut();
                lists
                    .filter(|it| column_of(it).is_some())
                    .for_each(with_calls);
            }
            TableFactor::NestedJoin {
                table_with_joins, ..
            } => of_tables(table_with_joins),
            _ => {}
        }
    }
}

/// Writes `[a, b]` as `make_array(a, b)`.
fn with_calls(list: &mut Expr) {
    let _ = expressions_mut(list, &mut |expr| {
        if let Expr::Array(array) = expr {
            let elements = std::mem::take(&mut array.elem).into_iter();
            let elements = elements.map(|it| FunctionArg::Unnamed(FunctionArgExpr::Expr(it)));
            *expr = Expr::Function(Function {
                name: ObjectName::from(vec![Ident::new("make_array")]),
                uses_odbc_syntax: false,
                parameters: FunctionArguments::None,
                args: FunctionArguments::List(FunctionArgumentList {
                    duplicate_treatment: None,
                    args: elements.collect(),
                    clauses: Vec::new(),
                }),
                filter: None,
                null_treatment: None,
                over: None,
                within_group: Vec::new(),
            });
        }
        ControlFlow::Continue(())
    });
}
