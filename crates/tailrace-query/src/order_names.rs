//! Names in expressions of ORDER BY. By SQL they are columns of the tables, and a name by itself may be one of the result. DataFusion 55 takes
//! all of them for columns of the result first, which gives another order, and with LIMIT other rows.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, Expr, Ident, OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr, TableFactor,
    Visitor, VisitorMut,
};
use tailrace_sql::walk::{walk, walk_mut};

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
    let mut with = With::default();
    let _ = walk(query, &mut with);
    let mut orders = Orders {
        known: Known {
            tables,
            with: with.0,
        },
        error: None,
    };
    let _ = walk_mut(query, &mut orders);
    orders.error.map_or(Ok(()), Err)
}

struct Orders<'t> {
    known: Known<'t>,
    error: Option<Error>,
}

impl VisitorMut for Orders<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<()> {
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
}

impl Orders<'_> {
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
                is_computed && self.known.is_column(select, &name.value)
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
                        ..Error::usage(format!(
                            "`{name}` in an expression of ORDER BY is a column, and a computed one of the result"
                        ))
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
            && !self.known.is_column(select, &name.value)
    }
}

/// What is known of the columns of tables.
struct Known<'t> {
    tables: &'t HashMap<String, Vec<String>>,
    /// The columns of those of WITH.
    with: HashMap<String, Outputs>,
}

impl Known<'_> {
    /// Whether a SELECT has a column of this name to read, or may have.
    fn is_column(&self, select: &Select, name: &str) -> bool {
        let tables = select.from.iter().flat_map(|from| {
            let joined = from.joins.iter().map(|join| &join.relation);
            std::iter::once(&from.relation).chain(joined)
        });
        let mut tables = tables;
        let is_named = |part: &Ident| part.value == name;
        tables.any(|table| self.has(table, name)) || parts_of(select).iter().any(is_named)
    }

    fn has(&self, table: &TableFactor, name: &str) -> bool {
        let (alias, columns) = match table {
            TableFactor::Table {
                name: path, alias, ..
            } => {
                let last = path.0.last().and_then(|part| part.as_ident());
                let last = last.map_or("", |last| last.value.as_str());
                let columns = match (self.tables.get(last), self.with.get(last)) {
                    (_, Some(outputs)) => outputs.clone(),
                    (Some(columns), None) => Outputs {
                        names: columns.clone(),
                        has_more: false,
                    },
                    (None, None) => Outputs::UNKNOWN,
                };
                (alias, columns)
            }
            TableFactor::Derived {
                subquery, alias, ..
            } => (alias, outputs(subquery)),
            _ => (&None, Outputs::UNKNOWN),
        };
        let renamed = alias.iter().flat_map(|alias| &alias.columns);
        let mut renamed = renamed.map(|column| column.name.value.as_str()).peekable();
        if renamed.peek().is_some() {
            return renamed.any(|column| column == name);
        }
        let mut of_files = self.tables.values().flatten();
        columns.names.iter().any(|column| column == name)
            || columns.has_more && of_files.any(|column| column == name)
    }
}

/// The tables of WITH, anywhere in a query.
#[derive(Default)]
struct With(HashMap<String, Outputs>);

impl Visitor for With {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for table in query.with.iter().flat_map(|with| &with.cte_tables) {
            let renamed = table.alias.columns.iter();
            let renamed: Vec<_> = renamed.map(|column| column.name.value.clone()).collect();
            let columns = match renamed.is_empty() {
                true => outputs(&table.query),
                false => Outputs {
                    names: renamed,
                    has_more: false,
                },
            };
            self.0.insert(table.alias.name.value.clone(), columns);
        }
        ControlFlow::Continue(())
    }
}

/// The names of the columns of a query.
#[derive(Clone, Debug)]
struct Outputs {
    /// Those that are written out.
    names: Vec<String>,
    /// There may be others, of the files.
    has_more: bool,
}

impl Outputs {
    const UNKNOWN: Outputs = Outputs {
        names: Vec::new(),
        has_more: true,
    };
}

fn outputs(query: &Query) -> Outputs {
    outputs_of(&query.body)
}

/// As [`outputs`]. Those of a UNION are called as in its first query.
fn outputs_of(body: &SetExpr) -> Outputs {
    let select = match body {
        SetExpr::Select(select) => select,
        SetExpr::Query(query) => return outputs(query),
        SetExpr::SetOperation { left, .. } => return outputs_of(left),
        _ => return Outputs::UNKNOWN,
    };
    let name = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(name.value.clone()),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(path)) => {
            path.last().map(|name| name.value.clone())
        }
        SelectItem::UnnamedExpr(expr) => Some(expr.to_string()),
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
        _ => None,
    };
    let names: Vec<String> = select.projection.iter().filter_map(name).collect();
    Outputs {
        has_more: names.len() < select.projection.len(),
        names,
    }
}

/// The names in an expression, but for those of subqueries in it.
fn names(expr: &Expr) -> Vec<Ident> {
    let mut names = Names::default();
    let _ = names.of(expr);
    names.found
}

/// The names in what a SELECT computes and asks for.
fn parts_of(select: &Select) -> Vec<Ident> {
    let mut names = Names::default();
    for item in &select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            let _ = names.of(expr);
        }
    }
    for expr in select.selection.iter().chain(&select.having) {
        let _ = names.of(expr);
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
