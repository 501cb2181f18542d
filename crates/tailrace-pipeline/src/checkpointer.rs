//! Writes the checkpoint: every second while something moved, and at the end. Reads watermarks
//! from the trackers; never decides what is settled. Looks at the ledger as often: whether it balances.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tailrace_config::{Input, StartAt};
use tailrace_input::checkpoint::{
    Checkpoint, Counts as Stored, Loaded, PipelineState, Store, Watermark,
};
use tailrace_input::{DataDir, FingerprintKey};
use tracing::{debug, error, info, warn};

use crate::error::{Error, Kind};
use crate::ledger::{PipelineLedger, SelfCheck};
use crate::metrics::Metrics;
use crate::pipeline::Pipeline;
use crate::plan::PipelinePlan;
use crate::resume::ResumeTable;
use crate::watermark::{Counts, Mark, Resumed};

/// How often the checkpoint is written while watermarks move.
const EVERY: Duration = Duration::from_secs(1);
/// How often it is said that it still cannot be written.
const TELL_EVERY: Duration = Duration::from_secs(60);

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
}

/// A loaded checkpoint that nothing writes yet.
pub(crate) struct Idle {
    dir: DataDir,
    loaded: Loaded,
}

/// The thread that writes the checkpoint.
pub(crate) struct Checkpointer {
    stop: Option<mpsc::SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    status: CheckpointStatus,
}

/// Why the checkpoint could not be written the last time, if so.
#[derive(Debug, Clone, Default)]
pub(crate) struct CheckpointStatus(Arc<Mutex<Option<String>>>);

struct Writer {
    store: Store,
    stored_at: Instant,
    /// When it was last said that it cannot be written.
    told_at: Option<Instant>,
    pipelines: Arc<[Arc<Pipeline>]>,
    metrics: Metrics,
    status: CheckpointStatus,
    check: SelfCheck,
}

impl Idle {
    /// Loads the checkpoint of a data directory; a damaged one is set aside with a warning.
    pub(crate) fn load(dir: DataDir, plans: &[PipelinePlan]) -> Result<(Self, Restored), Error> {
        let path = dir.path().to_owned();
        let loaded = Checkpoint::load(&dir).map_err(|source| Kind::DataDir { path, source })?;
        if let Some(warning) = &loaded.warning {
            warn!("{warning}");
        }
        let restore = |plan: &PipelinePlan| RestoredPipeline {
            resume: resume_table(plan, loaded.checkpoint.pipeline(&plan.name)),
            first_start: loaded.is_first_start(&plan.name),
        };
        let restored = Restored {
            fingerprint_key: loaded.checkpoint.fingerprint_key(),
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
        pipelines: Arc<[Arc<Pipeline>]>,
        metrics: Metrics,
    ) -> Result<Checkpointer, Error> {
        let status = CheckpointStatus::default();
        let mut skipping = pipelines.iter().filter(|pipeline| {
            self.loaded.is_first_start(&pipeline.plan.name) && skips(&pipeline.plan)
        });
        let skipping = skipping.next().map(|pipeline| pipeline.plan.name.clone());
        let path = self.dir.path().to_owned();
        let mut store = Store::go_on(self.dir, self.loaded);
        if let Some(pipeline) = skipping {
            for pipeline in &*pipelines {
                store.checkpoint.pipeline_mut(&pipeline.plan.name);
            }
            store.save().map_err(|source| Kind::FirstStart {
                pipeline,
                path,
                source,
            })?;
        }
        let writer = Writer {
            store,
            stored_at: Instant::now(),
            told_at: None,
            pipelines,
            metrics,
            status: status.clone(),
            check: SelfCheck::default(),
        };
        let (stop, stopped) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("tailrace-checkpoint".to_owned())
            .spawn(move || writer.run(&stopped))
            .map_err(|source| Kind::Thread { source })?;
        Ok(Checkpointer {
            stop: Some(stop),
            thread: Some(thread),
            status,
        })
    }
}

impl Checkpointer {
    /// Writes the last checkpoint and ends the thread.
    pub(crate) fn finish(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    /// Whether the checkpoint can be written.
    pub(crate) fn status(&self) -> CheckpointStatus {
        self.status.clone()
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

impl Writer {
    fn run(mut self, stopped: &mpsc::Receiver<()>) {
        // At once, so that a pipeline's next start is not its first one, and an unwritable
        // directory is known before anything is read.
        loop {
            self.write();
            let pipelines = self.pipelines.iter();
            self.check.look(
                pipelines
                    .map(|pipeline| PipelineLedger::of(pipeline))
                    .collect(),
            );
            match stopped.recv_timeout(EVERY) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.write();
    }

    fn write(&mut self) {
        self.collect();
        match self.store.save() {
            Ok(_) => {
                if self.told_at.take().is_some() {
                    info!("the checkpoint can be written again");
                    self.status.set(None);
                }
                self.stored_at = Instant::now();
            }
            Err(failure) => {
                let cause = std::error::Error::source(&failure).map(ToString::to_string);
                let text = match cause {
                    Some(cause) => format!("{failure}: {cause}"),
                    None => failure.to_string(),
                };
                let is_due = |told_at: Instant| told_at.elapsed() >= TELL_EVERY;
                if self.told_at.is_none_or(is_due) {
                    self.told_at = Some(Instant::now());
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
        for pipeline in &*self.pipelines {
            let name = &pipeline.plan.name;
            let state = self.store.checkpoint.pipeline_mut(name);
            let (departed, retired) = pipeline.tracker.take_departed();
            let marks = pipeline.tracker.take_marks();
            for (id, generation) in retired {
                state.remove(id, generation);
            }
            for mark in lowest_marks(departed.into_iter().chain(marks)) {
                let output = &pipeline.plan.config.outputs[mark.output].name;
                let at = Watermark {
                    offset: mark.watermark,
                    counts: stored(mark.counts),
                };
                let size = mark.size;
                let set = state.set(output, mark.id, mark.generation, &mark.path, size, at);
                if let Err(backwards) = set {
                    // A file whose earlier source was retired after the list was taken.
                    debug!(pipeline = name, path = %mark.path.display(), %backwards);
                }
            }
        }
    }
}

/// Whether a pipeline leaves out files that are there when it first starts.
fn skips(plan: &PipelinePlan) -> bool {
    plan.config.inputs.iter().any(Input::skips_at_first)
}

/// One mark for each file and output: a file that came back has two sources while the earlier one
/// is not settled, and the lower watermark holds.
fn lowest_marks(marks: impl Iterator<Item = Mark>) -> Vec<Mark> {
    let mut lowest: BTreeMap<(u64, u64, u32, usize), Mark> = BTreeMap::new();
    for mark in marks {
        let key = (mark.id.device, mark.id.inode, mark.generation, mark.output);
        match lowest.get_mut(&key) {
            Some(known) if known.watermark <= mark.watermark => {}
            Some(known) => *known = mark,
            None => {
                lowest.insert(key, mark);
            }
        }
    }
    lowest.into_values().collect()
}

fn resume_table(plan: &PipelinePlan, state: Option<&PipelineState>) -> ResumeTable {
    let names: Vec<&str> = plan
        .config
        .outputs
        .iter()
        .map(|output| output.name.as_str())
        .collect();
    let mut table = ResumeTable::default();
    let Some(state) = state else { return table };
    table.gone = state.gone();
    for entry in state.resume(&names) {
        let known = |name: &&str| {
            let fresh = Resumed {
                watermark: entry.offset,
                ..Resumed::default()
            };
            state
                .get(name, entry.id, entry.generation)
                .map_or(fresh, |at| Resumed {
                    watermark: at.offset,
                    counts: Counts {
                        delivered: at.counts.delivered,
                        filtered: at.counts.filtered,
                        rejected: at.counts.rejected,
                        dead_lettered: at.counts.dead_lettered,
                        dropped: at.counts.dropped,
                    },
                })
        };
        table.add(entry.clone(), names.iter().map(known).collect());
    }
    table
}

fn stored(counts: Counts) -> Stored {
    let Counts {
        delivered,
        filtered,
        rejected,
        dead_lettered,
        dropped,
    } = counts;
    Stored {
        delivered,
        filtered,
        rejected,
        dead_lettered,
        dropped,
    }
}
