//! What columns are called that a query gives no name: the expression as SQL writes it, not as DataFusion does, which names tables
//! and types in it.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, Distinct, Expr, Ident, OrderByKind, SelectItem, SetExpr, VisitorMut,
};
use tailrace_sql::walk::walk_mut;

/// Gives every computed column of a query a name.
pub(crate) fn named(query: &mut ast::Query) {
    let _ = walk_mut(query, &mut Names);
}

struct Names;

impl VisitorMut for Names {
    type Break = ();

    /// DataFusion 55 looks for what a DISTINCT is ordered by among the columns, and not among the expressions that they are.
    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<()> {
        let (SetExpr::Select(select), Some(order)) = (&*query.body, &mut query.order_by) else {
            return ControlFlow::Continue(());
        };
        if let (Some(Distinct::Distinct), OrderByKind::Expressions(keys)) =
            (&select.distinct, &mut order.kind)
        {
            for key in keys {
                let is_it = |item: &SelectItem| match item {
                    SelectItem::UnnamedExpr(expr) => *expr == key.expr && !is_column(expr),
                    _ => false,
                };
                if select.projection.iter().any(is_it) {
                    key.expr = Expr::Identifier(Ident::with_quote('"', name_of(&key.expr)));
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<()> {
        for item in &mut select.projection {
            let SelectItem::UnnamedExpr(expr) = item else {
                continue;
            };
            // A column keeps its own name, and its table.
            if is_column(expr) {
                continue;
            }
            let alias = Ident::with_quote('"', name_of(expr));
            *item = SelectItem::ExprWithAlias {
                expr: expr.clone(),
                alias,
            };
        }
        ControlFlow::Continue(())
    }
}

fn is_column(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
}

/// What a column that is this expression is called, if it has no name.
pub(crate) fn name_of(expr: &Expr) -> String {
    match expr {
        Expr::Nested(inner) => name_of(inner),
        Expr::Identifier(name) => name.value.clone(),
        Expr::CompoundIdentifier(names) => names
            .last()
            .map_or_else(String::new, |name| name.value.clone()),
        other => other.to_string(),
    }
}
