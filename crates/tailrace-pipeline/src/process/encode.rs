//! A transformed batch as an encoder sees it: the parts of its rows, and what stands beside them. Only borrows.

use arrow::array::{Array, ArrayRef};
use tailrace_otlp::{Column, Envelope, Index, Part, Run};
use tailrace_sql::{OutputValue, Rows, split_values};

use crate::input::input_queue::Framed;
use crate::plan::PipelinePlan;
use crate::process::failed::FailedValues;
use crate::process::transform::{Columns, Transform, rows_of_run};

/// What stands beside the columns of a batch. `times`, `streams` and `uids` are empty, or have one value for each row of
/// the columns.
pub(crate) struct Beside<'a> {
    framed: &'a Framed,
    columns: &'a Columns,
    times: &'a [i64],
    streams: &'a [u8],
    uids: &'a [u128],
}

impl<'a> Beside<'a> {
    /// Of the rows that a transform made last.
    pub(crate) fn of(
        transform: &'a Transform,
        (framed, columns, uids): (&'a Framed, &'a Columns, &'a [u128]),
    ) -> Self {
        Self {
            framed,
            columns,
            times: &transform.times,
            streams: &transform.streams,
            uids,
        }
    }

    /// The sources of the rows, with the facts for one encoding, by its number.
    pub(crate) fn runs(&self, encoding: usize) -> Vec<Run<'a>> {
        let survivors = self.columns.survivors.as_deref();
        let runs = self.framed.runs.iter();
        runs.map(|run| Run {
            records: rows_of_run(&run.records, survivors),
            source: &run.facts.encoded[encoding],
        })
        .collect()
    }

    /// The envelope of the rows.
    pub(crate) fn envelope<'r>(&'r self, runs: &'r [Run<'r>]) -> Envelope<'r> {
        let Columns { scanned, batch, .. } = self.columns;
        Envelope {
            observed_ns: self.framed.observed_ns,
            records: u32::try_from(batch.num_rows()).expect("records of a batch fit u32"),
            raw: scanned.raw.as_ref(),
            malformed: scanned.malformed.as_ref(),
            truncated: scanned.truncated.as_ref(),
            times: self.times,
            streams: self.streams,
            uids: self.uids,
            runs,
        }
    }
}

/// The encoder's view: one part per branch, its columns in output order, then the star's.
pub(crate) fn parts<'a>(
    plan: &'a PipelinePlan,
    columns: &'a Columns,
    failed: &'a FailedValues,
) -> Vec<Part<'a>> {
    let Columns {
        scanned,
        batch,
        evaluated,
        ..
    } = columns;
    let branches = plan.query.branches().iter().zip(&evaluated.branches);
    branches
        .enumerate()
        .map(|(at, (branch, selected))| {
            let mut computed = selected.computed.iter();
            let mut columns: Vec<Column<'a>> = Vec::with_capacity(branch.outputs.len());
            for output in &branch.outputs {
                columns.push(match &output.value {
                    OutputValue::Column(index) => Column {
                        name: &output.name,
                        values: batch.column(*index).as_ref(),
                        kinds: plan.kinds(scanned, *index),
                        index: Index::Record,
                    },
                    OutputValue::Computed(_) => {
                        let values = computed.next().expect("one array per computed output");
                        computed_column(&output.name, values)
                    }
                });
            }
            if branch.star {
                let hidden = |key: &str| branch.outputs.iter().any(|output| output.name == key);
                let hidden = |key: &str| hidden(key) || branch.star_except.iter().any(|k| k == key);
                let star = scanned.star.iter().filter(|column| !hidden(&column.key));
                columns.extend(star.map(|column| Column {
                    name: &column.key,
                    values: &column.values,
                    kinds: Some(&column.kinds),
                    index: Index::Record,
                }));
            }
            let rows = match &selected.rows {
                Rows::All => None,
                Rows::Some(rows) => Some(rows.as_slice()),
            };
            let overflow = scanned.overflow.as_ref().filter(|_| branch.star);
            let overflow_except = overflow.map_or(Vec::new(), |_| {
                let outputs = branch.outputs.iter().map(|output| output.name.as_str());
                let except = branch.star_except.iter().map(String::as_str);
                outputs.chain(except).collect()
            });
            Part {
                rows,
                columns,
                overflow,
                overflow_except,
                failed: failed.of_branch(at),
            }
        })
        .collect()
}

/// A computed column; values of any kind are an open column.
fn computed_column<'a>(name: &'a str, values: &'a ArrayRef) -> Column<'a> {
    let (values, kinds): (&dyn Array, _) = match split_values(values) {
        Some((text, kinds)) => (text, Some(kinds)),
        None => (values.as_ref(), None),
    };
    Column {
        name,
        values,
        kinds,
        index: Index::Row,
    }
}
