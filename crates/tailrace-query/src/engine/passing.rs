//! A step of a plan that passes on the rows of its input, batch by batch.

use std::fmt;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;

/// What is known of the rows, from the input.
type Properties = fn(&Arc<dyn ExecutionPlan>) -> Arc<PlanProperties>;
/// The same rows, perhaps elsewhere in memory.
type Passed = fn(RecordBatch) -> Result<RecordBatch>;

/// Passes on the rows of its input.
#[derive(Debug)]
pub(super) struct PassingExec {
    name: &'static str,
    input: Arc<dyn ExecutionPlan>,
    properties_of: Properties,
    properties: Arc<PlanProperties>,
    passed: Passed,
}

impl PassingExec {
    #[expect(clippy::new_ret_no_self, reason = "a plan consists of shared steps")]
    pub(super) fn new(
        name: &'static str,
        input: Arc<dyn ExecutionPlan>,
        properties_of: Properties,
        passed: Passed,
    ) -> Arc<dyn ExecutionPlan> {
        Arc::new(PassingExec {
            name,
            properties: properties_of(&input),
            input,
            properties_of,
            passed,
        })
    }
}

impl DisplayAs for PassingExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl ExecutionPlan for PassingExec {
    fn name(&self) -> &str {
        self.name
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
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
        let input = children.pop().unwrap_or_else(|| Arc::clone(&self.input));
        Ok(PassingExec::new(
            self.name,
            input,
            self.properties_of,
            self.passed,
        ))
    }

    fn execute(
        &self,
        partition: usize,
        task: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let passed = self.passed;
        let batches = self.input.execute(partition, task)?;
        let batches = batches.map(move |batch| passed(batch?));
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            batches,
        )))
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
