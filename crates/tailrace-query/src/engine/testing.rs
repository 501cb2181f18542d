//! Runs a step that takes the place of one of DataFusion's, with as much memory as a test grants it.

use std::fmt;
use std::sync::Arc;

use arrow::array::{AsArray, UInt32Array};
use arrow::compute::{
    SortColumn, SortOptions, concat_batches, lexsort_to_indices, take_record_batch,
};
use arrow::record_batch::RecordBatch;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation, UnboundedMemoryPool,
};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::SessionConfig;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::given::given;

/// Memory without end for all but one consumer.
#[derive(Debug)]
struct Limited {
    name: &'static str,
    bytes: usize,
    pool: UnboundedMemoryPool,
}

impl fmt::Display for Limited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pool.fmt(f)
    }
}

impl MemoryPool for Limited {
    fn name(&self) -> &str {
        self.pool.name()
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.pool.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.pool.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let is_limited = reservation.consumer().name().starts_with(self.name);
        if is_limited && reservation.size() + additional > self.bytes {
            let text = "as the test has it".to_owned();
            return Err(DataFusionError::ResourcesExhausted(text));
        }
        self.pool.try_grow(reservation, additional)
    }

    fn reserved(&self) -> usize {
        self.pool.reserved()
    }

    /// Of which the consumer has the eighth that steps take.
    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.bytes.saturating_mul(8))
    }
}

/// The rows in batches of `batch_rows`, as the input of a step.
pub(super) fn in_batches(all: &RecordBatch, batch_rows: usize) -> Arc<dyn ExecutionPlan> {
    let parts = (0..all.num_rows()).step_by(batch_rows);
    let parts: Vec<_> = parts
        .map(|first| Ok(all.slice(first, batch_rows.min(all.num_rows() - first))))
        .collect();
    let rows = RecordBatchStreamAdapter::new(all.schema(), stream::iter(parts));
    let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
    let memory = MemoryConsumer::new("none").register(&pool);
    given(Vec::new(), Box::pin(rows), memory).unwrap()
}

/// The first `taken` batches that a step gives. Its consumer `name` is granted `bytes`; nothing may be reserved afterwards.
pub(super) fn run(
    step: &Arc<dyn ExecutionPlan>,
    name: &'static str,
    bytes: usize,
    taken: usize,
) -> Vec<RecordBatch> {
    let pool = Arc::new(Limited {
        name,
        bytes,
        pool: UnboundedMemoryPool::default(),
    });
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::clone(&pool) as Arc<_>);
    let task = TaskContext::default()
        .with_session_config(SessionConfig::new().with_batch_size(7))
        .with_runtime(runtime.build_arc().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let batches = runtime.unwrap().block_on(async {
        let rows = step.execute(0, Arc::new(task)).unwrap();
        rows.take(taken).try_collect().await.unwrap()
    });
    assert_eq!(pool.reserved(), 0);
    batches
}

/// Checks that rows are those of `all`, each once and none torn apart, in the order of arrow's comparison of columns. The last column has
/// the numbers of the rows.
pub(super) fn assert_in_order(
    sorted: &[RecordBatch],
    all: &RecordBatch,
    keys: &[(usize, SortOptions)],
) {
    let columns = keys.iter().map(|(column, options)| SortColumn {
        values: Arc::clone(all.column(*column)),
        options: Some(*options),
    });
    let order = lexsort_to_indices(&columns.collect::<Vec<_>>(), None).unwrap();
    let expected = take_record_batch(all, &order).unwrap();
    let sorted = concat_batches(&all.schema(), sorted).unwrap();
    for (column, _) in keys {
        assert_eq!(sorted.column(*column), expected.column(*column));
    }
    let numbers = sorted.column(all.num_columns() - 1);
    let numbers: &UInt32Array = numbers.as_primitive();
    assert_eq!(take_record_batch(all, numbers).unwrap(), sorted);
    let mut known = numbers.values().to_vec();
    known.sort_unstable();
    assert_eq!(known, (0..all.num_rows() as u32).collect::<Vec<_>>());
}
