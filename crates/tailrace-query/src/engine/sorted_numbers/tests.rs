use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Float32Array, Float64Array, Int8Array, Int64Array, TimestampNanosecondArray,
    UInt64Array,
};
use arrow::compute::{SortColumn, SortOptions, lexsort_to_indices, take_record_batch};
use arrow::record_batch::RecordBatch;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryPool, MemoryReservation, UnboundedMemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr, expressions};
use datafusion::physical_plan::collect;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::streaming::StreamingTableExec;
use proptest::prelude::*;

use super::*;

/// The columns that a test may sort by, the last one tells rows apart.
fn batch(rows: &[(i64, i64, bool)]) -> RecordBatch {
    let of = |value: fn(i64) -> f64| rows.iter().map(move |row| value(row.0));
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "i64",
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|r| r.0))),
        ),
        (
            "u64",
            Arc::new(UInt64Array::from_iter_values(
                rows.iter().map(|r| r.1.cast_unsigned()),
            )),
        ),
        (
            "f64",
            Arc::new(Float64Array::from_iter_values(of(|bits| {
                f64::from_bits(bits.cast_unsigned())
            }))),
        ),
        (
            "f32",
            Arc::new(Float32Array::from_iter_values(
                of(|n| n as f64).map(|n| n as f32),
            )),
        ),
        (
            "i8",
            Arc::new(Int8Array::from_iter_values(rows.iter().map(|r| r.1 as i8))),
        ),
        (
            "time",
            Arc::new(TimestampNanosecondArray::from_iter_values(
                rows.iter().map(|r| r.1),
            )),
        ),
        (
            "sparse",
            Arc::new(Int64Array::from_iter(
                rows.iter()
                    .map(|(_, value, is_null)| (!is_null).then_some(*value)),
            )),
        ),
        (
            "number",
            Arc::new(Int64Array::from_iter_values(0..rows.len() as i64)),
        ),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn order(batch: &RecordBatch, keys: &[(usize, SortOptions)]) -> LexOrdering {
    let keys = keys.iter().map(|(column, options)| {
        let name = batch.schema().field(*column).name().clone();
        PhysicalSortExpr::new(Arc::new(expressions::Column::new(&name, *column)), *options)
    });
    LexOrdering::new(keys).unwrap()
}

/// The values of the keys alone, for rows that are equal may come in any order.
fn compared(batch: &RecordBatch, keys: &[(usize, SortOptions)]) -> Vec<ArrayRef> {
    let columns = keys.iter();
    let columns = columns.map(|(column, _)| Arc::clone(batch.column(*column)));
    columns.collect()
}

fn numbers() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        -3_i64..3,
        Just(f64::NAN.to_bits().cast_signed()),
        Just((-f64::NAN).to_bits().cast_signed()),
        Just((-0.0_f64).to_bits().cast_signed()),
        Just(f64::INFINITY.to_bits().cast_signed()),
        Just(i64::MIN),
        Just(i64::MAX),
    ]
}

fn keys() -> impl Strategy<Value = Vec<(usize, SortOptions)>> {
    let options =
        (any::<bool>(), any::<bool>()).prop_map(|(descending, nulls_first)| SortOptions {
            descending,
            nulls_first,
        });
    proptest::sample::subsequence((0..7).collect::<Vec<_>>(), 1..=3)
        .prop_shuffle()
        .prop_flat_map(move |columns| {
            let options = proptest::collection::vec(options.clone(), columns.len());
            options.prop_map(move |options| columns.iter().copied().zip(options).collect())
        })
}

/// Memory without end for all but the sort at once.
#[derive(Debug)]
struct Limited {
    bytes_at_once: usize,
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
        let is_ours = reservation
            .consumer()
            .name()
            .starts_with("SortedNumbersExec");
        if is_ours && reservation.size() + additional > self.bytes_at_once {
            return Err(DataFusionError::ResourcesExhausted(
                "as the test has it".to_owned(),
            ));
        }
        self.pool.try_grow(reservation, additional)
    }

    fn reserved(&self) -> usize {
        self.pool.reserved()
    }
}

proptest! {
    /// The rows are in the order of arrow's comparison of columns, whichever way they are sorted, also within little memory.
    #[test]
    fn rows_are_in_the_order_of_their_keys(
        rows in proptest::collection::vec((numbers(), numbers(), proptest::bool::weighted(0.05)), 0..200),
        keys in keys(),
        bytes_at_once in prop_oneof![Just(64_usize << 20), 0..40_000_usize],
        batch_rows in 1_usize..70,
    ) {
        let all = batch(&rows);
        let order = order(&all, &keys);
        let columns: Vec<_> = keys.iter().map(|(column, options)| SortColumn {
            values: Arc::clone(all.column(*column)),
            options: Some(*options),
        }).collect();
        let expected = take_record_batch(&all, &lexsort_to_indices(&columns, None).unwrap()).unwrap();
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(Limited { bytes_at_once, pool: UnboundedMemoryPool::default() }))
            .build_arc()
            .unwrap();
        let task = Arc::new(TaskContext::default().with_runtime(runtime));
        let parts = (0..all.num_rows()).step_by(batch_rows);
        let parts: Vec<_> = parts.map(|first| Ok(all.slice(first, batch_rows.min(all.num_rows() - first)))).collect();
        let schema = all.schema();
        let given = Given {
            schema: Arc::clone(&schema),
            rows: Mutex::new(Some(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&schema), stream::iter(parts))))),
        };
        let given = StreamingTableExec::try_new(Arc::clone(&schema), vec![Arc::new(given)], None, [], false, None).unwrap();
        let sort = SortExec::new(order, Arc::new(given));
        let sort = SortedNumbers.optimize(Arc::new(sort), &ConfigOptions::default()).unwrap();
        prop_assert_eq!(sort.name(), "SortedNumbersExec");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let sorted = runtime.block_on(collect(sort, task)).unwrap();
        let sorted = concat_batches(&schema, &sorted).unwrap();
        prop_assert_eq!(compared(&sorted, &keys), compared(&expected, &keys));
        let numbers = |batch: &RecordBatch| {
            let numbers = batch.column(7).as_any().downcast_ref::<Int64Array>().unwrap();
            let mut numbers = numbers.values().to_vec();
            numbers.sort_unstable();
            numbers
        };
        prop_assert_eq!(numbers(&sorted), numbers(&all));
    }
}
