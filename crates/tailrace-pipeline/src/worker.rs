//! CPU workers: frame, scan, transform, encode, compress. A worker serves all pipelines, one
//! batch at a time; it never awaits and never waits for an output (the reader reserved credit
//! before the batch began).

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringViewBuilder};
use tailrace_otlp::{Column, Envelope, Index, Part, Run};
use tailrace_scan::{Scanned, Scanner};
use tailrace_sql::{Evaluated, Evaluator, OutputValue, Rows};

use crate::credit::BATCH_CREDIT_MIN;
use crate::delivery::BatchInFlight;
use crate::encoding::{EncodedRequest, EncodingState};
use crate::facts::Facts;
use crate::fault::Faults;
use crate::jobs::Jobs;
use crate::lane::{Framed, SourceRun};
use crate::pipeline::Pipeline;
use crate::plan::{ColumnFrom, Fact, PipelinePlan, offset_s};

/// Runs one worker until the jobs are closed and done.
pub(crate) fn run(jobs: &Jobs, pipelines: &[Arc<Pipeline>], faults: &Faults) {
    let lanes = |pipeline: &Arc<Pipeline>| pipeline.lanes.iter().map(|_| None).collect();
    let mut states: Vec<Vec<Option<Worker>>> = pipelines.iter().map(lanes).collect();
    while let Some(job) = jobs.pop() {
        let pipeline = &pipelines[job.pipeline];
        let state = &mut states[job.pipeline][job.lane];
        faults.guard("a worker", || {
            if let Some(framed) = pipeline.lanes[job.lane].frame_next() {
                let worker = state.get_or_insert_with(|| Worker::new(&pipeline.plan, job.lane));
                worker.process(pipeline, framed);
            }
        });
        if faults.any() {
            // What is half done in a framer or a scanner must not be built upon.
            break;
        }
    }
}

/// What a worker keeps for one input between batches.
struct Worker {
    scanner: Scanner,
    records: Vec<tailrace_scan::Record>,
    times: Vec<i64>,
    streams: Vec<u8>,
    evaluator: Evaluator,
    encodings: Vec<EncodingState>,
}

impl Worker {
    fn new(plan: &PipelinePlan, lane: usize) -> Self {
        let offset_s = offset_s(&plan.config.inputs[lane]);
        Self {
            scanner: Scanner::new(tailrace_scan::Config {
                offset_s,
                ..plan.scan.clone()
            }),
            records: Vec::new(),
            times: Vec::new(),
            streams: Vec::new(),
            evaluator: plan.query.evaluator(),
            encodings: plan
                .encodings
                .iter()
                .map(|plan| EncodingState::new(plan, offset_s))
                .collect(),
        }
    }

    fn process(&mut self, pipeline: &Arc<Pipeline>, framed: Framed) {
        let records = framed.frames.records.len();
        pipeline.metrics.framed(&framed);
        if records == 0 {
            pipeline.settle_at_once(framed);
            return;
        }
        let scanned = self.scan(&framed);
        let batch = with_facts(&pipeline.plan, &scanned, &framed);
        let evaluated = self.evaluator.evaluate(&batch, framed.observed_ns);
        let kept = kept_records(&evaluated, records);
        let filtered = (records - kept) as u64;
        pipeline.metrics.scanned(
            &scanned.stats,
            framed.frames.stats.broken,
            evaluated.failed_rows,
            filtered,
        );
        pipeline.columns_seen.note(&batch);
        let requests = self.encode(pipeline, &framed, &scanned, &batch, &evaluated);
        // Columns and chunk buffers are released here; in flight are only payloads and tables.
        drop((scanned, batch, evaluated));
        hand_over(pipeline, framed, filtered, requests);
    }

    fn scan(&mut self, framed: &Framed) -> Scanned {
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
        self.scanner.scan(&tailrace_scan::Records {
            buffers: &framed.buffers,
            records: &self.records,
            times: &self.times,
            streams: &self.streams,
            observed_ns: framed.observed_ns,
        })
    }

    /// Encodes the batch once for each encoding that an output wants.
    fn encode(
        &mut self,
        pipeline: &Pipeline,
        framed: &Framed,
        scanned: &Scanned,
        batch: &RecordBatch,
        evaluated: &Evaluated,
    ) -> Vec<Vec<EncodedRequest>> {
        let parts = parts(&pipeline.plan, scanned, batch, evaluated);
        let records = u32::try_from(batch.num_rows()).expect("records of a batch fit u32");
        let (times, streams) = (&self.times, &self.streams);
        let encode = |(n, encoding): (usize, &mut EncodingState)| {
            let runs: Vec<Run<'_>> = framed.runs.iter().map(|run| encoded_run(run, n)).collect();
            let envelope = Envelope {
                observed_ns: framed.observed_ns,
                records,
                raw: scanned.raw.as_ref(),
                malformed: scanned.malformed.as_ref(),
                truncated: scanned.truncated.as_ref(),
                times,
                streams,
                runs: &runs,
            };
            encoding.encode(&envelope, &parts)
        };
        self.encodings.iter_mut().enumerate().map(encode).collect()
    }
}

fn encoded_run(run: &SourceRun, encoding: usize) -> Run<'_> {
    Run {
        records: run.records.clone(),
        source: &run.facts.encoded[encoding],
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

/// The batch the query is evaluated on: the scanned columns, and the source facts it names.
fn with_facts(plan: &PipelinePlan, scanned: &Scanned, framed: &Framed) -> RecordBatch {
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
            ColumnFrom::Fact(fact) => fact_column(*fact, framed, rows),
        })
        .collect();
    RecordBatch::try_new(plan.query.schema(), columns).expect("the plan's columns match its schema")
}

/// A source fact as a column: one string per run, viewed by all of its rows.
fn fact_column(fact: Fact, framed: &Framed, rows: usize) -> ArrayRef {
    let text = |facts: &Facts| match fact {
        Fact::FileName => facts.file_name.clone(),
        Fact::FilePath => facts.file_path.clone(),
        Fact::Absent => None,
    };
    let mut builder = StringViewBuilder::with_capacity(rows);
    for run in &framed.runs {
        match text(&run.facts) {
            Some(text) => {
                let length = u32::try_from(text.len()).expect("a path is below 4 GiB");
                let block = builder.append_block(text.into_bytes().into());
                for _ in run.records.clone() {
                    builder
                        .try_append_view(block, 0, length)
                        .expect("the view is the whole block");
                }
            }
            None => run.records.clone().for_each(|_| builder.append_null()),
        }
    }
    Arc::new(builder.finish())
}

/// How many records have at least one row.
fn kept_records(evaluated: &Evaluated, records: usize) -> usize {
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

/// The encoder's view: one part per branch, its columns in output order, then the star's.
fn parts<'a>(
    plan: &'a PipelinePlan,
    scanned: &'a Scanned,
    batch: &'a RecordBatch,
    evaluated: &'a Evaluated,
) -> Vec<Part<'a>> {
    let branches = plan.query.branches().iter().zip(&evaluated.branches);
    branches
        .map(|(branch, selected)| {
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
                    OutputValue::Computed(_) => Column {
                        name: &output.name,
                        values: computed
                            .next()
                            .expect("one array per computed output")
                            .as_ref(),
                        kinds: None,
                        index: Index::Row,
                    },
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
            Part {
                rows,
                columns,
                overflow,
            }
        })
        .collect()
}

/// Gives each output its requests; the batch settles when all are resolved.
fn hand_over(
    pipeline: &Arc<Pipeline>,
    framed: Framed,
    filtered: u64,
    requests: Vec<Vec<EncodedRequest>>,
) {
    let of_output = |output: &usize| &requests[pipeline.plan.encoding_of[*output]];
    let outputs: Range<usize> = 0..pipeline.outputs.len();
    let counts: Vec<u32> = outputs
        .clone()
        .map(|output| u32::try_from(of_output(&output).len()).unwrap_or(u32::MAX))
        .collect();
    let (batch, tickets) = BatchInFlight::start(
        Arc::clone(&pipeline.tracker),
        pipeline.metrics.outputs.clone(),
        framed.spans,
        filtered,
        &counts,
        framed.credit,
    );
    let held: usize = requests
        .iter()
        .flatten()
        .map(EncodedRequest::held_bytes)
        .sum();
    batch.shrink_credit((held as u64).max(BATCH_CREDIT_MIN));
    for (output, tickets) in tickets.into_iter().enumerate() {
        for (request, ticket) in of_output(&output).iter().zip(tickets) {
            pipeline.outputs[output].submit(request.clone(), ticket);
        }
    }
    pipeline.waiting.settled();
}
