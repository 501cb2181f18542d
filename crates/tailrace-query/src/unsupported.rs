//! What DataFusion would answer wrongly, and is refused.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, JoinConstraint, JoinOperator, TableFactor, TableWithJoins, Visitor,
};
use tailrace_sql::walk::{first, walk};

use crate::error::{Error, place_of};

/// Refuses USING and NATURAL in an outer join that keeps rows of the table on its right. The column that both tables share would
/// be that of the left one: NULL in a row that only the right one has, where SQL wants the value that there is.
///
/// # Errors
///
/// There is one.
pub(crate) fn check_joins(query: &ast::Query) -> Result<(), Error> {
    let mut joins = Joins(None);
    let _ = walk(query, &mut joins);
    joins.0.map_or(Ok(()), Err)
}

struct Joins(Option<Error>);

impl Visitor for Joins {
    type Break = ();

    fn pre_visit_select(&mut self, select: &ast::Select) -> ControlFlow<()> {
        let found = select.from.iter().try_for_each(check_table);
        found.map_break(|error| self.0 = Some(error))
    }
}

fn check_table(table: &TableWithJoins) -> ControlFlow<Error> {
    let mut left = &table.relation;
    check_nested(left)?;
    for join in &table.joins {
        check_nested(&join.relation)?;
        let found = match &join.join_operator {
            JoinOperator::FullOuter(constraint) => Some(("FULL JOIN", constraint)),
            JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
                Some(("RIGHT JOIN", constraint))
            }
            _ => None,
        };
        if let Some((kind, constraint)) = found {
            let (words, columns) = match constraint {
                JoinConstraint::Using(columns) => ("USING", columns.as_slice()),
                JoinConstraint::Natural => ("NATURAL", &[][..]),
                _ => ("", &[][..]),
            };
            if !words.is_empty() {
                let column = columns
                    .first()
                    .map_or("key".to_owned(), ToString::to_string);
                let name = |table, other: &str| name_of(table).unwrap_or_else(|| other.to_owned());
                let (a, b) = (name(left, "a"), name(&join.relation, "b"));
                return ControlFlow::Break(Error {
                    place: columns.first().and_then(place_of),
                    hint: Some(format!(
                        "join `ON {a}.{column} = {b}.{column}`, and select `coalesce({a}.{column}, {b}.{column}) AS {column}`"
                    )),
                    ..Error::usage(format!(
                        "{words} is not supported in {kind}: `{column}` would be NULL in rows that only the table on the right has"
                    ))
                });
            }
        }
        left = &join.relation;
    }
    ControlFlow::Continue(())
}

/// Joins in parentheses.
fn check_nested(table: &TableFactor) -> ControlFlow<Error> {
    match table {
        TableFactor::NestedJoin {
            table_with_joins, ..
        } => check_table(table_with_joins),
        _ => ControlFlow::Continue(()),
    }
}

/// Refuses `count(DISTINCT *)`, which DataFusion takes for the count of one constant.
///
/// # Errors
///
/// The query has it.
pub(crate) fn check_counts(query: &ast::Query) -> Result<(), Error> {
    let is_one = |expr: &ast::Expr| match expr {
        ast::Expr::Function(called) => counts_distinct_rows(called),
        _ => false,
    };
    match first(query, &is_one) {
        None => Ok(()),
        Some(_) => Err(Error {
            hint: Some("SELECT count(*) FROM (SELECT DISTINCT * FROM logs) does".to_owned()),
            ..Error::usage("count(DISTINCT *) does not count rows")
        }),
    }
}

fn counts_distinct_rows(called: &ast::Function) -> bool {
    let ast::FunctionArguments::List(list) = &called.args else {
        return false;
    };
    let is_distinct = list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct);
    let is_all = |arg: &ast::FunctionArg| {
        use ast::FunctionArgExpr as Arg;
        matches!(
            arg,
            ast::FunctionArg::Unnamed(Arg::Wildcard | Arg::QualifiedWildcard(_))
        )
    };
    is_distinct && list.args.iter().any(is_all)
}

/// What a table is called in a query.
pub(crate) fn name_of(table: &TableFactor) -> Option<String> {
    match table {
        TableFactor::Table {
            alias: Some(alias), ..
        }
        | TableFactor::Derived {
            alias: Some(alias), ..
        } => Some(alias.name.to_string()),
        TableFactor::Table { name, .. } => Some(name.to_string()),
        _ => None,
    }
}
