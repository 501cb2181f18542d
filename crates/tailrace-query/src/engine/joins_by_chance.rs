//! Joins on conditions of chance, as `ON random() < 0.5`: they are asked of each pair of rows. DataFusion 55 asks them of each row of a table if they
//! have no column of the other one, and makes keys of equalities, which have one value for each row.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, Join, LogicalPlan};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// A rule that looks at one step sees a join without such conditions, also below conditions.
pub(super) fn held(
    rule: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let Some((without, condition)) = taken(&plan) else {
        return rule.rewrite(plan, config);
    };
    let rewritten = rule.rewrite(without, config)?;
    match rewritten.transformed {
        true => rewritten.map_data(|step| given_back(step, condition)),
        false => Ok(Transformed::no(plan)),
    }
}

/// Whether a step is a join with such a condition.
pub(super) fn is_by_chance(step: &LogicalPlan) -> bool {
    matches!(step, LogicalPlan::Join(join) if join.filter.as_ref().is_some_and(Expr::is_volatile))
}

/// The step without such conditions of its join, and them.
fn taken(step: &LogicalPlan) -> Option<(LogicalPlan, Expr)> {
    match step {
        LogicalPlan::Filter(filter) => {
            let (input, condition) = taken(&filter.input)?;
            let filter = Filter::new(filter.predicate.clone(), Arc::new(input));
            Some((LogicalPlan::Filter(filter), condition))
        }
        LogicalPlan::Join(join) if is_by_chance(step) => {
            let conditions = split_conjunction_owned(join.filter.clone()?);
            let (held, others): (Vec<_>, Vec<_>) =
                conditions.into_iter().partition(Expr::is_volatile);
            let without = Join {
                filter: conjunction(others),
                ..join.clone()
            };
            Some((LogicalPlan::Join(without), conjunction(held)?))
        }
        _ => None,
    }
}

/// The step with a condition of its join.
fn given_back(step: LogicalPlan, condition: Expr) -> Result<LogicalPlan> {
    Ok(match step {
        LogicalPlan::Filter(filter) => {
            let input = given_back(Arc::unwrap_or_clone(filter.input), condition)?;
            LogicalPlan::Filter(Filter::new(filter.predicate, Arc::new(input)))
        }
        LogicalPlan::Join(mut join) => {
            join.filter = conjunction(join.filter.into_iter().chain([condition]));
            LogicalPlan::Join(join)
        }
        other => return internal_err!("{} has taken the place of a join", other.display()),
    })
}
