//! The whole agent: builds every pipeline, runs its threads, and ends them in order. Stop
//! reading, flush what was read, drain what is in flight within the grace period, write the
//! checkpoint. The caller's future says when to stop.

use std::future::Future;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use prometheus_client::registry::Registry;
use tailrace_config::Config;
use tailrace_input::DataDir;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle as Task;
use tracing::{error, info, warn};

use crate::checkpointer::{self, CheckpointStatus, Checkpointer};
use crate::error::{Error, Kind};
use crate::fault::Faults;
use crate::jobs::Jobs;
use crate::ledger::{PipelineLedger, SourceLag};
use crate::metrics::Metrics;
use crate::pipeline::{self, Pipeline, Surroundings};
use crate::plan::PipelinePlan;
use crate::worker;

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
    runtime: Runtime,
    pipelines: Arc<[Arc<Pipeline>]>,
    readers: Vec<JoinHandle<()>>,
    workers: Vec<JoinHandle<()>>,
    sending: Vec<Task<()>>,
    jobs: Arc<Jobs>,
    checkpointer: Checkpointer,
    phase: watch::Sender<Phase>,
    readers_ended: watch::Receiver<usize>,
    grace: Duration,
    faults: Faults,
}

/// What the machine affords.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Threads that frame, scan, transform and encode.
    pub workers: usize,
    /// Bytes that all pipelines together may have in flight.
    pub queue_bytes: u64,
}

/// How an agent ended.
#[derive(Debug, Clone)]
pub struct Summary {
    /// The final ledger of each pipeline.
    pub pipelines: Vec<PipelineLedger>,
    /// Bytes of files with records that are not settled: they are read again at the next start.
    pub undelivered_bytes: u64,
    /// Bytes of inputs that cannot be read again with records that are not settled.
    pub lost_bytes: u64,
    /// The agent ended because of a bug.
    pub fault: bool,
}

/// Reads the agent's state from other threads.
#[derive(Clone)]
pub struct View {
    pipelines: Arc<[Arc<Pipeline>]>,
    phase: watch::Receiver<Phase>,
    checkpoint: CheckpointStatus,
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
        let data_dir = |source| Kind::DataDir {
            path: config.data_dir.clone(),
            source,
        };
        let dir = DataDir::open(&config.data_dir).map_err(data_dir)?;
        let (checkpointer, restored) = checkpointer::Idle::load(dir, &plans)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("tailrace-send")
            .enable_all()
            .build()
            .map_err(|source| Kind::Thread { source })?;
        let faults = Faults::new();
        let jobs = Arc::new(Jobs::default());
        let metrics = Metrics::register(registry);
        let queue_bytes = sizes.queue_bytes / plans.len().max(1) as u64;
        let mut built = Vec::new();
        for (index, (plan, resumed)) in plans.into_iter().zip(restored.pipelines).enumerate() {
            let around = Surroundings {
                index,
                queue_bytes,
                jobs: &jobs,
                metrics: &metrics,
                runtime: runtime.handle(),
                faults: &faults,
                fingerprint_key: restored.fingerprint_key,
                first_start: resumed.first_start,
                data_dir: &config.data_dir,
                resume: resumed.resume,
            };
            built.push(pipeline::build(plan, around)?);
        }
        let pipelines: Arc<[_]> = built
            .iter()
            .map(|built| Arc::clone(&built.pipeline))
            .collect();
        let mut agent = Self {
            checkpointer: checkpointer.start(Arc::clone(&pipelines), metrics)?,
            pipelines,
            readers: Vec::new(),
            workers: Vec::new(),
            sending: Vec::new(),
            jobs,
            phase: watch::Sender::new(Phase::Running),
            readers_ended: watch::channel(0).1,
            grace: config.shutdown.grace,
            faults,
            runtime,
        };
        agent.start_threads(built, sizes.workers)?;
        Ok(agent)
    }

    fn start_threads(&mut self, built: Vec<pipeline::Built>, workers: usize) -> Result<(), Error> {
        for _ in 0..workers {
            let (jobs, pipelines) = (Arc::clone(&self.jobs), Arc::clone(&self.pipelines));
            let faults = self.faults.clone();
            let run = move || worker::run(&jobs, &pipelines, &faults);
            self.workers.push(thread("tailrace-work", run)?);
        }
        let (ended, readers_ended) = watch::channel(0);
        let ended = Arc::new(ended);
        self.readers_ended = readers_ended;
        for built in built {
            self.sending.extend(built.sending);
            for reader in built.readers {
                let (ended, faults) = (Arc::clone(&ended), self.faults.clone());
                let run = move || {
                    faults.guard("a reader", || reader.run());
                    ended.send_modify(|ended| *ended += 1);
                };
                self.readers.push(thread("tailrace-read", run)?);
            }
        }
        Ok(())
    }

    /// A view of the running agent, for the admin endpoint and for progress.
    pub fn view(&self) -> View {
        View {
            pipelines: Arc::clone(&self.pipelines),
            phase: self.phase.subscribe(),
            checkpoint: self.checkpointer.status(),
        }
    }

    /// Runs until `stop` is ready, every input has ended, or a bug is met; then drains and ends.
    /// Inputs that ended by themselves are drained without a limit of time, until `stop`: what
    /// came from a pipe cannot be read again. Ending the process at a second signal is the
    /// caller's affair.
    pub fn run(mut self, stop: impl Future<Output = ()>) -> Summary {
        let mut stop = std::pin::pin!(stop);
        let inputs = self.readers.len();
        let mut ended = self.readers_ended.clone();
        let stopped = self.runtime.block_on(async {
            tokio::select! {
                () = &mut stop => true,
                () = self.faults.first() => true,
                _ = ended.wait_for(|&ended| ended == inputs) => false,
            }
        });
        self.phase.send_replace(Phase::Draining);
        self.stop_reading();
        let sending = std::mem::take(&mut self.sending);
        let (faults, grace) = (self.faults.clone(), self.grace);
        self.runtime.block_on(async {
            let mut sending = std::pin::pin!(all(sending));
            if !stopped {
                tokio::select! {
                    () = &mut sending => return,
                    () = &mut stop => {}
                    () = faults.first() => {}
                }
            }
            // What is not delivered by then is dropped, which is a nack.
            let _ = tokio::time::timeout(grace, sending).await;
        });
        // Ends deliveries that are left, before the last look at what is settled; a write to a
        // pipe that nobody reads is not waited for.
        self.runtime.shutdown_background();
        self.checkpointer.finish();
        self.phase.send_replace(Phase::Stopped);
        let view = View {
            pipelines: Arc::clone(&self.pipelines),
            phase: self.phase.subscribe(),
            checkpoint: self.checkpointer.status(),
        };
        view.summary(self.faults.any())
    }

    /// Ends the readers and lets the workers finish what was read.
    fn stop_reading(&mut self) {
        for pipeline in &*self.pipelines {
            pipeline.stop_reading();
        }
        join(self.readers.drain(..));
        self.jobs.close();
        join(self.workers.drain(..));
        for output in self.pipelines.iter().flat_map(|pipeline| &pipeline.outputs) {
            output.close();
        }
    }
}

impl View {
    /// Where the agent is in its life.
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// The ledger of each pipeline now.
    pub fn ledgers(&self) -> Vec<PipelineLedger> {
        self.pipelines
            .iter()
            .map(|pipeline| PipelineLedger::of(pipeline))
            .collect()
    }

    /// The sources of each pipeline that are furthest behind, at most `max` of each.
    pub fn lags(&self, max: usize) -> Vec<Vec<SourceLag>> {
        let lags = |pipeline: &Arc<Pipeline>| pipeline.tracker.lags(max);
        self.pipelines.iter().map(lags).collect()
    }

    /// Why the checkpoint could not be written the last time, if so.
    pub fn checkpoint_error(&self) -> Option<String> {
        self.checkpoint.error()
    }

    fn summary(&self, fault: bool) -> Summary {
        let mut summary = Summary {
            pipelines: self.ledgers(),
            undelivered_bytes: 0,
            lost_bytes: 0,
            fault,
        };
        for pipeline in &*self.pipelines {
            let (files, others) = pipeline.tracker.undelivered_bytes();
            summary.undelivered_bytes += files;
            summary.lost_bytes += others;
        }
        if summary.lost_bytes > 0 {
            error!(
                bytes = summary.lost_bytes,
                "standard input was read and not delivered in time; it cannot be read again"
            );
        }
        if summary.undelivered_bytes > 0 {
            for lag in self.lags(NAMED_MAX).iter().flatten() {
                warn!(path = %lag.path.display(), bytes = lag.behind(), "not delivered yet");
            }
            warn!(
                bytes = summary.undelivered_bytes,
                "not everything that was read could be delivered in time; \
                 it is read again at the next start"
            );
        } else if summary.lost_bytes == 0 {
            info!("every record that was read is settled");
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

fn thread(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
    Ok(thread.map_err(|source| Kind::Thread { source })?)
}

/// A thread that panicked has said so; its tickets are nacks, so nothing is lost.
fn join(threads: impl Iterator<Item = JoinHandle<()>>) {
    for thread in threads {
        let _ = thread.join();
    }
}
