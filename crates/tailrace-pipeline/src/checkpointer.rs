//! Writes the checkpoint: every second while something moved, soon where a file is new to it, and at the end. Reads watermarks
//! from the trackers; never decides what is acknowledged. Looks at the ledger as often: whether it balances, and whether
//! each pipeline gets on.

mod due;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tailrace_inputs::checkpoint::{
    Checkpoint, Counts, Loaded, Origin, PipelineState, Store, Watermark,
};
use tailrace_inputs::{DataDir, FileId, FingerprintKey, HandedOver};
use tracing::{debug, error, info, warn};

use crate::error::{Error, Kind};
use crate::input::resume::ResumeTable;
use crate::ledger::SelfCheck;
use crate::metrics::Metrics;
use crate::pipeline::Pipeline;
use crate::pipelines::Pipelines;
use crate::plan::PipelinePlan;
use crate::safe_mode::SafeMode;
use crate::watermark::CheckpointEntry;
pub(crate) use due::Due;

/// How often the checkpoint is written while watermarks move.
const EVERY: Duration = Duration::from_secs(1);
/// How soon after another one it is written for a file that it does not know.
const SOONEST: Duration = Duration::from_millis(50);
/// How often it is said that it still cannot be written.
const REPORT_EVERY: Duration = Duration::from_secs(60);

/// What an earlier run left, and the key that fingerprints are made with.
pub(crate) struct Restored {
    pub(crate) fingerprint_key: FingerprintKey,
    /// One per plan, in order.
    pub(crate) pipelines: Vec<RestoredPipeline>,
}

/// What an earlier run left of one pipeline.
pub(crate) struct RestoredPipeline {
    pub(crate) resume: ResumeTable,
    /// There was no earlier run: `start_at` and `ignore_older` apply.
    pub(crate) first_start: bool,
    /// What the pipeline before it in this process held open.
    pub(crate) handed_over: HandedOver,
}

/// A loaded checkpoint that nothing writes yet.
pub(crate) struct Idle {
    dir: DataDir,
    loaded: Loaded,
}

/// The thread that writes the checkpoint.
pub(crate) struct Checkpointer {
    due: Arc<Due>,
    thread: Option<JoinHandle<()>>,
    status: CheckpointStatus,
    writer: Arc<Mutex<Writer>>,
}

/// Why the checkpoint could not be written the last time, if so.
#[derive(Debug, Clone, Default)]
pub(crate) struct CheckpointStatus(Arc<Mutex<Option<String>>>);

struct Writer {
    store: Store,
    /// The data directory.
    path: PathBuf,
    stored_at: Instant,
    /// When it was last said that it cannot be written.
    reported_at: Option<Instant>,
    /// A pipeline that the state does not know starts for the first time: nothing of it was lost.
    is_complete: bool,
    pipelines: Pipelines,
    metrics: Metrics,
    status: CheckpointStatus,
    check: SelfCheck,
    safe_mode: Arc<SafeMode>,
    /// More is acknowledged than the checkpoint on disk says.
    progressed: bool,
    /// By pipelines whose inputs have no place in the checkpoint.
    delivered: u64,
}

impl Idle {
    /// Loads the checkpoint of a data directory; a damaged one is set aside with a warning.
    pub(crate) fn load(dir: DataDir, plans: &[PipelinePlan]) -> Result<(Self, Restored), Error> {
        let mut loaded = Checkpoint::load(&dir).map_err(|source| Kind::DataDir { source })?;
        if let Some(warning) = &loaded.warning {
            warn!("{warning}");
        }
        let fingerprint_key = loaded.checkpoint.fingerprint_key();
        let restore = |plan: &PipelinePlan| RestoredPipeline {
            first_start: loaded.is_first_start(&plan.name),
            resume: resume_table(plan, &mut loaded.checkpoint),
            handed_over: HandedOver::default(),
        };
        let restored = Restored {
            fingerprint_key,
            pipelines: plans.iter().map(restore).collect(),
        };
        Ok((Self { dir, loaded }, restored))
    }

    /// Starts to write, once every second while something moves.
    ///
    /// # Errors
    /// Nothing can be written at a first start, and the next one would leave out what comes until then.
    pub(crate) fn start(
        self,
        pipelines: Pipelines,
        metrics: Metrics,
        safe_mode: Arc<SafeMode>,
    ) -> Result<Checkpointer, Error> {
        let status = CheckpointStatus::default();
        let due = Arc::clone(pipelines.due());
        let mut first = pipelines.all();
        first.retain(|pipeline| self.loaded.is_first_start(&pipeline.plan.name));
        let mut writer = Writer {
            path: self.dir.path().to_owned(),
            is_complete: matches!(self.loaded.origin, Origin::Fresh | Origin::Loaded),
            store: Store::go_on(self.dir, self.loaded),
            stored_at: Instant::now(),
            reported_at: None,
            pipelines,
            metrics,
            status: status.clone(),
            check: SelfCheck::default(),
            safe_mode,
            progressed: false,
            delivered: 0,
        };
        if !first.is_empty() {
            // Before anything is read: what is compressed from now on is not taken for older than the agent.
            writer.save_first(&first)?;
        }
        let writer = Arc::new(Mutex::new(writer));
        let theirs = (Arc::clone(&writer), Arc::clone(&due));
        let thread = std::thread::Builder::new()
            .name("tailrace-checkpoint".to_owned())
            .spawn(move || run(&theirs.0, &theirs.1))
            .map_err(|source| Kind::Thread { source })?;
        Ok(Checkpointer {
            due,
            thread: Some(thread),
            status,
            writer,
        })
    }
}

impl Checkpointer {
    /// Writes the last checkpoint and ends the thread.
    pub(crate) fn finish(&mut self) {
        self.due.end();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    /// A pipeline is to be added. Gives whether it starts for the first time; then [`Self::started`] writes that down.
    ///
    /// # Errors
    /// As at [`Idle::start`].
    pub(crate) fn begin(&self, plan: &PipelinePlan) -> Result<bool, Error> {
        let mut writer = lock(&self.writer);
        let first_start = writer.is_first_start(plan);
        if first_start && skips(plan) {
            let written = writer.store.save_whole();
            written.map_err(|source| writer.first_start(plan, source))?;
        }
        Ok(first_start)
    }

    /// A pipeline was built that starts for the first time, and nothing is read yet: writes down that it has started, with
    /// what it leaves out.
    ///
    /// # Errors
    /// As at [`Idle::start`].
    pub(crate) fn started(&self, pipeline: &Arc<Pipeline>) -> Result<(), Error> {
        lock(&self.writer).save_first(std::slice::from_ref(pipeline))
    }

    /// Takes the last watermarks of a pipeline that has ended, and looks at it no more.
    pub(crate) fn end(&self, pipeline: &Pipeline) {
        let mut writer = lock(&self.writer);
        writer.collect_from(pipeline);
        writer.pipelines.remove(pipeline.id);
    }

    /// Where a pipeline goes on that was [`Self::begin`] or that takes the place of one that has ended.
    pub(crate) fn resume(&self, plan: &PipelinePlan) -> ResumeTable {
        let mut writer = lock(&self.writer);
        resume_table(plan, &mut writer.store.checkpoint)
    }

    /// Whether the checkpoint can be written.
    pub(crate) fn status(&self) -> CheckpointStatus {
        self.status.clone()
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.due.end();
    }
}

impl CheckpointStatus {
    fn set(&self, error: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = error;
    }

    /// Why the checkpoint could not be written the last time, if so.
    pub(crate) fn error(&self) -> Option<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

fn lock(writer: &Mutex<Writer>) -> MutexGuard<'_, Writer> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run(writer: &Mutex<Writer>, due: &Due) {
    // At once, so that a pipeline's next start is not its first one, and an unwritable
    // directory is known before anything is read.
    lock(writer).look();
    let mut looked_at = Instant::now();
    let mut least = SOONEST;
    let left = |looked_at: Instant| EVERY.saturating_sub(looked_at.elapsed());
    while due.wait(least.min(left(looked_at)), left(looked_at)) {
        let begun_at = Instant::now();
        if looked_at.elapsed() < EVERY {
            lock(writer).write();
        } else {
            lock(writer).look();
            looked_at = begun_at;
        }
        // However many files are found one after the other, and however slow the disk is: not most of the time.
        least = (begun_at.elapsed() * 10).clamp(SOONEST, EVERY);
    }
    lock(writer).write();
}

impl Writer {
    fn look(&mut self) {
        self.write();
        self.safe_mode.lives(Instant::now());
        let pipelines = self.pipelines.all();
        let ledgers = pipelines.iter();
        let ledgers: Vec<_> = ledgers.map(|pipeline| pipeline.ledger()).collect();
        for (pipeline, ledger) in pipelines.iter().zip(&ledgers) {
            let said = |output: usize| pipeline.outputs[output].said();
            let is_stalled = pipeline.health.look(ledger, said, Instant::now());
            pipeline.metrics.stalled.set(is_stalled.into());
        }
        // What is read from a pipe has no place in the checkpoint: there delivery is all the progress that there is.
        let delivered = ledgers.iter().flat_map(|ledger| &ledger.outputs);
        let delivered = delivered.map(|output| output.delivered).sum();
        let is_piped = |pipeline: &Arc<Pipeline>| {
            !pipeline
                .plan
                .config
                .inputs
                .iter()
                .any(|input| input.files().is_some())
        };
        self.progressed |= delivered > self.delivered && pipelines.iter().all(is_piped);
        self.delivered = delivered;
        self.check.look(ledgers);
    }

    /// Writes down that pipelines have started, before anything is read. With it goes what they leave out: in a state that has
    /// the one without the other, the next start would read that from its first byte. If one of them leaves anything
    /// out, this has to be written.
    fn save_first(&mut self, first: &[Arc<Pipeline>]) -> Result<(), Error> {
        for pipeline in first {
            self.collect_from(pipeline);
        }
        let skipping = first.iter().find(|pipeline| skips(&pipeline.plan));
        match (self.store.save(), skipping) {
            (Err(source), Some(skipping)) => Err(self.first_start(&skipping.plan, source)),
            _ => Ok(()),
        }
    }

    /// It cannot be written down that a pipeline has started that leaves something out.
    fn first_start(&self, plan: &PipelinePlan, source: tailrace_inputs::Error) -> Error {
        let kind = Kind::FirstStart {
            pipeline: plan.name.clone(),
            path: self.path.clone(),
            source,
        };
        kind.into()
    }

    fn is_first_start(&self, plan: &PipelinePlan) -> bool {
        self.is_complete && self.store.checkpoint.pipeline(&plan.name).is_none()
    }

    fn write(&mut self) {
        self.collect();
        let saved = self.store.save();
        for warning in self.store.take_warnings() {
            warn!("{warning}");
        }
        match saved {
            Ok(_) => {
                if self.store.take_removed() {
                    warn!(
                        path = %self.path.display(),
                        "data_dir or the checkpoint in it was removed or replaced while the agent runs: the checkpoint is \
                         written anew and nothing of it is lost; dead letters and queued standard input that were \
                         removed are"
                    );
                }
                if self.reported_at.take().is_some() {
                    info!("the checkpoint can be written again");
                    self.status.set(None);
                }
                self.stored_at = Instant::now();
                if std::mem::take(&mut self.progressed) {
                    self.safe_mode.progressed(self.stored_at);
                }
            }
            Err(failure) => {
                let cause = std::error::Error::source(&failure).map(ToString::to_string);
                let text = match cause {
                    Some(cause) => format!("{failure}: {cause}"),
                    None => failure.to_string(),
                };
                let is_due = |reported_at: Instant| reported_at.elapsed() >= REPORT_EVERY;
                if self.reported_at.is_none_or(is_due) {
                    self.reported_at = Some(Instant::now());
                    error!(
                        error = text,
                        seconds = self.stored_at.elapsed().as_secs(),
                        "the checkpoint cannot be written: logs are delivered all the same and nothing is \
                         lost, but a restart would send again what was delivered since; make room in \
                         data_dir, or make it writable"
                    );
                }
                self.status.set(Some(text));
            }
        }
        let age = i64::try_from(self.stored_at.elapsed().as_secs()).unwrap_or(i64::MAX);
        self.metrics.set_checkpoint_age(age);
    }

    fn collect(&mut self) {
        for pipeline in self.pipelines.all() {
            self.collect_from(&pipeline);
        }
    }

    fn collect_from(&mut self, pipeline: &Pipeline) {
        let name = &pipeline.plan.name;
        let state = self.store.checkpoint.pipeline_mut(name);
        state.begin(&output_names(&pipeline.plan));
        let (departed, retired, marks) = pipeline.tracker.take_changes();
        let unseen = pipeline.tracker.take_unseen();
        for (id, generation) in retired {
            report_unfinished(&pipeline.plan, state, (id, generation));
            state.remove(id, generation);
        }
        // What departed was acknowledged to its end: a lower mark of a source that came back in its place would be refused.
        for mark in departed.into_iter().chain(lowest_marks(marks)) {
            let output = &pipeline.plan.config.outputs[mark.output].name;
            let at = Watermark {
                offset: mark.watermark,
                counts: mark.counts,
            };
            let known = state.get(output, mark.id, mark.generation);
            self.progressed |= records(at.counts) > known.map_or(0, |known| records(known.counts));
            let size = mark.size;
            let set = state.set(
                output,
                mark.id,
                mark.generation,
                Arc::clone(&mark.path),
                size,
                at,
            );
            match set {
                Ok(()) => {
                    state.set_rests(mark.id, mark.generation, &mark.rests);
                    state.set_origin(mark.id, mark.generation, mark.origin.as_ref());
                    state.set_target(mark.id, mark.generation, mark.target.as_ref());
                }
                // A file whose earlier source was retired after the list was taken.
                Err(backwards) => {
                    debug!(pipeline = name, path = %mark.path.display(), %backwards);
                }
            }
        }
        for (id, generation, is_unseen) in unseen {
            state.set_unseen(id, generation, is_unseen);
        }
    }
}

/// A file is gone: says which outputs had not finished it that are not configured now, and so cannot read it, or for
/// which no file is kept.
fn report_unfinished(plan: &PipelinePlan, state: &PipelineState, (id, generation): (FileId, u32)) {
    let Some(file) = state.file(id, generation) else {
        return;
    };
    let outputs = &plan.config.outputs;
    for (output, at) in file.outputs().filter(|(_, at)| at.offset < file.size) {
        let configured = outputs.iter().find(|known| known.name == output);
        if configured.is_some_and(|output| !output.required) {
            warn!(
                pipeline = plan.name,
                output,
                path = %file.path.display(),
                bytes = file.size - at.offset,
                "a file is gone that an output had not delivered to its end, which is not required: it goes without these bytes"
            );
        } else if configured.is_none() {
            warn!(
                pipeline = plan.name,
                output,
                path = %file.path.display(),
                bytes = file.size - at.offset,
                "a file is gone that an output had not delivered to its end, which the config has no more; if it is \
                 added again, it is without these bytes"
            );
        }
    }
}

/// Whether a pipeline leaves out files that are there when it first starts.
fn skips(plan: &PipelinePlan) -> bool {
    plan.config
        .inputs
        .iter()
        .any(|input| input.skips_at_first())
}

/// One mark for each file and output: a file that came back has two sources while the earlier one
/// is not acknowledged, and the lower watermark holds.
fn lowest_marks(mut marks: Vec<CheckpointEntry>) -> Vec<CheckpointEntry> {
    let key =
        |mark: &CheckpointEntry| (mark.id.device, mark.id.inode, mark.generation, mark.output);
    // In place: at a start there is one for each of many files.
    marks.sort_by_key(|mark| (key(mark), mark.watermark));
    marks.dedup_by_key(|mark| key(mark));
    marks
}

/// Where a pipeline goes on; notes which outputs it has from now on.
fn resume_table(plan: &PipelinePlan, checkpoint: &mut Checkpoint) -> ResumeTable {
    if checkpoint.pipeline(&plan.name).is_none() {
        return ResumeTable::default();
    }
    let outputs = output_names(plan);
    let required = plan.config.outputs.iter().filter(|output| output.required);
    let required = required.map(|output| output.name.clone()).collect();
    let state = checkpoint.pipeline_mut(&plan.name);
    state.begin(&outputs);
    ResumeTable::new(state, outputs, required)
}

fn output_names(plan: &PipelinePlan) -> Vec<String> {
    let outputs = plan.config.outputs.iter();
    outputs.map(|output| output.name.clone()).collect()
}

fn records(counts: Counts) -> u64 {
    let Counts {
        delivered,
        filtered,
        rejected,
        dead_lettered,
        dropped,
    } = counts;
    delivered + filtered + rejected + dead_lettered + dropped
}

#[cfg(test)]
mod tests;
