//! The workers' to-do list: one token for each batch that waits in a lane. Workers of all
//! pipelines share it; closing it lets them end when nothing is left.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Which lane has a batch: indices of the pipeline and of its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Job {
    /// Index of the pipeline.
    pub pipeline: usize,
    /// Index of the input in its pipeline.
    pub lane: usize,
}

/// Tokens, first in first out; their number is bounded by the readers' credit.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<Job>,
    closed: bool,
}

impl Jobs {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a token.
    pub(crate) fn push(&self, job: Job) {
        self.lock().jobs.push_back(job);
        self.changed.notify_one();
    }

    /// Takes the oldest token, waiting for one; `None` once closed and empty.
    pub(crate) fn pop(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            if state.closed {
                return None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// No token will come any more.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}
