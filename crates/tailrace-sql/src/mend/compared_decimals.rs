//! What decimals are compared with, and chosen beside. DataFusion 55 rounds texts to the decimals' places: here they have places of their own. It
//! makes decimals of 15 places of floats, which are other numbers or do not fit: here a number that is written with a point is the decimal that is
//! written, and beside other floats decimals are floats. And there is room for all digits before a point beside all behind it. Times of day of
//! several units, which DataFusion does not compare, are of nanoseconds.

mod common;
mod steps;

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Between, Case, InList, InSubquery, SetComparison};
use datafusion::logical_expr::expr_schema::cast_subquery;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, Subquery, cast,
};
use datafusion::optimizer::AnalyzerRule;

use self::common::{Of, common, has_room, is_exact, is_text};
use super::{EachExpr, written_decimal};

/// The functions that give one of their arguments, from the one of this place on.
const CHOICES: [(&str, usize); 7] = [
    ("coalesce", 0),
    ("greatest", 0),
    ("ifnull", 0),
    ("least", 0),
    ("nullif", 0),
    ("nvl", 0),
    ("nvl2", 1),
];

/// Casts what stands beside decimals in a plan whose types DataFusion has not made agree yet.
///
/// # Errors
/// An expression of the plan has no type.
pub fn with_room(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = steps::with_room(plan)?;
    EachExpr::new("compared_decimals", of_expr).analyze(plan, &ConfigOptions::default())
}

/// Casts what stands beside decimals in one expression; those in it come before.
pub(crate) fn of_expr(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_cast = match &mut expr {
        Expr::InList(InList { expr, list, .. }) => {
            let parts = std::iter::once(&mut **expr).chain(list);
            of_values(parts.collect(), Of::List, schema)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match of_operator(*op) {
            Some(of) => of_values(vec![left, right], of, schema),
            None => false,
        },
        Expr::Between(Between {
            expr, low, high, ..
        }) => of_values(vec![expr, low, high], Of::Comparison, schema),
        Expr::Case(case) => of_case(case, schema),
        Expr::ScalarFunction(call) => {
            let choice = CHOICES.iter().find(|(name, _)| call.name() == *name);
            choice.is_some_and(|(_, first)| {
                let args = call.args.iter_mut().skip(*first);
                of_values(args.collect(), Of::Choice, schema)
            })
        }
        Expr::InSubquery(InSubquery { expr, subquery, .. })
        | Expr::SetComparison(SetComparison { expr, subquery, .. }) => {
            of_subquery(expr, subquery, schema)?
        }
        _ => false,
    };
    Ok(Transformed::new_transformed(expr, is_cast))
}

fn of_operator(op: Operator) -> Option<Of> {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    match op {
        IsDistinctFrom | IsNotDistinctFrom => Some(Of::Distinct),
        Eq | NotEq | Lt | LtEq | Gt | GtEq => Some(Of::Comparison),
        _ => None,
    }
}

/// The values that a CASE compares, and those that it gives.
fn of_case(case: &mut Case, schema: &DFSchema) -> bool {
    let (mut whens, mut results) = (Vec::new(), Vec::new());
    for (when, then) in &mut case.when_then_expr {
        whens.push(&mut **when);
        results.push(&mut **then);
    }
    results.extend(case.else_expr.as_deref_mut());
    let is_compared = case.expr.as_deref_mut().is_some_and(|expr| {
        whens.push(expr);
        of_values(whens, Of::Comparison, schema)
    });
    is_compared | of_values(results, Of::Choice, schema)
}

/// A value, and a subquery with one column.
fn of_subquery(expr: &mut Expr, subquery: &mut Subquery, schema: &DFSchema) -> Result<bool> {
    let column = subquery.subquery.schema().columns();
    let (Some(column), Ok(ty)) = (column.into_iter().next(), expr.get_type(schema)) else {
        return Ok(false);
    };
    let types = [ty, subquery.subquery.schema().field(0).data_type().clone()];
    let Some(common) = common(
        &[&mut *expr, &mut Expr::Column(column)],
        &types,
        Of::Comparison,
    ) else {
        return Ok(false);
    };
    *expr = cast(std::mem::take(expr), common.clone());
    *subquery = cast_subquery(subquery.clone(), &common)?;
    Ok(true)
}

/// Casts values that are compared, or of which one is chosen; whether that was needed. Rows, as `(a, b)` is one, have values of their own.
fn of_values(parts: Vec<&mut Expr>, of: Of, schema: &DFSchema) -> bool {
    let arity = |part: &Expr| match part {
        Expr::ScalarFunction(call) if call.name() == "struct" => Some(call.args.len()),
        _ => None,
    };
    let Some(columns) = parts.first().and_then(|part| arity(part)) else {
        return of_column(parts, of, schema);
    };
    if parts.iter().any(|part| arity(part) != Some(columns)) {
        return false;
    }
    let mut rows: Vec<_> = parts
        .into_iter()
        .filter_map(|part| match part {
            Expr::ScalarFunction(call) => Some(call.args.iter_mut()),
            _ => None,
        })
        .collect();
    let mut is_cast = false;
    for _ in 0..columns {
        let column = rows.iter_mut().filter_map(Iterator::next);
        is_cast |= of_values(column.collect(), of, schema);
    }
    is_cast
}

fn of_column(mut parts: Vec<&mut Expr>, of: Of, schema: &DFSchema) -> bool {
    let types = parts.iter().map(|part| part.get_type(schema));
    match types.collect::<Result<Vec<_>>>() {
        Ok(mut types) => of_types(&mut parts, &mut types, of),
        Err(_) => false,
    }
}

/// Casts values of these types; whether that was needed.
fn of_types(parts: &mut [&mut Expr], types: &mut [DataType], of: Of) -> bool {
    if of == Of::Choice && !types.iter().any(DataType::is_floating) {
        return false;
    }
    let is_written = as_decimals(parts, types);
    let is_left = of == Of::Comparison && has_room(parts, types) && is_exact(parts, types);
    let Some(common) = common(parts, types, of).filter(|_| !is_left) else {
        return is_written;
    };
    for part in parts {
        let value = std::mem::take(&mut **part);
        **part = cast(value, common.clone());
    }
    true
}

/// Makes decimals of the numbers with a point that are written beside decimals, unless texts or other floats are there too; whether there were
/// any.
fn as_decimals(parts: &mut [&mut Expr], types: &mut [DataType]) -> bool {
    if !types.iter().any(DataType::is_decimal) || types.iter().any(is_text) {
        return false;
    }
    let floats = || types.iter().enumerate().filter(|(_, ty)| ty.is_floating());
    let written = floats().map(|(at, _)| Some((at, written_decimal(parts[at])?)));
    let Some(written) = written.collect::<Option<Vec<_>>>() else {
        return false;
    };
    for (at, value) in &written {
        types[*at] = value.data_type();
        *parts[*at] = Expr::Literal(value.clone(), None);
    }
    !written.is_empty()
}
