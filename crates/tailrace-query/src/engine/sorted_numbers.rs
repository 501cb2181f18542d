//! Sorts of rows that have nothing but numbers and times. DataFusion 55 sorts single batches, which it then merges, and compares two
//! columns by a call for each. Here all rows are put in order at once, and two columns compared as one number: a million rows take
//! less than half of the time.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::{SortOptions, concat_batches, take_record_batch};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use arrow::row::{RowConverter, SortField};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result, Statistics};
use datafusion::config::ConfigOptions;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{LexOrdering, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::stream::{self, StreamExt, TryStreamExt};

use super::rules::recomputed;

/// As many bytes are put in order at once; what is more is DataFusion's, which goes on on disk.
const AT_ONCE_BYTES: usize = 256 << 20;

/// The rule that chooses such sorts. It comes after all others, which know the sort that it replaces.
#[derive(Debug)]
pub(super) struct SortedNumbers;

impl PhysicalOptimizerRule for SortedNumbers {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(plan.transform_up(of_numbers)?.data)
    }

    fn name(&self) -> &str {
        "sorted_numbers"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn of_numbers(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(sort) = plan.downcast_ref::<SortExec>() else {
        return Ok(Transformed::no(plan));
    };
    let schema = sort.input().schema();
    let mut types = schema.fields().iter().map(|field| field.data_type());
    let is_of_numbers = types.all(|ty| ty.primitive_width().is_some());
    // The first rows alone are not sorted but picked.
    if !is_of_numbers || sort.fetch().is_some() {
        return Ok(Transformed::no(plan));
    }
    Ok(Transformed::yes(Arc::new(SortedNumbersExec { sort: plan })))
}

/// Puts rows in order as the sort that it replaces.
#[derive(Debug)]
struct SortedNumbersExec {
    /// A [`SortExec`].
    sort: Arc<dyn ExecutionPlan>,
}

impl SortedNumbersExec {
    /// The sort, and its input.
    fn replaced(&self) -> Result<(&LexOrdering, &Arc<dyn ExecutionPlan>)> {
        let sort = self.sort.downcast_ref::<SortExec>();
        let sort = sort.ok_or_else(|| DataFusionError::Internal("no sort".to_owned()))?;
        Ok((sort.expr(), sort.input()))
    }
}

impl DisplayAs for SortedNumbersExec {
    fn fmt_as(&self, form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sort.downcast_ref::<SortExec>() {
            Some(sort) => sort.fmt_as(form, f),
            None => f.write_str(self.name()),
        }
    }
}

impl ExecutionPlan for SortedNumbersExec {
    fn name(&self) -> &str {
        "SortedNumbersExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.sort.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.sort.children()
    }

    fn apply_expressions(
        &self,
        each: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.sort.apply_expressions(each)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let sort = Arc::clone(&self.sort).replace_children(children, recomputed())?;
        Ok(Arc::new(SortedNumbersExec { sort }))
    }

    fn execute(
        &self,
        partition: usize,
        task: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (order, input) = self.replaced()?;
        let order = order.clone();
        let memory = MemoryConsumer::new(format!("SortedNumbersExec[{partition}]"));
        let memory = memory.register(task.memory_pool());
        let input = input.execute(partition, Arc::clone(&task))?;
        let schema = self.schema();
        let rows = sorted(order, input, memory, task);
        let rows = stream::once(rows).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        self.sort.benefits_from_input_partitioning()
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        self.sort.child_stats_requests(partition)
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        arguments: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        self.sort.statistics_from_inputs(inputs, arguments)
    }
}

/// The rows in order; what does not fit goes through DataFusion's sort.
async fn sorted(
    order: LexOrdering,
    mut input: SendableRecordBatchStream,
    memory: MemoryReservation,
    task: Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    let schema = input.schema();
    let mut batches = Vec::new();
    let mut bytes = 0;
    while let Some(batch) = input.next().await {
        let batch = batch?;
        let more = bytes_for(&batch);
        bytes += more;
        let fits = bytes <= AT_ONCE_BYTES && memory.try_grow(more).is_ok();
        batches.push(batch);
        if !fits {
            memory.free();
            let first = stream::iter(batches.into_iter().map(Ok));
            let all = RecordBatchStreamAdapter::new(schema, first.chain(input));
            return as_datafusion_does(order, Box::pin(all), task);
        }
    }
    let all = concat_batches(&schema, &batches)?;
    drop(batches);
    let Some(numbers) = numbers_in_order(&all, &order)? else {
        memory.free();
        let all = RecordBatchStreamAdapter::new(schema, stream::iter([Ok(all)]));
        return as_datafusion_does(order, Box::pin(all), task);
    };
    let rows = task.session_config().batch_size().max(1);
    let parts = (0..numbers.len()).step_by(rows).map(move |first| {
        // Held until the last row is taken.
        let _ = &memory;
        let part = numbers.slice(first, rows.min(numbers.len() - first));
        Ok(take_record_batch(&all, &part)?)
    });
    let parts = RecordBatchStreamAdapter::new(schema, stream::iter(parts));
    Ok(Box::pin(parts))
}

/// What sorting the rows of a batch takes: them as they come, joined and in order, and their keys.
fn bytes_for(batch: &RecordBatch) -> usize {
    let schema = batch.schema();
    let widths = schema.fields().iter();
    let row: usize = widths.filter_map(|f| f.data_type().primitive_width()).sum();
    batch.num_rows() * (3 * row + size_of::<(u128, u32)>() + 2 * size_of::<u64>())
}

/// The numbers of the rows in order, the first row first where rows are equal. None where there are not two keys, one is missing in a
/// row, or is a long number.
fn numbers_in_order(all: &RecordBatch, order: &LexOrdering) -> Result<Option<UInt32Array>> {
    let mut keys = Vec::new();
    for key in order {
        let column = key.evaluate_to_sort_column(all)?;
        let width = column.values.data_type().primitive_width();
        if column.values.null_count() > 0 || width.is_none_or(|width| width > size_of::<u64>()) {
            return Ok(None);
        }
        keys.push((column.values, key.options));
    }
    let [first, second] = keys.as_slice() else {
        // Of one key, arrow has a sort that is as fast.
        return Ok(None);
    };
    let (first, second) = (words(first)?, words(second)?);
    let both = first.into_iter().zip(second);
    let both = both.map(|(a, b)| (u128::from(a) << u64::BITS) | u128::from(b));
    let mut keys: Vec<_> = both.zip(0_u32..).collect();
    keys.sort_unstable();
    let numbers = keys.into_iter().map(|(_, number)| number);
    Ok(Some(UInt32Array::from_iter_values(numbers)))
}

/// The values of a key, as numbers in the same order.
fn words((values, options): &(ArrayRef, SortOptions)) -> Result<Vec<u64>> {
    let key = SortField::new_with_options(values.data_type().clone(), *options);
    let rows = RowConverter::new(vec![key])?.convert_columns(&[Arc::clone(values)])?;
    let words = rows.iter().map(|row| {
        // Behind the byte that tells that there is a value, the value, its most significant byte first.
        let value = &row.data()[1..];
        let mut word = [0; 8];
        word[8 - value.len()..].copy_from_slice(value);
        u64::from_be_bytes(word)
    });
    Ok(words.collect())
}

/// DataFusion's sort of these rows.
fn as_datafusion_does(
    order: LexOrdering,
    rows: SendableRecordBatchStream,
    task: Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    let schema = rows.schema();
    let given: Arc<dyn PartitionStream> = Arc::new(Given {
        schema: Arc::clone(&schema),
        rows: Mutex::new(Some(rows)),
    });
    let given = StreamingTableExec::try_new(schema, vec![given], None, [], false, None)?;
    SortExec::new(order, Arc::new(given)).execute(0, task)
}

/// Rows that are on their way.
struct Given {
    schema: SchemaRef,
    rows: Mutex<Option<SendableRecordBatchStream>>,
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Given").finish_non_exhaustive()
    }
}

impl PartitionStream for Given {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.take().unwrap_or_else(|| {
            let error = DataFusionError::Internal("rows are taken once".to_owned());
            let rows = stream::iter([Err(error)]);
            Box::pin(RecordBatchStreamAdapter::new(
                Arc::clone(&self.schema),
                rows,
            ))
        })
    }
}

#[cfg(test)]
mod tests;
