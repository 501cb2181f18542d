//! The framers of one input's sources, and which of them holds whose bytes.
//!
//! A log that is rotated in the middle of a record goes on in the next file: that one's framer then holds bytes of
//! the earlier source too, and the earlier source stays here until they are given out, though it has ended.

use std::collections::HashMap;
use std::ops::Range;

use tailrace_frame::{Framer, Frames};
use tailrace_scan::Sweep;

use crate::facts::CurrentFacts;
use crate::watermark::Slot;

/// A source, how far it is framed, and the lowest of its bytes that a framer holds.
pub(super) type Head = (Slot, u64, Option<u64>);

/// The sources of one lane.
#[derive(Debug, Default)]
pub(super) struct Sources(HashMap<Slot, Box<LaneSource>>);

/// One source of a lane.
#[derive(Debug)]
pub(super) struct LaneSource {
    pub(super) framer: Framer,
    pub(super) facts: CurrentFacts,
    pub(super) replay_to: u64,
    /// Earlier sources of which the framer holds bytes.
    holds: Vec<Slot>,
    /// The later source whose framer may hold bytes of this one.
    held_by: Option<Slot>,
    ended: bool,
}

impl LaneSource {
    pub(super) fn new(framer: Framer, facts: CurrentFacts, replay_to: u64) -> Self {
        Self {
            framer,
            facts,
            replay_to,
            holds: Vec::new(),
            held_by: None,
            ended: false,
        }
    }

    /// Frames the next bytes, a range of the chunk buffer, or passes over them where its pod is left out.
    pub(super) fn push(
        &mut self,
        buffer: &[u8],
        chunk: Range<usize>,
        sweep: &mut Sweep<'_>,
        frames: &mut Frames,
    ) {
        let base = u32::try_from(chunk.start).expect("chunk buffers are below 4 GiB");
        let bytes = &buffer[chunk.clone()];
        if self.facts.excluded.is_some() {
            return self.framer.pass_over(bytes, frames);
        }
        sweep.skip_to(chunk.start);
        let newlines = std::iter::from_fn(|| sweep.next_before(chunk.end));
        let newlines = newlines.map(|newline| newline - chunk.start);
        self.framer.push_lines(bytes, newlines, 0, base, frames);
    }
}

impl Sources {
    pub(super) fn insert(&mut self, slot: Slot, source: LaneSource) {
        self.0.insert(slot, Box::new(source));
    }

    pub(super) fn remove(&mut self, slot: Slot) {
        self.0.remove(&slot);
    }

    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut LaneSource> {
        self.0.get_mut(&slot).map(Box::as_mut)
    }

    /// A source goes on where an earlier one ended. What ends in `head`, which an earlier run read, is not made again.
    pub(super) fn continue_from(
        &mut self,
        slot: Slot,
        earlier: Slot,
        head: &[u8],
        frames: &mut Frames,
    ) {
        let Some(mut source) = self.0.remove(&slot) else {
            return;
        };
        if let Some(before) = self.0.get_mut(&earlier) {
            source.framer.continue_from(&mut before.framer);
            let mut held = std::mem::take(&mut before.holds);
            held.push(earlier);
            held.retain(|held| source.framer.held_from(held.0).is_some());
            for held in &held {
                if let Some(before) = self.0.get_mut(held) {
                    before.held_by = Some(slot);
                }
            }
            source.holds = held;
            if !head.is_empty() {
                source.framer.skip_settled(head, frames);
            }
        }
        self.0.insert(slot, source);
    }

    /// The source whose framer holds what is held of a source: itself, or a later one.
    pub(super) fn holder(&self, slot: Slot) -> Slot {
        let source = self.0.get(&slot);
        source.and_then(|source| source.held_by).unwrap_or(slot)
    }

    /// Nothing follows in a source: gives out what its framer holds.
    pub(super) fn finish(&mut self, slot: Slot, frames: &mut Frames) {
        if let Some(source) = self.0.get_mut(&slot) {
            source.framer.finish(frames);
            source.ended = true;
        }
    }

    /// The heads that a push or the end of a source may have moved. Forgets what has ended and is not held.
    pub(super) fn heads(&mut self, slot: Slot, heads: &mut Vec<Head>) {
        let Some(source) = self.0.get_mut(&slot) else {
            return;
        };
        for earlier in std::mem::take(&mut source.holds) {
            let Some(head) = self.head(earlier) else {
                continue;
            };
            heads.push(head);
            let is_held = self.0[&slot].framer.held_from(earlier.0).is_some();
            if is_held && let Some(source) = self.0.get_mut(&slot) {
                source.holds.push(earlier);
            } else if let Some(before) = self.0.get_mut(&earlier) {
                before.held_by = None;
                self.forget_ended(earlier);
            }
        }
        if let Some(head) = self.head(slot) {
            match heads.last_mut() {
                Some(last) if last.0 == slot => *last = head,
                _ => heads.push(head),
            }
        }
        self.forget_ended(slot);
    }

    fn head(&self, slot: Slot) -> Option<Head> {
        let source = self.0.get(&slot)?;
        let by_later = source.held_by.and_then(|later| self.0.get(&later));
        let by_later = by_later.and_then(|later| later.framer.held_from(slot.0));
        let held = source.framer.unsettled_from().into_iter().chain(by_later);
        Some((slot, source.framer.offset(), held.min()))
    }

    fn forget_ended(&mut self, slot: Slot) {
        let source = self.0.get(&slot);
        if source.is_some_and(|source| source.ended && source.held_by.is_none()) {
            self.0.remove(&slot);
        }
    }
}
