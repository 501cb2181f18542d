//! A step of a plan that runs otherwise than DataFusion runs it, and is the same for all that plan with it.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::stream::{self, TryStreamExt};

/// Runs a step's partition.
pub(super) type Run<T> = fn(&T, usize, Arc<TaskContext>) -> Result<SendableRecordBatchStream>;

/// The rows that a future finds, once somebody asks for the first of them.
pub(super) fn found_by(
    rows: impl Future<Output = Result<SendableRecordBatchStream>> + Send + 'static,
    schema: SchemaRef,
) -> SendableRecordBatchStream {
    let rows = stream::once(rows).try_flatten();
    Box::pin(RecordBatchStreamAdapter::new(schema, rows))
}

/// Takes the place of a step of type `T`.
pub(super) struct ReplacedExec<T> {
    name: &'static str,
    /// A step of type `T`.
    step: Arc<dyn ExecutionPlan>,
    run: Run<T>,
}

impl<T: ExecutionPlan> ReplacedExec<T> {
    #[expect(clippy::new_ret_no_self, reason = "a plan consists of shared steps")]
    pub(super) fn new(
        name: &'static str,
        step: Arc<dyn ExecutionPlan>,
        run: Run<T>,
    ) -> Arc<dyn ExecutionPlan> {
        Arc::new(ReplacedExec { name, step, run })
    }
}

impl<T> fmt::Debug for ReplacedExec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct(self.name);
        fields.field("step", &self.step).finish_non_exhaustive()
    }
}

impl<T: ExecutionPlan> DisplayAs for ReplacedExec<T> {
    fn fmt_as(&self, form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for ", self.name)?;
        self.step.fmt_as(form, f)
    }
}

impl<T: ExecutionPlan> ExecutionPlan for ReplacedExec<T> {
    fn name(&self) -> &str {
        self.name
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.step.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.step.children()
    }

    fn apply_expressions(
        &self,
        each: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.step.apply_expressions(each)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let step = Arc::clone(&self.step).replace_children(children, super::rules::recomputed())?;
        Ok(ReplacedExec::new(self.name, step, self.run))
    }

    fn execute(
        &self,
        partition: usize,
        task: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let Some(step) = self.step.downcast_ref::<T>() else {
            let text = format!("{} replaces {}", self.name, self.step.name());
            return Err(DataFusionError::Internal(text));
        };
        (self.run)(step, partition, task)
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        self.step.benefits_from_input_partitioning()
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        self.step.child_stats_requests(partition)
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        arguments: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        self.step.statistics_from_inputs(inputs, arguments)
    }
}
