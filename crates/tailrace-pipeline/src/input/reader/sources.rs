//! The sources of a reader between two batches: which may be read again, which are done, and which are dormant.

use std::time::{Duration, Instant};

use super::Reader;
use super::detach::{keeps_deleted, needed_bytes, unacked_bytes};
use crate::input::pods::Awaiting;

/// How often dormant sources are looked at: each look takes two locks.
const REST_EVERY: Duration = Duration::from_millis(200);

impl Reader {
    /// Resumes sources that have room again, and forgets those that ended and are acknowledged.
    pub(super) fn look_after_sources(&mut self) {
        if !self.paused.is_empty() {
            // Before looking, so that what is acknowledged meanwhile wakes us.
            self.shared.waiting.request_wake();
        }
        self.detach_laggards();
        if !self.input.is_kept() {
            return;
        }
        for source in self.awaiting.iter_mut().flat_map(Awaiting::answered) {
            self.input.resume(source);
        }
        let shared = &self.shared;
        let slots = &self.slots;
        let input = &mut self.input;
        let attached = shared.queues[self.input_index].attached();
        self.paused.retain(|paused| {
            let unacked = slots
                .get(paused)
                .map_or(0, |slot| unacked_bytes(shared, &attached, *slot));
            let waits = unacked >= shared.replay_bytes_max;
            if !waits {
                input.resume(*paused);
            }
            waits
        });
        if input.wants_acknowledged() {
            // What is acknowledged makes room.
            shared.waiting.request_wake();
            for (&open, &slot) in slots {
                input.acknowledge(open, needed_bytes(shared, &attached, slot));
            }
        }
        self.finished
            .retain(|(ended, slot)| match shared.tracker.take_done(*slot) {
                Some(end) => {
                    input.finish(*ended, end);
                    false
                }
                None => {
                    if !keeps_deleted(shared, *slot) {
                        input.let_go(*ended);
                    }
                    true
                }
            });
        if self.next_rest <= Instant::now() {
            self.next_rest = Instant::now() + REST_EVERY;
            // What is dormant takes no memory here, nor in the tracker or the input queue.
            let queue = &shared.queues[self.input_index];
            let is_at_rest =
                |slot| shared.tracker.is_all_acknowledged(slot) && queue.is_between_records(slot);
            for dormant in input.take_dormant() {
                match slots.get(&dormant) {
                    Some(&slot) if is_at_rest(slot) => input.put_to_rest(dormant),
                    Some(_) => input.stays_dormant(dormant),
                    None => {} // It has ended.
                }
            }
        }
        self.gauges.set(
            shared,
            self.input_index,
            &mut **input,
            self.awaiting.as_ref(),
        );
    }
}
