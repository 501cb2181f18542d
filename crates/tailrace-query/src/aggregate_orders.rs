//! Numbers in the ORDER BY of an aggregate: `array_agg(a ORDER BY 2)`. They are constants, which put nothing in order; DataFusion 55 takes them
//! for the columns of the table with these numbers.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, Expr, FunctionArgumentClause, FunctionArguments, OrderByExpr, Value, VisitorMut,
};
use tailrace_sql::walk::walk_mut;

/// Makes constants of them.
pub(crate) fn without_numbers(query: &mut ast::Query) {
    let _ = walk_mut(query, &mut Aggregates);
}

struct Aggregates;

impl VisitorMut for Aggregates {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Expr::Function(called) = expr else {
            return ControlFlow::Continue(());
        };
        // This one takes the values that it puts in order, so that it has to have one. In brackets it is no column.
        for key in &mut called.within_group {
            if is_number(key) {
                let number = std::mem::replace(&mut key.expr, Expr::value(Value::Null));
                key.expr = Expr::Nested(Box::new(number));
            }
        }
        if let FunctionArguments::List(list) = &mut called.args {
            list.clauses.retain_mut(|clause| match clause {
                FunctionArgumentClause::OrderBy(keys) => {
                    keys.retain(|key| !is_number(key));
                    !keys.is_empty()
                }
                _ => true,
            });
        }
        ControlFlow::Continue(())
    }
}

fn is_number(key: &OrderByExpr) -> bool {
    let Expr::Value(value) = &key.expr else {
        return false;
    };
    matches!(value.value, Value::Number(..))
}
