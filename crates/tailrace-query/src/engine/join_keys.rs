//! The keys of joins: DataFusion 55 makes keys of `a IS NOT DISTINCT FROM b`, whose NULLs are equal, and then also of an `a = b` above that
//! join, whose NULLs are not.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::optimizer::{ApplyOrder, Optimizer};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// DataFusion's rules, without keys of two kinds in one join.
pub(super) fn rules() -> Vec<Rule> {
    let known = Optimizer::new().rules.into_iter();
    let known = known.map(|rule| match rule.name() {
        "extract_equijoin_predicate" => Arc::new(OfOneKind {
            rule,
            is_left_out: |plan| Ok(has_equal_nulls(plan)),
        }) as Rule,
        // It looks through the whole plan at once.
        "eliminate_cross_join" => Arc::new(OfOneKind {
            rule,
            is_left_out: any_has_equal_nulls,
        }),
        _ => rule,
    });
    known.collect()
}

/// A rule that makes keys of conditions, which is left out where NULLs of the other keys are equal.
#[derive(Debug)]
struct OfOneKind {
    rule: Rule,
    is_left_out: fn(&LogicalPlan) -> Result<bool>,
}

impl OptimizerRule for OfOneKind {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match (self.is_left_out)(&plan)? {
            true => Ok(Transformed::no(plan)),
            false => self.rule.rewrite(plan, config),
        }
    }
}

fn has_equal_nulls(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Join(join) if join.null_equality == NullEquality::NullEqualsNull)
}

/// Whether an inner join of the plan is one: of the others, no keys are made there.
fn any_has_equal_nulls(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|step| {
        let is_inner = matches!(step, LogicalPlan::Join(join) if join.join_type == JoinType::Inner);
        found |= is_inner && has_equal_nulls(step);
        Ok(match found {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(found)
}
