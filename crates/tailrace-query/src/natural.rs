//! NATURAL JOIN as JOIN ... USING the columns that both sides have, where these are known: those of files, and of subqueries that say what theirs are
//! called. DataFusion 55 gives the columns that both have the place that the names of the tables ask for in the alphabet, and keeps no rows of
//! the table on the left where the other one has none.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableFactor, TableWithJoins, Value, Visitor,
    VisitorMut, WildcardAdditionalOptions,
};
use tailrace_sql::walk::{walk, walk_mut};

use crate::names::name_of;
use crate::repeated_names::Columns;
use crate::star::excluded;
use crate::using::{called, last, table_of};
use crate::wildcard::constraint_of;

/// Writes them so. `known` are the columns of tables of files, and `added` those of them that `*` leaves out, which are not joined by.
pub(crate) fn as_using(query: &mut ast::Query, known: &Columns, added: &Columns) {
    let mut tables = Tables {
        columns: known.clone(),
        added,
    };
    let _ = walk(query, &mut tables);
    let _ = walk_mut(query, &mut Joins(&tables));
}

/// The columns of tables by their names; none where these are not known, as of a name that means several tables.
struct Tables<'c> {
    columns: Columns,
    added: &'c Columns,
}

impl Visitor for Tables<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<()> {
        for table in query.with.iter().flat_map(|with| &with.cte_tables) {
            let name = &table.alias.name.value;
            let columns = match self.columns.contains_key(name) {
                true => None,
                false => given(&table.alias).or_else(|| self.of_query(&table.query)),
            };
            self.columns
                .insert(name.clone(), columns.unwrap_or_default());
        }
        ControlFlow::Continue(())
    }
}

struct Joins<'t, 'c>(&'t Tables<'c>);

impl VisitorMut for Joins<'_, '_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<()> {
        for tables in &mut select.from {
            self.0.write_out(tables);
        }
        ControlFlow::Continue(())
    }
}

impl Tables<'_> {
    fn write_out(&self, tables: &mut TableWithJoins) {
        if let TableFactor::NestedJoin {
            table_with_joins, ..
        } = &mut tables.relation
        {
            self.write_out(table_with_joins);
        }
        let mut before = self.of_table(&tables.relation);
        for join in &mut tables.joins {
            if let TableFactor::NestedJoin {
                table_with_joins, ..
            } = &mut join.relation
            {
                self.write_out(table_with_joins);
            }
            let columns = self.of_table(&join.relation);
            if let (Some(before), Some(columns)) = (&before, &columns) {
                self.write_constraint(&mut join.join_operator, before, columns);
            }
            before = before
                .zip(columns)
                .map(|(before, columns)| joined(before, columns, &join.join_operator));
        }
    }

    /// Writes what two sides with these columns are joined by.
    fn write_constraint(&self, operator: &mut JoinOperator, before: &[String], columns: &[String]) {
        let shared = shared(before, columns);
        let is_added = |name: &String| self.added.values().flatten().any(|it| it == name);
        let Some(constraint) = natural_of(operator).filter(|_| !shared.iter().any(is_added)) else {
            return;
        };
        let names = shared.into_iter().map(|name| {
            let name = Ident::with_quote('"', name);
            ObjectName(vec![ObjectNamePart::Identifier(name)])
        });
        let names: Vec<_> = names.collect();
        *constraint = match names.is_empty() {
            true => JoinConstraint::On(Expr::value(Value::Boolean(true))),
            false => JoinConstraint::Using(names),
        };
    }

    /// The columns of a table, if they are known.
    fn of_table(&self, table: &TableFactor) -> Option<Vec<String>> {
        let (TableFactor::Table { alias, .. } | TableFactor::Derived { alias, .. }) = table else {
            return None;
        };
        if let Some(columns) = alias.as_ref().and_then(given) {
            return Some(columns);
        }
        if let TableFactor::Derived { subquery, .. } = table {
            return self.of_query(subquery);
        }
        let columns = self.columns.get(&table_of(table)?)?;
        (!columns.is_empty()).then(|| columns.clone())
    }

    /// What the columns of a query are called.
    fn of_query(&self, query: &ast::Query) -> Option<Vec<String>> {
        let columns = match first_of(&query.body)? {
            SetExpr::Select(select) => self.of_select(select)?,
            SetExpr::Values(values) => {
                let count = values.rows.first()?.content.len();
                (1..=count).map(|at| format!("column{at}")).collect()
            }
            _ => return None,
        };
        let is_again = |(at, name): (usize, &String)| columns[..at].contains(name);
        let is_clear = !columns.iter().enumerate().any(is_again);
        is_clear.then_some(columns)
    }

    fn of_select(&self, select: &ast::Select) -> Option<Vec<String>> {
        let mut columns = Vec::new();
        for item in &select.projection {
            match item {
                SelectItem::UnnamedExpr(expr) => columns.push(name_of(expr)),
                SelectItem::ExprWithAlias { alias, .. } => columns.push(alias.value.clone()),
                SelectItem::Wildcard(options) => {
                    let all = select.from.iter().map(|tables| self.of_star(tables));
                    let all = all.collect::<Option<Vec<_>>>()?.concat();
                    columns.extend(left(all, options)?);
                }
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(name),
                    options,
                ) => {
                    let table =
                        select.from.iter().flat_map(tables_of).find(|table| {
                            called(table).is_some_and(|it| last(&it) == last(name))
                        })?;
                    columns.extend(left(self.shown(table)?, options)?);
                }
                _ => return None,
            }
        }
        Some(columns)
    }

    /// The columns of tables that `*` stands for.
    fn of_star(&self, tables: &TableWithJoins) -> Option<Vec<String>> {
        let mut columns = self.shown(&tables.relation)?;
        for join in &tables.joins {
            columns = joined(columns, self.shown(&join.relation)?, &join.join_operator);
        }
        Some(columns)
    }

    /// The columns of a table but for those that were added to it.
    fn shown(&self, table: &TableFactor) -> Option<Vec<String>> {
        let mut columns = self.of_table(table)?;
        if let Some(added) = table_of(table).and_then(|name| self.added.get(&name)) {
            columns.retain(|name| !added.contains(name));
        }
        Some(columns)
    }
}

/// The query of a UNION and the like that names its columns.
fn first_of(mut body: &SetExpr) -> Option<&SetExpr> {
    loop {
        body = match body {
            SetExpr::SetOperation { left, .. } => left,
            SetExpr::Query(query) => &query.body,
            other => return Some(other),
        };
    }
}

fn tables_of(tables: &TableWithJoins) -> impl Iterator<Item = &TableFactor> {
    let joined = tables.joins.iter().map(|join| &join.relation);
    std::iter::once(&tables.relation).chain(joined)
}

/// The columns of two sides that are joined.
fn joined(before: Vec<String>, columns: Vec<String>, operator: &JoinOperator) -> Vec<String> {
    use JoinOperator as Join;
    let both = match constraint_of(operator) {
        Some(JoinConstraint::Using(names)) => names.iter().filter_map(last).collect(),
        Some(JoinConstraint::Natural) => shared(&before, &columns),
        _ => Vec::new(),
    };
    match operator {
        Join::Semi(_) | Join::Anti(_) | Join::LeftSemi(_) | Join::LeftAnti(_) => before,
        Join::RightSemi(_) | Join::RightAnti(_) => columns,
        _ => {
            let others = columns.into_iter().filter(|name| !both.contains(name));
            before.into_iter().chain(others).collect()
        }
    }
}

/// The columns that both sides have.
fn shared(before: &[String], columns: &[String]) -> Vec<String> {
    let shared = columns.iter().filter(|name| before.contains(name));
    shared.cloned().collect()
}

/// What is left of the columns that `*` stands for, if its options are plain.
fn left(mut columns: Vec<String>, options: &WildcardAdditionalOptions) -> Option<Vec<String>> {
    let plain = WildcardAdditionalOptions {
        opt_exclude: options.opt_exclude.clone(),
        opt_except: options.opt_except.clone(),
        wildcard_token: options.wildcard_token.clone(),
        ..WildcardAdditionalOptions::default()
    };
    let left_out = excluded(options);
    columns.retain(|name| !left_out.contains(name));
    (*options == plain).then_some(columns)
}

/// The names that the columns of a table are given, if they are.
fn given(alias: &ast::TableAlias) -> Option<Vec<String>> {
    let names = alias.columns.iter();
    let names: Vec<_> = names.map(|column| column.name.value.clone()).collect();
    (!names.is_empty()).then_some(names)
}

/// The constraint of a NATURAL JOIN.
fn natural_of(operator: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    match operator {
        JoinOperator::Join(it)
        | JoinOperator::Inner(it)
        | JoinOperator::Left(it)
        | JoinOperator::LeftOuter(it) => Some(it).filter(|it| **it == JoinConstraint::Natural),
        _ => None,
    }
}
