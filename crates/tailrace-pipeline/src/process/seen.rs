//! Warns once of columns that a query names and the data does not have: after the first ten
//! thousand records a column that was NULL in all of them is probably a misspelt key.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrow::array::{Array, RecordBatch};
use tracing::warn;

use crate::plan::{ColumnFrom, PipelinePlan};

/// Which columns of a query had a value so far.
#[derive(Debug)]
pub(crate) struct ColumnsSeen {
    pipeline: String,
    /// The columns as the user writes them; `None` for those that need not have a value.
    labels: Vec<Option<String>>,
    seen: Vec<AtomicBool>,
    records: AtomicU64,
    reported: AtomicBool,
}

/// Records after which a column without a value is worth a warning.
const RECORDS_MIN: u64 = 10_000;

impl ColumnsSeen {
    pub(crate) fn new(plan: &PipelinePlan) -> Self {
        let label = |(column, from): (&tailrace_sql::Column, &ColumnFrom)| {
            let key = matches!(column.source, tailrace_sql::ColumnSource::Key(_));
            (key && matches!(from, ColumnFrom::Scan(_))).then(|| column.label.clone())
        };
        let labels: Vec<_> = plan
            .query
            .columns()
            .iter()
            .zip(&plan.columns)
            .map(label)
            .collect();
        Self {
            pipeline: plan.name.clone(),
            reported: AtomicBool::new(labels.iter().all(Option::is_none)),
            seen: labels.iter().map(|_| AtomicBool::new(false)).collect(),
            labels,
            records: AtomicU64::new(0),
        }
    }

    /// Whether everything is reported: nothing needs to be noted any more.
    pub(crate) fn is_reported(&self) -> bool {
        self.reported.load(Ordering::Relaxed)
    }

    /// Notes which columns of a batch have a value; warns when it is time. The batch holds all records that were read:
    /// of dropped ones it is not known which keys they had.
    pub(crate) fn note(&self, batch: &RecordBatch) {
        if self.is_reported() {
            return;
        }
        for (seen, column) in self.seen.iter().zip(batch.columns()) {
            if column.null_count() < column.len() {
                seen.store(true, Ordering::Relaxed);
            }
        }
        let rows = batch.num_rows() as u64;
        let records = self.records.fetch_add(rows, Ordering::Relaxed) + rows;
        if records < RECORDS_MIN || self.reported.swap(true, Ordering::Relaxed) {
            return;
        }
        for column in self.missing() {
            warn!(
                pipeline = self.pipeline,
                column,
                records,
                "no record has had this key yet, or a value of its type: it is NULL in all of them; \
                 check its spelling"
            );
        }
    }

    fn missing(&self) -> Vec<&str> {
        let columns = self.labels.iter().zip(&self.seen);
        let mut missing: Vec<&str> = columns
            .filter(|(_, seen)| !seen.load(Ordering::Relaxed))
            .filter_map(|(label, _)| label.as_deref())
            .collect();
        missing.sort_unstable();
        missing.dedup();
        // A key with several types is missing only if it is missing in all of them.
        missing.retain(|label| {
            let mut columns = self.labels.iter().zip(&self.seen);
            !columns.any(|(other, seen)| {
                other.as_deref() == Some(label) && seen.load(Ordering::Relaxed)
            })
        });
        missing
    }
}
