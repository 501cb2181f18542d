//! The workers' to-do list: one token for each batch that waits in an input queue. Workers of all
//! pipelines share it; closing it lets them end when nothing is left.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::pipeline_id::PipelineId;

/// Which input queue has a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Job {
    /// The pipeline.
    pub pipeline: PipelineId,
    /// Index of the input queue in its pipeline.
    pub queue: usize,
}

/// Tokens, first in first out; those of batches with bytes are bounded by the room of the input queues.
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
    /// Tokens that wait until more is delivered.
    put_off: Vec<Job>,
    closed: bool,
    /// Nobody waits for what is put off any more.
    abandoned: bool,
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

    /// Takes the oldest token, waiting for one; `None` once closed and empty, with nothing put off.
    pub(crate) fn pop(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            if state.closed && (state.put_off.is_empty() || state.abandoned) {
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

    /// Puts a token that was taken off until [`Self::resume`], or to the front if it can go on.
    pub(crate) fn put_off(&self, job: Job, can_go_on: impl FnOnce() -> bool) {
        let mut state = self.lock();
        // Under the lock: what makes it go on calls `resume` afterwards.
        if can_go_on() {
            state.jobs.push_front(job);
            drop(state);
            self.changed.notify_one();
        } else {
            state.put_off.push(job);
        }
    }

    /// Something of a pipeline was delivered: its tokens that were put off are looked at again.
    pub(crate) fn resume(&self, pipeline: PipelineId) {
        let mut state = self.lock();
        if state.put_off.is_empty() {
            return;
        }
        let State { jobs, put_off, .. } = &mut *state;
        jobs.extend(put_off.extract_if(.., |job| job.pipeline == pipeline));
        drop(state);
        self.changed.notify_all();
    }

    /// Whether tokens of a pipeline are put off.
    pub(crate) fn are_put_off(&self, pipeline: PipelineId) -> bool {
        let state = self.lock();
        state.put_off.iter().any(|job| job.pipeline == pipeline)
    }

    /// Gives up what is put off, now and later; for the end of the agent.
    pub(crate) fn abandon(&self) {
        self.lock().abandoned = true;
        self.changed.notify_all();
    }

    /// Waits until every token of a pipeline is done, or nobody is there to do it. Those that are put off are given up
    /// as soon as `gives_up`.
    pub(crate) fn wait_done(
        &self,
        pipeline: PipelineId,
        is_over: impl Fn() -> bool,
        gives_up: impl Fn() -> bool,
    ) {
        let mut state = self.lock();
        while state.undone.contains_key(&pipeline) && !is_over() {
            if gives_up() && state.give_up(pipeline) {
                continue;
            }
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

impl State {
    /// Drops what is put off of a pipeline; whether there was something.
    fn give_up(&mut self, pipeline: PipelineId) -> bool {
        let before = self.put_off.len();
        self.put_off.retain(|job| job.pipeline != pipeline);
        let dropped = before - self.put_off.len();
        if let Some(undone) = self.undone.get_mut(&pipeline) {
            *undone -= dropped;
            if *undone == 0 {
                self.undone.remove(&pipeline);
            }
        }
        dropped > 0
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
            queue: 0,
        };
        jobs.push(job(1));
        jobs.push(job(2));
        let of_one = jobs.pop().expect("the oldest");
        // Nothing of the third one, and the second one's is not waited for.
        jobs.wait_done(PipelineId(3), || false, || false);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                jobs.wait_done(PipelineId(1), || false, || false);
                jobs.lock().undone.len()
            });
            jobs.done(of_one);
            assert_eq!(waiting.join().expect("no panic"), 1);
        });
        jobs.wait_done(PipelineId(2), || true, || false);
    }

    #[test]
    fn what_is_put_off_comes_back_or_is_given_up() {
        let jobs = Jobs::default();
        let job = |pipeline| Job {
            pipeline: PipelineId(pipeline),
            queue: 0,
        };
        let put_off = |can_go_on| {
            let job = jobs.pop().expect("one was pushed");
            jobs.put_off(job, || can_go_on);
        };
        jobs.push(job(1));
        put_off(true);
        put_off(false);
        jobs.close();
        jobs.resume(PipelineId(2));
        assert!(jobs.lock().jobs.is_empty());
        std::thread::scope(|scope| {
            // Closed and empty, but for what is put off: that is waited for.
            let popped = scope.spawn(|| jobs.pop());
            jobs.resume(PipelineId(1));
            assert_eq!(popped.join().expect("no panic"), Some(job(1)));
        });
        jobs.put_off(job(1), || false);
        jobs.wait_done(PipelineId(1), || false, || true);
        assert!(jobs.pop().is_none());
        jobs.push(job(1));
        put_off(false);
        jobs.abandon();
        assert!(jobs.pop().is_none());
    }
}
