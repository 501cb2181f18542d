//! From framed records to columns and what the query makes of them: in one phase or in two.
//!
//! In one phase all columns are built for all records, then the query runs. In two, for a query with a
//! [`Pushdown`]: the columns that its conditions read, the conditions, and the other columns
//! for the survivors only. Then whatever stands beside the batch is by survivor, too, and [`Columns::survivors`] says
//! which records they are. Both ways give the same rows; a test holds them to it. What is counted of a record that is
//! dropped is that it was filtered. Never encodes, never knows spans or tickets.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringViewBuilder};
use tailrace_scan::{First, NewlineSearcher, Records, Scanned, Scanner, Stats};
use tailrace_sql::{Evaluated, Evaluator, Failure, KeptShare, Pushdown, Rows};

use crate::input::facts::Facts;
use crate::input::input_queue::Framed;
use crate::plan::{ColumnFrom, Fact, PipelinePlan, offset_s};

/// Scanner and evaluator of one input in one worker, and the memory they use again.
pub(crate) struct Transform {
    scanner: Scanner,
    evaluator: Evaluator,
    kept_share: KeptShare,
    records: Vec<tailrace_scan::Record>,
    /// Empty, or one for each row of the last batch's columns.
    pub times: Vec<i64>,
    /// Likewise.
    pub streams: Vec<u8>,
}

/// What became of a batch.
pub(crate) struct Transformed {
    /// How many records have at least one row.
    pub kept: usize,
    /// What was counted where all columns were built.
    pub stats: Stats,
    /// Of the malformed records among them, container lines whose envelope was broken.
    pub broken: u64,
    /// Records for which an expression failed.
    pub failed_rows: u64,
    /// The expressions.
    pub failures: Vec<Failure>,
    /// `None` where nothing is kept and so nothing was built.
    pub columns: Option<Columns>,
}

/// Scanned columns, and what the query says of them.
pub(crate) struct Columns {
    pub scanned: Scanned,
    /// The columns of the query.
    pub batch: RecordBatch,
    pub evaluated: Evaluated,
    /// The records that the rows of all these are, ascending; `None` is each once.
    pub survivors: Option<Vec<u32>>,
}

impl Transform {
    pub(crate) fn new(plan: &PipelinePlan, queue: usize) -> Self {
        Self {
            scanner: Scanner::new(tailrace_scan::Config {
                offset_s: offset_s(&plan.config.inputs[queue]),
                ..plan.scan.clone()
            }),
            evaluator: plan.query.evaluator(),
            kept_share: KeptShare::new(),
            records: Vec::new(),
            times: Vec::new(),
            streams: Vec::new(),
        }
    }

    /// Between two batches: keeps at most so many bytes of each buffer.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.scanner.release(bytes);
        self.records.clear();
        self.records
            .shrink_to(bytes / size_of::<tailrace_scan::Record>());
        self.times.clear();
        self.times.shrink_to(bytes / size_of::<i64>());
        self.streams.clear();
        self.streams.shrink_to(bytes);
    }

    /// Finds the newlines in the chunk buffer of the batch that [`Transform::run`] is given next, with the same `look_at_all`.
    pub(crate) fn searcher(&self, plan: &PipelinePlan, look_at_all: bool) -> NewlineSearcher<'_> {
        self.scanner.searcher(self.goes_in_two(plan, look_at_all))
    }

    fn goes_in_two(&self, plan: &PipelinePlan, look_at_all: bool) -> bool {
        plan.query.pushdown().is_some() && !look_at_all && self.kept_share.is_low()
    }

    /// Transforms a batch the way that promises to be the cheaper one; if `look_at_all`, builds all columns for all
    /// records anyway.
    pub(crate) fn run(
        &mut self,
        plan: &PipelinePlan,
        framed: &Framed,
        look_at_all: bool,
    ) -> Transformed {
        let Some(pushdown) = plan.query.pushdown() else {
            return self.one_phase(plan, framed);
        };
        let transformed = if self.goes_in_two(plan, look_at_all) {
            self.two_phases(plan, framed, pushdown)
        } else {
            self.one_phase(plan, framed)
        };
        let records = framed.frames.records.len();
        self.kept_share.note(transformed.kept, records);
        transformed
    }

    fn one_phase(&mut self, plan: &PipelinePlan, framed: &Framed) -> Transformed {
        self.take(framed);
        let records = records(framed, &self.records, &self.times, &self.streams);
        let scanned = self.scanner.scan(&records);
        let batch = with_facts(plan, &scanned, framed, None);
        let mut evaluated = self.evaluator.evaluate(&batch, framed.observed_ns);
        Transformed {
            kept: kept_records(&evaluated, self.records.len()),
            stats: with_mismatches(scanned.stats, evaluated.type_mismatches),
            broken: framed.frames.stats.broken,
            failed_rows: evaluated.failed_rows,
            failures: std::mem::take(&mut evaluated.failures),
            columns: Some(Columns {
                scanned,
                batch,
                evaluated,
                survivors: None,
            }),
        }
    }

    fn two_phases(
        &mut self,
        plan: &PipelinePlan,
        framed: &Framed,
        pushdown: &Pushdown,
    ) -> Transformed {
        self.take(framed);
        // Conditions may read nothing but facts of the source.
        let first = (!plan.scan.first.is_empty()).then(|| {
            let records = records(framed, &self.records, &self.times, &self.streams);
            self.scanner.first(&records)
        });
        self.second_phase(plan, framed, pushdown, first.as_ref())
    }

    fn second_phase(
        &mut self,
        plan: &PipelinePlan,
        framed: &Framed,
        pushdown: &Pushdown,
        first: Option<&First>,
    ) -> Transformed {
        let candidates = first.and_then(|first| first.rows.as_deref());
        let columns = first.map_or(&[][..], |first| first.batch.columns());
        let read = read_by_conditions(plan, pushdown, columns, framed, candidates);
        let selection = self.evaluator.select(&read, framed.observed_ns);
        let survivors = survivors(&selection.rows, candidates);
        let kept = survivors.as_ref().map_or(self.records.len(), Vec::len);
        if kept == 0 {
            // Of a record that is dropped it is counted only that it was filtered.
            let (failed_rows, failures) = selection.failures();
            return Transformed {
                kept,
                stats: Stats::default(),
                broken: 0,
                failed_rows,
                failures,
                columns: None,
            };
        }
        let records = records(framed, &self.records, &self.times, &self.streams);
        let scanned = match (first, &survivors) {
            (_, None) => self.scanner.scan(&records),
            (Some(first), Some(survivors)) => self.scanner.second(&records, first, survivors),
            (None, Some(survivors)) => self.scanner.scan_some(&records, survivors),
        };
        if let Some(survivors) = &survivors {
            compact(&mut self.times, survivors);
            compact(&mut self.streams, survivors);
        }
        let batch = with_facts(plan, &scanned, framed, survivors.as_deref());
        let mut evaluated = self
            .evaluator
            .compute(&batch, selection, framed.observed_ns);
        Transformed {
            kept,
            stats: with_mismatches(scanned.stats, evaluated.type_mismatches),
            broken: self.broken(framed, survivors.as_deref()),
            failed_rows: evaluated.failed_rows,
            failures: std::mem::take(&mut evaluated.failures),
            columns: Some(Columns {
                scanned,
                batch,
                evaluated,
                survivors,
            }),
        }
    }

    fn broken(&self, framed: &Framed, survivors: Option<&[u32]>) -> u64 {
        let all = framed.frames.stats.broken;
        let Some(survivors) = survivors.filter(|_| all > 0) else {
            return all;
        };
        let is_broken =
            |row: &&u32| self.records[**row as usize].flags & tailrace_scan::BROKEN != 0;
        survivors.iter().filter(is_broken).count() as u64
    }

    fn take(&mut self, framed: &Framed) {
        let frames = &framed.frames.records;
        scan_records(frames, &mut self.records);
        self.times.clear();
        if frames.iter().any(|record| record.time_ns != 0) {
            self.times
                .extend(frames.iter().map(|record| record.time_ns));
        }
        self.streams.clear();
        if frames
            .iter()
            .any(|record| record.stream != tailrace_frame::Stream::None)
        {
            self.streams
                .extend(frames.iter().map(|record| record.stream as u8));
        }
    }
}

fn with_mismatches(stats: Stats, type_mismatches: u64) -> Stats {
    Stats {
        type_mismatches: stats.type_mismatches + type_mismatches,
        ..stats
    }
}

fn records<'a>(
    framed: &'a Framed,
    records: &'a [tailrace_scan::Record],
    times: &'a [i64],
    streams: &'a [u8],
) -> Records<'a> {
    Records {
        buffers: &framed.buffers,
        records,
        times,
        streams,
        observed_ns: framed.observed_ns,
        searched: framed.searched.as_ref(),
    }
}

/// Framed records as the scanner wants them: the side buffer stands behind the chunk buffer.
pub(crate) fn scan_records(
    framed: &[tailrace_frame::Record],
    records: &mut Vec<tailrace_scan::Record>,
) {
    records.clear();
    records.extend(framed.iter().map(|record| tailrace_scan::Record {
        buffer: if record.buffer == tailrace_frame::SIDE {
            1
        } else {
            record.buffer
        },
        start: record.start,
        end: record.end,
        flags: record.flags.0,
    }));
}

/// The records that are left of `candidates` (`None` is all of them) when `selected` of their rows are.
fn survivors(selected: &Rows, candidates: Option<&[u32]>) -> Option<Vec<u32>> {
    match (selected, candidates) {
        (Rows::All, candidates) => candidates.map(<[u32]>::to_vec),
        (Rows::Some(rows), None) => Some(rows.clone()),
        (Rows::Some(rows), Some(candidates)) => {
            Some(rows.iter().map(|&row| candidates[row as usize]).collect())
        }
    }
}

/// Keeps the values of these records, if there are any.
fn compact<T: Copy>(values: &mut Vec<T>, records: &[u32]) {
    if values.is_empty() {
        return;
    }
    for (to, &from) in records.iter().enumerate() {
        values[to] = values[from as usize];
    }
    values.truncate(records.len());
}

/// Which rows the records of a run are; `survivors` are the records of all rows, `None` is each once.
pub(crate) fn rows_of_run(run: &Range<u32>, survivors: Option<&[u32]>) -> Range<u32> {
    let Some(survivors) = survivors else {
        return run.clone();
    };
    // There are fewer than 2^32 records in a batch.
    let row = |record: u32| survivors.partition_point(|&other| other < record) as u32;
    row(run.start)..row(run.end)
}

/// The batch that conditions are evaluated on: the columns they read, for the candidates.
fn read_by_conditions(
    plan: &PipelinePlan,
    pushdown: &Pushdown,
    first: &[ArrayRef],
    framed: &Framed,
    candidates: Option<&[u32]>,
) -> RecordBatch {
    let rows = candidates.map_or(framed.frames.records.len(), <[u32]>::len);
    let mut first = first.iter();
    let column = |&at: &usize| match plan.columns[at] {
        ColumnFrom::Scan(_) => first
            .next()
            .map(Arc::clone)
            .expect("the scanner was asked for every column that it can make"),
        ColumnFrom::Fact(fact) => fact_column(plan, fact, framed, candidates, rows),
    };
    let columns = pushdown.columns.iter().map(column).collect();
    let schema = plan.query.schema().project(&pushdown.columns);
    let schema = schema.expect("the pushdown names columns of the query");
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(schema), columns, &options)
        .expect("the plan's columns match its schema")
}

/// The batch the query is evaluated on: the scanned columns, and the source facts it names.
fn with_facts(
    plan: &PipelinePlan,
    scanned: &Scanned,
    framed: &Framed,
    survivors: Option<&[u32]>,
) -> RecordBatch {
    if plan
        .columns
        .iter()
        .all(|column| matches!(column, ColumnFrom::Scan(_)))
    {
        return scanned.batch.clone();
    }
    let rows = scanned.batch.num_rows();
    let columns: Vec<ArrayRef> = plan
        .columns
        .iter()
        .map(|column| match column {
            ColumnFrom::Scan(index) => Arc::clone(scanned.batch.column(*index)),
            ColumnFrom::Fact(fact) => fact_column(plan, *fact, framed, survivors, rows),
        })
        .collect();
    RecordBatch::try_new(plan.query.schema(), columns).expect("the plan's columns match its schema")
}

/// A source fact as a column: one string per run, viewed by all of its rows.
fn fact_column(
    plan: &PipelinePlan,
    fact: Fact,
    framed: &Framed,
    survivors: Option<&[u32]>,
    rows: usize,
) -> ArrayRef {
    let text = |facts: &Facts| match fact {
        Fact::FileName => facts.file_name.clone(),
        Fact::FilePath => facts.file_path.clone(),
        Fact::OfPod(index) => facts.of_pod(&plan.pod_facts[index]),
    };
    let mut builder = StringViewBuilder::with_capacity(rows);
    for run in &framed.runs {
        let rows = rows_of_run(&run.records, survivors);
        match text(&run.facts) {
            Some(text) => {
                let length = u32::try_from(text.len()).expect("a path is below 4 GiB");
                let block = builder.append_block(text.into_bytes().into());
                for _ in rows {
                    builder
                        .try_append_view(block, 0, length)
                        .expect("the view is the whole block");
                }
            }
            None => rows.for_each(|_| builder.append_null()),
        }
    }
    Arc::new(builder.finish())
}

/// How many records have at least one row.
pub(crate) fn kept_records(evaluated: &Evaluated, records: usize) -> usize {
    let mut kept: Vec<bool> = Vec::new();
    for branch in &evaluated.branches {
        match (&branch.rows, evaluated.branches.len()) {
            (Rows::All, _) => return records,
            (Rows::Some(rows), 1) => {
                // Ascending: a repeated record stands beside itself.
                return rows.chunk_by(|a, b| a == b).count();
            }
            (Rows::Some(rows), _) => {
                kept.resize(records, false);
                rows.iter().for_each(|&row| kept[row as usize] = true);
            }
        }
    }
    kept.into_iter().filter(|&kept| kept).count()
}

#[cfg(test)]
pub(crate) mod harness;
