//! Columns of a result that are called alike, as in `SELECT a, a` and `SELECT *, a`, which DataFusion refuses. The second one is called `a_1`,
//! as DuckDB calls it in files.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, Expr, Ident, ObjectName, ObjectNamePart, SelectItem, SelectItemQualifiedWildcardKind,
    TableAlias, TableFactor, VisitorMut, WildcardAdditionalOptions,
};
use tailrace_sql::walk::walk_mut;

use crate::star::excluded;

/// The columns of tables, by the names of these.
pub(crate) type Columns = HashMap<String, Vec<String>>;

/// Gives every column of a SELECT a name of its own.
pub(crate) fn told_apart_by_name(query: &mut ast::Query, tables: Columns) {
    let mut names = Names { tables };
    let _ = walk_mut(query, &mut names);
}

struct Names {
    tables: Columns,
}

impl VisitorMut for Names {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<()> {
        // The name means something else, here or elsewhere.
        for table in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.tables.remove(&table.alias.name.value);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<()> {
        let items = &select.projection;
        let of_stars = self.of_stars(select);
        let mut taken = of_stars.clone();
        let named = items.iter().filter_map(|item| name_of(item)?.last());
        let written: HashSet<_> = named.map(|name| name.value.clone()).collect();
        // Those that a table parts, as `a.id` and `b.id`.
        let mut known: Vec<Vec<Ident>> = Vec::new();
        for item in &mut select.projection {
            let Some(name) = name_of(item).map(<[Ident]>::to_vec) else {
                continue;
            };
            let Some(last) = name.last() else { continue };
            // A written name is meant: around it, or in ORDER BY, it would be that of the table's column.
            let is_written =
                matches!(item, SelectItem::ExprWithAlias { .. }) && of_stars.contains(&last.value);
            let is_taken = taken.contains(&last.value);
            if is_written || !is_taken && !known.iter().any(|other| is_same(other, &name)) {
                known.push(name);
                continue;
            }
            let numbered = (1..).map(|nth| format!("{}_{nth}", last.value));
            let mut free = numbered.filter(|name| !written.contains(name));
            if let Some(name) = free.find(|name| taken.insert(name.clone())) {
                rename(item, Ident::with_quote('"', name));
            }
        }
        ControlFlow::Continue(())
    }
}

impl Names {
    /// The names that the stars of a SELECT stand for, as far as they are known.
    fn of_stars(&self, select: &ast::Select) -> HashSet<String> {
        let joined = |it: &ast::TableWithJoins| {
            let joins = it.joins.iter().filter(|join| !keeps_the_left(join));
            let joins = joins.map(|join| join.relation.clone());
            std::iter::once(it.relation.clone()).chain(joins).collect()
        };
        let tables: Vec<TableFactor> = select
            .from
            .iter()
            .flat_map(|it| -> Vec<_> { joined(it) })
            .collect();
        let mut names = HashSet::new();
        for item in &select.projection {
            match item {
                SelectItem::Wildcard(options) => {
                    tables
                        .iter()
                        .for_each(|it| self.add(it, options, &mut names));
                }
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(name),
                    options,
                ) => {
                    let meant = tables.iter().filter(|it| called(it) == only(name));
                    meant.for_each(|it| self.add(it, options, &mut names));
                }
                _ => {}
            }
        }
        names
    }

    fn add(
        &self,
        table: &TableFactor,
        options: &WildcardAdditionalOptions,
        names: &mut HashSet<String>,
    ) {
        let TableFactor::Table {
            name, args: None, ..
        } = table
        else {
            return;
        };
        let excluded = excluded(options);
        let columns = only(name).and_then(|name| self.tables.get(name));
        let columns = columns.into_iter().flatten();
        names.extend(columns.filter(|name| !excluded.contains(name)).cloned());
    }
}

/// How a column is called, behind the name of its table.
fn name_of(item: &SelectItem) -> Option<&[Ident]> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(std::slice::from_ref(alias)),
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(std::slice::from_ref(name)),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names)) => Some(names),
        _ => None,
    }
}

/// Whether two names are the same, unless each is of a table of its own.
fn is_same(one: &[Ident], other: &[Ident]) -> bool {
    // The name, and that of the table where both have one.
    let mut parts = one.iter().rev().zip(other.iter().rev()).take(2);
    parts.all(|(one, other)| one.value == other.value)
}

fn rename(item: &mut SelectItem, name: Ident) {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => *alias = name,
        SelectItem::UnnamedExpr(expr) => {
            let expr = expr.clone();
            *item = SelectItem::ExprWithAlias { expr, alias: name };
        }
        _ => {}
    }
}

/// Whether a join has no column of the table on its right.
fn keeps_the_left(join: &ast::Join) -> bool {
    use ast::JoinOperator::{Anti, LeftAnti, LeftSemi, Semi};
    matches!(
        join.join_operator,
        Semi(_) | LeftSemi(_) | Anti(_) | LeftAnti(_)
    )
}

/// What a table is called in its SELECT.
fn called(table: &TableFactor) -> Option<&str> {
    match table {
        TableFactor::Table {
            alias: Some(TableAlias { name, .. }),
            ..
        } => Some(&name.value),
        TableFactor::Table { name, .. } => only(name),
        _ => None,
    }
}

/// The only part of a name.
fn only(name: &ObjectName) -> Option<&str> {
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(name)] => Some(&name.value),
        _ => None,
    }
}
