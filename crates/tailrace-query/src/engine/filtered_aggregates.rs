//! Aggregates with FILTER above others: `SELECT sum(c) FILTER (WHERE c = 1) FROM (SELECT max(a) AS c ...)`. Where DataFusion 55 knows what an aggregate gives
//! without reading, it takes that; looking for one to which this applies, it goes past such a filter, finds the one below, and has its
//! columns in the place of those above.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;

use super::rules::recomputed;

/// The rule, which sees only parts of a plan without such aggregates.
#[derive(Debug)]
pub(super) struct BelowFilters(pub(super) Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl PhysicalOptimizerRule for BelowFilters {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if !has_filter(&plan) {
            return self.0.optimize(plan, config);
        }
        let children = plan.children().into_iter().cloned();
        let children = children.map(|child| self.optimize(child, config));
        let children = children.collect::<Result<Vec<_>>>()?;
        plan.replace_children(children, recomputed())
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

fn has_filter(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let aggregate = plan.downcast_ref::<AggregateExec>();
    aggregate.is_some_and(|it| it.filter_expr().iter().any(Option::is_some))
        || plan.children().into_iter().any(has_filter)
}
