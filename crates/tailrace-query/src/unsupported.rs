//! What DataFusion would answer wrongly, and is refused.

mod clauses;
mod defaults;
mod places;
mod plans;

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, Expr, JoinConstraint, JoinOperator, SelectItem, TableFactor, TableWithJoins, Visitor,
};
use tailrace_sql::walk::{first, walk};

pub(crate) use self::clauses::check_clauses;
pub(crate) use self::plans::{check_plan, conflict};
use crate::error::{Error, place_of};

/// Refuses USING and NATURAL in an outer join that keeps rows of the table on its right, unless the column that both tables share is
/// named with its table wherever it stands. By itself it would be that of the left one: NULL in a row that only the right one has, where SQL
/// wants the value that there is.
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
        let mut tables = select.from.iter();
        let found = tables.try_for_each(|tables| check_table(tables, select));
        found.map_break(|error| self.0 = Some(error))
    }
}

fn check_table(table: &TableWithJoins, select: &ast::Select) -> ControlFlow<Error> {
    let mut left = &table.relation;
    check_nested(left, select)?;
    for join in &table.joins {
        check_nested(&join.relation, select)?;
        check_condition(&join.join_operator, &join.relation)?;
        let found = match &join.join_operator {
            JoinOperator::FullOuter(constraint) => Some(("FULL JOIN", constraint)),
            JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
                Some(("RIGHT JOIN", constraint))
            }
            _ => None,
        };
        if let Some((kind, constraint)) = found {
            let columns = match constraint {
                JoinConstraint::Using(columns) => columns.as_slice(),
                JoinConstraint::Natural => &[],
                _ => {
                    left = &join.relation;
                    continue;
                }
            };
            if columns.is_empty() || uses(select, columns) {
                return ControlFlow::Break(refused(kind, columns, [left, &join.relation]));
            }
        }
        left = &join.relation;
    }
    ControlFlow::Continue(())
}

/// Refuses a join without a condition, which would be of each row with each other.
fn check_condition(operator: &JoinOperator, table: &TableFactor) -> ControlFlow<Error> {
    let (JoinOperator::Join(constraint)
    | JoinOperator::Inner(constraint)
    | JoinOperator::Left(constraint)
    | JoinOperator::LeftOuter(constraint)
    | JoinOperator::Right(constraint)
    | JoinOperator::RightOuter(constraint)
    | JoinOperator::FullOuter(constraint)) = operator
    else {
        return ControlFlow::Continue(());
    };
    // Each row has rows of its own, and needs no condition.
    let is_lateral = match table {
        TableFactor::Derived { lateral, .. } => *lateral,
        TableFactor::UNNEST { .. } | TableFactor::Function { .. } => true,
        TableFactor::Table { args, .. } => args.is_some(),
        _ => false,
    };
    if is_lateral || !matches!(constraint, JoinConstraint::None) {
        return ControlFlow::Continue(());
    }
    ControlFlow::Break(Error {
        place: place_of(table),
        hint: Some(
            "add ON with a condition or USING with columns; each row with each other is CROSS JOIN"
                .to_owned(),
        ),
        ..Error::usage("a join needs a condition")
    })
}

/// Whether a SELECT has one of the columns without its table, by itself or in a `*`.
fn uses(select: &ast::Select, columns: &[ast::ObjectName]) -> bool {
    let is_one = |expr: &Expr| match expr {
        Expr::Identifier(name) => columns.iter().any(|column| {
            let part = column.0.last().and_then(ast::ObjectNamePart::as_ident);
            part.is_some_and(|part| part.value == name.value)
        }),
        _ => false,
    };
    let is_star = |item: &SelectItem| matches!(item, SelectItem::Wildcard(_));
    select.projection.iter().any(is_star) || first(select, &is_one).is_some()
}

fn refused(kind: &str, columns: &[ast::ObjectName], sides: [&TableFactor; 2]) -> Error {
    let words = if columns.is_empty() {
        "NATURAL"
    } else {
        "USING"
    };
    // A file has no name that could stand before a column.
    let named = sides.map(|side| name_of(side).filter(|name| !name.starts_with('\'')));
    let [a, b] = match named {
        [Some(a), Some(b)] => [a, b],
        _ => ["a".to_owned(), "b".to_owned()],
    };
    let key = columns
        .first()
        .map_or("key".to_owned(), ToString::to_string);
    Error {
        place: columns.first().and_then(place_of),
        hint: Some(format!(
            "name the tables, as FROM x {a} {kind} y {b} does; join ON {a}.{key} = {b}.{key}, and select coalesce({a}.{key}, {b}.{key}) AS {key}"
        )),
        ..Error::usage(format!(
            "{words} is not supported in {kind}: the shared column would be NULL in rows that only the table on the right has"
        ))
    }
}

/// Joins in parentheses.
fn check_nested(table: &TableFactor, select: &ast::Select) -> ControlFlow<Error> {
    match table {
        TableFactor::NestedJoin {
            table_with_joins, ..
        } => check_table(table_with_joins, select),
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
