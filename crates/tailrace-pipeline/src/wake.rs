//! Wakes readers that hold a source back until more of it is acknowledged, and workers' jobs that were put off until then.
//! Costs one load and one lock per acknowledged request while nobody waits.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tailrace_inputs::Waker;

use crate::jobs::Jobs;
use crate::pipeline_id::PipelineId;

/// The readers of one pipeline.
pub(crate) struct Readers {
    /// A reader holds a source back.
    waits: AtomicBool,
    wakers: Vec<Waker>,
    /// How many outputs catch up.
    catching_up: AtomicU32,
    /// How often something was acknowledged or framed, while any does.
    events: Mutex<u64>,
    happened: Condvar,
    /// Where jobs of the pipeline may be put off.
    jobs: (Arc<Jobs>, PipelineId),
}

impl Readers {
    pub(crate) fn new(wakers: Vec<Waker>, jobs: (Arc<Jobs>, PipelineId)) -> Self {
        Self {
            waits: AtomicBool::new(false),
            wakers,
            catching_up: AtomicU32::new(0),
            events: Mutex::default(),
            happened: Condvar::new(),
            jobs,
        }
    }

    /// A reader holds a source back and wants to be woken.
    pub(crate) fn request_wake(&self) {
        self.waits.store(true, Ordering::Release);
    }

    fn events(&self) -> MutexGuard<'_, u64> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An output catches up, or no more.
    pub(crate) fn catch_up(&self, begins: bool) {
        if begins {
            self.catching_up.fetch_add(1, Ordering::AcqRel);
        } else {
            self.catching_up.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// A moment to wait from.
    pub(crate) fn seen(&self) -> u64 {
        *self.events()
    }

    /// Waits until something is acknowledged or framed after a moment, at most so long.
    pub(crate) fn wait_for_progress(&self, seen: u64, timeout: Duration) {
        let unseen = |events: &mut u64| *events == seen;
        let waited = self
            .happened
            .wait_timeout_while(self.events(), timeout, unseen);
        drop(waited);
    }

    /// Something was acknowledged or framed.
    pub(crate) fn note_progress(&self) {
        let (jobs, pipeline) = &self.jobs;
        jobs.resume(*pipeline);
        if self.catching_up.load(Ordering::Acquire) > 0 {
            *self.events() += 1;
            self.happened.notify_all();
        }
        if self.waits.swap(false, Ordering::AcqRel) {
            self.wake();
        }
    }

    /// Ends every reader's wait.
    pub(crate) fn wake(&self) {
        self.wakers.iter().for_each(Waker::wake);
        *self.events() += 1;
        self.happened.notify_all();
    }
}

impl std::fmt::Debug for Readers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Readers")
            .field("waits", &self.waits)
            .finish_non_exhaustive()
    }
}
