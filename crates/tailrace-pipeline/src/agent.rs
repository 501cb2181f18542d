//! The whole agent: builds every pipeline, runs its threads, and ends them in order. Stop
//! reading, flush what was read, drain what is in flight within the grace period, write the
//! checkpoint. The caller's future says when to stop. How it goes over to another config: `agent/reload.rs`.

mod reload;

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use prometheus_client::registry::Registry;
use tailrace_config::Config;
use tailrace_inputs::{DataDir, FingerprintKey, HandedOver, LossReason};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle as Task;
use tracing::{error, info, warn};

use crate::certificates::Certificates;
use crate::checkpointer::{self, CheckpointStatus, Checkpointer, RestoredPipeline};
use crate::delivery::outputs::OutputHandle;
use crate::error::{Error, Kind};
use crate::fault::Faults;
use crate::health::Trouble;
use crate::input::reader::ReaderThread;
use crate::jobs::Jobs;
use crate::ledger::PipelineLedger;
use crate::metrics::Metrics;
use crate::overview::PipelineOverview;
use crate::pipeline::{self, BuildContext, Built, Opened, Pipeline};
use crate::pipeline_id::PipelineId;
use crate::pipelines::Pipelines;
use crate::plan::PipelinePlan;
use crate::process::failpoint::Failpoints;
use crate::process::in_progress::InProgress;
use crate::process::tap::{self, Subscription, Tap, TapError, TapRequest, TapTracer};
use crate::process::worker;
use crate::reasons::{Reason, Reasons};
use crate::safe_mode::SafeMode;
use crate::sizes::Sizes;
use crate::source_lag::SourceLag;
use crate::sources::{self, SourceKey, SourceOrder, SourceTable};
pub use reload::{Reload, Reloaded};

/// Where an agent is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Reading.
    Running,
    /// Reading has ended; what was read is on its way.
    Draining,
    /// The last checkpoint is written.
    Stopped,
}

/// A running agent.
pub struct Agent {
    pub(crate) runtime: Runtime,
    pub(crate) around: Around,
    pub(crate) pipelines: Pipelines,
    pub(crate) running: Vec<Running>,
    pub(crate) checkpointer: Checkpointer,
    pub(crate) faults: Faults,
    pub(crate) grace: Duration,
    workers: Vec<JoinHandle<()>>,
    workers_share: Arc<worker::Shared>,
    safe_mode: Arc<SafeMode>,
    not_run: NotRun,
    /// Outside of safe mode.
    sizes: Sizes,
    phase: watch::Sender<Phase>,
    /// How many inputs are read.
    reading: Arc<watch::Sender<usize>>,
    /// How many workers run.
    working: Arc<watch::Sender<usize>>,
}

/// An agent that was started and is dropped before it runs: something else kept the process from starting.
struct NotRun(Option<Arc<SafeMode>>);

impl Drop for NotRun {
    fn drop(&mut self) {
        if let Some(safe_mode) = &self.0 {
            safe_mode.ended();
        }
    }
}

/// A pipeline that runs.
pub(crate) struct Running {
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) certificates: Certificates,
    pub(crate) readers: Vec<ReaderThread>,
    /// One per output, in order.
    pub(crate) sending: Vec<Task<()>>,
}

/// What pipelines are built with, now and later.
pub(crate) struct Around {
    pub(crate) jobs: Arc<Jobs>,
    metrics: Metrics,
    fingerprint_key: FingerprintKey,
    data_dir: PathBuf,
    /// What all pipelines together may have in flight.
    queue_bytes: u64,
    safe_mode: Arc<SafeMode>,
    reasons: Arc<Reasons>,
    built: u64,
}

/// How an agent ended.
#[derive(Debug, Clone)]
pub struct Summary {
    /// The final ledger of each pipeline.
    pub pipelines: Vec<PipelineLedger>,
    /// Bytes of files with records that are not acknowledged, and those that wait in disk queues.
    pub undelivered_bytes: u64,
    /// Of these, bytes of files that were truncated or deleted since; the others are read again at the next start.
    pub undelivered_gone_bytes: u64,
    /// Bytes of inputs that cannot be read again with records that are not acknowledged, and what a disk queue could not store.
    pub lost_bytes: u64,
    /// An input could not be read to its end, and cannot be opened again.
    pub is_broken: bool,
    /// The agent ended because of a bug.
    pub fault: bool,
}

/// Reads the agent's state from other threads.
#[derive(Clone)]
pub struct View {
    pipelines: Pipelines,
    phase: watch::Receiver<Phase>,
    checkpoint: CheckpointStatus,
    safe_mode: Arc<SafeMode>,
    reasons: Arc<Reasons>,
    tap: Arc<Tap>,
}

impl Agent {
    /// Opens the data directory, builds all pipelines and starts to read.
    ///
    /// # Errors
    ///
    /// What keeps the agent from starting: an unusable data directory, a glob or certificate that
    /// cannot be read. A server that is down is none of these.
    pub fn start(
        config: &Config,
        plans: Vec<PipelinePlan>,
        sizes: Sizes,
        registry: &mut Registry,
    ) -> Result<Self, Error> {
        let dir = DataDir::open(&config.data_dir).map_err(|source| Kind::DataDir { source })?;
        if let Some(warning) = dir.warning() {
            warn!("{warning}");
        }
        // Before anything is loaded: that may be what ends the process.
        let safe_mode = Arc::new(SafeMode::begin(dir.path(), Instant::now()));
        let started = Self::start_in(dir, config, plans, (sizes, &safe_mode), registry);
        if started.is_err() {
            safe_mode.ended();
        }
        started
    }

    fn start_in(
        dir: DataDir,
        config: &Config,
        plans: Vec<PipelinePlan>,
        (sizes, safe_mode): (Sizes, &Arc<SafeMode>),
        registry: &mut Registry,
    ) -> Result<Self, Error> {
        let now = safe_mode.sizes(sizes);
        let (checkpointer, restored) = checkpointer::Idle::load(dir, &plans)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("tailrace-send")
            .enable_all()
            .build()
            .map_err(|source| Kind::Thread { source })?;
        let faults = Faults::new();
        let metrics = Metrics::register(registry);
        metrics.set_safe_mode(safe_mode.is_active());
        let mut around = Around {
            jobs: Arc::new(Jobs::default()),
            metrics: metrics.clone(),
            fingerprint_key: restored.fingerprint_key,
            data_dir: config.data_dir.clone(),
            queue_bytes: now.queue_bytes,
            safe_mode: Arc::clone(safe_mode),
            reasons: Arc::new(Reasons::default()),
            built: 0,
        };
        around.reasons.keep_examples(config.admin.examples);
        let share = around.share(plans.len());
        let pipelines = Pipelines::default();
        let mut built = Vec::new();
        for (plan, resumed) in plans.into_iter().zip(restored.pipelines) {
            let opened = pipeline::open(plan, runtime.handle())?;
            let certificates = opened.certificates;
            let pipeline = around.build(opened, resumed, share, (&runtime, &faults))?;
            pipelines.add(Arc::clone(&pipeline.pipeline));
            built.push((pipeline, certificates));
        }
        let failpoints = Failpoints::from(|name| std::env::var_os(name));
        let workers_share = Arc::new(worker::Shared {
            jobs: Arc::clone(&around.jobs),
            pipelines: pipelines.clone(),
            faults: faults.clone(),
            hold: failpoints.hold.map(worker::HoldStage::new),
            failpoints,
            in_progress: InProgress::open(&around.data_dir),
            tap: Arc::default(),
        });
        let mut agent = Self {
            checkpointer: checkpointer.start(pipelines.clone(), metrics, Arc::clone(safe_mode))?,
            around,
            pipelines,
            workers_share,
            safe_mode: Arc::clone(safe_mode),
            not_run: NotRun(Some(Arc::clone(safe_mode))),
            sizes,
            running: Vec::new(),
            workers: Vec::new(),
            phase: watch::Sender::new(Phase::Running),
            reading: Arc::new(watch::Sender::new(0)),
            working: Arc::new(watch::Sender::new(0)),
            grace: config.shutdown.grace,
            faults,
            runtime,
        };
        agent.start_workers(now.workers)?;
        for (built, certificates) in built {
            agent.start_reading(built, certificates)?;
        }
        Ok(agent)
    }

    /// Starts workers until there are so many.
    fn start_workers(&mut self, workers: usize) -> Result<(), Error> {
        for number in self.workers.len()..workers {
            let shared = Arc::clone(&self.workers_share);
            let working = Arc::clone(&self.working);
            let run = move || {
                worker::run(&shared, number);
                working.send_modify(|working| *working -= 1);
            };
            self.working.send_modify(|working| *working += 1);
            let started = thread("tailrace-work", run);
            if started.is_err() {
                self.working.send_modify(|working| *working -= 1);
            }
            self.workers.push(started?);
        }
        Ok(())
    }

    /// Starts the readers of a pipeline that is in the list.
    pub(crate) fn start_reading(
        &mut self,
        built: Built,
        certificates: Certificates,
    ) -> Result<(), Error> {
        self.running.push(Running {
            pipeline: built.pipeline,
            certificates,
            readers: Vec::new(),
            sending: built.sending,
        });
        // There from the start, so that a thread that cannot be started leaves nothing behind.
        let running = self.running.last_mut().expect("one was pushed");
        for reader in built.readers {
            let (reading, faults) = (Arc::clone(&self.reading), self.faults.clone());
            let run = move |end| {
                let mut handed_over = HandedOver::default();
                faults.guard("a reader", || handed_over = reader.run(end));
                reading.send_modify(|reading| *reading -= 1);
                handed_over
            };
            self.reading.send_modify(|reading| *reading += 1);
            let started = ReaderThread::start(|end| thread("tailrace-read", move || run(end)));
            running.readers.push(started?);
        }
        Ok(())
    }

    /// From now on the agent takes what the machine affords.
    fn leave_safe_mode(&mut self) {
        self.around.queue_bytes = self.sizes.queue_bytes;
        let share = self.around.share(self.running.len());
        for running in &self.running {
            running.pipeline.resize(share);
        }
        self.around.metrics.set_safe_mode(false);
        if let Err(error) = self.start_workers(self.sizes.workers) {
            warn!(%error, "no more workers can be started");
        }
    }

    /// A view of the running agent, for the admin endpoint and for progress.
    pub fn view(&self) -> View {
        View {
            pipelines: self.pipelines.clone(),
            phase: self.phase.subscribe(),
            checkpoint: self.checkpointer.status(),
            safe_mode: Arc::clone(&self.safe_mode),
            reasons: Arc::clone(&self.around.reasons),
            tap: Arc::clone(&self.workers_share.tap),
        }
    }

    /// Runs until `stop` is ready, every input has ended, an output has gone or a bug is met; then drains and ends. Goes over to
    /// other configs as they come. Inputs that ended by themselves are drained without a limit of time, until
    /// `stop`: what came from a pipe cannot be read again. Ending the process at a second signal is the
    /// caller's affair.
    pub fn run(
        mut self,
        stop: impl Future<Output = ()>,
        mut reloads: mpsc::Receiver<Reload>,
    ) -> Summary {
        self.not_run.0 = None;
        let mut stop = std::pin::pin!(stop);
        let stopped = loop {
            let mut reading = self.reading.subscribe();
            let next = self.runtime.block_on(async {
                tokio::select! {
                    () = &mut stop => Next::End { stopped: true },
                    () = self.faults.ends() => Next::End { stopped: true },
                    _ = reading.wait_for(|&inputs| inputs == 0) => Next::End { stopped: false },
                    Some(reload) = reloads.recv() => Next::Reload(reload),
                    () = self.safe_mode.left() => Next::LeaveSafeMode,
                }
            });
            match next {
                Next::End { stopped } => break stopped,
                Next::Reload(reload) => self.go_over(reload),
                Next::LeaveSafeMode => self.leave_safe_mode(),
            }
        };
        drop(reloads);
        self.phase.send_replace(Phase::Draining);
        self.stop_reading();
        let (faults, grace) = (self.faults.clone(), self.grace);
        let mut deadline = Deadline {
            deadline: stopped.then(|| Instant::now() + grace),
            grace,
        };
        let mut working = self.working.subscribe();
        self.runtime.block_on(async {
            let worked = async {
                tokio::select! {
                    _ = working.wait_for(|&workers| workers == 0) => {}
                    () = faults.first() => {}
                }
            };
            deadline.wait(worked, stop.as_mut(), &faults).await;
        });
        self.end_workers();
        let sending = self.running.iter_mut();
        let sending: Vec<_> = sending.flat_map(|r| r.sending.drain(..)).collect();
        // What is not delivered by then is dropped, which is a nack.
        let sent = deadline.wait(all(sending), stop.as_mut(), &faults);
        self.runtime.block_on(sent);
        // Ends deliveries that are left, before the last look at what is acknowledged; a write to a
        // pipe that nobody reads is not waited for.
        self.runtime.shutdown_background();
        for running in &self.running {
            running.pipeline.give_up_gone();
        }
        self.checkpointer.finish();
        self.phase.send_replace(Phase::Stopped);
        let fault = self.faults.any();
        if !fault {
            self.safe_mode.ended();
        }
        let view = View {
            pipelines: self.pipelines,
            phase: self.phase.subscribe(),
            checkpoint: self.checkpointer.status(),
            safe_mode: self.safe_mode,
            reasons: self.around.reasons,
            tap: Arc::clone(&self.workers_share.tap),
        };
        view.summary(fault)
    }

    /// Ends the readers; workers end when they have finished what was read.
    fn stop_reading(&mut self) {
        for running in &self.running {
            running.pipeline.stop_reading();
        }
        let readers = self.running.iter_mut().flat_map(|r| r.readers.drain(..));
        let threads: Vec<_> = readers.map(ReaderThread::release).collect();
        join(threads.into_iter());
        self.around.jobs.close();
    }

    /// Ends the workers, and the outputs when all is delivered. What waits to be made until more is delivered is given up.
    fn end_workers(&mut self) {
        self.around.jobs.abandon();
        join(self.workers.drain(..));
        for running in &self.running {
            running
                .pipeline
                .outputs
                .iter()
                .for_each(OutputHandle::close);
        }
    }
}

/// How long the end of the agent is waited for.
struct Deadline {
    /// None: until it is asked to stop.
    deadline: Option<Instant>,
    grace: Duration,
}

impl Deadline {
    /// Waits for something, at most for the rest of the grace period once the agent was asked to stop.
    async fn wait(
        &mut self,
        done: impl Future<Output = ()>,
        stop: Pin<&mut impl Future<Output = ()>>,
        faults: &Faults,
    ) {
        let mut done = std::pin::pin!(done);
        let deadline = match self.deadline {
            Some(deadline) => deadline,
            None => {
                tokio::select! {
                    () = &mut done => return,
                    () = stop => {}
                    () = faults.ends() => {}
                }
                Instant::now() + self.grace
            }
        };
        self.deadline = Some(deadline);
        let _ = tokio::time::timeout_at(deadline.into(), done).await;
    }
}

/// What ends a wait of the running agent.
enum Next {
    End {
        /// It was asked to, a bug was met, or an output has gone: the inputs have not ended.
        stopped: bool,
    },
    Reload(Reload),
    LeaveSafeMode,
}

impl Around {
    /// What each of so many pipelines may have in flight.
    pub(crate) fn share(&self, pipelines: usize) -> u64 {
        self.queue_bytes / pipelines.max(1) as u64
    }

    /// Builds a pipeline: nothing reads yet.
    pub(crate) fn build(
        &mut self,
        opened: Opened,
        resumed: RestoredPipeline,
        share: u64,
        (runtime, faults): (&Runtime, &Faults),
    ) -> Result<Built, Error> {
        self.built += 1;
        let around = BuildContext {
            id: PipelineId(self.built),
            queue_bytes: share,
            jobs: &self.jobs,
            metrics: &self.metrics,
            runtime: runtime.handle(),
            faults,
            fingerprint_key: self.fingerprint_key,
            first_start: resumed.first_start,
            data_dir: &self.data_dir,
            safe_mode: &self.safe_mode,
            reasons: &self.reasons,
            handed_over: resumed.handed_over,
            resume: resumed.resume,
        };
        pipeline::build(opened, around)
    }
}

impl View {
    /// Where the agent is in its life.
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// The ledger of each pipeline now.
    pub fn ledgers(&self) -> Vec<PipelineLedger> {
        let pipelines = self.pipelines.all();
        let ledgers = pipelines.iter();
        ledgers.map(|pipeline| pipeline.ledger()).collect()
    }

    /// Each pipeline at a glance.
    pub fn overview(&self) -> Vec<PipelineOverview> {
        let now = Instant::now();
        let pipelines = self.pipelines.all();
        let pipelines = pipelines.iter();
        pipelines
            .map(|pipeline| PipelineOverview::of(pipeline, now))
            .collect()
    }

    /// The recent reasons why something did not go the usual way, the newest first.
    pub fn reasons(&self) -> Vec<Arc<Reason>> {
        self.reasons.all()
    }

    /// Samples records of the pipelines from now on, and traces them.
    ///
    /// # Errors
    ///
    /// There is no such pipeline, a pipeline cannot evaluate the condition, or there are too many readers.
    pub fn tap(&self, request: TapRequest) -> Result<(Subscription, TapTracer), TapError> {
        tap::open(&self.tap, self.pipelines.clone(), request)
    }

    /// Whether reasons have one of the records that they are about now.
    pub fn keeps_examples(&self) -> bool {
        self.reasons.keeps_examples()
    }

    /// Whether reasons have one of the records that they are about, from now on.
    pub fn keep_examples(&self, is_wanted: bool) {
        self.reasons.keep_examples(is_wanted);
    }

    /// Sources of all pipelines, put together by `key` and in this order: how many there are, and the first `max`.
    pub fn sources(&self, key: SourceKey, order: SourceOrder, max: usize) -> SourceTable {
        sources::table(&self.pipelines.all(), key, order, max)
    }

    /// Calls a function with the plan of a pipeline; `None` if there is no such pipeline.
    pub fn with_plan<T>(&self, pipeline: &str, call: impl FnOnce(&PipelinePlan) -> T) -> Option<T> {
        let pipelines = self.pipelines.all();
        let found = pipelines.iter().find(|found| found.plan.name == pipeline)?;
        Some(call(&found.plan))
    }

    /// The names of the pipelines.
    pub fn names(&self) -> Vec<String> {
        let pipelines = self.pipelines.all();
        let names = pipelines.iter().map(|pipeline| pipeline.plan.name.clone());
        names.collect()
    }

    /// The sources of each pipeline that are furthest behind, at most `max` of each.
    pub fn lags(&self, max: usize) -> Vec<Vec<SourceLag>> {
        let lags = |pipeline: &Arc<Pipeline>| pipeline.tracker.lags(max);
        self.pipelines.all().iter().map(lags).collect()
    }

    /// What keeps the pipelines from doing their work.
    pub fn troubles(&self) -> Vec<Trouble> {
        let pipelines = self.pipelines.all();
        let pipelines = pipelines.iter();
        pipelines
            .flat_map(|pipeline| {
                let health = &pipeline.health;
                health.troubles(&pipeline.plan.name, Instant::now())
            })
            .collect()
    }

    /// Files and directories that the agent may not read.
    pub fn denied(&self) -> Vec<Trouble> {
        let pipelines = self.pipelines.all();
        let pipelines = pipelines.iter();
        pipelines
            .flat_map(|pipeline| pipeline.health.denied(&pipeline.plan.name))
            .collect()
    }

    /// One of them that is not a file to which nobody has written for a while, if there is one.
    pub fn denied_in_use(&self) -> Option<Trouble> {
        let pipelines = self.pipelines.all();
        let mut pipelines = pipelines.iter();
        pipelines.find_map(|pipeline| pipeline.health.denied_in_use(&pipeline.plan.name))
    }

    /// How many starts in a row ended without progress, if the agent is in safe mode because of them.
    pub fn safe_mode(&self) -> Option<u32> {
        self.safe_mode.deaths()
    }

    /// Why the checkpoint could not be written the last time, if so.
    pub fn checkpoint_error(&self) -> Option<String> {
        self.checkpoint.error()
    }

    fn summary(&self, fault: bool) -> Summary {
        let mut summary = Summary {
            pipelines: self.ledgers(),
            undelivered_bytes: 0,
            undelivered_gone_bytes: 0,
            lost_bytes: 0,
            is_broken: false,
            fault,
        };
        let (mut queued_bytes, mut unwritten_bytes) = (0, 0);
        for pipeline in self.pipelines.all() {
            let stored = pipeline.stored();
            let (files, others) = pipeline.tracker.undelivered_bytes();
            let queued = pipeline.tracker.queued_bytes(&stored);
            queued_bytes += queued;
            summary.undelivered_bytes += files + queued;
            summary.undelivered_gone_bytes += pipeline.tracker.undelivered_gone_bytes(&stored);
            summary.lost_bytes += others;
            // What a queue on a full disk had no room for; its loss is in the log.
            let lost = pipeline.metrics.lost_by_reason();
            let unwritten = lost
                .iter()
                .find(|(reason, _)| *reason == LossReason::Unwritten.as_str());
            unwritten_bytes += unwritten.map_or(0, |(_, bytes)| *bytes);
            summary.is_broken |= pipeline.broken.load(Ordering::Relaxed);
        }
        if summary.lost_bytes > 0 {
            error!(
                bytes = summary.lost_bytes,
                "standard input was read and not delivered in time; it cannot be read again"
            );
        }
        summary.lost_bytes += unwritten_bytes;
        if summary.undelivered_bytes > 0 {
            for lag in self.lags(NAMED_MAX).iter().flatten() {
                warn!(path = %lag.path.display(), bytes = lag.behind(), "not delivered yet");
            }
            warn!(
                bytes = summary.undelivered_bytes,
                queued_bytes = (queued_bytes > 0).then_some(queued_bytes),
                gone_bytes = summary.undelivered_gone_bytes,
                "not everything that was read could be delivered in time; \
                 it is read again at the next start, but for what is gone from its file"
            );
        } else if summary.lost_bytes == 0 {
            info!("every record that was read is acknowledged");
        }
        summary
    }
}

/// How many files of a pipeline are named when they are not delivered at the end.
const NAMED_MAX: usize = 10;

/// Waits for all tasks.
async fn all(tasks: Vec<Task<()>>) {
    for task in tasks {
        let _ = task.await;
    }
}

fn thread<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, Error> {
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
    Ok(thread.map_err(|source| Kind::Thread { source })?)
}

/// A thread that panicked has reported it; its tickets are nacks, so nothing is lost.
fn join<T>(threads: impl Iterator<Item = JoinHandle<T>>) {
    for thread in threads {
        let _ = thread.join();
    }
}
