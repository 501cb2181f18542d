//! Tables that USING joins have a column in common: that of the table on the left. DataFusion 55 keeps the one of the table whose name comes
//! first in the alphabet, which is NULL where the table on the right has no such row; and in WHERE, or of three tables, it knows neither.
//! Here `*` stands for all columns of the first table and the others of the next ones, and the shared column is given its table. A NATURAL JOIN
//! has been written so, where the columns of both sides are known (see [`natural`](crate::natural)).

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, ExcludeSelectItem, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart,
    SelectItem, SelectItemQualifiedWildcardKind, TableFactor, VisitMut, VisitorMut,
    WildcardAdditionalOptions,
};
use tailrace_sql::walk::walk_mut;

use crate::error::Error;
use crate::repeated_names::Columns;
use crate::star::excluded;
use crate::wildcard::{constraint_of, excluding};

/// Writes what `*` stands for. `known` are the columns of tables of files, and `added` those of them that `*` leaves out.
///
/// # Errors
///
/// It is over a LEFT JOIN of which that is not known.
pub(crate) fn written_stars(
    query: &mut ast::Query,
    known: &Columns,
    added: &Columns,
) -> Result<(), Error> {
    let mut stars = Stars {
        known,
        added,
        error: None,
    };
    let _ = walk_mut(query, &mut stars);
    stars.error.map_or(Ok(()), Err)
}

struct Stars<'c> {
    known: &'c Columns,
    added: &'c Columns,
    error: Option<Error>,
}

impl VisitorMut for Stars<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<()> {
        let mut merged = Vec::new();
        select.from.iter().for_each(|it| merging(it, &mut merged));
        if merged.is_empty() {
            return ControlFlow::Continue(());
        }
        let is_left = |join: &&JoinOperator| {
            matches!(join, JoinOperator::Left(_) | JoinOperator::LeftOuter(_))
        };
        let is_left = merged.iter().any(is_left);
        let relations = relations(&select.from);
        let mut items = Vec::with_capacity(select.projection.len());
        for item in std::mem::take(&mut select.projection) {
            let SelectItem::Wildcard(options) = item else {
                items.push(item);
                continue;
            };
            match relations.as_ref().and_then(|it| self.written(it, &options)) {
                Some(written) => items.extend(written),
                None if is_left => {
                    self.error = Some(Error {
                        hint: Some("name the columns, or join ON a condition".to_owned()),
                        ..Error::usage("which columns `*` has is not known over this LEFT JOIN")
                    });
                    return ControlFlow::Break(());
                }
                None => items.push(SelectItem::Wildcard(options)),
            }
        }
        select.projection = items;
        ControlFlow::Continue(())
    }
}

/// A table as the query calls it, and the columns that it shares with those before it.
struct Relation {
    name: ObjectName,
    /// The name of a table that is none of the query's own.
    table: Option<String>,
    shared: Vec<String>,
}

/// Those whose columns `*` stands for. `None` if that is not known.
fn relations(from: &[ast::TableWithJoins]) -> Option<Vec<Relation>> {
    let mut relations = Vec::new();
    for tables in from {
        relations.push(Relation {
            name: called(&tables.relation)?,
            table: table_of(&tables.relation),
            shared: Vec::new(),
        });
        for join in &tables.joins {
            use JoinOperator as Join;
            let shared = match constraint_of(&join.join_operator) {
                Some(JoinConstraint::Using(columns)) => columns.iter().map(last).collect(),
                Some(JoinConstraint::Natural) => None,
                _ => Some(Vec::new()),
            };
            match &join.join_operator {
                Join::Semi(_) | Join::Anti(_) | Join::LeftSemi(_) | Join::LeftAnti(_) => {}
                Join::RightSemi(_) | Join::RightAnti(_) => return None,
                _ => relations.push(Relation {
                    name: called(&join.relation)?,
                    table: table_of(&join.relation),
                    shared: shared?,
                }),
            }
        }
    }
    Some(relations)
}

impl Stars<'_> {
    /// What `*` with these options is written out to; `None` if they are about columns of which it is not known whose they are.
    fn written(
        &self,
        relations: &[Relation],
        options: &WildcardAdditionalOptions,
    ) -> Option<Vec<SelectItem>> {
        // Columns by themselves, not of one table.
        let is_plain = |name: &ObjectName| name.0.len() == 1;
        let are_plain = match &options.opt_exclude {
            Some(ExcludeSelectItem::Single(name)) => is_plain(name),
            Some(ExcludeSelectItem::Multiple(names)) => names.iter().all(is_plain),
            None => true,
        };
        if !are_plain {
            return None;
        }
        let left_out = excluded(options);
        let plain = WildcardAdditionalOptions {
            opt_exclude: None,
            opt_except: None,
            ..options.clone()
        };
        let shared = || relations.iter().flat_map(|it| &it.shared);
        let is_added = |name: &String| self.added.values().flatten().any(|it| it == name);
        if plain != WildcardAdditionalOptions::default() || shared().any(is_added) {
            return None;
        }
        let mut unknown = left_out.clone();
        let items = relations.iter().map(|relation| {
            let mut without = relation.shared.clone();
            if !left_out.is_empty() {
                let columns = self.known.get(relation.table.as_ref()?)?;
                unknown.retain(|name| !columns.contains(name));
                let own = left_out.iter().filter(|name| columns.contains(name));
                without.extend(own.cloned());
                without.sort();
                without.dedup();
            }
            let kind = SelectItemQualifiedWildcardKind::ObjectName(relation.name.clone());
            let options = excluding(plain.clone(), &without);
            Some(SelectItem::QualifiedWildcard(kind, options))
        });
        let items = items.collect::<Option<Vec<_>>>()?;
        unknown.is_empty().then_some(items)
    }
}

/// Gives shared columns their table: in WHERE, and everywhere in a SELECT if several joins share them.
pub(crate) fn qualify(query: &mut ast::Query) {
    let _ = walk_mut(query, &mut Shared);
}

struct Shared;

impl VisitorMut for Shared {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<()> {
        let [tables] = select.from.as_slice() else {
            return ControlFlow::Continue(());
        };
        let (Some(base), Some(relations)) = (called(&tables.relation), relations(&select.from))
        else {
            return ControlFlow::Continue(());
        };
        let of_second = relations.get(1).map_or(&[][..], |it| &it.shared);
        let mut names = Qualified {
            columns: of_second.to_vec(),
            table: base,
            depth: 0,
        };
        let joins = relations.iter().filter(|it| !it.shared.is_empty());
        if joins.count() > 1 {
            // There a name of the result comes first.
            let is_result = select.projection.iter().any(|item| match item {
                SelectItem::ExprWithAlias { alias, .. } => names.columns.contains(&alias.value),
                _ => false,
            });
            let mut kept = match is_result {
                true => (select.having.take(), select.qualify.take()),
                false => (None, None),
            };
            let visited = select.visit(&mut names);
            select.having = kept.0.take().or(select.having.take());
            select.qualify = kept.1.take().or(select.qualify.take());
            return visited;
        }
        select
            .selection
            .as_mut()
            .map_or(ControlFlow::Continue(()), |it| it.visit(&mut names))
    }
}

/// Gives columns their table, but not in subqueries, which may have such columns themselves.
struct Qualified {
    columns: Vec<String>,
    table: ObjectName,
    depth: usize,
}

impl VisitorMut for Qualified {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut ast::Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut ast::Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Identifier(name) = expr
            && self.depth == 0
            && self.columns.contains(&name.value)
        {
            let parts = self.table.0.iter().filter_map(ObjectNamePart::as_ident);
            let parts = parts.cloned().chain([name.clone()]).collect();
            *expr = Expr::CompoundIdentifier(parts);
        }
        ControlFlow::Continue(())
    }
}

/// The joins by which tables have columns in common, also those in parentheses.
fn merging<'j>(tables: &'j ast::TableWithJoins, found: &mut Vec<&'j JoinOperator>) {
    let joined = tables.joins.iter().map(|join| &join.relation);
    for table in std::iter::once(&tables.relation).chain(joined) {
        if let TableFactor::NestedJoin {
            table_with_joins, ..
        } = table
        {
            merging(table_with_joins, found);
        }
    }
    let operators = tables.joins.iter().map(|join| &join.join_operator);
    found.extend(operators.filter(|operator| {
        let constraint = constraint_of(operator);
        matches!(
            constraint,
            Some(JoinConstraint::Using(_) | JoinConstraint::Natural)
        )
    }));
}

/// The name of a table that may be one of files.
pub(crate) fn table_of(table: &TableFactor) -> Option<String> {
    match table {
        TableFactor::Table { name, .. } => last(name),
        _ => None,
    }
}

/// How the query calls a table.
pub(crate) fn called(table: &TableFactor) -> Option<ObjectName> {
    let (name, alias) = match table {
        TableFactor::Table { name, alias, .. } => (Some(name), alias),
        TableFactor::Derived { alias, .. } => (None, alias),
        _ => return None,
    };
    let alias = alias.as_ref().map(|alias| alias.name.clone());
    let alias = alias.map(|name| ObjectName(vec![ObjectNamePart::Identifier(name)]));
    alias.or_else(|| name.cloned())
}

pub(crate) fn last(column: &ObjectName) -> Option<String> {
    let part: &Ident = column.0.last()?.as_ident()?;
    Some(part.value.clone())
}
