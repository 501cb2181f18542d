//! When to look at a file again without a notification: idle closing, lingering, backoff.
//!
//! Takes slots and instants, gives the slots that are due. Never knows why.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

/// A heap of instants. A slot has at most one entry (the file says so by its `timer` flag); an entry
/// that fires too early is put back by its owner.
#[derive(Default)]
pub(super) struct Timers(BinaryHeap<Reverse<(Instant, u32)>>);

impl Timers {
    pub(super) fn set(&mut self, due: Instant, slot: u32) {
        self.0.push(Reverse((due, slot)));
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.0.peek().map(|Reverse((due, _))| *due)
    }

    pub(super) fn pop(&mut self, now: Instant) -> Option<u32> {
        if self.next_due()? > now {
            return None;
        }
        self.0.pop().map(|Reverse((_, slot))| slot)
    }
}
