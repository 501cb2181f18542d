//! The keys of joins: DataFusion 55 makes keys of `a IS NOT DISTINCT FROM b`, whose NULLs are equal, and then also of an `a = b` above that
//! join, whose NULLs are not.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::logical_expr::{Limit, LogicalPlan};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// A rule that makes keys of conditions does not see joins whose NULLs are equal.
pub(super) fn of_one_kind(
    rule: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    if rule.apply_order().is_some() {
        // It looks at one step.
        return match has_equal_nulls(&plan) {
            true => Ok(Transformed::no(plan)),
            false => rule.rewrite(plan, config),
        };
    }
    if !any_has_equal_nulls(&plan)? {
        return rule.rewrite(plan, config);
    }
    let plan = plan.transform_up_with_subqueries(|step| Ok(hidden(step)))?;
    let plan = rule.rewrite(plan.data, config)?;
    plan.map_data(|plan| {
        let plan = plan.transform_up_with_subqueries(|step| Ok(shown(step)))?;
        Ok(plan.data)
    })
}

fn has_equal_nulls(step: &LogicalPlan) -> bool {
    matches!(step, LogicalPlan::Join(join) if join.null_equality == NullEquality::NullEqualsNull)
}

/// Whether a step is an inner join with such keys: of the others, no keys are made where the rule looks through the whole plan.
fn is_to_hide(step: &LogicalPlan) -> bool {
    let is_inner = matches!(step, LogicalPlan::Join(join) if join.join_type == JoinType::Inner);
    is_inner && has_equal_nulls(step)
}

fn any_has_equal_nulls(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|step| {
        found |= is_to_hide(step);
        Ok(match found {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(found)
}

/// Such a join below a limit that lets everything pass, through which no join is seen.
fn hidden(step: LogicalPlan) -> Transformed<LogicalPlan> {
    match is_to_hide(&step) {
        true => Transformed::yes(LogicalPlan::Limit(Limit {
            skip: None,
            fetch: None,
            input: Arc::new(step),
        })),
        false => Transformed::no(step),
    }
}

/// What is below such a limit.
fn shown(step: LogicalPlan) -> Transformed<LogicalPlan> {
    match step {
        LogicalPlan::Limit(Limit {
            skip: None,
            fetch: None,
            input,
        }) => Transformed::yes(Arc::unwrap_or_clone(input)),
        other => Transformed::no(other),
    }
}
