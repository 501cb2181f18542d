//! Sorts of rows that may not fit into memory, by several keys or a computed one. DataFusion 55 has twice the bytes of rows that it sorts
//! reserved. Before it writes them to disk, it merges them by copies of their keys, which are longer than short rows: the sort then ends
//! where it was to go on on disk. Here the keys are made bytes before, in the place of their columns, which are counted with the rows and
//! compared as they are.

mod bytes;

use std::sync::Arc;

use arrow::array::UInt64Array;
use arrow::compute::{SortOptions, take_record_batch};
use arrow::datatypes::Schema;
use arrow::record_batch::RecordBatch;
use arrow::row::RowConverter;
use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{EmptyRecordBatchStream, ExecutionPlan};
use futures::stream::{self, StreamExt, TryStreamExt};

use super::given::given;
use super::kept_texts::copied;
use super::replaced::{ReplacedExec, found_by};
use bytes::{Bytes, fields, is_plain, keys};

/// A part of what each thread may use. Rows that need less fit whatever their keys are, and are left to DataFusion.
const PART: usize = 4;
/// What the copy of a key has beside the value, about.
const MORE_OF_KEY_BYTES: usize = 16;

/// Replaces a sort of which the keys need more than their rows. Comes after all other rules, which know the sort.
pub(super) fn of_keys(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    // The first rows alone are not sorted but picked.
    let sort = plan.downcast_ref::<SortExec>();
    let Some(sort) = sort.filter(|sort| sort.fetch().is_none()) else {
        return Ok(Transformed::no(plan));
    };
    let schema = sort.input().schema();
    let is_ours = !is_compared_in_place(sort.expr(), &schema)?
        && RowConverter::supports_fields(&fields(sort.expr(), &schema)?);
    if !is_ours {
        return Ok(Transformed::no(plan));
    }
    let replaced = ReplacedExec::new("SortedKeysExec", plan, execute);
    Ok(Transformed::yes(replaced))
}

/// Whether DataFusion compares the values of rows where they are.
fn is_compared_in_place(order: &LexOrdering, schema: &Schema) -> Result<bool> {
    let [key] = &order[..] else {
        return Ok(false);
    };
    Ok(key.expr.is::<Column>() && is_plain(&key.expr.data_type(schema)?))
}

fn execute(
    sort: &SortExec,
    partition: usize,
    task: Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    if !task.runtime_env().disk_manager.tmp_files_enabled() {
        return sort.execute(partition, task);
    }
    // From now on, so that all sorts of a query know how many share the memory.
    let memory = MemoryConsumer::new(format!("SortedKeysExec[{partition}]"));
    let memory = memory.with_can_spill(true).register(task.memory_pool());
    let input = sort.input().execute(partition, Arc::clone(&task))?;
    let schema = input.schema();
    let rows = sorted(sort.expr().clone(), input, memory, task);
    Ok(found_by(rows, schema))
}

/// The rows in order: those that certainly fit by their keys, others by the bytes of these.
async fn sorted(
    order: LexOrdering,
    mut input: SendableRecordBatchStream,
    memory: MemoryReservation,
    task: Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    let threads = task.session_config().target_partitions().max(1);
    let is_computed = order.iter().any(|key| !key.expr.is::<Column>());
    let fitting_bytes = match task.memory_pool().memory_limit() {
        // As bytes a value is computed once, and has any length.
        _ if is_computed => 0,
        MemoryLimit::Finite(bytes) => bytes / PART / threads,
        _ => usize::MAX,
    };
    let mut batches = Vec::new();
    while let Some(batch) = input.next().await {
        let batch = batch?;
        let more = bytes_for(&batch, &order)?;
        let fits = memory.size() + more <= fitting_bytes && memory.try_grow(more).is_ok();
        let bytes = if fits { more } else { 0 };
        batches.push((batch, bytes));
        if !fits {
            return by_bytes(order, &given(batches, input, memory)?, task);
        }
    }
    let ended = Box::pin(EmptyRecordBatchStream::new(input.schema()));
    SortExec::new(order, given(batches, ended, memory)?).execute(0, task)
}

/// What DataFusion needs for a batch, at most: its rows twice, and copies of its keys.
fn bytes_for(batch: &RecordBatch, order: &LexOrdering) -> Result<usize> {
    let mut bytes = 2 * batch.get_array_memory_size();
    for key in keys(batch, order)? {
        bytes += key.get_array_memory_size() + batch.num_rows() * MORE_OF_KEY_BYTES;
    }
    Ok(bytes)
}

/// Rows in the order of their keys, which are bytes meanwhile.
fn by_bytes(
    order: LexOrdering,
    rows: &Arc<dyn ExecutionPlan>,
    task: Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    let bytes = Arc::new(Bytes::new(order, rows.schema())?);
    let key = PhysicalSortExpr::new(Arc::new(bytes.column()), SortOptions::new(false, false));
    let rows_max = task.session_config().batch_size().max(1);
    let input = rows.execute(0, Arc::clone(&task))?;
    let input = input.map_ok(move |batch| stream::iter(parts(batch, rows_max)));
    let made = Arc::clone(&bytes);
    let input = input.try_flatten().map(move |part| made.made(&part?));
    let input = RecordBatchStreamAdapter::new(Arc::clone(bytes.sorted()), input);
    let memory = MemoryConsumer::new("SortedKeysExec").register(task.memory_pool());
    let sort = SortExec::new([key].into(), given(Vec::new(), Box::pin(input), memory)?);
    let sorted = sort.execute(0, task)?;
    let sorted = sorted.map(move |batch| bytes.undone(&batch?));
    Ok(Box::pin(RecordBatchStreamAdapter::new(
        rows.schema(),
        sorted,
    )))
}

/// Copies of so many rows of a batch each: one part waits in memory on its own, which a slice would not.
fn parts(batch: RecordBatch, rows_max: usize) -> impl Iterator<Item = Result<RecordBatch>> {
    let rows = batch.num_rows();
    // Without columns there is nothing to copy.
    let rows_max = if batch.num_columns() == 0 {
        rows.max(1)
    } else {
        rows_max
    };
    (0..rows).step_by(rows_max).map(move |first| {
        if rows <= rows_max {
            return copied(&batch, 0);
        }
        let end = rows.min(first + rows_max);
        let numbers = UInt64Array::from_iter_values(first as u64..end as u64);
        copied(&take_record_batch(&batch, &numbers)?, 0)
    })
}

#[cfg(test)]
mod tests;
