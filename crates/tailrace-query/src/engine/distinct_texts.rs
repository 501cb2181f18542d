//! The distinct texts of one column. DataFusion 55 keeps 33 bytes for each of up to twice as many places as there are texts, besides the
//! texts. Here they are nine (`texts.rs`), and less memory is touched: a million texts take three quarters of the time.

mod texts;

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringViewArray};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::aggregates::{
    AggregateExec, AggregateMode, AggregateOutputMode, PhysicalGroupBy,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode};
use futures::stream::{self, StreamExt};

use super::given::given;
use super::replaced::{ReplacedExec, found_by};
use texts::Texts;

/// An eighth of what a query may use is for the texts of all its partitions; what is more is DataFusion's, which copies those that there
/// are and goes on on disk.
const PART_OF_MEMORY: usize = 8;

/// Replaces a step that finds them. Comes after all other rules, which know the step.
pub(super) fn of_distinct(
    plan: Arc<dyn ExecutionPlan>,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let aggregate = plan.downcast_ref::<AggregateExec>();
    if !aggregate.is_some_and(finds_texts) {
        return Ok(Transformed::no(plan));
    }
    let replaced = ReplacedExec::new("DistinctTextsExec", plan, execute);
    Ok(Transformed::yes(replaced))
}

/// Whether a step finds the distinct texts of one column, all of them in the end.
fn finds_texts(aggregate: &AggregateExec) -> bool {
    let group = aggregate.group_expr();
    let schema = aggregate.schema();
    aggregate.mode().output_mode() == AggregateOutputMode::Final
        && aggregate.aggr_expr().is_empty()
        && group.is_single()
        && group.expr().len() == 1
        && aggregate.limit_options().is_none()
        && *aggregate.input_order_mode() == InputOrderMode::Linear
        && schema.fields().len() == 1
        && *schema.field(0).data_type() == DataType::Utf8View
}

fn execute(
    aggregate: &AggregateExec,
    partition: usize,
    task: Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    let memory = MemoryConsumer::new(format!("DistinctTextsExec[{partition}]"));
    let memory = memory.register(task.memory_pool());
    let input = aggregate.input().execute(partition, Arc::clone(&task))?;
    let schema = aggregate.schema();
    let group = aggregate.group_expr();
    let of_texts = Arc::clone(&group.expr()[0].0);
    let texts = texts_of(input, of_texts, Arc::clone(&schema));
    let partitions = aggregate.properties().partitioning.partition_count();
    let bytes_max = match task.memory_pool().memory_limit() {
        MemoryLimit::Finite(bytes) => bytes / PART_OF_MEMORY / partitions,
        _ => usize::MAX,
    };
    let rows = distinct(texts, group.as_final(), memory, bytes_max, task);
    Ok(found_by(rows, schema))
}

/// The column of texts that is in the batches, or that they give.
fn texts_of(
    input: SendableRecordBatchStream,
    of_texts: Arc<dyn PhysicalExpr>,
    schema: SchemaRef,
) -> SendableRecordBatchStream {
    let texts_schema = Arc::clone(&schema);
    let texts = input.map(move |batch| {
        let batch = batch?;
        let texts = of_texts.evaluate(&batch)?;
        let texts = texts.into_array(batch.num_rows())?;
        Ok(RecordBatch::try_new(Arc::clone(&schema), vec![texts])?)
    });
    Box::pin(RecordBatchStreamAdapter::new(texts_schema, texts))
}

/// Each text once. Those that are too many go through DataFusion's step with what has not been read, as distinct as they are.
async fn distinct(
    mut input: SendableRecordBatchStream,
    group: PhysicalGroupBy,
    memory: MemoryReservation,
    bytes_max: usize,
    task: Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    let schema = input.schema();
    let mut texts = Texts::default();
    let mut fits = true;
    while fits && let Some(batch) = input.next().await {
        texts.add(batch?.column(0).as_string_view())?;
        let bytes = texts.bytes();
        fits = bytes <= bytes_max && memory.try_resize(bytes).is_ok();
    }
    let rows = task.session_config().batch_size().max(1);
    let batch_of = {
        let schema = Arc::clone(&schema);
        move |texts: StringViewArray| {
            let texts: ArrayRef = Arc::new(texts);
            Ok(RecordBatch::try_new(Arc::clone(&schema), vec![texts])?)
        }
    };
    if fits {
        drop(input);
        let parts = texts.finish(rows).map(move |part| {
            // Held until the last text is taken.
            let _ = &memory;
            batch_of(part)
        });
        let parts = RecordBatchStreamAdapter::new(schema, stream::iter(parts));
        return Ok(Box::pin(parts));
    }
    let bytes = texts.bytes();
    let parts = texts.finish(rows).map(|part| Ok((batch_of(part)?, 0)));
    let mut parts = parts.collect::<Result<Vec<_>>>()?;
    // All of them lie in the same memory, which is free after the last one.
    if let Some((_, held)) = parts.last_mut() {
        *held = bytes;
    }
    let rows = given(parts, input, memory)?;
    let mode = AggregateMode::Final;
    let rest = AggregateExec::try_new(mode, group, vec![], vec![], rows, schema)?;
    rest.execute(0, task)
}

#[cfg(test)]
mod tests;
