//! Wakes readers that hold a source back until more of it is settled. Costs one load per settled
//! request while nobody waits.

use std::sync::atomic::{AtomicBool, Ordering};

use tailrace_input::Waker;

/// The readers of one pipeline.
pub(crate) struct Readers {
    /// A reader holds a source back.
    waits: AtomicBool,
    wakers: Vec<Waker>,
}

impl Readers {
    pub(crate) fn new(wakers: Vec<Waker>) -> Self {
        Self {
            waits: AtomicBool::new(false),
            wakers,
        }
    }

    /// A reader holds a source back and wants to be woken.
    pub(crate) fn wait(&self) {
        self.waits.store(true, Ordering::Release);
    }

    /// Something was settled.
    pub(crate) fn settled(&self) {
        if self.waits.swap(false, Ordering::AcqRel) {
            self.wake();
        }
    }

    /// Ends every reader's wait.
    pub(crate) fn wake(&self) {
        self.wakers.iter().for_each(Waker::wake);
    }
}

impl std::fmt::Debug for Readers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Readers")
            .field("waits", &self.waits)
            .finish_non_exhaustive()
    }
}
