//! Names in expressions of ORDER BY. By SQL they are columns of the tables, and a name by itself may be one of the result. DataFusion 55 takes
//! all of them for columns of the result first, which gives another order, and with LIMIT other rows.

mod outputs;

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, Expr, Ident, OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr, Visitor,
    VisitorMut,
};
use tailrace_sql::walk::{walk, walk_mut};

use self::outputs::Known;
use crate::error::{Error, place_of};

/// Gives expressions of ORDER BY that are columns of the result the names of these, and refuses those with a name that is both a column
/// of a table and something else in the result.
///
/// # Errors
///
/// There is one.
pub(crate) fn of_the_result(
    query: &mut ast::Query,
    tables: &HashMap<String, Vec<String>>,
) -> Result<(), Error> {
    let mut orders = Orders {
        known: vec![Known::new(tables)],
        error: None,
    };
    let _ = walk_mut(query, &mut orders);
    orders.error.map_or(Ok(()), Err)
}

struct Orders<'t> {
    /// The tables that each query around has, and those of files.
    known: Vec<Known<'t>>,
    error: Option<Error>,
}

impl VisitorMut for Orders<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<()> {
        if let Some(around) = self.known.last() {
            self.known.push(around.within(query));
        }
        let (SetExpr::Select(select), Some(order)) = (&*query.body, &mut query.order_by) else {
            return ControlFlow::Continue(());
        };
        let OrderByKind::Expressions(keys) = &mut order.kind else {
            return ControlFlow::Continue(());
        };
        self.error = self.refusal(select, keys);
        match self.error {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    }

    fn post_visit_query(&mut self, _: &mut ast::Query) -> ControlFlow<()> {
        self.known.pop();
        ControlFlow::Continue(())
    }
}

impl Orders<'_> {
    /// Whether a SELECT has a column of this name to read; `None`: nobody knows.
    fn is_column(&self, select: &Select, name: &str) -> Option<bool> {
        if parts_of(select).iter().any(|part| part.value == name) {
            return Some(true);
        }
        let outputs = self.known.last()?.of_tables(&select.from);
        outputs.has(name)
    }

    fn refusal(&self, select: &Select, keys: &mut [OrderByExpr]) -> Option<Error> {
        let computed: Vec<(&Expr, &Ident)> =
            select.projection.iter().filter_map(computed).collect();
        for key in keys {
            if self.is_all(&key.expr, select) {
                return Some(Error {
                    place: place_of(&key.expr),
                    hint: Some("name the columns, or their places: ORDER BY 1, 2".to_owned()),
                    ..Error::usage("ORDER BY ALL is not supported")
                });
            }
            if is_name(&key.expr) {
                continue;
            }
            let doubtful = names(&key.expr).into_iter().find(|name| {
                let is_computed = computed.iter().any(|(_, alias)| alias.value == name.value);
                is_computed && self.is_column(select, &name.value) != Some(false)
            });
            let Some(name) = doubtful else { continue };
            match computed.iter().find(|(expr, _)| **expr == key.expr) {
                Some((_, alias)) => {
                    key.expr = Expr::Identifier(Ident {
                        span: name.span,
                        ..Ident::with_quote('"', alias.value.as_str())
                    });
                }
                None => {
                    return Some(Error {
                        place: place_of(&Expr::Identifier(name.clone())),
                        hint: Some("give the computed column another name".to_owned()),
                        ..Error::usage(match self.is_column(select, &name.value) {
                            Some(_) => format!(
                                "`{name}` in an expression of ORDER BY is a column, and a computed one of the result"
                            ),
                            None => format!(
                                "`{name}` in an expression of ORDER BY may be a column, and is a computed one of the result"
                            ),
                        })
                    });
                }
            }
        }
        None
    }

    fn is_all(&self, key: &Expr, select: &Select) -> bool {
        let Expr::Identifier(name) = key else {
            return false;
        };
        let is_named = |item: &SelectItem| match item {
            SelectItem::ExprWithAlias { alias, .. } => alias.value == name.value,
            _ => false,
        };
        name.quote_style.is_none()
            && name.value.eq_ignore_ascii_case("all")
            && !select.projection.iter().any(is_named)
            && self.is_column(select, &name.value) != Some(true)
    }
}

/// The names in an expression, but for those of subqueries in it.
fn names(expr: &Expr) -> Vec<Ident> {
    let mut names = Names::default();
    let _ = names.of(expr);
    names.found
}

/// The names in what a SELECT computes and asks for. In HAVING a name is one of the result first.
fn parts_of(select: &Select) -> Vec<Ident> {
    let mut names = Names::default();
    for item in &select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            let _ = names.of(expr);
        }
    }
    if let Some(condition) = &select.selection {
        let _ = names.of(condition);
    }
    if let ast::GroupByExpr::Expressions(keys, _) = &select.group_by {
        for key in keys {
            let _ = names.of(key);
        }
    }
    names.found
}

#[derive(Default)]
struct Names {
    depth: usize,
    found: Vec<Ident>,
}

impl Names {
    fn of(&mut self, expr: &Expr) -> ControlFlow<()> {
        walk(expr, self)
    }
}

impl Visitor for Names {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Identifier(name) = expr
            && self.depth == 0
        {
            self.found.push(name.clone());
        }
        ControlFlow::Continue(())
    }
}

/// What is computed, with the name that it is given, unless that is the name of the column that it is.
fn computed(item: &SelectItem) -> Option<(&Expr, &Ident)> {
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
    (!is_same).then_some((expr, alias))
}

fn is_name(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_name(inner),
        other => matches!(other, Expr::Identifier(_)),
    }
}
