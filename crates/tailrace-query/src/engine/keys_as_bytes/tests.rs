//! Rows in order, beside the order of arrow's comparison of columns.

use arrow::array::{ArrayRef, BooleanArray, Int64Array, StringArray, UInt32Array};
use proptest::prelude::*;

use super::*;
use crate::engine::testing::{assert_in_order, in_batches, run};

/// The column that has the numbers of rows.
const NUMBER: usize = 3;

type Row = (Option<i64>, Option<String>, Option<bool>);

fn batch(rows: &[Row]) -> RecordBatch {
    let columns: [ArrayRef; NUMBER + 1] = [
        Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>()),
        Arc::new(
            rows.iter()
                .map(|row| row.1.as_deref())
                .collect::<StringArray>(),
        ),
        Arc::new(rows.iter().map(|row| row.2).collect::<BooleanArray>()),
        Arc::new(UInt32Array::from_iter_values(0..rows.len() as u32)),
    ];
    let names = ["n", "t", "b", "number"];
    RecordBatch::try_from_iter(names.into_iter().zip(columns)).unwrap()
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let number = prop_oneof![any::<i64>(), -2_i64..2];
    let number = proptest::option::weighted(0.9, number);
    let text = proptest::option::weighted(0.9, "[ab\0\u{ff}]{0,10}");
    let row = (number, text, any::<Option<bool>>());
    proptest::collection::vec(row, 0..200)
}

/// Columns to sort by, in any order.
fn keys() -> impl Strategy<Value = Vec<(usize, SortOptions)>> {
    let columns = proptest::sample::subsequence(vec![0, 1, 2], 2..=3).prop_shuffle();
    let options = any::<[(bool, bool); 3]>();
    (columns, options).prop_map(|(columns, options)| {
        let options = options.map(|(descending, first)| SortOptions::new(descending, first));
        columns.into_iter().zip(options).collect()
    })
}

fn sort(all: &RecordBatch, keys: &[(usize, SortOptions)], rows: usize) -> Arc<dyn ExecutionPlan> {
    let keys = keys.iter().map(|(column, options)| {
        PhysicalSortExpr::new(Arc::new(Column::new("", *column)), *options)
    });
    let order = LexOrdering::new(keys).unwrap();
    let sort = of_keys(Arc::new(SortExec::new(order, in_batches(all, rows))));
    sort.unwrap().data
}

proptest! {
    /// The rows are in the order of arrow's comparison of columns, whether they fit or not, and whole.
    #[test]
    fn rows_are_in_the_order_of_their_keys(
        rows in rows(),
        keys in keys(),
        bytes in prop_oneof![Just(64_usize << 20), 0..50_000_usize],
        batch_rows in 1_usize..70,
    ) {
        let all = batch(&rows);
        let sort = sort(&all, &keys, batch_rows);
        prop_assert_eq!(sort.name(), "SortedKeysExec");
        let sorted = run(&sort, "SortedKeysExec", bytes, usize::MAX);
        assert_in_order(&sorted, &all, &keys);
    }
}

#[test]
fn sorts_by_a_column_are_left_as_they_are() {
    let all = batch(&[(Some(1), None, None)]);
    for (column, name) in [(0, "SortExec"), (1, "SortExec"), (2, "SortedKeysExec")] {
        let sort = sort(&all, &[(column, SortOptions::default())], 1);
        assert_eq!(sort.name(), name);
    }
}

#[test]
fn memory_is_given_back_by_who_takes_some_rows() {
    let rows: Vec<Row> = (0..100).map(|n| (Some(n % 7), None, None)).collect();
    let keys = [(0, SortOptions::default()), (1, SortOptions::default())];
    for bytes in [1_000, 1 << 20] {
        let some = run(&sort(&batch(&rows), &keys, 10), "SortedKeysExec", bytes, 1);
        assert_eq!(some.len(), 1);
    }
}
