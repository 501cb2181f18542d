//! Tables that USING joins have a column in common: that of the table on the left. DataFusion 55 keeps the one of the table whose name comes
//! first in the alphabet, which is NULL where the table on the right has no such row; and in WHERE, or of three tables, it knows neither.
//! Here `*` stands for all columns of the first table and the others of the next ones, and the shared column is given its table.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, SelectItem,
    SelectItemQualifiedWildcardKind, TableFactor, VisitMut, VisitorMut, WildcardAdditionalOptions,
};
use tailrace_sql::walk::walk_mut;

use crate::error::Error;
use crate::star::excluded;
use crate::wildcard::{constraint_of, excluding};

/// Writes what `*` stands for.
///
/// # Errors
///
/// It is over a LEFT JOIN of which that is not known.
pub(crate) fn written_stars(query: &mut ast::Query) -> Result<(), Error> {
    let mut stars = Stars(None);
    let _ = walk_mut(query, &mut stars);
    stars.0.map_or(Ok(()), Err)
}

struct Stars(Option<Error>);

impl VisitorMut for Stars {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<()> {
        let joins = select.from.iter().flat_map(|tables| &tables.joins);
        let mut merged = joins.filter(|join| merges(&join.join_operator));
        let Some(first) = merged.next() else {
            return ControlFlow::Continue(());
        };
        let is_left = |join: &ast::Join| {
            use JoinOperator::{Left, LeftOuter};
            matches!(join.join_operator, Left(_) | LeftOuter(_))
        };
        let is_left = is_left(first) || merged.any(is_left);
        let relations = relations(&select.from);
        let mut items = Vec::with_capacity(select.projection.len());
        for item in std::mem::take(&mut select.projection) {
            let SelectItem::Wildcard(options) = item else {
                items.push(item);
                continue;
            };
            match relations.as_ref().and_then(|it| written(it, &options)) {
                Some(written) => items.extend(written),
                None if is_left => {
                    self.0 = Some(Error {
                        hint: Some(
                            "name the columns, or join ON a condition, of tables that have names"
                                .to_owned(),
                        ),
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
    shared: Vec<String>,
}

/// Those whose columns `*` stands for. `None` if that is not known.
fn relations(from: &[ast::TableWithJoins]) -> Option<Vec<Relation>> {
    let mut relations = Vec::new();
    for tables in from {
        let name = called(&tables.relation)?;
        relations.push(Relation {
            name,
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
                    shared: shared?,
                }),
            }
        }
    }
    Some(relations)
}

/// What `*` with these options is written out to; `None` if they are about columns of which it is not known whose they are.
fn written(relations: &[Relation], options: &WildcardAdditionalOptions) -> Option<Vec<SelectItem>> {
    let left_out = excluded(options);
    let plain = WildcardAdditionalOptions {
        opt_exclude: None,
        opt_except: None,
        ..options.clone()
    };
    let is_shared = |name: &String| relations.iter().any(|it| it.shared.contains(name));
    if plain != WildcardAdditionalOptions::default() || !left_out.iter().all(is_shared) {
        return None;
    }
    let of_first = relations.iter().flat_map(|it| &it.shared);
    let of_first: Vec<String> = of_first
        .filter(|it| left_out.contains(it))
        .cloned()
        .collect();
    let items = relations.iter().enumerate().map(|(at, relation)| {
        let without = if at == 0 { &of_first } else { &relation.shared };
        let kind = SelectItemQualifiedWildcardKind::ObjectName(relation.name.clone());
        SelectItem::QualifiedWildcard(kind, excluding(plain.clone(), without))
    });
    Some(items.collect())
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
            return select.visit(&mut names);
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

/// Whether tables have columns in common by it.
fn merges(operator: &JoinOperator) -> bool {
    let constraint = constraint_of(operator);
    matches!(
        constraint,
        Some(JoinConstraint::Using(_) | JoinConstraint::Natural)
    )
}

/// How the query calls a table.
fn called(table: &TableFactor) -> Option<ObjectName> {
    let (name, alias) = match table {
        TableFactor::Table { name, alias, .. } => (Some(name), alias),
        TableFactor::Derived { alias, .. } => (None, alias),
        _ => return None,
    };
    let alias = alias.as_ref().map(|alias| alias.name.clone());
    let alias = alias.map(|name| ObjectName(vec![ObjectNamePart::Identifier(name)]));
    alias.or_else(|| name.cloned())
}

fn last(column: &ObjectName) -> Option<String> {
    let part: &Ident = column.0.last()?.as_ident()?;
    Some(part.value.clone())
}
