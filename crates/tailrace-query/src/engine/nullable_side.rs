//! Sides of outer joins that are missing in some of the rows. DataFusion 55 takes what is constant in all rows of such a side, as
//! `x` is where `x = 1`, for constant in the rows of the join, where it may be NULL: it leaves it out of orders and windows.
//! A step between the side and the join, which passes rows on, says nothing of constants.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, Result, Statistics};
use datafusion::config::ConfigOptions;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};

use super::rules::{join_type, recomputed};

/// The rule that puts such steps into a plan. It comes before all others.
#[derive(Debug)]
pub(super) struct NullableSides;

impl PhysicalOptimizerRule for NullableSides {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(plan.transform_up(of_join)?.data)
    }

    fn name(&self) -> &str {
        "nullable_sides"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn of_join(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
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
            Arc::new(NullableSideExec::new(side)) as Arc<dyn ExecutionPlan>
        })
        .collect();
    match is_changed {
        true => Ok(Transformed::yes(
            plan.replace_children(sides, recomputed())?,
        )),
        false => Ok(Transformed::no(plan)),
    }
}

/// Passes on the rows of a side.
#[derive(Debug)]
struct NullableSideExec {
    side: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl NullableSideExec {
    fn new(side: Arc<dyn ExecutionPlan>) -> NullableSideExec {
        let known = side.properties();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(side.schema()),
            known.output_partitioning().clone(),
            known.emission_type,
            known.boundedness,
        );
        NullableSideExec {
            properties: Arc::new(properties.with_scheduling_type(known.scheduling_type)),
            side,
        }
    }
}

impl DisplayAs for NullableSideExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ExecutionPlan for NullableSideExec {
    fn name(&self) -> &str {
        "NullableSideExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.side]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let side = children.pop().unwrap_or_else(|| Arc::clone(&self.side));
        Ok(Arc::new(NullableSideExec::new(side)))
    }

    fn execute(
        &self,
        partition: usize,
        task: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.side.execute(partition, task)
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::clone(&inputs[0]))
    }
}
