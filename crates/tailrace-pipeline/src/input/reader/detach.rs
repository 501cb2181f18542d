//! Which output holds the shared reading back, and how it is detached. Reads nothing for it: that is
//! `catch_up.rs`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use tailrace_inputs::SourceId;
use tracing::warn;

use super::Reader;
use crate::shared::Shared;
use crate::watermark::Slot;

/// How often new files are looked for while nothing can be taken.
const HOLD_EVERY: Duration = Duration::from_millis(100);

/// An output that holds this part of the credit is behind, if batches wait for it that are handed over in parts.
const PARTS_WHILE_PUT_OFF: u64 = 8;

/// Bytes of a source that are read and not acknowledged by every output that takes part in the reading.
pub(super) fn unacked_bytes(shared: &Shared, attached: &[bool], slot: Slot) -> u64 {
    let unacked = shared.tracker.unacked_by_output(slot);
    let attached = unacked
        .iter()
        .zip(attached)
        .filter(|(_, attached)| **attached);
    attached.map(|(bytes, _)| *bytes).max().unwrap_or(0)
}

/// Bytes of a source that are read and that an output may need once more: one that takes part in the reading, or one that is
/// required and detached.
pub(super) fn needed_bytes(shared: &Shared, attached: &[bool], slot: Slot) -> u64 {
    let unacked = shared.tracker.unacked_by_output(slot);
    let required = (0..unacked.len()).map(|output| shared.is_required(output));
    let needs = attached.iter().zip(required);
    let needed = unacked
        .iter()
        .zip(needs)
        .filter(|(_, (attached, required))| **attached || *required);
    needed.map(|(bytes, _)| *bytes).max().unwrap_or(0)
}

/// Whether an output that is required has not acknowledged all that was read of a source.
pub(super) fn keeps_deleted(shared: &Shared, slot: Slot) -> bool {
    let unacked = shared.tracker.unacked_by_output(slot);
    let mut outputs = unacked.iter().enumerate();
    outputs.any(|(output, bytes)| *bytes > 0 && shared.is_required(output))
}

/// The one that holds most, if it is at least `min` and another one could go on: it holds less than half of that.
fn laggard(held: &[u64], attached: &[bool], min: u64) -> Option<usize> {
    let taking_part = || {
        held.iter()
            .zip(attached)
            .enumerate()
            .filter(|(_, (_, attached))| **attached)
    };
    let (most, (&bytes, _)) = taking_part().max_by_key(|(_, (bytes, _))| **bytes)?;
    let least = taking_part().map(|(_, (bytes, _))| *bytes).min()?;
    (bytes >= min && least < bytes / 2).then_some(most)
}

/// Ends with a thread; its panic goes on in this one.
pub(super) fn end_of(thread: JoinHandle<()>) {
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

impl Reader {
    pub(super) fn unacked_bytes(&self, slot: Slot) -> u64 {
        let attached = self.shared.queues[self.input_index].attached();
        unacked_bytes(&self.shared, &attached, slot)
    }

    /// Looks at the input while nothing can be taken of it. What a worker must know of that comes with the next batch.
    pub(super) fn hold(&mut self) {
        let mut events = Vec::new();
        self.input.hold(&mut events);
        self.keep(events);
    }

    /// Detaches the output that others would have to wait for.
    pub(super) fn detach_laggards(&mut self) {
        let shared = Arc::clone(&self.shared);
        let outputs = shared.metrics.outputs.len();
        if outputs < 2 || shared.stopping.load(Ordering::Relaxed) {
            return;
        }
        let attached = shared.queues[self.input_index].attached();
        let shares = shared.credit.shares();
        let held: Vec<u64> = (0..outputs).map(|output| shares.held(output)).collect();
        let parts = match shared.jobs.are_put_off(shared.id) {
            // Batches in parts wait long before the credit is used up, however many outputs there are.
            true => PARTS_WHILE_PUT_OFF.max(outputs as u64),
            false => outputs as u64,
        };
        let of_credit = laggard(&held, &attached, shared.credit.capacity() / parts);
        let mut of_files = self.paused.iter().filter_map(|source| {
            let unacked = shared.tracker.unacked_by_output(*self.slots.get(source)?);
            laggard(&unacked, &attached, shared.replay_bytes_max)
        });
        if let Some(output) = of_credit.or_else(|| of_files.next()) {
            drop(of_files);
            self.detach(output);
        }
    }

    /// Detaches an output from this input, unless it could not read again what it would miss.
    fn detach(&mut self, output: usize) {
        let shared = Arc::clone(&self.shared);
        let catch_up = Arc::clone(&self.catch_ups[output]);
        if let Some(thread) = self.catching_up.remove(&output) {
            end_of(thread);
        }
        catch_up.clear();
        let slots: Vec<(SourceId, Slot)> = self.sources().collect();
        for &(source, slot) in &slots {
            let behind = shared.tracker.behind(output, slot);
            if behind.is_some_and(|behind| behind.would_miss())
                && !self.note_missed_by(output, source, slot)
            {
                catch_up.clear();
                return;
            }
        }
        shared.queues[self.input_index].attach(output, false, || true);
        shared.credit.shares().detach(output);
        // What it holds is not charged any more, so that batches that were put off may go on.
        shared.waiting.note_progress();
        let in_flight = |slot: &Slot| {
            let behind = shared.tracker.behind(output, *slot);
            behind.is_some_and(|behind| !behind.drained)
        };
        catch_up.wait_for(
            slots
                .into_iter()
                .map(|(_, slot)| slot)
                .filter(in_flight)
                .collect(),
        );
        warn!(
            pipeline = shared.plan.name,
            output = shared.metrics.outputs[output].name,
            "the output is behind the others, which go on without it; it reads by itself what it misses \
             as soon as it accepts what it has"
        );
        self.start(output);
    }

    fn start(&mut self, output: usize) {
        let shared = Arc::clone(&self.shared);
        let catch_up = Arc::clone(&self.catch_ups[output]);
        let pool = Arc::clone(&self.pool);
        let run = move || {
            shared.metrics.outputs[output].detached.inc();
            shared.waiting.catch_up(true);
            catch_up.run(&shared, &pool);
            shared.waiting.catch_up(false);
            shared.metrics.outputs[output].detached.dec();
        };
        let thread = std::thread::Builder::new().name("tailrace-again".to_owned());
        // Without it the output would be detached for ever: that is a fault, and ends the agent.
        let thread = thread.spawn(run).expect("a thread can be started");
        self.catching_up.insert(output, thread);
    }

    /// The sources of this input that are tracked.
    fn sources(&self) -> impl Iterator<Item = (SourceId, Slot)> + '_ {
        let slots = self.slots.iter().map(|(source, slot)| (*source, *slot));
        slots.chain(self.finished.iter().copied())
    }

    /// Notes for the detached outputs that they have not seen a chunk.
    pub(super) fn note_missed(&mut self, source: SourceId, slot: Slot) {
        if self.catching_up.is_empty() {
            return;
        }
        let attached = self.shared.queues[self.input_index].attached();
        for (output, _) in attached
            .iter()
            .enumerate()
            .filter(|(_, attached)| !**attached)
        {
            if self.catch_ups[output].knows(slot) {
                continue;
            }
            if !self.note_missed_by(output, source, slot) {
                self.must_rejoin = true;
            }
            // It may have come back meanwhile, and would keep the file for nothing.
            let queue = &self.shared.queues[self.input_index];
            queue.if_attached(output, || self.catch_ups[output].forget(slot));
        }
    }

    /// False if the output is required and could not read it again.
    fn note_missed_by(&mut self, output: usize, source: SourceId, slot: Slot) -> bool {
        let shared = &self.shared;
        let catch_up = Arc::clone(&self.catch_ups[output]);
        if catch_up.knows(slot) {
            return true;
        }
        let Some(behind) = shared.tracker.behind(output, slot) else {
            return true;
        };
        let file = if catch_up.len() < self.input.rereads_max() {
            self.input.reread(source, behind.offset)
        } else {
            None
        };
        if file.is_none() && shared.is_required(output) {
            return false;
        }
        catch_up.note(slot, file);
        true
    }

    /// Waits until every output takes part again, if one could not read again what was read last.
    pub(super) fn wait_for_rejoin(&mut self) {
        let shared = Arc::clone(&self.shared);
        let queue = &shared.queues[self.input_index];
        let is_detached = || queue.attached().contains(&false);
        while std::mem::take(&mut self.must_rejoin) && is_detached() {
            if shared.stopping.load(Ordering::Relaxed) {
                return;
            }
            shared
                .waiting
                .wait_for_progress(shared.waiting.seen(), HOLD_EVERY);
            self.hold();
            self.must_rejoin = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::laggard;

    #[test]
    fn only_one_that_holds_another_back_is_detached() {
        let all = [true; 3];
        assert_eq!(laggard(&[100, 20, 90], &all, 60), Some(0));
        assert_eq!(laggard(&[100, 60, 90], &all, 60), None, "all are slow");
        assert_eq!(laggard(&[50, 0, 0], &all, 60), None, "nobody waits yet");
        let alone = [true, false, false];
        assert_eq!(laggard(&[100, 0, 0], &alone, 60), None, "the last one");
    }
}
