//! Sides of outer joins that are missing in some of the rows. DataFusion 55 takes what is constant in all rows of such a side, as
//! `x` is where `x = 1`, for constant in the rows of the join, where it may be NULL: it leaves it out of orders and windows.
//! A step between the side and the join, which passes rows on, says nothing of constants.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{JoinType, Result};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, PlanProperties};

use super::passing::PassingExec;
use super::rules::{join_type, recomputed};

/// Puts such a step between a join and its sides. Comes before all other rules.
pub(super) fn of_join(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let is_nullable = match join_type(plan.as_ref()) {
        Some(JoinType::Left) => [false, true],
        Some(JoinType::Right) => [true, false],
        Some(JoinType::Full) => [true, true],
        _ => return Ok(Transformed::no(plan)),
    };
    let sides = plan.children().into_iter().zip(is_nullable);
    let mut is_changed = false;
    let sides: Vec<_> = sides
        .map(|(side, is_nullable)| {
            let side = Arc::clone(side);
            if !is_nullable || side.equivalence_properties().constants().is_empty() {
                return side;
            }
            is_changed = true;
            nullable(side)
        })
        .collect();
    match is_changed {
        true => Ok(Transformed::yes(
            plan.replace_children(sides, recomputed())?,
        )),
        false => Ok(Transformed::no(plan)),
    }
}

/// Passes on the rows of a side, and says nothing of constants.
fn nullable(side: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    PassingExec::new("NullableSideExec", side, without_constants, Ok)
}

/// What is known of the rows of a step, but for what is constant in them and their order.
pub(super) fn without_constants(side: &Arc<dyn ExecutionPlan>) -> Arc<PlanProperties> {
    let known = side.properties();
    let properties = PlanProperties::new(
        EquivalenceProperties::new(side.schema()),
        known.output_partitioning().clone(),
        known.emission_type,
        known.boundedness,
    );
    Arc::new(properties.with_scheduling_type(known.scheduling_type))
}
