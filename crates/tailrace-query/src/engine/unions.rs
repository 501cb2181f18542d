//! Rows of UNION ALL. DataFusion 55 leaves a column out of an order that is constant in each of the queries, as `k` is in `SELECT 1 AS k ... UNION
//! ALL SELECT 2`: within each of them that is right. But what it finds to be beyond the first rows of one of them it leaves out of the files
//! of all, whose rows may come before. A step above, which passes the rows on, says nothing of such constants.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::physical_expr::AcrossPartitions;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::nullable_side::without_constants;
use super::passing::PassingExec;

/// Puts such a step above a union. Comes before all other rules.
pub(super) fn of_union(
    plan: Arc<dyn ExecutionPlan>,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let constants = plan.equivalence_properties().constants();
    let mut across = constants.iter().map(|it| &it.across_partitions);
    if !plan.is::<UnionExec>() || across.all(|it| *it != AcrossPartitions::Heterogeneous) {
        return Ok(Transformed::no(plan));
    }
    Ok(Transformed::yes(PassingExec::new(
        "UnionRowsExec",
        plan,
        without_constants,
        Ok,
    )))
}
