//! A hundred thousand small batches through one evaluator leave memory where it was.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use arrow::array::{ArrayRef, StringViewArray};
use arrow::record_batch::RecordBatch;
use tailrace_sql::{Evaluator, Options, Query, Rows};

const BATCHES: usize = 100_000;

/// More than an allocator's noise, far less than 100 bytes for each batch.
const GROWTH_BYTES_MAX: u64 = 8 << 20;

#[test]
fn the_general_path_stays_flat() {
    let sql =
        "SELECT unnest(string_to_array(tags, ',')) AS tag, now() AS n FROM logs WHERE tags <> ''";
    let query = Query::compile(sql, &Options::default()).unwrap();
    assert!(!query.branches()[0].row_wise);
    let tags = StringViewArray::from(vec!["a,b", "", "a longer text than fits a view,c"]);
    let batch = RecordBatch::try_new(query.schema(), vec![Arc::new(tags) as ArrayRef]).unwrap();
    let mut evaluator = query.evaluator();
    run(&mut evaluator, &batch, BATCHES / 10);
    let before = resident_bytes();
    run(&mut evaluator, &batch, BATCHES);
    let Some((before, after)) = before.zip(resident_bytes()) else {
        return;
    };
    let growth = after.saturating_sub(before);
    assert!(
        growth < GROWTH_BYTES_MAX,
        "{growth} bytes more after {BATCHES} batches"
    );
}

fn run(evaluator: &mut Evaluator, batch: &RecordBatch, count: usize) {
    for at in 0..count {
        let evaluated = evaluator.evaluate(batch, at as i64);
        assert_eq!(evaluated.branches[0].rows, Rows::Some(vec![0, 0, 2, 2]));
        assert_eq!(evaluated.failed_rows, 0);
    }
}

/// Resident memory of this process; `None` where the system has no such file.
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}
