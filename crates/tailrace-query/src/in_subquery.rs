//! `x IN (SELECT ...)` as a condition. DataFusion 55 answers the plain cases rightly: one that stands alone, or beside others with AND,
//! and whose subquery reads nothing of the query around it. Elsewhere it gives false where SQL gives NULL, which shows in NOT and in
//! OR; and of a subquery that reads the query around it, it looks for NULL in all rows, not in those that belong to the row at hand.
//! Such a condition is written in other words here, with EXISTS and counts:
//!
//! - `x IN (s)`: there is a row of `s` with `x = column`.
//! - `x NOT IN (s)`: there is none for which `x = column` is true or NULL.
//! - Where NULL differs from false: true as above; NULL where `x` is NULL and `s` has a row, or where its column is NULL in one.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{
    Column, DFSchema, ExprSchema, JoinType, Result, ScalarValue, Spans, plan_err,
};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Expr, ExprSchemable, Filter, Join, LogicalPlan, LogicalPlanBuilder, Operator, Subquery,
    binary_expr, lit, not, when,
};
use tailrace_sql::tree::{map_parts, map_steps};

use crate::set_comparison::with_own_name;

/// The same plan, with such conditions in other words.
pub(crate) fn answered(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut of_node = |node: LogicalPlan| match node {
        LogicalPlan::Filter(filter) => of_filter(filter),
        LogicalPlan::Join(join) => match above(join)? {
            LogicalPlan::Filter(filter) => {
                let filter = of_filter(filter)?.data;
                Ok(Transformed::yes(filter))
            }
            join => Ok(Transformed::no(join)),
        },
        other => Ok(Transformed::no(other)),
    };
    map_steps(plan, &mut of_node)
}

/// An inner join, below those of its conditions that have such a condition in them.
fn above(mut join: Join) -> Result<LogicalPlan> {
    let has_any = |expr: &Expr| expr.exists(|part| Ok(matches!(part, Expr::InSubquery(_))));
    let Some(filter) = join.filter.take_if(|_| join.join_type == JoinType::Inner) else {
        return Ok(LogicalPlan::Join(join));
    };
    let (mut lifted, mut kept) = (Vec::new(), Vec::new());
    for part in split_conjunction_owned(filter) {
        match has_any(&part)? {
            true => lifted.push(part),
            false => kept.push(part),
        }
    }
    join.filter = conjunction(kept);
    let join = LogicalPlan::Join(join);
    match conjunction(lifted) {
        Some(lifted) => Ok(LogicalPlan::Filter(Filter::try_new(lifted, join.into())?)),
        None => Ok(join),
    }
}

fn of_filter(filter: Filter) -> Result<Transformed<LogicalPlan>> {
    let schema = filter.input.schema();
    let mut is_changed = false;
    let parts = split_conjunction_owned(filter.predicate.clone()).into_iter();
    let parts = parts.map(|part| {
        let part = match without_not(of_one_row(part, &mut is_changed)?) {
            Expr::InSubquery(plain)
                if plain.subquery.outer_ref_columns.is_empty()
                    && !has_unseen_null(&plain, schema)? =>
            {
                return Ok(Expr::InSubquery(plain));
            }
            Expr::InSubquery(found) => {
                is_changed = true;
                return alone(found, schema);
            }
            other => other,
        };
        let part = map_parts(part, &mut |expr| match expr {
            Expr::InSubquery(found) => Ok(Transformed::yes(anywhere(found, schema)?)),
            other => Ok(Transformed::no(other)),
        })?;
        is_changed |= part.transformed;
        Ok(part.data)
    });
    let parts = parts.collect::<Result<Vec<_>>>()?;
    match conjunction(parts) {
        Some(predicate) if is_changed => {
            let filter = Filter::try_new(predicate, filter.input)?;
            Ok(Transformed::yes(LogicalPlan::Filter(filter)))
        }
        _ => Ok(Transformed::no(LogicalPlan::Filter(filter))),
    }
}

/// Whether NOT IN is of a value that may be NULL though none of its columns may: DataFusion looks at those only. Of a value without columns
/// it loses sight altogether.
fn has_unseen_null(it: &InSubquery, schema: &DFSchema) -> Result<bool> {
    if !it.negated || matches!(*it.expr, Expr::Column(_)) {
        return Ok(false);
    }
    let columns = it.expr.column_refs();
    if columns.is_empty() {
        return Ok(true);
    }
    if !it.expr.nullable(schema)? {
        return Ok(false);
    }
    let mut fields = columns
        .iter()
        .map(|column| schema.field_from_column(column));
    let is_seen = fields.any(|field| field.is_ok_and(|field| field.is_nullable()));
    Ok(!is_seen && !it.subquery.subquery.schema().field(0).is_nullable())
}

/// Aggregates without GROUP BY give one row, also of no rows, which DataFusion 55 forgets where they read the query around them: with
/// that row the comparison is one of values.
fn of_one_row(expr: Expr, is_changed: &mut bool) -> Result<Expr> {
    let changed = map_parts(expr, &mut |expr| match expr {
        Expr::InSubquery(found) if gives_one_row(&found.subquery)? => {
            let op = match found.negated {
                false => Operator::Eq,
                true => Operator::NotEq,
            };
            let value = Expr::ScalarSubquery(found.subquery);
            Ok(Transformed::yes(binary_expr(*found.expr, op, value)))
        }
        Expr::SetComparison(found) if gives_one_row(&found.subquery)? => {
            let value = Expr::ScalarSubquery(found.subquery);
            Ok(Transformed::yes(binary_expr(*found.expr, found.op, value)))
        }
        Expr::Exists(found) if gives_one_row(&found.subquery)? => {
            Ok(Transformed::yes(lit(!found.negated)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    *is_changed |= changed.transformed;
    Ok(changed.data)
}

/// Whether a subquery that reads the query around it is an aggregate of all its rows.
///
/// # Errors
///
/// It is one, of which HAVING, LIMIT or the like may leave out the row.
fn gives_one_row(subquery: &Subquery) -> Result<bool> {
    if subquery.outer_ref_columns.is_empty() {
        return Ok(false);
    }
    let mut is_bare = true;
    let mut node = subquery.subquery.as_ref();
    loop {
        match node {
            LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => {
                return match is_bare {
                    true => Ok(true),
                    false => plan_err!(
                        "a subquery of IN or EXISTS that reads the query around it, and is an aggregate of all its rows, has no HAVING, LIMIT or OFFSET"
                    ),
                };
            }
            LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => {}
            LogicalPlan::Filter(_) | LogicalPlan::Limit(_) | LogicalPlan::Sort(_) => {
                is_bare = false;
            }
            _ => return Ok(false),
        }
        match node.inputs().first() {
            Some(input) => node = input,
            None => return Ok(false),
        }
    }
}

/// NOT before IN as a part of it.
fn without_not(expr: Expr) -> Expr {
    match expr {
        Expr::Not(inner) => match without_not(*inner) {
            Expr::InSubquery(found) => Expr::InSubquery(InSubquery {
                negated: !found.negated,
                ..found
            }),
            other => not(other),
        },
        other => other,
    }
}

/// A condition of which only true counts.
fn alone(found: InSubquery, schema: &DFSchema) -> Result<Expr> {
    let subquery = with_own_name(found.subquery)?;
    let is_equal = outer(*found.expr, schema)?.eq(column_of(&subquery));
    match found.negated {
        false => exists(&subquery, Some(is_equal), false),
        true => exists(&subquery, Some(is_equal.is_not_false()), true),
    }
}

/// A condition that is true, false or NULL.
fn anywhere(found: InSubquery, schema: &DFSchema) -> Result<Expr> {
    let subquery = with_own_name(found.subquery)?;
    let column = column_of(&subquery);
    let is_equal = outer((*found.expr).clone(), schema)?.eq(column.clone());
    let is_there = exists(&subquery, Some(is_equal), false)?;
    let has_rows = has_some(&subquery, None)?;
    let has_null = has_some(&subquery, Some(column.is_null()))?;
    let is_null = found.expr.is_null().and(has_rows).or(has_null);
    let null = lit(ScalarValue::Boolean(None));
    when(is_there, lit(!found.negated))
        .when(is_null, null)
        .otherwise(lit(found.negated))
}

/// Whether a subquery has rows, of which a condition is true.
fn has_some(subquery: &Subquery, condition: Option<Expr>) -> Result<Expr> {
    if !subquery.outer_ref_columns.is_empty() {
        return exists(subquery, condition, false);
    }
    // It is the same for all rows: counted once.
    let counted = LogicalPlanBuilder::from(filtered(subquery, condition)?)
        .aggregate(Vec::<Expr>::new(), [count(lit(1_i64))])?
        .build()?;
    let count = Expr::ScalarSubquery(Subquery {
        subquery: Arc::new(counted),
        outer_ref_columns: Vec::new(),
        spans: Spans::new(),
    });
    Ok(count.gt(lit(0_i64)))
}

fn exists(subquery: &Subquery, condition: Option<Expr>, negated: bool) -> Result<Expr> {
    let plan = filtered(subquery, condition)?;
    Ok(Expr::Exists(Exists {
        subquery: Subquery {
            outer_ref_columns: plan.all_out_ref_exprs(),
            subquery: Arc::new(plan),
            spans: subquery.spans.clone(),
        },
        negated,
    }))
}

fn filtered(subquery: &Subquery, condition: Option<Expr>) -> Result<LogicalPlan> {
    let rows = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone());
    match condition {
        Some(condition) => rows.filter(condition)?.build(),
        None => rows.build(),
    }
}

/// The one column of a subquery.
fn column_of(subquery: &Subquery) -> Expr {
    let field = subquery.subquery.schema().qualified_field(0);
    Expr::Column(Column::from(field))
}

/// An expression of the query around, as a subquery sees it.
fn outer(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let outer = map_parts(expr, &mut |expr| match expr {
        Expr::Column(column) => {
            let field = Arc::clone(schema.field_from_column(&column)?);
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
        }
        other => Ok(Transformed::no(other)),
    });
    Ok(outer?.data)
}
