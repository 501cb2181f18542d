//! The workers' to-do list: one token for each batch that waits in a lane. Workers of all
//! pipelines share it; closing it lets them end when nothing is left.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::pipelines::PipelineId;

/// Which lane has a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Job {
    /// The pipeline.
    pub pipeline: PipelineId,
    /// Index of the lane in its pipeline.
    pub lane: usize,
}

/// Tokens, first in first out; those of batches with bytes are bounded by the room of the lanes' queues.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    state: Mutex<State>,
    changed: Condvar,
    done: Condvar,
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Tokens of each pipeline that are not done, those that a worker has in hand too.
    undone: HashMap<PipelineId, usize>,
    closed: bool,
}

/// How often somebody who waits looks whether there is still something to wait for.
const LOOK_EVERY: Duration = Duration::from_millis(100);

impl Jobs {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a token.
    pub(crate) fn push(&self, job: Job) {
        let mut state = self.lock();
        state.jobs.push_back(job);
        *state.undone.entry(job.pipeline).or_default() += 1;
        drop(state);
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

    /// A token that was taken is done.
    pub(crate) fn done(&self, job: Job) {
        let mut state = self.lock();
        if let Some(undone) = state.undone.get_mut(&job.pipeline) {
            *undone -= 1;
            if *undone == 0 {
                state.undone.remove(&job.pipeline);
                drop(state);
                self.done.notify_all();
            }
        }
    }

    /// Waits until every token of a pipeline is done, or nobody is there to do it.
    pub(crate) fn wait_done(&self, pipeline: PipelineId, is_over: impl Fn() -> bool) {
        let mut state = self.lock();
        while state.undone.contains_key(&pipeline) && !is_over() {
            let waited = self.done.wait_timeout(state, LOOK_EVERY);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// No token will come any more.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipeline_is_done_when_its_last_token_is() {
        let jobs = Jobs::default();
        let job = |pipeline| Job {
            pipeline: PipelineId(pipeline),
            lane: 0,
        };
        jobs.push(job(1));
        jobs.push(job(2));
        let of_one = jobs.pop().expect("the oldest");
        // Nothing of the third one, and the second one's is not waited for.
        jobs.wait_done(PipelineId(3), || false);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                jobs.wait_done(PipelineId(1), || false);
                jobs.lock().undone.len()
            });
            jobs.done(of_one);
            assert_eq!(waiting.join().expect("no panic"), 1);
        });
        jobs.wait_done(PipelineId(2), || true);
    }
}
