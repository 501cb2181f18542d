//! Groups of few values, as `GROUP BY level, status` has them. DataFusion 55 hashes each key and compares it with that of its group, column by
//! column. Here the values of each column are numbered (`numbers.rs`), short texts and numbers by one look at a small table, and
//! the numbers of a row are its group. What is aggregated for a group is DataFusion's. Where there are many values, DataFusion's step goes on.

mod groups;
mod numbers;
mod table;

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_plan::aggregates::{
    AggregateExec, AggregateInputMode, AggregateMode, AggregateOutputMode, PhysicalGroupBy,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode};
use futures::stream::{self, StreamExt};

use super::given::given;
use super::replaced::{ReplacedExec, found_by};
use groups::{COLUMNS_MAX, Groups};
use numbers::has_numbers;

/// More memory than this is for many groups, or for aggregates that keep what they have seen.
const BYTES_MAX: usize = 1 << 20;

/// Replaces a step that aggregates rows by columns that can have few values. Comes after all other rules, which know the step.
pub(super) fn of_groups(
    plan: Arc<dyn ExecutionPlan>,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let aggregate = plan.downcast_ref::<AggregateExec>();
    if !aggregate.is_some_and(can_have_few) {
        return Ok(Transformed::no(plan));
    }
    let replaced = ReplacedExec::new("FewGroupsExec", plan, execute);
    Ok(Transformed::yes(replaced))
}

fn can_have_few(aggregate: &AggregateExec) -> bool {
    let group = aggregate.group_expr();
    let keys = group.expr().len();
    let schema = aggregate.schema();
    let is_known = |of: &Arc<AggregateFunctionExpr>| {
        !of.is_distinct() && of.order_bys().is_empty() && of.groups_accumulator_supported()
    };
    aggregate.mode().input_mode() == AggregateInputMode::Raw
        && group.is_single()
        && (1..=COLUMNS_MAX).contains(&keys)
        && !aggregate.aggr_expr().is_empty()
        && aggregate.aggr_expr().iter().all(is_known)
        && aggregate.limit_options().is_none()
        && *aggregate.input_order_mode() == InputOrderMode::Linear
        && schema.fields()[..keys]
            .iter()
            .all(|key| has_numbers(key.data_type()))
}

fn execute(
    aggregate: &AggregateExec,
    partition: usize,
    task: Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    let memory = MemoryConsumer::new(format!("FewGroupsExec[{partition}]"));
    let memory = memory.register(task.memory_pool());
    let input = aggregate.input().execute(partition, Arc::clone(&task))?;
    let groups = Groups::new(aggregate)?;
    let schema = aggregate.schema();
    let rows = grouped(groups, Step::of(aggregate), input, memory, task);
    Ok(found_by(rows, schema))
}

/// The groups. If they are not few, DataFusion's step goes on with those that there are.
async fn grouped(
    mut groups: Groups,
    step: Step,
    mut input: SendableRecordBatchStream,
    memory: MemoryReservation,
    task: Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    while let Some(batch) = input.next().await {
        let batch = batch?;
        if !groups.add(&batch)? {
            return step.go_on(groups, vec![(batch, 0)], input, memory, task);
        }
        let bytes = groups.bytes();
        if bytes > BYTES_MAX || memory.try_resize(bytes).is_err() {
            return step.go_on(groups, vec![], input, memory, task);
        }
    }
    let schema = Arc::clone(&step.schema);
    let rows = match step.mode.output_mode() {
        AggregateOutputMode::Final => groups.results(Arc::clone(&schema))?,
        AggregateOutputMode::Partial => groups.states(Arc::clone(&schema))?,
    };
    let rows = stream::iter((rows.num_rows() > 0).then_some(rows)).map(move |rows| {
        // Held until the groups are taken.
        let _ = &memory;
        Ok(rows)
    });
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
}

/// The step that is replaced.
struct Step {
    mode: AggregateMode,
    group: PhysicalGroupBy,
    aggregates: Vec<Arc<AggregateFunctionExpr>>,
    filters: Vec<Option<Arc<dyn PhysicalExpr>>>,
    schema: SchemaRef,
}

impl Step {
    fn of(aggregate: &AggregateExec) -> Step {
        Step {
            mode: *aggregate.mode(),
            group: aggregate.group_expr().clone(),
            aggregates: aggregate.aggr_expr().to_vec(),
            filters: aggregate.filter_expr().to_vec(),
            schema: aggregate.schema(),
        }
    }

    /// What DataFusion makes of the groups, and of what has been read and what has not.
    fn go_on(
        self,
        groups: Groups,
        read: Vec<(RecordBatch, usize)>,
        input: SendableRecordBatchStream,
        memory: MemoryReservation,
        task: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input_schema = input.schema();
        let of_read = memory.new_empty();
        let rest = given(read, input, of_read)?;
        let rest = AggregateExec::try_new(
            AggregateMode::Partial,
            self.group.clone(),
            self.aggregates.clone(),
            self.filters,
            rest,
            Arc::clone(&input_schema),
        )?;
        let (schema, rest) = (rest.schema(), rest.execute(0, Arc::clone(&task))?);
        let bytes = memory.size();
        let all = given(vec![(groups.states(schema)?, bytes)], rest, memory)?;
        if self.mode.output_mode() == AggregateOutputMode::Partial {
            return all.execute(0, task);
        }
        let filters = vec![None; self.aggregates.len()];
        let all = AggregateExec::try_new(
            AggregateMode::Final,
            self.group.as_final(),
            self.aggregates,
            filters,
            all,
            input_schema,
        )?;
        all.execute(0, task)
    }
}

#[cfg(test)]
mod tests;
