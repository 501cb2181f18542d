//! The one file that names all stages, in flow order: read, frame, scan, transform, encode, send,
//! ack, checkpoint. Builds a pipeline from its plan; decides nothing about records.

mod make_queues;

use std::mem::take;
use std::ops::Deref;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tailrace_config::Input;
use tailrace_inputs::{Claims, FingerprintKey, HandedOver, OpenContext, Resume};
use tokio::runtime::Handle;
use tracing::warn;

use self::make_queues::{Bounds, MakeQueues, queue_bytes};
use crate::certificates::Certificates;
use crate::delivery::credit::{Credit, Exceeded, Shares};
use crate::delivery::dead_letters::DeadLetterQueue;
use crate::delivery::in_flight::{BatchInFlight, Ready};
use crate::delivery::metrics::Miss;
use crate::delivery::order::Turns;
use crate::delivery::outputs::OutputHandle;
use crate::error::{Error, Kind};
use crate::fault::Faults;
use crate::health::Health;
use crate::input::catch_up::CatchUp;
use crate::input::input_queue::Framed;
use crate::input::pods::{Awaiting, NodePods};
use crate::input::pool::Pool;
use crate::input::reader::Reader;
use crate::input::resume::ResumeTable;
use crate::jobs::Jobs;
use crate::ledger::PipelineLedger;
use crate::metrics::{Metrics, PipelineMetrics};
use crate::pipeline_id::PipelineId;
use crate::plan::PipelinePlan;
use crate::process::failed::FailureLog;
use crate::process::problems::ProblemLog;
use crate::process::seen::ColumnsSeen;
use crate::process::unfinished::Unfinished;
use crate::process::work::Work;
use crate::reasons::Reasons;
use crate::safe_mode::SafeMode;
use crate::shared::Shared;
use crate::wake::Readers;
use crate::watermark::Tracker;

/// What the stages of one pipeline share.
#[derive(Debug)]
pub(crate) struct Pipeline {
    /// What the readers know, too.
    shared: Arc<Shared>,
    /// By input queue: batches that are handed over in parts.
    pub(crate) unfinished: Vec<Unfinished<Work>>,
    /// By output, where there are several, one for each input.
    catch_ups: Vec<Vec<Arc<CatchUp>>>,
    pub(crate) outputs: Vec<OutputHandle>,
    pub(crate) columns_seen: ColumnsSeen,
    pub(crate) failed: FailureLog,
    pub(crate) problems: ProblemLog,
}

impl Deref for Pipeline {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

/// What a pipeline is built with, besides its plan.
pub(crate) struct BuildContext<'a> {
    pub(crate) id: PipelineId,
    /// This pipeline's share of what may be in flight.
    pub(crate) queue_bytes: u64,
    pub(crate) jobs: &'a Arc<Jobs>,
    pub(crate) metrics: &'a Metrics,
    pub(crate) runtime: &'a Handle,
    pub(crate) faults: &'a Faults,
    pub(crate) fingerprint_key: FingerprintKey,
    pub(crate) resume: ResumeTable,
    pub(crate) first_start: bool,
    /// What the pipeline held open whose place this one takes.
    pub(crate) handed_over: HandedOver,
    pub(crate) data_dir: &'a Path,
    pub(crate) safe_mode: &'a Arc<SafeMode>,
    pub(crate) reasons: &'a Arc<Reasons>,
}

/// A plan whose outputs are open: what may be wrong with them is known, and nothing runs yet.
pub(crate) struct Opened {
    pub(crate) plan: PipelinePlan,
    outputs: Vec<tailrace_outputs::Opened>,
    /// What its certificates were when they were read.
    pub(crate) certificates: Certificates,
}

/// A pipeline and what still has to be started or awaited.
pub(crate) struct Built {
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) readers: Vec<Reader>,
    /// The tasks that drive the outputs.
    pub(crate) sending: Vec<tokio::task::JoinHandle<()>>,
}

/// Chunk buffers that a pipeline keeps for the next batches.
const BUFFERS_KEPT: usize = 2;

/// Opens the outputs of a pipeline, and checks its globs and how it asks for metadata. Reads no log.
pub(crate) fn open(plan: PipelinePlan, runtime: &Handle) -> Result<Opened, Error> {
    // Before they are read: what changes meanwhile is noticed later.
    let certificates = Certificates::of(&plan.config);
    for input in &plan.config.inputs {
        let checked = input.claims().map(drop);
        checked.map_err(|source| Kind::Input {
            pipeline: plan.name.clone(),
            source,
        })?;
    }
    // Begun and ended at once: only whether it can be.
    check_nodes(&plan, runtime)?;
    let outputs = plan.config.outputs.iter();
    let opened =
        outputs.map(|output| crate::delivery::output_config::open(&plan.name, output, runtime));
    Ok(Opened {
        outputs: opened.collect::<Result<_, _>>()?,
        certificates,
        plan,
    })
}

/// Whether metadata of pods can be asked for.
pub(crate) fn check_nodes(plan: &PipelinePlan, runtime: &Handle) -> Result<(), Error> {
    drop(nodes(
        plan,
        runtime,
        &Arc::new(Readers::new(Vec::new(), (Arc::default(), PipelineId(0)))),
    )?);
    Ok(())
}

/// Builds one pipeline: nothing reads yet. At a first start, what is left out is open then, and known to the tracker.
pub(crate) fn build(opened: Opened, mut around: BuildContext<'_>) -> Result<Built, Error> {
    let Opened {
        plan,
        outputs: opened,
        ..
    } = opened;
    let names: Vec<String> = plan
        .config
        .outputs
        .iter()
        .map(|output| output.name.clone())
        .collect();
    let bounds = Bounds::of(&plan, around.queue_bytes);
    let metrics = around.metrics.pipeline(&plan.name, &names);
    let shares = Shares::new(names.len());
    let credit = Credit::shown(bounds.queue_bytes, shares, metrics.queue_size.clone());
    let parted_span_max = plan.config.limits.replay / 2;
    let tracker = Arc::new(Tracker::new(names.len(), parted_span_max));
    // read
    let inputs = open_inputs(&plan, &mut around)?;
    let wakers = inputs.iter().map(|input| input.waker()).collect();
    let waiting = Arc::new(Readers::new(wakers, (Arc::clone(around.jobs), around.id)));
    let nodes = nodes(&plan, around.runtime, &waiting)?;
    // frame
    let make_queues = MakeQueues {
        plan: &plan,
        bounds: &bounds,
        metrics: &metrics,
        tracker: &tracker,
        nodes: &nodes,
        data_dir: around.data_dir,
    };
    let (queues, catch_ups) = make_queues.run(&credit);
    // scan, transform, encode: the workers, from the plan
    // send, ack
    let (outputs, sending) = start_outputs(&plan, opened, &metrics, &waiting, &around);
    // checkpoint: the agent's, from the tracker

    let shared = Arc::new(Shared {
        health: Health::default(),
        reasons: Arc::clone(around.reasons),
        metrics,
        stopping: AtomicBool::new(false),
        broken: AtomicBool::new(false),
        waiting,
        credit,
        queues,
        tracker,
        batch_bytes_max: usize::try_from(bounds.batch_bytes_max).unwrap_or(usize::MAX),
        safe_mode: Arc::clone(around.safe_mode),
        batch_wait_max: plan.config.batch.max_wait,
        replay_bytes_max: replay_bytes_max(&plan),
        id: around.id,
        jobs: Arc::clone(around.jobs),
        stored: Mutex::default(),
        plan,
    });
    let queues = shared.queues.iter();
    let pipeline = Arc::new(Pipeline {
        unfinished: queues.map(|_| Unfinished::default()).collect(),
        columns_seen: ColumnsSeen::new(&shared.plan),
        failed: FailureLog::default(),
        problems: ProblemLog::default(),
        catch_ups,
        outputs,
        shared,
    });
    pipeline.resize(around.queue_bytes);
    pipeline.count_earlier();
    let mut readers = pipeline.readers(inputs, nodes, around.resume);
    if around.first_start {
        readers.iter_mut().for_each(Reader::open_skipped);
    }
    Ok(Built {
        readers,
        pipeline,
        sending,
    })
}

/// Starts to drive the outputs.
fn start_outputs(
    plan: &PipelinePlan,
    opened: Vec<tailrace_outputs::Opened>,
    metrics: &PipelineMetrics,
    waiting: &Arc<Readers>,
    around: &BuildContext<'_>,
) -> (Vec<OutputHandle>, Vec<tokio::task::JoinHandle<()>>) {
    let config = &plan.config;
    let dead_letters = DeadLetterQueue::new(around.data_dir, &plan.name, &config.dead_letter);
    let dead_letters = Arc::new(dead_letters);
    let start = |(n, output): (usize, tailrace_outputs::Opened)| {
        let name: &String = &config.outputs[n].name;
        OutputHandle::start(
            &plan.name,
            (name.clone(), output),
            (
                &plan.encodings[plan.encoding_of[n]],
                plan.query.is_one_to_one(),
            ),
            metrics.outputs[n].clone(),
            waiting,
            (&dead_letters, around.reasons),
            (around.runtime, around.faults),
        )
    };
    opened.into_iter().enumerate().map(start).unzip()
}

impl Pipeline {
    /// A reader for each input.
    fn readers(
        &self,
        inputs: Vec<Box<dyn tailrace_inputs::Input>>,
        nodes: Vec<Option<NodePods>>,
        mut resume: ResumeTable,
    ) -> Vec<Reader> {
        let pool = Pool::new(self.batch_bytes_max, BUFFERS_KEPT);
        let count = inputs.len();
        let reader = |(n, (input, node))| {
            // The last one, which is the only one mostly, needs no copy.
            let resume = if n + 1 == count {
                take(&mut resume)
            } else {
                resume.clone()
            };
            let catch_ups = self.catch_ups.iter().map(|of_inputs| &of_inputs[n]);
            Reader::new(
                Arc::clone(&self.shared),
                n,
                catch_ups.cloned().collect(),
                (input, Option::map(node, Awaiting::new)),
                Arc::clone(&pool),
                resume,
            )
        };
        inputs
            .into_iter()
            .zip(nodes)
            .enumerate()
            .map(reader)
            .collect()
    }

    /// What bounds what is in flight of an input queue.
    pub(crate) fn credit_of(&self, queue: usize) -> &Arc<Credit> {
        match self.queues.output_of(queue) {
            None => &self.credit,
            Some(output) => &self.catch_ups[output][self.queues.input_of(queue)].credit,
        }
    }

    /// What of an input queue has to wait for deliveries, where batches are handed over in parts.
    pub(crate) fn exceeded(&self, queue: usize) -> Exceeded {
        let exceeded = self.credit_of(queue).exceeded();
        let queue = &self.queues[queue];
        // An output that is detached from another input gets what begins here.
        let shares = self.credit.shares();
        let mut attached = queue.attached().into_iter().enumerate();
        let is_for_detached =
            attached.any(|(output, attached)| attached && shares.is_detached(output));
        // And there may be none to begin.
        let has_to_wait = exceeded.batches || is_for_detached || queue.batches.is_empty();
        Exceeded {
            batches: exceeded.parts && has_to_wait,
            ..exceeded
        }
    }

    /// Has so much of what may be in flight from now on.
    pub(crate) fn resize(&self, share: u64) {
        let capacity = queue_bytes(&self.plan, share);
        self.credit.resize(capacity);
        let of_output = capacity / self.outputs.len().max(1) as u64;
        for catch_up in self.catch_ups.iter().flatten() {
            catch_up.credit.resize(of_output);
        }
        let capacity = i64::try_from(capacity).unwrap_or(i64::MAX);
        self.metrics.queue_capacity.set(capacity);
        // What was put off for want of room may have it now.
        self.waiting.note_progress();
    }

    /// Ends reading; what was read goes on.
    pub(crate) fn stop_reading(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.credit.close();
        self.queues
            .iter()
            .for_each(|queue| queue.batches.room.close());
        self.catch_ups
            .iter()
            .flatten()
            .for_each(|catch_up| catch_up.credit.close());
        self.waiting.wake();
    }

    /// It ends: counts what outputs that are not required will never get. Required ones have it counted by the
    /// next start, which finds that the files are gone.
    pub(crate) fn give_up_gone(&self) {
        let outputs = self.metrics.outputs.iter().enumerate();
        for (index, output) in outputs.filter(|(index, _)| !self.is_required(*index)) {
            for (path, records) in self.tracker.give_up_gone(index) {
                output.missed(Miss::NotRequired, records);
                warn!(
                    pipeline = self.plan.name,
                    output = output.name,
                    path = %path.display(),
                    records,
                    "a file is gone that an output had not delivered to its end, which is not required: it goes without \
                     these records"
                );
            }
        }
    }

    /// A batch has no more requests for outputs that write lines; those behind it go on.
    pub(crate) fn pass_turns(&self, framed: &mut Framed) {
        self.pass(&mut framed.turns);
    }

    /// The numbers that are left of these have no requests.
    pub(crate) fn pass(&self, turns: &mut Turns<Ready>) {
        turns.pass(|output, (request, ticket)| self.outputs[output].submit(request, ticket));
    }

    /// What became of its bytes and records so far.
    pub(crate) fn ledger(&self) -> PipelineLedger {
        // The inputs of an output share its credit.
        let catch_ups = self.catch_ups.iter().filter_map(|inputs| inputs.first());
        let catching_up: u64 = catch_ups.map(|catch_up| catch_up.credit.used()).sum();
        PipelineLedger::of(&self.metrics, self.credit.used() + catching_up)
    }

    /// Counts what has no outcome as an earlier pipeline's. Nothing may be in flight: the pipeline has ended, or
    /// has not begun.
    pub(crate) fn count_earlier(&self) {
        self.ledger().count_earlier(&self.metrics.outputs);
    }

    /// Acknowledges a batch that has no record.
    pub(crate) fn ack_at_once(&self, framed: &mut Framed) {
        let open = BatchInFlight::open(
            Arc::clone(&self.tracker),
            self.metrics.outputs.clone(),
            (take(&mut framed.spans), take(&mut framed.locations)),
            &framed.wanted,
            framed.credit.take(),
        );
        open.seal(0);
        self.waiting.note_progress();
    }
}

/// How far reading may be ahead of the outputs in a file. It has room for what is held of a record, half of `limits.replay` at most, and
/// for a line without its end: else the file would wait for what only its next bytes bring.
fn replay_bytes_max(plan: &PipelinePlan) -> u64 {
    let records = plan.config.inputs.iter().map(|input| input.records());
    let longest = records.map(|it| it.max_record_bytes).max().unwrap_or(0);
    // And the end of a line, and one byte more.
    let line = longest + tailrace_frame::ENVELOPE_BYTES_MAX as u64 + 3;
    let replay = plan.config.limits.replay;
    replay.max(replay / 2 + line)
}

/// Opens the inputs. What an earlier run left of a source goes to the input with the best claim to it, or to the first one
/// of files where none has any (the globs were changed, or the input removed).
fn open_inputs(
    plan: &PipelinePlan,
    around: &mut BuildContext<'_>,
) -> Result<Vec<Box<dyn tailrace_inputs::Input>>, Error> {
    let failed = |source| Kind::Input {
        pipeline: plan.name.clone(),
        source,
    };
    let inputs = &plan.config.inputs;
    let reads_files = |input: &&Input| input.files().is_some();
    let of_files = inputs.iter().filter(reads_files).count();
    let held_bytes_max = plan.config.limits.held_bytes / (of_files.max(1) as u64);
    let mut resume: Vec<Vec<Resume>> = vec![Vec::new(); inputs.len()];
    if let [only] = resume.as_mut_slice() {
        *only = around.resume.entries();
    } else {
        let claims = inputs.iter().map(|input| input.claims());
        let claims: Vec<Claims> = claims.collect::<Result<_, _>>().map_err(failed)?;
        let first_of_files = inputs.iter().position(|input| reads_files(&input));
        for entry in around.resume.entries() {
            let owner = owner_of(&entry, &claims).or(first_of_files);
            resume[owner.unwrap_or(0)].push(entry);
        }
    }
    let open = |(input, resume): (&Input, Vec<Resume>)| {
        input.open(OpenContext {
            pipeline: &plan.name,
            data_dir: around.data_dir,
            resume,
            first_start: around.first_start,
            fingerprint_key: around.fingerprint_key,
            held_bytes_max,
            gone: around.resume.gone.clone(),
            handed_over: around.handed_over.clone(),
        })
    };
    let opened = inputs.iter().zip(resume).map(open);
    Ok(opened.collect::<Result<_, _>>().map_err(failed)?)
}

/// The input with the best claim to what an earlier run left; of two with the same one, the first.
fn owner_of(entry: &Resume, claims: &[Claims]) -> Option<usize> {
    let claims = claims.iter().enumerate();
    let claims = claims.filter_map(|(index, claims)| Some((claims(entry)?, index)));
    claims.min().map(|(_, index)| index)
}

/// The pods of the node, for inputs that read their logs.
fn nodes(
    plan: &PipelinePlan,
    runtime: &Handle,
    waiting: &Arc<Readers>,
) -> Result<Vec<Option<NodePods>>, Error> {
    let node = |input: &Input| {
        let Some(pods) = input.pods() else {
            return Ok(None);
        };
        let waiting = Arc::clone(waiting);
        let on_change = Arc::new(move || waiting.wake());
        NodePods::start(pods, runtime, on_change).map(Some)
    };
    let nodes: Result<Vec<_>, _> = plan.config.inputs.iter().map(node).collect();
    Ok(nodes.map_err(|source| Kind::Pods {
        pipeline: plan.name.clone(),
        source,
    })?)
}

#[cfg(test)]
mod tests;
