//! CPU workers: frame, scan, transform, encode, compress. A worker serves all pipelines, one
//! batch at a time; it never awaits and never waits for an output (the reader reserved credit
//! before the batch began).
//!
//! A panic in what a worker makes of a framed batch is contained: the batch is cut in halves until the record is found
//! that cannot be processed, and that one is set aside. A panic while framing ends the agent, for the framer's state
//! is that of a whole file.

mod contained;
mod hand_over;
mod hold_stage;

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use tailrace_frame::Frames;
use tailrace_sql::Failure;

use crate::delivery::encoding::{Compressors, EncodedRequest, EncodingState};
use crate::fault::Faults;
use crate::input::input_queue::Framed;
use crate::jobs::{Job, Jobs};
use crate::pipeline::Pipeline;
use crate::pipeline_id::PipelineId;
use crate::pipelines::Pipelines;
use crate::plan::{PipelinePlan, offset_s};
use crate::process::encode::{Beside, parts};
use crate::process::failed::{self, FailedValues};
use crate::process::failpoint::Failpoints;
use crate::process::in_progress::{self, InProgress, Marks};
use crate::process::problems;
use crate::process::tap::Tap;
use crate::process::transform::{Columns, Transform};
use crate::process::uid;
use crate::process::unfinished::Next;
use crate::process::work::{Made, Work};

pub(crate) use hold_stage::HoldStage;

/// What the workers of an agent share.
pub(crate) struct Shared {
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) pipelines: Pipelines,
    pub(crate) faults: Faults,
    pub(crate) failpoints: Failpoints,
    /// For tests.
    pub(crate) hold: Option<HoldStage>,
    pub(crate) in_progress: Arc<InProgress>,
    pub(crate) tap: Arc<Tap>,
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
        hold: shared.hold.as_ref(),
        marks: shared.in_progress.worker(number),
        compressors: Compressors::default(),
        tap: &shared.tap,
    };
    let mut last = None;
    while let Some(job) = jobs.pop() {
        // It is there until all of its jobs are done.
        let Some(pipeline) = &pipelines.get(job.pipeline) else {
            jobs.done(job);
            continue;
        };
        if !states.contains_key(&job.pipeline) {
            states.retain(|known, _| pipelines.get(*known).is_some());
        }
        let unfinished = &pipeline.unfinished[job.queue];
        let exceeded = || pipeline.exceeded(job.queue);
        let can_go_on = || unfinished.can_go_on(exceeded);
        let next = unfinished.take(exceeded);
        if matches!(next, Next::Wait) {
            jobs.put_off(job, can_go_on);
            continue;
        }
        if last.is_some_and(|last| last != job) {
            release(&mut states);
        }
        last = Some(job);
        let queues = || pipeline.queues.iter().map(|_| None).collect();
        let state = &mut states.entry(job.pipeline).or_insert_with(queues)[job.queue];
        // After the inputs' own queues come those of outputs that catch up.
        let input = pipeline.queues.input_of(job.queue);
        let mut is_done = true;
        faults.guard("a worker", || {
            let worker = state.get_or_insert_with(|| Worker::new(&pipeline.plan, input));
            let mut work = match next {
                Next::Take(work) => work,
                _ => match worker.begin(pipeline, job, jobs, &mut memory, &around) {
                    Begun::Work(work) => *work,
                    Begun::Nothing => return,
                    Begun::NoBatch => {
                        // The token is of a batch that was begun, or of one that has come meanwhile.
                        let queue = &pipeline.queues[job.queue].batches;
                        is_done = !unfinished.any() && queue.is_empty();
                        return;
                    }
                },
            };
            is_done = worker.go_on(pipeline, &mut work, &mut around);
            if is_done {
                pipeline.pass_turns(&mut work.framed);
                memory = work.framed.take_memory();
            } else {
                unfinished.put(work);
            }
        });
        if is_done {
            jobs.done(job);
        } else {
            jobs.put_off(job, can_go_on);
        }
        if faults.any() {
            // What is half done in a framer must not be built upon.
            break;
        }
    }
}

/// What a worker has besides the state of each input.
struct Around<'a> {
    failpoints: &'a Failpoints,
    hold: Option<&'a HoldStage>,
    marks: Marks,
    compressors: Compressors,
    tap: &'a Tap,
}

/// Before a worker turns to another input queue: what all of them keep of each kind of buffer is bounded.
fn release(states: &mut HashMap<PipelineId, Vec<Option<Worker>>>) {
    const BYTES_MAX: usize = 4 * 1024 * 1024;
    let workers = || states.values().flatten().flatten();
    let bytes = BYTES_MAX / workers().count().max(1);
    let workers = states.values_mut().flatten().flatten();
    workers.for_each(|worker| worker.release(bytes));
}

/// What the next batch of an input queue is.
enum Begun {
    Work(Box<Work>),
    /// Nothing of it is left to be processed.
    Nothing,
    /// None waits.
    NoBatch,
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

    /// Between two batches: keeps at most so many bytes of each buffer.
    fn release(&mut self, bytes: usize) {
        self.transform.release(bytes);
        let encodings = &mut self.encodings;
        encodings.iter_mut().for_each(|it| it.release(bytes));
    }

    /// Frames the oldest batch that waits in an input queue.
    fn begin(
        &self,
        pipeline: &Arc<Pipeline>,
        job: Job,
        jobs: &Jobs,
        memory: &mut Frames,
        around: &Around<'_>,
    ) -> Begun {
        // Until it is known which keys the records have, every record reports all of them.
        let look_at_all = !pipeline.columns_seen.is_reported();
        let searcher = self.transform.searcher(&pipeline.plan, look_at_all);
        let queue = &pipeline.queues[job.queue];
        let Some((mut framed, is_cut)) = queue.frame_next(searcher, memory) else {
            return Begun::NoBatch;
        };
        if is_cut {
            // Another worker may go on with what is left.
            jobs.push(job);
        }
        let work = self.work_of(pipeline, job.queue, &mut framed, look_at_all, around);
        let Some(work) = work else {
            pipeline.pass_turns(&mut framed);
            *memory = framed.take_memory();
            return Begun::Nothing;
        };
        Begun::Work(Box::new(work))
    }

    /// What is to be done of a framed batch, which it takes; `None` if nothing is.
    fn work_of(
        &self,
        pipeline: &Arc<Pipeline>,
        queue: usize,
        framed: &mut Framed,
        look_at_all: bool,
        around: &Around<'_>,
    ) -> Option<Work> {
        let records = framed.frames.records.len();
        if !framed.is_catch_up {
            framed.count(&pipeline.metrics);
            problems::report_framed(pipeline, self.input, framed);
        }
        if records == 0 {
            pipeline.ack_at_once(framed);
            return None;
        }
        // For an output that reads by itself, or will, it has to be known how many of them the query removes.
        if !framed.is_catch_up && framed.acked_before.iter().all(|before| *before) {
            acked_before(pipeline, (framed, queue), records as u64);
            pipeline.waiting.note_progress();
            return None;
        }
        if !framed.is_catch_up {
            let name = (pipeline.id, pipeline.plan.name.as_str());
            around.tap.sample(name, self.input, framed);
        }
        let groups = around.marks.all();
        let groups = groups.groups(self.scope, framed, &pipeline.tracker);
        Some(Work {
            queue,
            look_at_all,
            groups: groups.into(),
            made: Made {
                requests: vec![Vec::new(); self.encodings.len()],
                ..Made::default()
            },
            open: None,
            piece_max: u32::MAX,
            framed: std::mem::take(framed),
        })
    }

    /// Processes a batch and hands it over. False if so much of it is in flight that the rest has to wait.
    fn go_on(
        &mut self,
        pipeline: &Arc<Pipeline>,
        work: &mut Work,
        around: &mut Around<'_>,
    ) -> bool {
        if !self.contained(pipeline, work, around) {
            return false;
        }
        let framed = &work.framed;
        let kept = framed.frames.records.len() as u64 - work.made.filtered;
        acked_before(pipeline, (framed, work.queue), kept);
        work.finish(pipeline, around.hold);
        true
    }

    /// Transforms and encodes a batch; `None` if what its query makes of it is too large for one piece.
    fn make(
        &mut self,
        pipeline: &Pipeline,
        framed: &Framed,
        look_at_all: bool,
        compressors: &mut Compressors,
    ) -> Option<Made> {
        let records = framed.frames.records.len();
        let transform = || self.transform.run(&pipeline.plan, framed, look_at_all);
        let transformed = tailrace_sql::bounded(records, transform);
        if tailrace_sql::is_exhausted() {
            return None;
        }
        let filtered = (framed.frames.records.len() - transformed.kept) as u64;
        let requests = match &transformed.columns {
            Some(columns) => {
                let uids = if self.with_uids {
                    uid::of_batch(framed, &pipeline.tracker)
                } else {
                    Vec::new()
                };
                let uids = survivors_of(uids, columns.survivors.as_deref());
                let bytes_max = match records {
                    1 => usize::MAX,
                    _ => piece_bytes_max(framed),
                };
                let of_batch = (framed, columns, &uids[..]);
                self.encode(&pipeline.plan, of_batch, bytes_max, compressors)?
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
            let columns = transformed.columns.as_ref();
            if let Some(columns) = columns {
                problems::report_scanned(pipeline, self.input, framed, columns);
            }
            let failures = (&transformed.failures[..], transformed.failed_rows);
            let example = |failure: &Failure| {
                let record = failed::first_record(columns?, failure)?;
                Some(problems::text_of(framed, record))
            };
            let failed = &pipeline.failed;
            failed.report(pipeline, failures, framed.observed_ns, example);
        }
        Some(Made {
            filtered,
            requests,
            crashed: Vec::new(),
        })
    }

    /// Encodes the batch once for each encoding that an output wants; `None` if one of them would hold more than
    /// `bytes_max`.
    fn encode(
        &mut self,
        plan: &PipelinePlan,
        (framed, columns, uids): (&Framed, &Columns, &[u128]),
        bytes_max: usize,
        compressors: &mut Compressors,
    ) -> Option<Vec<Vec<EncodedRequest>>> {
        let survivors = columns.survivors.as_deref();
        let failed = FailedValues::new(plan, columns);
        let parts = parts(plan, columns, &failed);
        let beside = Beside::of(&self.transform, (framed, columns, uids));
        let encode = |(n, encoding): (usize, &mut EncodingState)| {
            let runs = beside.runs(n);
            let envelope = beside.envelope(&runs);
            encoding.encode(&envelope, &parts, survivors, bytes_max, compressors)
        };
        self.encodings.iter_mut().enumerate().map(encode).collect()
    }
}

/// What the requests of a piece of a batch may hold, for one encoding: some times what was read.
fn piece_bytes_max(framed: &Framed) -> usize {
    const LEAST: usize = 2 * 1024 * 1024;
    LEAST + 2 * framed.buffers.iter().map(Bytes::len).sum::<usize>()
}

/// Those of the records that are left.
fn survivors_of(uids: Vec<u128>, survivors: Option<&[u32]>) -> Vec<u128> {
    match survivors {
        Some(rows) if !uids.is_empty() => rows.iter().map(|&row| uids[row as usize]).collect(),
        _ => uids,
    }
}

/// Counts the records of a batch for the outputs that acknowledged them in an earlier run. The shared reading counts them
/// for those that take part, and the others each for itself.
fn acked_before(pipeline: &Pipeline, (framed, queue): (&Framed, usize), records: u64) {
    let catches_up = pipeline.queues.output_of(queue);
    for (output, metrics) in pipeline.metrics.outputs.iter().enumerate() {
        let is_before = match catches_up {
            Some(only) => output == only && !framed.wanted[output],
            None => framed.acked_before[output],
        };
        if is_before {
            metrics.acked_before.inc_by(records);
        }
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod containment;
