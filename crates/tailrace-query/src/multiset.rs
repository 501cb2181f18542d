//! `INTERSECT ALL` and `EXCEPT ALL`, which pair rows: of n equal rows on the left and m on the right the one has the lesser of n and
//! m, the other n - m of them, if that is more than none. DataFusion 55 plans semi and anti joins, which compare each row of the left
//! with all of the right. So the equal rows of each side are numbered, and the numbers are compared as well.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, NullEquality, Result};
use datafusion::functions_window::row_number::row_number;
use datafusion::logical_expr::{
    Distinct, Expr, ExprFunctionExt, Join, JoinType, LogicalPlan, LogicalPlanBuilder,
};
use tailrace_sql::tree::map_steps;

/// The same plan with rows that are paired as the standard says.
pub(crate) fn paired(plan: LogicalPlan) -> Result<LogicalPlan> {
    map_steps(plan, &mut |node| match node {
        LogicalPlan::Join(join) if is_of_all(&join) => Ok(Transformed::yes(of_pairs(join)?)),
        other => Ok(Transformed::no(other)),
    })
}

/// Whether a join is what DataFusion makes of one of the two. No join that a query spells finds NULL equal to NULL. Rows that are
/// distinct on the left have no other to be paired with; those of DISTINCT ON need not be.
fn is_of_all(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && !matches!(*join.left, LogicalPlan::Distinct(Distinct::All(_)))
}

fn of_pairs(join: Join) -> Result<LogicalPlan> {
    let columns = columns(join.left.schema());
    let (left, left_number) = numbered(join.left, "number on the left")?;
    let (right, right_number) = numbered(join.right, "number on the right")?;
    let mut on = join.on;
    on.push((left_number, right_number));
    let join = Join::try_new(
        Arc::new(left),
        Arc::new(right),
        on,
        join.filter,
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?;
    LogicalPlanBuilder::from(LogicalPlan::Join(join))
        .project(columns)?
        .build()
}

/// A plan with the number of each row among those that are equal to it, in a column of this name.
fn numbered(plan: Arc<LogicalPlan>, name: &str) -> Result<(LogicalPlan, Expr)> {
    let all = columns(plan.schema());
    let number = row_number().partition_by(all.clone()).build()?;
    let plan = LogicalPlanBuilder::from(plan).window([number])?.build()?;
    let (table, field) = plan.schema().qualified_field(all.len());
    let number = Expr::Column(Column::from((table, field))).alias(name);
    let columns = all.into_iter().chain([number]);
    let plan = LogicalPlanBuilder::from(plan).project(columns)?.build()?;
    Ok((plan, Expr::Column(Column::from_name(name))))
}

fn columns(schema: &DFSchema) -> Vec<Expr> {
    let columns = schema.iter();
    columns
        .map(|(table, field)| Expr::Column(Column::from((table, field))))
        .collect()
}
