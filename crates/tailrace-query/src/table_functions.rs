//! Functions that stand in FROM as tables: `generate_series(1, 10)` and `range(1, 10)`, whose rows have the column `value`, and `unnest`. DataFusion 55
//! gives them no columns of other tables; of `unnest` see [`crate::lateral_unnest`].

mod arrays;
mod written;

use std::ops::ControlFlow;

use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    self, Expr, FunctionArg, FunctionArgExpr, JoinConstraint, JoinOperator, ObjectName,
    TableFactor, TableWithJoins, Value, Visitor,
};
use tailrace_sql::walk::{first, walk};

use self::arrays::as_calls;
use self::written::written;
use crate::error::{Error, place_of};

/// The functions of a query that are tables, in small letters.
///
/// # Errors
///
/// There is no such function, or one is called with a column.
pub(crate) fn table_functions(
    query: &mut ast::Query,
    state: &SessionState,
) -> Result<Vec<String>, Error> {
    written(query);
    let mut called = Called {
        state,
        names: Vec::new(),
        error: None,
    };
    let _ = walk(query, &mut called);
    as_calls(query);
    match called.error {
        Some(error) => Err(error),
        None => Ok(called.names),
    }
}

const ONLY_ON_TRUE: &str = "LEFT JOIN unnest(...) AS u(x) ON true gives a row for each element, and one for a row without elements";

/// How a table is joined to those before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Joined {
    /// To each of their rows, with all that belongs to it.
    ToEachRow,
    /// Rows are kept that have no partner that meets a condition.
    LeftWithCondition,
    Otherwise,
}

impl Joined {
    fn of(operator: &JoinOperator) -> Joined {
        match operator {
            JoinOperator::CrossJoin(constraint)
            | JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint) => match constraint {
                JoinConstraint::None | JoinConstraint::On(_) => Joined::ToEachRow,
                _ => Joined::Otherwise,
            },
            JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
                match constraint {
                    JoinConstraint::On(condition) if is_true(condition) => Joined::ToEachRow,
                    JoinConstraint::On(_) => Joined::LeftWithCondition,
                    _ => Joined::Otherwise,
                }
            }
            _ => Joined::Otherwise,
        }
    }
}

struct Called<'s> {
    state: &'s SessionState,
    names: Vec<String>,
    error: Option<Error>,
}

impl Called<'_> {
    /// Refuses `unnest` with a column, unless it is joined to each row of the tables before.
    fn check_unnest(&mut self, tables: &TableWithJoins, is_first: bool) {
        let joined = tables
            .joins
            .iter()
            .map(|join| (&join.relation, Joined::of(&join.join_operator)));
        let first = match is_first {
            true => Joined::Otherwise,
            false => Joined::ToEachRow,
        };
        for (table, how) in [(&tables.relation, first)].into_iter().chain(joined) {
            match table {
                TableFactor::UNNEST { array_exprs, .. } => {
                    let column = array_exprs.iter().find_map(column_of);
                    let is_possible = how == Joined::ToEachRow && array_exprs.len() == 1;
                    if let Some(inner) = column.as_ref().and(array_exprs.iter().find_map(unnest_in))
                    {
                        self.error = Some(nested(&inner));
                    } else if let Some(column) = column.filter(|_| !is_possible) {
                        let hint = match how {
                            Joined::LeftWithCondition => Some(ONLY_ON_TRUE.to_owned()),
                            _ => in_select(&of_text("unnest", array_exprs)),
                        };
                        self.error = Some(of_column(&column, hint));
                    }
                }
                TableFactor::NestedJoin {
                    table_with_joins, ..
                } => self.check_unnest(table_with_joins, true),
                _ => {}
            }
        }
    }

    fn check_function(&mut self, name: &ObjectName, args: &[FunctionArg], table: &TableFactor) {
        let name = name.to_string();
        let args: Vec<_> = args.iter().filter_map(expr_of).collect();
        if !self.state.table_functions().contains_key(&name) {
            self.error = Some(unknown(&name, table));
        } else if let Some(column) = args.iter().find_map(column_of) {
            let call = format!("unnest({})", of_text(&name, &args));
            self.error = Some(of_column(&column, in_select(&call)));
        }
        self.names.push(name);
    }

    fn checked(&self) -> ControlFlow<()> {
        match self.error {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    }
}

impl Visitor for Called<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &ast::Select) -> ControlFlow<()> {
        for (at, tables) in select.from.iter().enumerate() {
            self.check_unnest(tables, at == 0 || !tables.joins.is_empty());
        }
        self.checked()
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        match table {
            TableFactor::Table {
                name,
                args: Some(args),
                ..
            } => self.check_function(name, &args.args, table),
            TableFactor::Function { name, args, .. } => self.check_function(name, args, table),
            _ => {}
        }
        self.checked()
    }
}

fn is_true(condition: &Expr) -> bool {
    matches!(condition, Expr::Value(value) if value.value == Value::Boolean(true))
}

fn in_select(call: &str) -> Option<String> {
    let hint = format!("write it in SELECT, as SELECT *, {call} AS x FROM logs does");
    Some(hint)
}

fn of_column(column: &Expr, hint: Option<String>) -> Error {
    Error {
        place: place_of(column),
        hint,
        ..Error::usage(format!(
            "a function cannot read columns of other tables, such as `{column}`, in this place of FROM"
        ))
    }
}

/// An `unnest` in an argument.
fn unnest_in(argument: &Expr) -> Option<Expr> {
    let is_unnest = |expr: &Expr| matches!(expr, Expr::Function(called) if called.name.to_string().eq_ignore_ascii_case("unnest"));
    first(argument, &is_unnest)
}

fn nested(inner: &Expr) -> Error {
    let hint = "unnest twice, as FROM logs, unnest(lists) AS u(list), unnest(list) AS v(x) does";
    Error {
        place: place_of(inner),
        hint: Some(hint.to_owned()),
        ..Error::usage(
            "in FROM, the list of an unnest cannot be another unnest of a column".to_owned(),
        )
    }
}

fn of_text(name: &str, args: &[Expr]) -> String {
    let args: Vec<_> = args.iter().map(ToString::to_string).collect();
    format!("{name}({})", args.join(", "))
}

/// The expression that an argument is.
fn expr_of(argument: &FunctionArg) -> Option<Expr> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    }
}

/// A column in an argument. Those of a subquery are its own.
fn column_of(argument: &Expr) -> Option<Expr> {
    let is_subquery = |expr: &Expr| matches!(expr, Expr::Subquery(_));
    let is_column = |expr: &Expr| matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    match first(argument, &is_subquery) {
        Some(_) => None,
        None => first(argument, &is_column),
    }
}

fn unknown(name: &str, table: &TableFactor) -> Error {
    Error {
        place: place_of(table),
        hint: Some(
            "generate_series(1, 10), range(1, 10) and unnest([1, 2]) can stand in FROM".to_owned(),
        ),
        ..Error::usage(format!("there is no function `{name}` that is a table"))
    }
}
