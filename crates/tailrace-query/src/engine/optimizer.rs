//! DataFusion's rules that optimize a plan, some of them with something of ours around them.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::optimizer::{ApplyOrder, Optimizer};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use tailrace_sql::SimplifiedApart;

use super::repeated_orders::RepeatedOrders;
use super::{held_conditions, join_keys, lone_unions};

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// The rules: without keys of two kinds in one join, with lists of IN apart, conditions where they stand, unions by their names, and keys of
/// orders once.
pub(super) fn rules() -> Vec<Rule> {
    let known = Optimizer::new().rules.into_iter();
    let known = known.map(|rule| {
        let of: Of = match rule.name() {
            "extract_equijoin_predicate" | "eliminate_cross_join" => join_keys::of_one_kind,
            "push_down_filter" => held_conditions::held,
            "propagate_empty_relation" => lone_unions::named,
            "simplify_expressions" => return Arc::new(SimplifiedApart::default()) as Rule,
            _ => return rule,
        };
        Arc::new(Around { rule, of }) as Rule
    });
    let last = Arc::new(RepeatedOrders) as Rule;
    known.chain([last]).collect()
}

/// What becomes of a plan, with the rule at hand.
type Of =
    fn(&dyn OptimizerRule, LogicalPlan, &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>>;

/// A rule with something around it.
struct Around {
    rule: Rule,
    of: Of,
}

impl fmt::Debug for Around {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rule.fmt(f)
    }
}

impl OptimizerRule for Around {
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
        (self.of)(&*self.rule, plan, config)
    }
}
