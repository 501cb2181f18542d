//! Groups of ROLLUP, CUBE and GROUPING SETS. DataFusion 55 takes a key that is constant in all rows, as `x` is where `x = 1`, for constant in
//! the groups, where it is NULL in those of other keys, and two keys that are equal in all rows for equal there: it gives groups before they
//! are complete, and leaves the key out of orders. A step above, which passes the groups on, says nothing of that.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::nullable_side::without_constants;
use super::passing::PassingExec;

/// Puts such a step above groups. Comes before all other rules.
pub(super) fn of_sets(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let aggregate = plan.downcast_ref::<AggregateExec>();
    let has_sets = aggregate.is_some_and(|it| it.group_expr().has_grouping_set());
    let known = plan.equivalence_properties();
    if !has_sets || (known.eq_group().is_empty() && known.oeq_class().is_empty()) {
        return Ok(Transformed::no(plan));
    }
    Ok(Transformed::yes(PassingExec::new(
        "GroupingSetsExec",
        plan,
        without_constants,
        Ok,
    )))
}
