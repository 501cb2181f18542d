//! The one file that names all stages, in flow order: read, frame, scan, transform, encode, send,
//! ack, checkpoint. Builds a pipeline from its plan; decides nothing about records.

use std::mem::take;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tailrace_config::Input;
use tailrace_inputs::options::{Framing, MultilineBy, MultilinePreset};
use tailrace_inputs::{Claim, FingerprintKey, HandedOver, OpenContext, Resume};
use tokio::runtime::Handle;

use crate::certificates::Certificates;
use crate::delivery::credit::{Credit, Shares};
use crate::delivery::dead_letters::DeadLetterQueue;
use crate::delivery::in_flight::{BatchInFlight, Ready};
use crate::delivery::order::{Orders, Turns};
use crate::delivery::outputs::OutputHandle;
use crate::error::{Error, Kind};
use crate::fault::Faults;
use crate::health::Health;
use crate::input::catch_up::CatchUp;
use crate::input::facts::FactsConfig;
use crate::input::input_queue::{Framed, InputQueue, Overflow};
use crate::input::pods::{Awaiting, NodePods};
use crate::input::pool::Pool;
use crate::input::queues::Queues;
use crate::input::reader::Reader;
use crate::input::resume::ResumeTable;
use crate::jobs::Jobs;
use crate::ledger::PipelineLedger;
use crate::metrics::Metrics;
use crate::pipeline_id::PipelineId;
use crate::plan::PipelinePlan;
use crate::process::failed::FailureLog;
use crate::process::seen::ColumnsSeen;
use crate::process::unfinished::Unfinished;
use crate::process::work::Work;
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

/// What a pipeline may have in flight at least, however many there are.
const QUEUE_BYTES_MIN: u64 = 512 * 1024;
/// Which share of what may be in flight unfinished records may take in memory, all inputs together; more is moved to a file.
const UNFINISHED_SHARE: u64 = 4;
const UNFINISHED_BYTES_MIN: u64 = 512 * 1024;
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

/// Builds one pipeline: nothing reads yet.
pub(crate) fn build(opened: Opened, mut around: BuildContext<'_>) -> Result<Built, Error> {
    let Opened {
        plan,
        outputs: open,
        ..
    } = opened;
    let names: Vec<String> = plan
        .config
        .outputs
        .iter()
        .map(|output| output.name.clone())
        .collect();
    let queue_bytes = queue_bytes(&plan, around.queue_bytes);
    let (inputs, several) = (plan.config.inputs.len(), names.len() > 1);
    let credit = Credit::new(queue_bytes, Shares::new(names.len()));
    let metrics = around.metrics.pipeline(&plan.name, &names);
    let tracker = Arc::new(Tracker::new(names.len()));
    // read
    let sources = open_inputs(&plan, &mut around)?;
    let wakers = sources.iter().map(|input| input.waker()).collect();
    let jobs = (Arc::clone(around.jobs), around.id);
    let waiting = Arc::new(Readers::new(wakers, jobs));
    let nodes = nodes(&plan, around.runtime, &waiting)?;
    let facts = |input: &Input, node: &Option<NodePods>| FactsConfig {
        resource: plan.resource.clone(),
        encodings: plan
            .config
            .outputs
            .iter()
            .map(|output| output.kind.file_attributes())
            .collect(),
        files: input.files().is_some(),
        pods: node
            .clone()
            .map(|node| (node, metrics.metadata_missing.clone())),
    };
    // frame
    // One batch is filled while another one is in flight.
    let batch_bytes_max = plan.config.batch.max_bytes.min(queue_bytes / 2);
    let replay_bytes_max = plan.config.limits.replay;
    let held_bytes_max = (queue_bytes / UNFINISHED_SHARE / inputs as u64).max(UNFINISHED_BYTES_MIN);
    let held_bytes_max = usize::try_from(held_bytes_max).unwrap_or(usize::MAX);
    let outputs = || plan.config.outputs.iter();
    let orders = || Orders::new(outputs().map(|output| output.kind.is_ordered()));
    // One for each input, whoever reads it for an output.
    let orders: Vec<_> = (0..inputs).map(|_| orders()).collect();
    let queue = |(n, (input, node)): (usize, (&Input, &Option<NodePods>))| {
        InputQueue::new(
            frame_config(input, replay_bytes_max),
            facts(input, node),
            Arc::clone(&tracker),
            Arc::clone(&orders[n]),
            // One may wait for a worker while the reader fills another one.
            batch_bytes_max,
            plan.records_max(),
            Overflow::new(held_bytes_max, around.data_dir.to_owned()),
        )
    };
    let of_inputs = || plan.config.inputs.iter().zip(&nodes).enumerate();
    let mut queues = Queues::new(of_inputs().map(queue).collect());
    let mut catch_ups: Vec<Vec<_>> = Vec::new();
    for output in (0..names.len()).filter(|_| several) {
        let again = |input| queue(input).catching_up(output);
        queues.add_output(of_inputs().map(again));
        // What a detached output holds of the credit when it begins to catch up is at most its share.
        // All its inputs have that together.
        let share = credit.capacity() / names.len() as u64;
        let credit = Credit::new(share, Shares::new(names.len()));
        let catch_up = |input| Arc::new(CatchUp::new(input, output, Arc::clone(&credit)));
        catch_ups.push((0..inputs).map(catch_up).collect());
    }
    // scan, transform, encode: the workers, from the plan
    // send, ack
    let dead_letters = Arc::new(DeadLetterQueue::new(
        around.data_dir,
        &plan.name,
        &plan.config.dead_letter,
    ));
    let mut outputs = Vec::new();
    let mut sending = Vec::new();
    for (n, output) in open.into_iter().enumerate() {
        let encoding = &plan.encodings[plan.encoding_of[n]];
        let metrics = metrics.outputs[n].clone();
        let (handle, task) = OutputHandle::start(
            &plan.name,
            (plan.config.outputs[n].name.clone(), output),
            encoding,
            metrics,
            &waiting,
            &dead_letters,
            (around.runtime, around.faults),
        );
        outputs.push(handle);
        sending.push(task);
    }
    // checkpoint: the agent's, from the tracker

    let batch_bytes_max = usize::try_from(batch_bytes_max).unwrap_or(usize::MAX);
    let pool = Pool::new(batch_bytes_max, BUFFERS_KEPT);
    let shared = Arc::new(Shared {
        health: Health::default(),
        metrics,
        stopping: AtomicBool::new(false),
        waiting,
        credit,
        queues,
        tracker,
        batch_bytes_max,
        safe_mode: Arc::clone(around.safe_mode),
        batch_wait_max: plan.config.batch.max_wait,
        replay_bytes_max,
        id: around.id,
        jobs: Arc::clone(around.jobs),
        plan,
    });
    let pipeline = Arc::new(Pipeline {
        unfinished: shared
            .queues
            .iter()
            .map(|_| Unfinished::default())
            .collect(),
        columns_seen: ColumnsSeen::new(&shared.plan),
        failed: FailureLog::default(),
        catch_ups,
        outputs,
        shared: Arc::clone(&shared),
    });
    pipeline.resize(around.queue_bytes);
    pipeline.count_earlier();
    let mut resume = around.resume;
    let reader = |(input, (source, node))| {
        // The last one, which is the only one mostly, needs no copy.
        let resume = if input + 1 == inputs {
            take(&mut resume)
        } else {
            resume.clone()
        };
        let of_outputs = pipeline.catch_ups.iter();
        Reader::new(
            Arc::clone(&shared),
            input,
            of_outputs
                .map(|of_inputs| Arc::clone(&of_inputs[input]))
                .collect(),
            (source, Option::map(node, Awaiting::new)),
            Arc::clone(&pool),
            resume,
        )
    };
    let sources = sources.into_iter().zip(nodes);
    let readers = sources.enumerate().map(reader).collect();
    Ok(Built {
        pipeline,
        readers,
        sending,
    })
}

impl Pipeline {
    /// What bounds what is in flight of an input queue.
    pub(crate) fn credit_of(&self, queue: usize) -> &Arc<Credit> {
        match self.queues.output_of(queue) {
            None => &self.credit,
            Some(output) => &self.catch_ups[output][self.queues.input_of(queue)].credit,
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
        let catch_ups = self.catch_ups.iter().flatten();
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

/// What a pipeline may have in flight, of its share.
fn queue_bytes(plan: &PipelinePlan, share: u64) -> u64 {
    in_flight_max(
        plan.config.queue.max_bytes,
        share,
        plan.config.outputs.len(),
    )
}

/// Half of the share where an output can be detached: what such outputs hold is not charged to the others, and
/// may be as much again.
fn in_flight_max(queue_bytes: u64, share: u64, outputs: usize) -> u64 {
    let share = match outputs {
        0 | 1 => share,
        _ => share / 2,
    };
    queue_bytes.min(share.max(QUEUE_BYTES_MIN))
}

/// Opens the inputs. What an earlier run left of a source goes to the input that claims it, or to the first one of files
/// where none does (the file was renamed).
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
        let claims: Vec<Claim> = claims.collect::<Result<_, _>>().map_err(failed)?;
        let first_of_files = inputs.iter().position(|input| reads_files(&input));
        for entry in around.resume.entries() {
            let owner = claims.iter().position(|claims| claims(&entry));
            resume[owner.or(first_of_files).unwrap_or(0)].push(entry);
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

/// How an input's bytes are cut. An open chain of partial lines, or an open join, holds the watermark
/// back, so it spans at most half of what may be read beyond it.
pub(crate) fn frame_config(input: &Input, replay_bytes_max: u64) -> tailrace_frame::Config {
    use tailrace_frame::Format;
    let records = input.records();
    tailrace_frame::Config {
        format: match records.framing {
            Framing::Auto => Format::Auto,
            Framing::Json => Format::Json,
            Framing::Raw => Format::Raw,
            Framing::Container => Format::Container,
            Framing::Cri => Format::Cri,
            Framing::Docker => Format::Docker,
        },
        record_bytes_max: usize::try_from(records.max_record_bytes).unwrap_or(usize::MAX),
        chain_span_max: replay_bytes_max / 2,
        multiline: records
            .multiline
            .map(|multiline| multiline_of(&multiline.by)),
    }
}

fn multiline_of(by: &MultilineBy) -> tailrace_frame::Multiline {
    use tailrace_frame::{Multiline, Preset};
    let preset = |preset: &MultilinePreset| match preset {
        MultilinePreset::Java => Preset::Java,
        MultilinePreset::Python => Preset::Python,
        MultilinePreset::Go => Preset::Go,
        MultilinePreset::Ruby => Preset::Ruby,
        MultilinePreset::Dotnet => Preset::Dotnet,
        MultilinePreset::Javascript => Preset::Javascript,
        MultilinePreset::Rust => Preset::Rust,
    };
    match by {
        MultilineBy::Presets(presets) => {
            Multiline::presets(&presets.iter().map(preset).collect::<Vec<_>>())
        }
        MultilineBy::Start(start) => Multiline::start(start.0.clone()),
    }
}

#[cfg(test)]
mod tests;
