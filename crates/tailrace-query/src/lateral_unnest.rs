//! `FROM t, unnest(t.list)`: each row of a table with each element of its list, and with `LEFT JOIN` also rows without one. DataFusion 55 plans it as a
//! subquery for each row, which it cannot run. Here it is the table with its list unnested.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{
    Column, NullHandling, Result, ScalarValue, TableReference, UnnestOptions,
};
use datafusion::logical_expr::{Expr, Join, JoinType, LogicalPlan, LogicalPlanBuilder};
use tailrace_sql::tree::map_steps_of_other_types;

/// What the list is called before it is unnested.
const LIST: &str = "unnested list";

/// Unnests such lists.
pub(crate) fn unnested(plan: LogicalPlan) -> Result<LogicalPlan> {
    map_steps_of_other_types(plan, &mut |step| {
        if let LogicalPlan::Join(join) = &step
            && let Some(list) = list_of(join)
        {
            return joined(join, list).map(Transformed::yes);
        }
        Ok(Transformed::no(step))
    })
}

/// A list of the table on the left.
struct List {
    expr: Expr,
    options: UnnestOptions,
    /// What the elements are called.
    column: (Option<TableReference>, String),
}

/// The list that stands on the right of a join, if it is one.
fn list_of(join: &Join) -> Option<List> {
    let is_left = join.join_type == JoinType::Left && join.filter.as_ref().is_none_or(is_true);
    if !(join.join_type == JoinType::Inner || is_left) || !join.on.is_empty() {
        return None;
    }
    let subquery = match &*join.right {
        LogicalPlan::SubqueryAlias(named) => &named.input,
        _ => &join.right,
    };
    let LogicalPlan::Subquery(subquery) = &**subquery else {
        return None;
    };
    let mut step = &subquery.subquery;
    while let LogicalPlan::Projection(renamed) = &**step {
        let [expr] = &renamed.expr[..] else {
            return None;
        };
        if !matches!(without_names(expr), Expr::Column(_)) {
            return None;
        }
        step = &renamed.input;
    }
    let LogicalPlan::Unnest(unnest) = &**step else {
        return None;
    };
    let LogicalPlan::Projection(lists) = &*unnest.input else {
        return None;
    };
    let is_alone = matches!(&*lists.input, LogicalPlan::EmptyRelation(_));
    let ([expr], [_], true) = (&lists.expr[..], &unnest.list_type_columns[..], is_alone) else {
        return None;
    };
    let expr = of_left(without_names(expr), join)?;
    let (table, field) = join.right.schema().iter().next()?;
    let column = (table.cloned(), field.name().clone());
    let options = match is_left {
        true => unnest
            .options
            .clone()
            .with_null_handling(NullHandling::PreserveAndExpandEmpty),
        false => unnest.options.clone(),
    };
    Some(List {
        expr,
        options,
        column,
    })
}

fn is_true(condition: &Expr) -> bool {
    matches!(
        condition,
        Expr::Literal(ScalarValue::Boolean(Some(true)), _)
    )
}

fn without_names(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(named) => without_names(&named.expr),
        other => other,
    }
}

/// An expression of a subquery as one over the table on the left, if it reads that one only.
fn of_left(expr: &Expr, join: &Join) -> Option<Expr> {
    let of_left = expr.clone().transform(|part| {
        Ok(match part {
            Expr::OuterReferenceColumn(_, column) => Transformed::yes(Expr::Column(column)),
            other => Transformed::no(other),
        })
    });
    let expr = of_left.ok()?.data;
    let is_known = |column: &&Column| join.left.schema().has_column(column);
    let is_of_left = expr.column_refs().iter().all(is_known);
    is_of_left.then_some(expr)
}

fn joined(join: &Join, list: List) -> Result<LogicalPlan> {
    let columns = join.left.schema().iter();
    let columns: Vec<_> = columns
        .map(|(table, field)| Expr::Column(Column::new(table.cloned(), field.name())))
        .collect();
    let with = |last: Expr| columns.iter().cloned().chain([last]);
    let rows = LogicalPlanBuilder::from(Arc::unwrap_or_clone(Arc::clone(&join.left)))
        .project(with(list.expr.alias(LIST)))?
        .unnest_columns_with_options(vec![Column::from_name(LIST)], list.options)?;
    let element = Expr::Column(Column::from_name(LIST));
    let (table, name) = list.column;
    let rows = rows.project(with(element.alias_qualified(table, name)))?;
    match &join.filter {
        Some(condition) => rows.filter(condition.clone())?.build(),
        None => rows.build(),
    }
}
