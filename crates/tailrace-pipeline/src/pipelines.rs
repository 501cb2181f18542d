//! The pipelines that run now: the one list that workers, the checkpointer and views of the agent look
//! into. Takes and gives pipelines; never starts or ends one.

use std::sync::{Arc, PoisonError, RwLock};

use crate::checkpointer::Due;
use crate::pipeline::Pipeline;
use crate::pipeline_id::PipelineId;

/// The pipelines, by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pipelines {
    running: Arc<RwLock<Vec<Arc<Pipeline>>>>,
    /// Their sources ask for a checkpoint by it.
    due: Arc<Due>,
}

impl Pipelines {
    /// Those that run now.
    pub(crate) fn all(&self) -> Vec<Arc<Pipeline>> {
        self.running
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// One of them.
    pub(crate) fn get(&self, id: PipelineId) -> Option<Arc<Pipeline>> {
        let pipelines = self.running.read().unwrap_or_else(PoisonError::into_inner);
        let found = pipelines.iter().find(|pipeline| pipeline.id == id);
        found.map(Arc::clone)
    }

    /// By which a checkpoint is asked for.
    pub(crate) fn due(&self) -> &Arc<Due> {
        &self.due
    }

    /// Adds one.
    pub(crate) fn add(&self, pipeline: Arc<Pipeline>) {
        pipeline.tracker.asks(&self.due);
        let mut pipelines = self.running.write().unwrap_or_else(PoisonError::into_inner);
        pipelines.push(pipeline);
        pipelines.sort_by(|a, b| a.plan.name.cmp(&b.plan.name));
    }

    /// Takes one away.
    pub(crate) fn remove(&self, id: PipelineId) {
        let mut pipelines = self.running.write().unwrap_or_else(PoisonError::into_inner);
        pipelines.retain(|pipeline| pipeline.id != id);
    }
}
