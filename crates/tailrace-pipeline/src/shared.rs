//! What the readers of one pipeline share with its workers.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tailrace_inputs::Stored;

use crate::delivery::credit::Credit;
use crate::health::Health;
use crate::input::queues::Queues;
use crate::jobs::{Job, Jobs};
use crate::metrics::PipelineMetrics;
use crate::pipeline_id::PipelineId;
use crate::plan::PipelinePlan;
use crate::reasons::Reasons;
use crate::safe_mode::SafeMode;
use crate::wake::Readers;
use crate::watermark::Tracker;

/// The part of a pipeline that its readers know.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) plan: PipelinePlan,
    pub(crate) metrics: PipelineMetrics,
    /// Set once: readers end after the batch they fill.
    pub(crate) stopping: AtomicBool,
    /// Set once: an input could not be read to its end.
    pub(crate) broken: AtomicBool,
    pub(crate) waiting: Arc<Readers>,
    pub(crate) credit: Arc<Credit>,
    pub(crate) queues: Queues,
    pub(crate) tracker: Arc<Tracker>,
    pub(crate) health: Health,
    pub(crate) reasons: Arc<Reasons>,
    pub(crate) batch_bytes_max: usize,
    pub(crate) safe_mode: Arc<SafeMode>,
    pub(crate) batch_wait_max: Duration,
    pub(crate) replay_bytes_max: u64,
    pub(crate) id: PipelineId,
    pub(crate) jobs: Arc<Jobs>,
    /// What inputs that have ended stored of what cannot be read again.
    pub(crate) stored: Mutex<Vec<Stored>>,
}

impl Shared {
    /// Bytes of records in a batch, at most, as things are now.
    pub(crate) fn batch_bytes_max(&self) -> usize {
        self.safe_mode.batch_bytes_max(self.batch_bytes_max)
    }

    /// What inputs that have ended stored, so far.
    pub(crate) fn stored(&self) -> Vec<Stored> {
        let stored = self.stored.lock();
        stored.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// An input has ended, and stored this.
    pub(crate) fn add_stored(&self, stored: Vec<Stored>) {
        let all = self.stored.lock();
        all.unwrap_or_else(PoisonError::into_inner).extend(stored);
    }

    /// Whether files are held for an output.
    pub(crate) fn is_required(&self, output: usize) -> bool {
        self.plan.config.outputs[output].required
    }

    /// Queues a job for a batch of an input queue.
    pub(crate) fn push_job(&self, queue: usize) {
        self.jobs.push(Job {
            pipeline: self.id,
            queue,
        });
    }
}
