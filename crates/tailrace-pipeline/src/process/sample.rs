//! Tries a plan on a sample of log bytes: how many of its records the query passes, and which of the keys that the query
//! names the sample does not have. Pure: takes bytes, gives counts and names. [`trace`](super::trace) says the same of each
//! record.

use std::path::Path;

use arrow::array::Array;
use bytes::Bytes;
use tailrace_frame::{Framer, Frames};

use crate::input::facts::FactsConfig;
use crate::input::frame_config::frame_config;
use crate::plan::{ColumnFrom, PipelinePlan};
use crate::process::trace::framed;
use crate::process::transform::Transform;

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
    let nothing_known = FactsConfig {
        resource: Vec::new(),
        encodings: Vec::new(),
        files: false,
        framing: None,
        pods: None,
    };
    let facts = nothing_known.described(Path::new(""), Vec::new());
    let framed = framed(frames, Bytes::from(bytes), &facts, observed_ns);
    let transformed = Transform::new(plan, 0).run(plan, &framed, true);
    let columns = transformed
        .columns
        .expect("all columns are built for all records");
    let mut missing: Vec<String> = Vec::new();
    for (column, values) in plan.query.columns().iter().zip(columns.batch.columns()) {
        let is_key = matches!(column.source, tailrace_sql::ColumnSource::Key(_));
        if is_key && values.null_count() == values.len() && !missing.contains(&column.label) {
            missing.push(column.label.clone());
        }
    }
    let malformed = columns.scanned.malformed.as_ref();
    Sampled {
        records: framed.frames.records.len(),
        malformed: malformed.map_or(0, |malformed| malformed.true_count()),
        missing,
        passed: (!asks_for_facts(plan)).then_some(transformed.kept),
        failed: transformed.failed_rows,
    }
}

fn asks_for_facts(plan: &PipelinePlan) -> bool {
    let branches = plan.query.branches().iter();
    let mut conditions = branches.flat_map(|branch| &branch.predicate);
    let is_fact = |&at: &usize| matches!(plan.columns[at], ColumnFrom::Fact(_));
    conditions.any(|condition| condition.columns.iter().any(is_fact))
}
