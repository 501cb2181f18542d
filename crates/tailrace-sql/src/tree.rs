//! Walks over plans and their expressions. DataFusion's own are compiled for each closure, some thirty kilobytes every time; these
//! are compiled once.
//!
//! # Errors
//! Those of the closure, and where the plan is made anew, those of DataFusion.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};

/// What becomes of a step of a plan.
type OfStep<'f> = &'f mut dyn FnMut(LogicalPlan) -> Result<Transformed<LogicalPlan>>;
/// What becomes of an expression.
type OfExpr<'f> = &'f mut dyn FnMut(Expr) -> Result<Transformed<Expr>>;

/// Shows all steps of a plan and of its subqueries, each before those that it reads.
pub fn each_step(
    plan: &LogicalPlan,
    look: &mut dyn FnMut(&LogicalPlan) -> Result<TreeNodeRecursion>,
) -> Result<TreeNodeRecursion> {
    plan.apply_with_subqueries(look)
}

/// Shows an expression and all that it holds, each before its parts.
pub fn each_part(
    expr: &Expr,
    look: &mut dyn FnMut(&Expr) -> Result<TreeNodeRecursion>,
) -> Result<TreeNodeRecursion> {
    expr.apply(look)
}

/// Replaces the steps of a plan and of its subqueries, from the files upwards.
pub fn map_steps(plan: LogicalPlan, of: OfStep<'_>) -> Result<LogicalPlan> {
    Ok(plan.transform_up_with_subqueries(of)?.data)
}

/// The same where a step may get columns of other types: what stands on it finds out anew what it has. That takes long where columns
/// are many, so it begins at the first step that is another one.
pub fn map_steps_of_other_types(plan: LogicalPlan, of: OfStep<'_>) -> Result<LogicalPlan> {
    let mut is_changed = false;
    map_steps(plan, &mut |step| {
        let step = of(step)?;
        is_changed |= step.transformed;
        match is_changed {
            true => step.map_data(LogicalPlan::recompute_schema),
            false => Ok(step),
        }
    })
}

/// Replaces the expressions of one step.
pub fn map_exprs(step: LogicalPlan, of: OfExpr<'_>) -> Result<Transformed<LogicalPlan>> {
    step.map_expressions(of)
}

/// Replaces the parts of an expression and then itself.
pub fn map_parts(expr: Expr, of: OfExpr<'_>) -> Result<Transformed<Expr>> {
    expr.transform_up(of)
}
