//! Names in expressions of ORDER BY. By SQL they are columns of the tables, and a name by itself may be one of the result. DataFusion 55 takes
//! all of them for columns of the result first, which gives another order, and with LIMIT other rows.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{self, Expr, OrderByKind, SelectItem, SetExpr, Visitor};
use tailrace_sql::walk::{first, walk};

use crate::error::{Error, place_of};

/// Refuses expressions of ORDER BY with a name that is both a column of a table and something else in the result.
///
/// # Errors
///
/// There is one.
pub(crate) fn check(
    query: &ast::Query,
    tables: &HashMap<String, Vec<String>>,
) -> Result<(), Error> {
    let mut orders = Orders {
        tables,
        error: None,
    };
    let _ = walk(query, &mut orders);
    orders.error.map_or(Ok(()), Err)
}

struct Orders<'t> {
    /// The columns of each table.
    tables: &'t HashMap<String, Vec<String>>,
    error: Option<Error>,
}

impl Visitor for Orders<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<()> {
        let (SetExpr::Select(select), Some(order)) = (&*query.body, &query.order_by) else {
            return ControlFlow::Continue(());
        };
        let OrderByKind::Expressions(keys) = &order.kind else {
            return ControlFlow::Continue(());
        };
        if let Some(all) = keys
            .iter()
            .map(|key| &key.expr)
            .find(|key| self.is_all(key))
        {
            self.error = Some(Error {
                place: place_of(all),
                hint: Some("name the columns, or their places: ORDER BY 1, 2".to_owned()),
                ..Error::usage("ORDER BY ALL is not supported")
            });
            return ControlFlow::Break(());
        }
        let computed: Vec<&str> = select.projection.iter().filter_map(computed).collect();
        let is_doubtful = |expr: &Expr| match expr {
            Expr::Identifier(name) => {
                let is_it = |expr: &Expr| *expr == Expr::Identifier(name.clone());
                computed.contains(&name.value.as_str())
                    && (self.has(&name.value) || first(&**select, &is_it).is_some())
            }
            _ => false,
        };
        let within = keys.iter().filter(|key| !is_name(&key.expr));
        let found = within
            .filter_map(|key| first(&key.expr, &is_doubtful))
            .next();
        match found {
            None => ControlFlow::Continue(()),
            Some(name) => {
                self.error = Some(Error {
                    place: place_of(&name),
                    hint: Some("give the computed column another name".to_owned()),
                    ..Error::usage(format!(
                        "`{name}` in an expression of ORDER BY is a column, and a computed one of the result"
                    ))
                });
                ControlFlow::Break(())
            }
        }
    }
}

impl Orders<'_> {
    fn has(&self, column: &str) -> bool {
        self.tables.values().flatten().any(|it| it == column)
    }

    fn is_all(&self, key: &Expr) -> bool {
        match key {
            Expr::Identifier(name) => {
                name.quote_style.is_none()
                    && name.value.eq_ignore_ascii_case("all")
                    && !self.has(&name.value)
            }
            _ => false,
        }
    }
}

/// What is computed, by the name that it is given, unless that is the name of the column that it is.
fn computed(item: &SelectItem) -> Option<&str> {
    let SelectItem::ExprWithAlias { expr, alias } = item else {
        return None;
    };
    let is_same = match expr {
        Expr::Identifier(name) => name.value == alias.value,
        Expr::CompoundIdentifier(names) => {
            names.last().is_some_and(|name| name.value == alias.value)
        }
        _ => false,
    };
    (!is_same).then_some(alias.value.as_str())
}

fn is_name(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_name(inner),
        other => matches!(other, Expr::Identifier(_)),
    }
}
