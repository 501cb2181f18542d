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
use tracing::{info, warn};

use crate::checkpointer::{self, CheckpointStatus, Checkpointer};
use crate::error::{Error, Kind};
use crate::jobs::Jobs;
use crate::ledger::PipelineLedger;
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
}

/// How an agent ended.
#[derive(Debug, Clone)]
pub struct Summary {
    /// The final ledger of each pipeline.
    pub pipelines: Vec<PipelineLedger>,
    /// Bytes read and not settled: they are read again at the next start.
    pub unsettled_bytes: u64,
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
        workers: usize,
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
        let jobs = Arc::new(Jobs::default());
        let metrics = Metrics::register(registry);
        let mut built = Vec::new();
        for (index, (plan, resumed)) in plans.into_iter().zip(restored.pipelines).enumerate() {
            let around = Surroundings {
                index,
                jobs: &jobs,
                metrics: &metrics,
                runtime: runtime.handle(),
                fingerprint_key: restored.fingerprint_key,
                first_start: resumed.first_start,
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
            runtime,
        };
        agent.start_threads(built, workers)?;
        Ok(agent)
    }

    fn start_threads(&mut self, built: Vec<pipeline::Built>, workers: usize) -> Result<(), Error> {
        for _ in 0..workers {
            let (jobs, pipelines) = (Arc::clone(&self.jobs), Arc::clone(&self.pipelines));
            self.workers.push(thread("tailrace-work", move || {
                worker::run(&jobs, &pipelines)
            })?);
        }
        let (ended, readers_ended) = watch::channel(0);
        let ended = Arc::new(ended);
        self.readers_ended = readers_ended;
        for built in built {
            self.sending.extend(built.sending);
            for reader in built.readers {
                let ended = Arc::clone(&ended);
                let run = move || {
                    reader.run();
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

    /// Runs until `stop` is ready or every input has ended, then drains and ends. Dropping
    /// everything at a second signal is the caller's affair.
    pub fn run(mut self, stop: impl Future<Output = ()>) -> Summary {
        let inputs = self.readers.len();
        let mut ended = self.readers_ended.clone();
        self.runtime.block_on(async {
            tokio::select! {
                () = stop => {}
                _ = ended.wait_for(|&ended| ended == inputs) => {}
            }
        });
        self.phase.send_replace(Phase::Draining);
        let deadline = self
            .runtime
            .block_on(async { tokio::time::Instant::now() + self.grace });
        // Stop reading.
        self.pipelines
            .iter()
            .for_each(|pipeline| pipeline.stop_reading());
        join(self.readers.drain(..));
        // Flush.
        self.jobs.close();
        join(self.workers.drain(..));
        // Drain.
        for output in self.pipelines.iter().flat_map(|pipeline| &pipeline.outputs) {
            output.close();
        }
        let sending = std::mem::take(&mut self.sending);
        self.runtime.block_on(async {
            for mut task in sending {
                if tokio::time::timeout_at(deadline, &mut task).await.is_err() {
                    task.abort();
                    let _ = task.await;
                }
            }
        });
        // Checkpoint.
        self.checkpointer.finish();
        self.phase.send_replace(Phase::Stopped);
        let summary = self.view().summary();
        if summary.unsettled_bytes > 0 {
            warn!(
                bytes = summary.unsettled_bytes,
                "not everything that was read could be delivered in time; \
                 it is read again at the next start"
            );
        } else {
            info!("everything that was read is delivered");
        }
        summary
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

    /// Why the checkpoint could not be written the last time, if so.
    pub fn checkpoint_error(&self) -> Option<String> {
        self.checkpoint.error()
    }

    fn summary(&self) -> Summary {
        let unsettled = |pipeline: &Arc<Pipeline>| pipeline.tracker.unsettled_bytes_total();
        Summary {
            pipelines: self.ledgers(),
            unsettled_bytes: self.pipelines.iter().map(unsettled).sum(),
        }
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
