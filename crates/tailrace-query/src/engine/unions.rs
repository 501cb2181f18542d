//! Rows of UNION ALL. DataFusion 55 puts the rows of each query in order by itself, and leaves columns out of that order that are constant in
//! them, or equal to others, as `k` is in `SELECT 1 AS k ... UNION ALL SELECT 2`. Within one query that is right. But what it finds to be beyond
//! the first rows of one it leaves out of the files of all, whose rows may come before; and of the rows of all it may no longer know that they
//! are in order. A step above, which passes the rows on, is put in order as a whole.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::nullable_side::without_constants;
use super::passing::PassingExec;

/// Puts such a step above a union. Comes before all other rules.
pub(super) fn of_union(
    plan: Arc<dyn ExecutionPlan>,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let mut queries = plan.children().into_iter();
    let is_known = |query: &Arc<dyn ExecutionPlan>| {
        let known = query.equivalence_properties();
        !known.eq_group().is_empty()
    };
    if !plan.is::<UnionExec>() || !queries.any(is_known) {
        return Ok(Transformed::no(plan));
    }
    Ok(Transformed::yes(PassingExec::new(
        "UnionRowsExec",
        plan,
        without_constants,
        Ok,
    )))
}
