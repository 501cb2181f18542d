//! The keys of joins: DataFusion 55 makes keys of `a IS NOT DISTINCT FROM b`, whose NULLs are equal, and then also of an `a = b` above that
//! join, whose NULLs are not; or it makes the NULLs equal of all joins below that one.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, Limit, LogicalPlan};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use tailrace_sql::tree::{each_step, map_steps};

use super::joins_by_chance::{self, is_by_chance};

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
            false => joins_by_chance::held(rule, plan, config),
        };
    }
    if !any_is_to_hide(&plan)? {
        return rule.rewrite(plan, config);
    }
    let plan = map_steps(plan, &mut |step| Ok(hidden(step)))?;
    let plan = rule.rewrite(plan, config)?;
    plan.map_data(|plan| map_steps(plan, &mut |step| Ok(shown(step))))
}

fn has_equal_nulls(step: &LogicalPlan) -> bool {
    matches!(step, LogicalPlan::Join(join) if join.null_equality == NullEquality::NullEqualsNull)
}

/// Whether a step is an inner join with such keys, or by chance, which is of two tables and not of three: of the others, no keys are made where
/// the rule looks through the whole plan.
fn is_to_hide(step: &LogicalPlan) -> bool {
    let is_inner = matches!(step, LogicalPlan::Join(join) if join.join_type == JoinType::Inner);
    is_inner && (has_equal_nulls(step) || is_by_chance(step))
}

/// Whether conditions of which one is of chance stand above a join, whose keys it must not become.
fn has_chance(filter: &Filter) -> bool {
    matches!(*filter.input, LogicalPlan::Join(_)) && filter.predicate.is_volatile()
}

fn any_is_to_hide(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    each_step(plan, &mut |step| {
        let has_chance = matches!(step, LogicalPlan::Filter(filter) if has_chance(filter));
        found |= has_chance || is_to_hide(step);
        Ok(match found {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(found)
}

/// Such a join below a limit that lets everything pass, through which no join is seen; of conditions of chance above a join, only these above
/// the limit.
fn hidden(step: LogicalPlan) -> Transformed<LogicalPlan> {
    match step {
        LogicalPlan::Filter(filter) if has_chance(&filter) => {
            let conditions = split_conjunction_owned(filter.predicate);
            let (by_chance, others): (Vec<_>, Vec<_>) =
                conditions.into_iter().partition(Expr::is_volatile);
            let input = filtered(others, filter.input);
            let below = Arc::new(below_limit(Arc::unwrap_or_clone(input)));
            Transformed::yes(Arc::unwrap_or_clone(filtered(by_chance, below)))
        }
        step if is_to_hide(&step) => Transformed::yes(below_limit(of_two(step))),
        step => Transformed::no(step),
    }
}

/// A join through which those below it are not seen, of which it would make joins of its own kind.
fn of_two(step: LogicalPlan) -> LogicalPlan {
    let LogicalPlan::Join(mut join) = step else {
        return step;
    };
    for side in [&mut join.left, &mut join.right] {
        if matches!(**side, LogicalPlan::Join(_)) {
            let below = below_limit(Arc::unwrap_or_clone(std::mem::take(side)));
            *side = Arc::new(below);
        }
    }
    LogicalPlan::Join(join)
}

fn below_limit(step: LogicalPlan) -> LogicalPlan {
    LogicalPlan::Limit(Limit {
        skip: None,
        fetch: None,
        input: Arc::new(step),
    })
}

fn filtered(conditions: Vec<Expr>, input: Arc<LogicalPlan>) -> Arc<LogicalPlan> {
    match conjunction(conditions) {
        Some(condition) => Arc::new(LogicalPlan::Filter(Filter::new(condition, input))),
        None => input,
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
