//! Rows that are on their way, as the input of a step.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::stream::{self, StreamExt};

/// Rows that have been read, and those that have not. With each batch come the bytes that `memory` holds until it is taken; from then on
/// the step counts them.
pub(super) fn given(
    batches: Vec<(RecordBatch, usize)>,
    rest: SendableRecordBatchStream,
    memory: MemoryReservation,
) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = rest.schema();
    memory.resize(batches.iter().map(|(_, bytes)| bytes).sum());
    let first = stream::iter(batches).map(move |(batch, bytes)| {
        memory.shrink(bytes);
        Ok(batch)
    });
    let rows = RecordBatchStreamAdapter::new(Arc::clone(&schema), first.chain(rest));
    let given: Arc<dyn PartitionStream> = Arc::new(Given {
        schema: Arc::clone(&schema),
        rows: Mutex::new(Some(Box::pin(rows))),
    });
    let given = StreamingTableExec::try_new(schema, vec![given], None, [], false, None)?;
    Ok(Arc::new(given))
}

/// Rows that are taken once.
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
            let schema = Arc::clone(&self.schema);
            Box::pin(RecordBatchStreamAdapter::new(
                schema,
                stream::iter([Err(error)]),
            ))
        })
    }
}
