//! The batches of an input queue that are handed over in parts, because what the query makes of them is many times what was read.
//!
//! While more is in flight than may be, such a batch waits here between two parts, with its job put off, and no other batch
//! of the input queue is begun, unless what is in flight is held by outputs that it is not for. A batch of which nothing is in
//! flight any more always goes on: so one of them moves whatever the others hold, also where their lines wait for its lines.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::delivery::credit::Exceeded;

/// The unfinished batches of one input queue.
#[derive(Debug)]
pub(crate) struct Unfinished<T> {
    /// Those that no worker has in hand.
    waiting: Mutex<Vec<T>>,
    /// How many there are, those in hand too.
    count: AtomicUsize,
}

/// What a job is for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next<T> {
    /// A batch that was begun.
    Take(T),
    /// The next batch.
    Begin,
    /// Nothing yet.
    Wait,
}

/// A batch that may have something in flight.
pub(crate) trait InParts {
    /// Whether nothing of it is in flight.
    fn is_drained(&self) -> bool;
}

impl<T: InParts> Unfinished<T> {
    fn waiting(&self) -> MutexGuard<'_, Vec<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A first part of a batch is handed over.
    pub(crate) fn begin(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
    }

    /// The last part of a batch is handed over.
    pub(crate) fn end(&self) {
        self.count.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether there are any.
    pub(crate) fn any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Keeps a batch until somebody goes on with it.
    pub(crate) fn put(&self, batch: T) {
        self.waiting().push(batch);
    }

    /// What a job of the input queue is for.
    pub(crate) fn take(&self, exceeded: impl FnOnce() -> Exceeded) -> Next<T> {
        if !self.any() {
            return Next::Begin;
        }
        let mut waiting = self.waiting();
        let exceeded = exceeded();
        match next(&waiting, exceeded) {
            Some(at) => Next::Take(waiting.remove(at)),
            None if exceeded.batches => Next::Wait,
            None => Next::Begin,
        }
    }

    /// Whether a batch of the input queue can go on, or be begun.
    pub(crate) fn can_go_on(&self, exceeded: impl FnOnce() -> Exceeded) -> bool {
        if !self.any() {
            return true;
        }
        let waiting = self.waiting();
        let exceeded = exceeded();
        !exceeded.batches || next(&waiting, exceeded).is_some()
    }
}

/// The batch that goes on.
fn next<T: InParts>(waiting: &[T], exceeded: Exceeded) -> Option<usize> {
    let can_go_on = |batch: &T| !exceeded.parts || batch.is_drained();
    waiting.iter().position(can_go_on)
}

impl<T> Default for Unfinished<T> {
    fn default() -> Self {
        Self {
            waiting: Mutex::default(),
            count: AtomicUsize::new(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl InParts for bool {
        fn is_drained(&self) -> bool {
            *self
        }
    }

    const WITHIN: Exceeded = Exceeded {
        parts: false,
        batches: false,
    };
    const EXCEEDED: Exceeded = Exceeded {
        parts: true,
        batches: true,
    };

    #[test]
    fn beyond_the_bound_only_a_drained_batch_goes_on() {
        let unfinished = Unfinished::default();
        // Ordinary batches never look at the bound.
        assert!(unfinished.can_go_on(|| unreachable!()));
        assert_eq!(unfinished.take(|| unreachable!()), Next::Begin);
        unfinished.begin();
        assert!(!unfinished.can_go_on(|| EXCEEDED), "in somebody's hands");
        assert!(unfinished.can_go_on(|| WITHIN));
        assert_eq!(unfinished.take(|| WITHIN), Next::Begin, "another one");
        unfinished.begin();
        unfinished.put(false);
        assert!(!unfinished.can_go_on(|| EXCEEDED));
        assert_eq!(unfinished.take(|| EXCEEDED), Next::Wait);
        unfinished.put(true);
        assert!(unfinished.can_go_on(|| EXCEEDED));
        assert_eq!(unfinished.take(|| EXCEEDED), Next::Take(true));
        assert_eq!(unfinished.take(|| WITHIN), Next::Take(false));
        unfinished.end();
        unfinished.end();
        assert!(unfinished.can_go_on(|| unreachable!()));
    }

    #[test]
    fn what_waits_for_a_detached_output_lets_the_next_batch_pass() {
        let unfinished = Unfinished::default();
        unfinished.begin();
        unfinished.put(false);
        let held_by_detached = || Exceeded {
            parts: true,
            batches: false,
        };
        assert!(unfinished.can_go_on(held_by_detached));
        assert_eq!(unfinished.take(held_by_detached), Next::Begin);
    }
}
