//! Conditions that stay where they stand. DataFusion 55 moves a condition below a step if the step computes none of its columns. One without
//! columns, as `HAVING (SELECT max(b) FROM logs) > 10`, would then be asked of the rows that an aggregate takes, which has a row of its own
//! without any; and one of chance, as `random() < 0.5`, of other rows than those it is for: before they are numbered, grouped or joined.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::expr::GroupingSet;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Aggregate, Expr, Filter, LogicalPlan};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use super::joins_by_chance;

/// The rule that moves conditions down does not see such ones above such steps.
pub(super) fn held(
    rule: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Filter(filter) = &plan else {
        return joins_by_chance::held(rule, plan, config);
    };
    // One condition above another one is the same as both, and the rule takes them so.
    let (conditions, input) = all(filter.clone());
    let (held, moved): (Vec<_>, Vec<_>) =
        conditions.into_iter().partition(|it| is_held(it, &input));
    if held.is_empty() {
        return joins_by_chance::held(rule, plan, config);
    }
    let is_one = !matches!(*filter.input, LogicalPlan::Filter(_));
    let Some(moved) = conjunction(moved) else {
        return Ok(Transformed::new_transformed(above(held, input), !is_one));
    };
    let below = Filter::try_new(moved, input).map(LogicalPlan::Filter)?;
    let below = joins_by_chance::held(rule, below, config)?;
    if is_one && !below.transformed {
        return Ok(Transformed::no(plan));
    }
    let (held, input) = match below.data {
        LogicalPlan::Filter(below) => {
            let (others, input) = all(below);
            (held.into_iter().chain(others).collect(), input)
        }
        step => (held, Arc::new(step)),
    };
    Ok(Transformed::yes(above(held, input)))
}

/// The conditions above a step, and the step.
fn all(filter: Filter) -> (Vec<Expr>, Arc<LogicalPlan>) {
    let mut conditions = split_conjunction_owned(filter.predicate);
    let mut input = filter.input;
    while let LogicalPlan::Filter(below) = &*input {
        conditions.extend(split_conjunction_owned(below.predicate.clone()));
        input = Arc::clone(&below.input);
    }
    (conditions, input)
}

fn above(conditions: Vec<Expr>, input: Arc<LogicalPlan>) -> LogicalPlan {
    match conjunction(conditions) {
        Some(condition) => LogicalPlan::Filter(Filter::new(condition, input)),
        None => Arc::unwrap_or_clone(input),
    }
}

/// Whether a condition is not the same below the step.
fn is_held(condition: &Expr, step: &LogicalPlan) -> bool {
    match step {
        LogicalPlan::Aggregate(aggregate) => {
            let is_free = || condition.column_refs().is_empty();
            condition.is_volatile() || (has_row_of_none(aggregate) && is_free())
        }
        LogicalPlan::Window(_)
        | LogicalPlan::Distinct(_)
        | LogicalPlan::Join(_)
        | LogicalPlan::Unnest(_) => condition.is_volatile(),
        _ => false,
    }
}

/// Whether an aggregate has a row where it takes none.
fn has_row_of_none(aggregate: &Aggregate) -> bool {
    match &aggregate.group_expr[..] {
        [] => true,
        [Expr::GroupingSet(GroupingSet::GroupingSets(sets))] => sets.iter().any(Vec::is_empty),
        [Expr::GroupingSet(_)] => true,
        _ => false,
    }
}
