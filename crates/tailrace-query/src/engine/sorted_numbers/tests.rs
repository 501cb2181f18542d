//! Rows in order, beside the order of arrow's comparison of columns.

use arrow::array::{
    ArrayRef, Date32Array, Float32Array, Float64Array, Int8Array, Int64Array,
    TimestampNanosecondArray, UInt32Array, UInt64Array,
};
use arrow::compute::SortOptions;
use datafusion::physical_expr::{PhysicalSortExpr, expressions};
use proptest::prelude::*;

use super::*;
use crate::engine::testing::{assert_in_order, in_batches, run};

/// The column that has the numbers of rows.
const NUMBER: usize = 8;

/// Columns that a test may sort by, and one that tells rows apart.
fn batch(rows: &[(i64, i64, bool)]) -> RecordBatch {
    let first = || rows.iter().map(|row| row.0);
    let second = || rows.iter().map(|row| row.1);
    let floats = first().map(|bits| f64::from_bits(bits.cast_unsigned()));
    let sparse = rows
        .iter()
        .map(|(_, value, is_null)| (!is_null).then_some(*value));
    let columns: [ArrayRef; NUMBER + 1] = [
        Arc::new(Int64Array::from_iter_values(first())),
        Arc::new(UInt64Array::from_iter_values(
            second().map(i64::cast_unsigned),
        )),
        Arc::new(Float64Array::from_iter_values(floats)),
        Arc::new(Float32Array::from_iter_values(first().map(|n| n as f32))),
        Arc::new(Int8Array::from_iter_values(second().map(|n| n as i8))),
        Arc::new(TimestampNanosecondArray::from_iter_values(second())),
        Arc::new(Date32Array::from_iter_values(first().map(|n| n as i32))),
        Arc::new(Int64Array::from_iter(sparse)),
        Arc::new(UInt32Array::from_iter_values(0..rows.len() as u32)),
    ];
    RecordBatch::try_from_iter(
        columns
            .into_iter()
            .enumerate()
            .map(|(at, column)| (format!("c{at}"), column)),
    )
    .unwrap()
}

type Keys = Vec<(usize, SortOptions)>;

fn order(keys: &Keys) -> LexOrdering {
    let keys = keys.iter().map(|(column, options)| {
        let name = format!("c{column}");
        PhysicalSortExpr::new(Arc::new(expressions::Column::new(&name, *column)), *options)
    });
    LexOrdering::new(keys).unwrap()
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

/// Two columns to sort by, seldom one that lacks values; or one, or three.
fn keys() -> impl Strategy<Value = Keys> {
    let options = (any::<bool>(), any::<bool>());
    let options = options.prop_map(|(descending, nulls_first)| SortOptions {
        descending,
        nulls_first,
    });
    let columns = |count| proptest::sample::subsequence((0..NUMBER).collect::<Vec<_>>(), count);
    prop_oneof![4 => columns(2..=2), 1 => columns(1..=3)]
        .prop_shuffle()
        .prop_flat_map(move |columns| {
            let options = proptest::collection::vec(options.clone(), columns.len());
            options.prop_map(move |options| columns.iter().copied().zip(options).collect())
        })
}

/// The rows as the rule has them sorted, or as many batches of them as are taken; nothing may be reserved afterwards.
fn sorted_by_rule(
    all: &RecordBatch,
    keys: &Keys,
    bytes_at_once: usize,
    batch_rows: usize,
    taken: usize,
) -> Vec<RecordBatch> {
    let rows = in_batches(all, batch_rows);
    let sort = of_numbers(Arc::new(SortExec::new(order(keys), rows)));
    let sort = sort.unwrap().data;
    assert_eq!(sort.name() == "SortedNumbersExec", keys.len() == 2);
    run(&sort, "SortedNumbersExec", bytes_at_once, taken)
}

proptest! {
    /// The rows are in the order of arrow's comparison of columns, whichever way they are sorted, and whole.
    #[test]
    fn rows_are_in_the_order_of_their_keys(
        rows in proptest::collection::vec((numbers(), numbers(), proptest::bool::weighted(0.02)), 0..200),
        keys in keys(),
        bytes_at_once in prop_oneof![Just(64_usize << 20), 0..200_000_usize],
        batch_rows in 1_usize..70,
    ) {
        let all = batch(&rows);
        let sorted = sorted_by_rule(&all, &keys, bytes_at_once, batch_rows, usize::MAX);
        assert_in_order(&sorted, &all, &keys);
    }
}

#[test]
fn rows_that_are_equal_stay_in_their_order() {
    let all = batch(&[(5, 1, false); 40]);
    let keys = vec![(0, SortOptions::default()), (1, SortOptions::default())];
    let sorted = sorted_by_rule(&all, &keys, 1 << 20, 3, usize::MAX);
    assert_eq!(concat_batches(&all.schema(), &sorted).unwrap(), all);
}

#[test]
fn memory_is_given_back_by_who_takes_some_rows() {
    let rows: Vec<_> = (0..100).map(|n| (n % 7, n, false)).collect();
    let all = batch(&rows);
    let keys = vec![(0, SortOptions::default()), (1, SortOptions::default())];
    for bytes_at_once in [10_000, 1 << 20] {
        let some = sorted_by_rule(&all, &keys, bytes_at_once, 10, 1);
        assert_eq!(some.len(), 1);
    }
}
