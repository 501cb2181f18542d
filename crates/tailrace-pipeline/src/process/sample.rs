//! Tries a plan on a sample of log bytes: how many of its records the query passes, and which of the keys that the query
//! names the sample does not have. Pure: takes bytes, gives counts and names.

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use bytes::Bytes;
use tailrace_frame::{Framer, Frames};
use tailrace_scan::{Scanned, Scanner};

use crate::input::frame_config::frame_config;
use crate::plan::{ColumnFrom, PipelinePlan, offset_s};
use crate::process::transform::{kept_records, scan_records};

/// What a sample shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampled {
    /// Records in the sample.
    pub records: usize,
    /// Records that are not JSON as far as the query reads them.
    pub malformed: usize,
    /// Keys that the query names and that are NULL in every record, as the query writes them: no
    /// record has them, or none of their values fits its type.
    pub missing: Vec<String>,
    /// Records of which the query makes at least one row; `None` if a condition asks for what only a source knows, such
    /// as the pod.
    pub passed: Option<usize>,
    /// Records for which an expression failed: it is NULL there.
    pub failed: u64,
}

/// Frames and scans `bytes` as the pipeline's first input would, and runs the query. `observed_ns` is what `now()` gives, in
/// nanoseconds since the Unix epoch.
///
/// # Panics
///
/// If the sample is 4 GiB or more.
pub fn sample(plan: &PipelinePlan, bytes: Vec<u8>, observed_ns: i64) -> Sampled {
    let input = &plan.config.inputs[0];
    let mut frames = Frames::default();
    let mut framer = Framer::new(&frame_config(input, plan.config.limits.replay), 0, false);
    framer.push(&bytes, 0, 0, &mut frames);
    framer.finish(&mut frames);
    let config = tailrace_scan::Config {
        offset_s: offset_s(input),
        ..plan.scan.clone()
    };
    let buffers = [
        Bytes::from(bytes),
        Bytes::from(std::mem::take(&mut frames.side)),
    ];
    let mut records = Vec::new();
    scan_records(&frames.records, &mut records);
    let scanned = Scanner::new(config).scan(&tailrace_scan::Records {
        buffers: &buffers,
        records: &records,
        times: &[],
        streams: &[],
        observed_ns,
    });
    let mut missing: Vec<String> = Vec::new();
    for (column, from) in plan.query.columns().iter().zip(&plan.columns) {
        let ColumnFrom::Scan(index) = from else {
            continue;
        };
        let key = matches!(column.source, tailrace_sql::ColumnSource::Key(_));
        let values = scanned.batch.column(*index);
        if key && values.null_count() == values.len() && !missing.contains(&column.label) {
            missing.push(column.label.clone());
        }
    }
    let malformed = scanned
        .malformed
        .as_ref()
        .map_or(0, |malformed| malformed.true_count());
    let batch = without_facts(plan, &scanned);
    let evaluated = plan.query.evaluator().evaluate(&batch, observed_ns);
    Sampled {
        records: records.len(),
        malformed,
        missing,
        passed: (!asks_for_facts(plan)).then(|| kept_records(&evaluated, records.len())),
        failed: evaluated.failed_rows,
    }
}

/// The columns of the query; those of source facts are NULL.
fn without_facts(plan: &PipelinePlan, scanned: &Scanned) -> RecordBatch {
    let schema = plan.query.schema();
    let rows = scanned.batch.num_rows();
    let columns = plan.columns.iter().zip(schema.fields());
    let columns: Vec<ArrayRef> = columns
        .map(|(from, field)| match from {
            ColumnFrom::Scan(index) => scanned.batch.column(*index).clone(),
            ColumnFrom::Fact(_) => new_null_array(field.data_type(), rows),
        })
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, columns, &options)
        .expect("the plan's columns match its schema")
}

fn asks_for_facts(plan: &PipelinePlan) -> bool {
    let branches = plan.query.branches().iter();
    let mut conditions = branches.flat_map(|branch| &branch.predicate);
    let is_fact = |&at: &usize| matches!(plan.columns[at], ColumnFrom::Fact(_));
    conditions.any(|condition| condition.columns.iter().any(is_fact))
}
