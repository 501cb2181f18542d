//! CPU workers: frame, scan, transform, encode, compress. A worker serves all pipelines, one
//! batch at a time; it never awaits and never waits for an output (the reader reserved credit
//! before the batch began).
//!
//! A panic in what a worker makes of a framed batch is contained: the batch is cut in halves until the record is found
//! that cannot be processed, and that one is set aside. A panic while framing ends the agent, for the framer's state
//! is that of a whole file.

mod contained;

use std::collections::HashMap;
use std::mem::take;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use tailrace_frame::Frames;
use tailrace_otlp::{Column, Envelope, Index, Part, Run};
use tailrace_sql::{OutputValue, Rows, split_values};

use crate::credit::BATCH_CREDIT_MIN;
use crate::delivery::BatchInFlight;
use crate::encoding::{EncodedRequest, EncodingState};
use crate::failed::FailedValues;
use crate::failpoint::Failpoints;
use crate::fault::Faults;
use crate::in_progress::{self, InProgress, Marks};
use crate::jobs::Jobs;
use crate::lane::{Framed, SourceRun};
use crate::outputs::Ready;
use crate::pipeline::Pipeline;
use crate::pipelines::{PipelineId, Pipelines};
use crate::plan::{PipelinePlan, offset_s};
use crate::transform::{Columns, Transform, rows_of_run};
use crate::uid;
use contained::Made;

/// What the workers of an agent share.
pub(crate) struct Shared {
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) pipelines: Pipelines,
    pub(crate) faults: Faults,
    pub(crate) failpoints: Failpoints,
    pub(crate) in_progress: Arc<InProgress>,
}

/// Runs one worker until the jobs are closed and done.
pub(crate) fn run(shared: &Shared, number: usize) {
    let Shared {
        jobs,
        pipelines,
        faults,
        ..
    } = shared;
    let mut states: HashMap<PipelineId, Vec<Option<Worker>>> = HashMap::new();
    let mut memory = Frames::default();
    let mut around = Around {
        failpoints: &shared.failpoints,
        marks: shared.in_progress.worker(number),
    };
    while let Some(job) = jobs.pop() {
        // It is there until all of its jobs are done.
        let Some(pipeline) = &pipelines.get(job.pipeline) else {
            jobs.done(job);
            continue;
        };
        if !states.contains_key(&job.pipeline) {
            states.retain(|known, _| pipelines.get(*known).is_some());
        }
        let lanes = || pipeline.lanes.iter().map(|_| None).collect();
        let state = &mut states.entry(job.pipeline).or_insert_with(lanes)[job.lane];
        // Behind the inputs' own lanes stand those of outputs that catch up.
        let input = job.lane % pipeline.plan.config.inputs.len();
        faults.guard("a worker", || {
            let worker = state.get_or_insert_with(|| Worker::new(&pipeline.plan, input));
            // Until it is known which keys the records have, every record tells of all of them.
            let look_at_all = !pipeline.columns_seen.told();
            let searcher = worker.transform.searcher(&pipeline.plan, look_at_all);
            let lane = &pipeline.lanes[job.lane];
            if let Some((mut framed, is_cut)) = lane.frame_next(searcher, &mut memory) {
                if is_cut {
                    // Another worker may go on with what is left.
                    jobs.push(job);
                }
                worker.process(pipeline, &mut framed, look_at_all, &mut around);
                pipeline.pass_turns(&mut framed);
                memory = framed.take_memory();
            }
        });
        jobs.done(job);
        if faults.any() {
            // What is half done in a framer must not be built upon.
            break;
        }
    }
}

/// What a worker has besides the state of each input.
struct Around<'a> {
    failpoints: &'a Failpoints,
    marks: Marks,
}

/// What a worker keeps for one input between batches.
struct Worker {
    input: usize,
    transform: Transform,
    encodings: Vec<EncodingState>,
    /// An output wants `log.record.uid`.
    with_uids: bool,
    /// Whose records are compared with those at which a process died.
    scope: u64,
    /// Of how many records what the query makes was not too large of late.
    piece_max: u32,
}

impl Worker {
    fn new(plan: &PipelinePlan, input: usize) -> Self {
        let offset_s = offset_s(&plan.config.inputs[input]);
        let encoding = |plan| EncodingState::new(plan, offset_s);
        Self {
            input,
            transform: Transform::new(plan, input),
            encodings: plan.encodings.iter().map(encoding).collect(),
            with_uids: uid::are_wanted(plan),
            scope: in_progress::scope_of(plan),
            piece_max: u32::MAX,
        }
    }

    fn process(
        &mut self,
        pipeline: &Arc<Pipeline>,
        framed: &mut Framed,
        look_at_all: bool,
        around: &mut Around<'_>,
    ) {
        let records = framed.frames.records.len();
        if !framed.is_catch_up {
            pipeline.metrics.framed(framed);
        }
        if records == 0 {
            pipeline.settle_at_once(framed);
            return;
        }
        if !framed.wanted.contains(&true) {
            settled_before(pipeline, framed, records as u64);
            pipeline.waiting.settled();
            return;
        }
        let made = self.contained(pipeline, framed, look_at_all, around);
        if !framed.is_catch_up {
            settled_before(pipeline, framed, records as u64 - made.filtered);
        }
        // Chunk buffers are released here; in flight are only payloads and tables.
        framed.buffers = Vec::new();
        hand_over(pipeline, framed, made);
    }

    /// Transforms and encodes a batch; `None` if what its query computes is too large for one piece.
    fn make(&mut self, pipeline: &Pipeline, framed: &Framed, look_at_all: bool) -> Option<Made> {
        let records = framed.frames.records.len();
        let transform = || self.transform.run(&pipeline.plan, framed, look_at_all);
        let transformed = tailrace_sql::bounded(records, transform);
        if tailrace_sql::is_exhausted() {
            return None;
        }
        let filtered = (framed.frames.records.len() - transformed.kept) as u64;
        let requests = match &transformed.columns {
            Some(columns) => {
                let uids = match self.with_uids {
                    true => uid::of_batch(framed, &pipeline.tracker),
                    false => Vec::new(),
                };
                let uids = survivors_of(uids, columns.survivors.as_deref());
                self.encode(&pipeline.plan, framed, columns, &uids)
            }
            None => vec![Vec::new(); self.encodings.len()],
        };
        // Nothing is counted of what panicked.
        if let Some(columns) = &transformed.columns {
            pipeline.columns_seen.note(&columns.batch);
        }
        if !framed.is_catch_up {
            pipeline.metrics.scanned(
                &transformed.stats,
                transformed.broken,
                transformed.failed_rows,
                filtered,
            );
            let failures = &transformed.failures;
            pipeline
                .failed
                .report(&pipeline.plan, failures, framed.observed_ns);
        }
        Some(Made {
            filtered,
            requests,
            crashed: Vec::new(),
        })
    }

    /// Encodes the batch once for each encoding that an output wants.
    fn encode(
        &mut self,
        plan: &PipelinePlan,
        framed: &Framed,
        columns: &Columns,
        uids: &[u128],
    ) -> Vec<Vec<EncodedRequest>> {
        let scanned = &columns.scanned;
        let survivors = columns.survivors.as_deref();
        let failed = FailedValues::new(plan, columns);
        let parts = parts(plan, columns, &failed);
        let records = u32::try_from(columns.batch.num_rows()).expect("records of a batch fit u32");
        let Transform { times, streams, .. } = &self.transform;
        let encode = |(n, encoding): (usize, &mut EncodingState)| {
            let runs = framed.runs.iter();
            let runs: Vec<Run<'_>> = runs.map(|run| encoded_run(run, n, survivors)).collect();
            let envelope = Envelope {
                observed_ns: framed.observed_ns,
                records,
                raw: scanned.raw.as_ref(),
                malformed: scanned.malformed.as_ref(),
                truncated: scanned.truncated.as_ref(),
                times,
                streams,
                uids,
                runs: &runs,
            };
            encoding.encode(&envelope, &parts, survivors)
        };
        self.encodings.iter_mut().enumerate().map(encode).collect()
    }
}

/// Those of the records that are left.
fn survivors_of(uids: Vec<u128>, survivors: Option<&[u32]>) -> Vec<u128> {
    match survivors {
        Some(rows) if !uids.is_empty() => rows.iter().map(|&row| uids[row as usize]).collect(),
        _ => uids,
    }
}

fn encoded_run<'a>(run: &'a SourceRun, encoding: usize, survivors: Option<&[u32]>) -> Run<'a> {
    Run {
        records: rows_of_run(&run.records, survivors),
        source: &run.facts.encoded[encoding],
    }
}

/// The encoder's view: one part per branch, its columns in output order, then the star's.
fn parts<'a>(
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
            Part {
                rows,
                columns,
                overflow,
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

/// Counts the records of a batch for the outputs that settled them in an earlier run.
fn settled_before(pipeline: &Pipeline, framed: &Framed, records: u64) {
    for (output, _) in framed
        .settled_before
        .iter()
        .enumerate()
        .filter(|(_, before)| **before)
    {
        pipeline.metrics.outputs[output]
            .settled_before
            .inc_by(records);
    }
}

/// Gives each output its requests; the batch settles when all are resolved.
fn hand_over(pipeline: &Arc<Pipeline>, framed: &mut Framed, made: Made) {
    let of_output = |output: usize| &made.requests[pipeline.plan.encoding_of[output]];
    let outputs = 0..pipeline.outputs.len();
    // Records that could not be processed are one more, the first.
    let crashed = usize::from(!made.crashed.is_empty());
    let counts: Vec<u32> = outputs
        .map(|output| match framed.wanted[output] {
            true => u32::try_from(of_output(output).len() + crashed).unwrap_or(u32::MAX),
            false => 0,
        })
        .collect();
    let held = made.held_bytes() + framed.places.held_bytes();
    let is_catch_up = framed.is_catch_up;
    let (batch, tickets) = BatchInFlight::start(
        Arc::clone(&pipeline.tracker),
        pipeline.metrics.outputs.clone(),
        (take(&mut framed.spans), take(&mut framed.places)),
        made.filtered,
        (&framed.wanted, &counts),
        framed.credit.take(),
    );
    let held = (held as u64).max(BATCH_CREDIT_MIN);
    batch.shrink_credit(held);
    if !is_catch_up {
        batch.share(pipeline.credit.shares(), held);
    }
    let set_aside = Arc::new(made.crashed);
    for (output, tickets) in tickets.into_iter().enumerate() {
        let handle = &pipeline.outputs[output];
        let mut tickets = tickets.into_iter();
        if crashed > 0
            && let Some(ticket) = tickets.next()
        {
            handle.set_aside(&set_aside, ticket);
        }
        let requests = made.requests[pipeline.plan.encoding_of[output]]
            .iter()
            .cloned();
        let requests: Vec<Ready> = requests.zip(tickets).collect();
        let submit = |(request, ticket)| handle.submit(request, ticket);
        framed.turns.submit(output, requests, submit);
    }
    pipeline.waiting.settled();
}

#[cfg(test)]
#[path = "worker/tests.rs"]
mod tests;

#[cfg(test)]
#[path = "worker/containment.rs"]
mod containment;
