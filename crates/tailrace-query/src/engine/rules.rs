//! The rules by which steps of a query are chosen: those of DataFusion 55, but for seven of its faults, for steps that need too
//! much (see [`super::distinct_texts`], [`super::few_groups`], [`super::sorted_numbers`], [`super::keys_as_bytes`] and
//! [`super::kept_texts`]), and for files that are damaged (see [`super::damaged`]).
//!
//! - A condition above a join is pushed down by the names of its columns, where a projection has two of one name: it may reach the
//!   other table. The logical plan has moved conditions through joins before, rightly, so that nothing is left to be moved there.
//! - What is constant on one side of a join is taken for constant in its rows, also where the join makes rows without that side.
//!   See [`super::nullable_side`].
//! - A constant key of ROLLUP, CUBE or GROUPING SETS is taken for constant in groups that are without it. See [`super::grouping_sets`].
//! - What is constant in one query of a UNION ALL is left out of the order whose first rows tell the files what cannot be among them. See
//!   [`super::unions`].
//! - The first rows of an order tell the files below what cannot be among them. If one key of the order is a part of another one, as in
//!   `ORDER BY a + b, a`, they tell it of the wrong columns.
//! - What an aggregate gives without reading takes the place of one above it that has a FILTER. See [`super::filtered_aggregates`].
//! - They compare lists and structs otherwise than they are ordered. See [`super::nested_keys`].

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{JoinType, Result};
use datafusion::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::PhysicalExpr;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PiecewiseMergeJoinExec, SortMergeJoinExec,
    SymmetricHashJoinExec,
};
use datafusion::physical_plan::sorts::sort::SortExec;

use super::filtered_aggregates::BelowFilters;
use super::{
    damaged, distinct_texts, few_groups, grouping_sets, kept_texts, keys_as_bytes, nested_keys,
    nullable_side, sorted_numbers, unions,
};

type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// The rules in their order.
pub(super) fn rules() -> Vec<Rule> {
    let step = |name, of| Arc::new(OfSteps { name, of }) as Rule;
    let known = PhysicalOptimizer::new().rules.into_iter();
    let known = known.flat_map(|rule| match rule.name() {
        "FilterPushdown" => vec![Arc::new(BelowJoins {
            rule,
            is_of_joins: false,
        }) as Rule],
        "FilterPushdown(Post)" => vec![
            step("nested_keys", nested_keys::of_first_rows),
            Arc::new(BelowJoins {
                rule,
                is_of_joins: true,
            }),
        ],
        "aggregate_statistics" => vec![Arc::new(BelowFilters(rule)) as Rule],
        _ => vec![rule],
    });
    let first = [
        step("nullable_sides", nullable_side::of_join),
        step("grouping_sets", grouping_sets::of_sets),
        step("unions", unions::of_union),
    ];
    let last = [
        step("distinct_texts", distinct_texts::of_distinct),
        step("few_groups", few_groups::of_groups),
        step("sorted_numbers", sorted_numbers::of_numbers),
        step("keys_as_bytes", keys_as_bytes::of_keys),
        step("kept_texts", kept_texts::of_first_rows),
        // Other rules look at what reads the files.
        step("damaged_files", damaged::of_scan),
    ];
    first.into_iter().chain(known).chain(last).collect()
}

type Step = Arc<dyn ExecutionPlan>;

/// A rule that looks at one step after the other, from the files upwards.
#[derive(Debug)]
struct OfSteps {
    name: &'static str,
    of: fn(Step) -> Result<Transformed<Step>>,
}

impl PhysicalOptimizerRule for OfSteps {
    fn optimize(&self, plan: Step, _: &ConfigOptions) -> Result<Step> {
        Ok(plan.transform_up(self.of)?.data)
    }

    fn name(&self) -> &str {
        self.name
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A rule that is applied to parts of a plan without a join, and without an order of which one key is a part of another.
#[derive(Debug)]
struct BelowJoins {
    rule: Rule,
    /// And to joins of such parts: a join tells one of its sides what it has found in the other.
    is_of_joins: bool,
}

impl PhysicalOptimizerRule for BelowJoins {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let is_left_out = match join_type(plan.as_ref()) {
            Some(_) => !self.is_of_joins,
            None => has_nested_keys(plan.as_ref()),
        };
        if !is_left_out && !plan.children().into_iter().any(has_obstacle) {
            return self.rule.optimize(plan, config);
        }
        let children = plan.children().into_iter().cloned();
        let children = children.map(|child| self.optimize(child, config));
        let children = children.collect::<Result<Vec<_>>>()?;
        plan.replace_children(children, recomputed())
    }

    fn name(&self) -> &str {
        self.rule.name()
    }

    fn schema_check(&self) -> bool {
        self.rule.schema_check()
    }
}

/// Whether there is a step that the rules are not applied to together with others.
fn has_obstacle(plan: &Arc<dyn ExecutionPlan>) -> bool {
    join_type(plan.as_ref()).is_some()
        || has_nested_keys(plan.as_ref())
        || plan.children().into_iter().any(has_obstacle)
}

/// Whether a step gives the first rows of an order of which one key is a part of another.
fn has_nested_keys(plan: &dyn ExecutionPlan) -> bool {
    let sort = plan.downcast_ref::<SortExec>();
    let Some(sort) = sort.filter(|sort| sort.fetch().is_some()) else {
        return false;
    };
    let keys = || sort.expr().iter().map(|key| &key.expr);
    keys().any(|key| {
        let others: Vec<_> = keys().filter(|other| *other != key).collect();
        let is_other = |part: &Arc<dyn PhysicalExpr>| Ok(others.contains(&part));
        key.exists(is_other).unwrap_or(true)
    })
}

/// A step whose children have other properties now.
pub(super) fn recomputed() -> ReplaceChildrenOptions {
    ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute)
}

/// The type of a join, if the step is one.
pub(super) fn join_type(plan: &dyn ExecutionPlan) -> Option<JoinType> {
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        Some(*join.join_type())
    } else if let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() {
        Some(join.join_type())
    } else if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
        Some(*join.join_type())
    } else if let Some(join) = plan.downcast_ref::<SymmetricHashJoinExec>() {
        Some(*join.join_type())
    } else if let Some(join) = plan.downcast_ref::<PiecewiseMergeJoinExec>() {
        Some(join.join_type())
    } else {
        plan.is::<CrossJoinExec>().then_some(JoinType::Inner)
    }
}
