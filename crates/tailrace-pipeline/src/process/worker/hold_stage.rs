//! A stage for tests, as one with windows of time will be: it holds what was made of batches between the encoder and the
//! outputs. They stay open, so that no byte of them is acknowledged however long that takes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::hand_over::WholeBatch;
use crate::pipeline::Pipeline;

/// Holds so many batches until another one comes.
#[derive(Debug)]
pub(crate) struct HoldStage {
    batches_max: usize,
    held: Mutex<VecDeque<(Arc<Pipeline>, WholeBatch)>>,
}

impl HoldStage {
    pub(crate) fn new(batches_max: usize) -> Self {
        Self {
            batches_max,
            held: Mutex::default(),
        }
    }

    /// Takes a batch, and hands over the oldest one if there is one too many.
    pub(super) fn push(&self, pipeline: &Arc<Pipeline>, batch: WholeBatch) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.push_back((Arc::clone(pipeline), batch));
        if held.len() > self.batches_max
            && let Some((pipeline, batch)) = held.pop_front()
        {
            batch.hand_over(&pipeline);
        }
    }
}
