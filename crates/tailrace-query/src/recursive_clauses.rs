//! Clauses of the UNION of `WITH RECURSIVE`. DataFusion 55 leaves its ORDER BY, its LIMIT and a WITH of its own out. A query that reads itself
//! is refused with one of them, as PostgreSQL refuses the first two. One that does not read itself is a query within another one here,
//! whose clauses DataFusion keeps. And a query reads itself in the second SELECT only.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, Expr, SetExpr, SetOperator, TableFactor, Visit, Visitor, VisitorMut,
};
use tailrace_sql::walk::{first, walk, walk_mut};

use crate::error::{Error, place_of};

/// Keeps such clauses.
///
/// # Errors
///
/// A query that reads itself has one, or reads itself elsewhere.
pub(crate) fn kept(query: &mut ast::Query) -> Result<(), Error> {
    let mut clauses = Clauses(None);
    let _ = walk_mut(query, &mut clauses);
    clauses.0.map_or(Ok(()), Err)
}

struct Clauses(Option<Error>);

impl VisitorMut for Clauses {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<()> {
        let Some(with) = query.with.as_mut().filter(|with| with.recursive) else {
            return ControlFlow::Continue(());
        };
        for table in &mut with.cte_tables {
            let name = &table.alias.name.value;
            let query = &mut *table.query;
            open(query);
            let reads_itself = reads(query, name);
            let first = first_of_union(&query.body);
            let clause = refused(query, name);
            self.0 = match first {
                Some(first) if reads_itself && reads(first, name) => Some(misplaced(name)),
                Some(_) if reads_itself => clause,
                Some(_) if clause.is_some() => {
                    put_inside(query);
                    None
                }
                None if reads_itself && matches!(*query.body, SetExpr::Query(_)) => {
                    Some(misplaced(name))
                }
                // What has no UNION may read another table of its name.
                _ => None,
            };
            if self.0.is_some() {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}

/// Takes parentheses around a whole query away.
fn open(query: &mut ast::Query) {
    while let SetExpr::Query(inner) = &mut *query.body
        && has_no_clause(inner)
    {
        let body = std::mem::replace(
            &mut *inner.body,
            SetExpr::Values(ast::Values {
                explicit_row: false,
                value_keyword: false,
                rows: Vec::new(),
            }),
        );
        *query.body = body;
    }
}

fn has_no_clause(query: &ast::Query) -> bool {
    query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
}

/// The first of the two queries that UNION puts together.
fn first_of_union(body: &SetExpr) -> Option<&SetExpr> {
    match body {
        SetExpr::SetOperation {
            op: SetOperator::Union,
            left,
            ..
        } => Some(left),
        _ => None,
    }
}

fn misplaced(name: &str) -> Error {
    Error {
        hint: Some(format!(
            "write {name} AS (SELECT ... UNION ALL SELECT ... FROM {name}): only the second of two SELECTs reads it"
        )),
        ..Error::usage(format!(
            "the recursive query `{name}` reads itself where it cannot"
        ))
    }
}

/// What is said of a clause of a query that reads itself by this name.
fn refused(query: &ast::Query, name: &str) -> Option<Error> {
    let behind = format!("write it where `{name}` is read, as in SELECT * FROM {name}");
    let (clause, place, hint) = if query.limit_clause.is_some() || query.fetch.is_some() {
        let place = place_in(&query.limit_clause).or_else(|| place_in(&query.fetch));
        ("LIMIT", place, format!("{behind} LIMIT 10"))
    } else if query.order_by.is_some() {
        (
            "ORDER BY",
            place_in(&query.order_by),
            format!("{behind} ORDER BY 1"),
        )
    } else {
        let with = query.with.as_ref()?;
        (
            "WITH",
            place_of(with),
            format!("write its tables before `{name}`, behind the first WITH"),
        )
    };
    Some(Error {
        place,
        hint: Some(hint),
        ..Error::usage(format!("the recursive query `{name}` cannot have {clause}"))
    })
}

fn place_in(clause: &impl Visit) -> Option<(usize, usize)> {
    let expr: Option<Expr> = first(clause, &|_| true);
    expr.as_ref().and_then(place_of)
}

/// Whether a query reads a table of this name.
fn reads(query: &impl Visit, name: &str) -> bool {
    let mut tables = Tables {
        name,
        is_read: false,
    };
    let _ = walk(query, &mut tables);
    tables.is_read
}

struct Tables<'n> {
    name: &'n str,
    is_read: bool,
}

impl Visitor for Tables<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, .. } = table
            && let [part] = &name.0[..]
        {
            self.is_read |= part.as_ident().is_some_and(|it| it.value == self.name);
        }
        ControlFlow::Continue(())
    }
}

/// The same query in parentheses.
fn put_inside(query: &mut ast::Query) {
    let inner = query.clone();
    (query.with, query.order_by) = (None, None);
    (query.limit_clause, query.fetch) = (None, None);
    *query.body = SetExpr::Query(Box::new(inner));
}
