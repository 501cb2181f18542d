//! Rows that DataFusion sorts, of which some have been read.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::stream::{self, StreamExt};

/// The rows in order; `memory` is what the batches that have been read hold.
pub(super) fn sorted(
    order: LexOrdering,
    batches: Vec<RecordBatch>,
    input: SendableRecordBatchStream,
    memory: MemoryReservation,
    task: Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    let schema = input.schema();
    let held = |batch: &RecordBatch| batch.get_array_memory_size();
    memory.resize(batches.iter().map(held).sum());
    let first = stream::iter(batches).map(move |batch| {
        // From here on the sort counts it.
        memory.shrink(held(&batch).min(memory.size()));
        Ok(batch)
    });
    let rows = RecordBatchStreamAdapter::new(Arc::clone(&schema), first.chain(input));
    let given: Arc<dyn PartitionStream> = Arc::new(Given {
        schema: Arc::clone(&schema),
        rows: Mutex::new(Some(Box::pin(rows))),
    });
    let given = StreamingTableExec::try_new(schema, vec![given], None, [], false, None)?;
    SortExec::new(order, Arc::new(given)).execute(0, task)
}

/// Rows that are on their way.
pub(super) struct Given {
    pub(super) schema: SchemaRef,
    pub(super) rows: Mutex<Option<SendableRecordBatchStream>>,
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
            let schema = Arc::clone(&self.schema);
            Box::pin(RecordBatchStreamAdapter::new(
                schema,
                stream::iter([Err(error)]),
            ))
        })
    }
}
