//! The framers of one input's sources, and which of them holds whose bytes.
//!
//! A log that is rotated in the middle of a record goes on in the next file: that one's framer then holds bytes of
//! the earlier source too, and the earlier source stays here until they are given out, though it has ended.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use tailrace_frame::{Framer, Frames};
use tailrace_scan::NewlineSearch;
use tracing::warn;

use super::overflow::Overflow;
use crate::input::facts::CurrentFacts;
use crate::watermark::{Slot, SourceHead};

/// A source, and where records end in it, by stream, that began in the one before.
pub(super) type RestEnds = (Slot, [Option<u64>; 3]);

/// The sources of one input queue.
#[derive(Debug)]
pub(super) struct Sources {
    by_slot: HashMap<Slot, Box<FramedSource>>,
    /// Bytes of unfinished records that all of them hold in memory.
    held_bytes: usize,
    overflow: Overflow,
    /// How many batches were framed.
    batches: u64,
    /// The file was of no use: said once.
    is_held_in_memory: bool,
}

/// What is less is not worth a range in a file.
const STOWED_BYTES_MIN: usize = 256;

/// One source of an input queue.
#[derive(Debug)]
pub(super) struct FramedSource {
    pub(super) framer: Framer,
    /// How it frames now.
    framed_as: Arc<tailrace_frame::Config>,
    pub(super) facts: CurrentFacts,
    pub(super) replay_to: u64,
    /// Earlier sources of which the framer holds bytes.
    holds: Vec<Slot>,
    /// The later source whose framer may hold bytes of this one.
    held_by: Option<Slot>,
    ended: bool,
    /// What the framer holds in memory.
    held_bytes: usize,
    /// Where what it held was written.
    stowed: Option<Range<u64>>,
    /// The batch that it was last in.
    batch: u64,
    /// What was last said of records that began in the source before.
    rests: [Option<u64>; 3],
}

impl FramedSource {
    pub(super) fn new(
        framer: Framer,
        framed_as: &Arc<tailrace_frame::Config>,
        facts: CurrentFacts,
        replay_to: u64,
    ) -> Self {
        Self {
            rests: framer.rest_ends(),
            framer,
            framed_as: Arc::clone(framed_as),
            facts,
            replay_to,
            holds: Vec::new(),
            held_by: None,
            ended: false,
            held_bytes: 0,
            stowed: None,
            batch: 0,
        }
    }

    /// Goes over to what its pod says now of how it is framed, `own` if it says nothing. Where that is not possible yet, a
    /// later call does it.
    pub(super) fn reframe(&mut self, own: &Arc<tailrace_frame::Config>, frames: &mut Frames) {
        let wanted = self.facts.framing.as_ref().unwrap_or(own);
        if !Arc::ptr_eq(wanted, &self.framed_as) {
            let wanted = Arc::clone(wanted);
            self.frame_as(&wanted, frames);
        }
    }

    fn frame_as(&mut self, wanted: &Arc<tailrace_frame::Config>, frames: &mut Frames) {
        if self.framer.reframe(wanted, frames) {
            self.framed_as = Arc::clone(wanted);
        }
    }

    /// Frames the next bytes, a range of the chunk buffer, or passes over them where its pod is left out. Ends behind the
    /// line with which there are `records_max` records; gives the range of the first byte that was not framed.
    pub(super) fn push(
        &mut self,
        buffer: &[u8],
        chunk: Range<usize>,
        search: &mut NewlineSearch<'_>,
        records_max: usize,
        frames: &mut Frames,
    ) -> usize {
        let base = u32::try_from(chunk.start).expect("chunk buffers are below 4 GiB");
        let bytes = &buffer[chunk.clone()];
        if self.facts.excluded.is_some() {
            self.framer.pass_over(bytes, frames);
            return chunk.end;
        }
        search.skip_to(chunk.start);
        let newlines = std::iter::from_fn(|| search.next_before(chunk.end));
        let newlines = newlines.map(|newline| newline - chunk.start);
        let framer = &mut self.framer;
        chunk.start + framer.push_lines(bytes, newlines, 0, base, records_max, frames)
    }
}

impl Sources {
    pub(super) fn new(overflow: Overflow) -> Self {
        Self {
            by_slot: HashMap::new(),
            held_bytes: 0,
            overflow,
            batches: 0,
            is_held_in_memory: false,
        }
    }

    /// Forgets all of them.
    pub(super) fn clear(&mut self) {
        let slots: Vec<Slot> = self.by_slot.keys().copied().collect();
        slots.into_iter().for_each(|slot| self.remove(slot));
    }

    pub(super) fn insert(&mut self, slot: Slot, source: FramedSource) {
        self.remove(slot);
        self.by_slot.insert(slot, Box::new(source));
    }

    pub(super) fn remove(&mut self, slot: Slot) {
        if let Some(source) = self.by_slot.remove(&slot) {
            self.held_bytes -= source.held_bytes;
            if let Some(range) = source.stowed {
                self.overflow.free(range);
            }
        }
    }

    /// The source, with all that its framer holds in memory.
    ///
    /// # Panics
    /// If that cannot be read: it is not acknowledged, and the next run reads it from the log again.
    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut FramedSource> {
        let source = self.by_slot.get_mut(&slot)?;
        source.batch = self.batches;
        if let Some(range) = source.stowed.take() {
            let bytes = self.overflow.read(range);
            let bytes = bytes.expect("the beginning of an unfinished line was written to the data directory and cannot be read again");
            source.framer.restore(&bytes);
        }
        Some(source)
    }

    /// Notes what a source holds now.
    fn weigh(&mut self, slot: Slot) {
        if let Some(source) = self.by_slot.get_mut(&slot) {
            let now = source.framer.held_bytes();
            self.held_bytes = self.held_bytes - source.held_bytes + now;
            source.held_bytes = now;
        }
    }

    /// A batch, or a part of one, is framed.
    pub(super) fn end_batch(&mut self) {
        self.batches += 1;
    }

    /// Whether the source's framer is where a new one would begin.
    pub(super) fn is_between_records(&self, slot: Slot) -> bool {
        let source = self.by_slot.get(&slot);
        source.is_some_and(|source| source.stowed.is_none() && source.framer.is_between_records())
    }

    /// Moves what sources hold out of memory, if it is too much, those that were idle for longest first.
    pub(super) fn limit_held(&mut self) {
        if self.held_bytes <= self.overflow.bytes_max() {
            return;
        }
        let sources = self.by_slot.iter();
        let heavy = sources.filter(|(_, source)| source.held_bytes >= STOWED_BYTES_MIN);
        let mut candidates: Vec<_> = heavy.map(|(&slot, source)| (source.batch, slot)).collect();
        candidates.sort_unstable();
        for (_, slot) in candidates {
            if self.held_bytes <= self.overflow.bytes_max() / 2 || !self.stow(slot) {
                return;
            }
        }
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// How many times something was written.
    #[cfg(test)]
    pub(super) fn stowed(&self) -> u64 {
        self.overflow.writes()
    }

    /// Whether it could be written.
    fn stow(&mut self, slot: Slot) -> bool {
        let Some(source) = self.by_slot.get_mut(&slot) else {
            return true;
        };
        let bytes = source.framer.stow();
        match self.overflow.write(&bytes) {
            Ok(range) => source.stowed = Some(range),
            Err(error) => {
                source.framer.restore(&bytes);
                if !self.is_held_in_memory {
                    warn!(
                        %error,
                        bytes = self.held_bytes,
                        "unfinished lines take more memory than planned: they cannot be moved to a file in data_dir; \
                         make room there or check its permissions"
                    );
                }
                self.is_held_in_memory = true;
                return false;
            }
        }
        self.is_held_in_memory = false;
        self.weigh(slot);
        true
    }

    /// A source goes on where an earlier one ended. What ends in `head`, which an earlier run read, is not made again.
    pub(super) fn continue_from(
        &mut self,
        slot: Slot,
        earlier: Slot,
        head: &[u8],
        frames: &mut Frames,
    ) {
        // What they hold is in memory then.
        for slot in [slot, earlier] {
            let _ = self.get_mut(slot);
        }
        let Some(mut source) = self.by_slot.remove(&slot) else {
            return;
        };
        if let Some(before) = self.by_slot.get_mut(&earlier) {
            // What is open there is joined here by the same rules; the next bytes may change them.
            if !Arc::ptr_eq(&source.framed_as, &before.framed_as) {
                source.frame_as(&before.framed_as, frames);
            }
            source.framer.continue_from(&mut before.framer);
            let mut held = std::mem::take(&mut before.holds);
            held.push(earlier);
            held.retain(|held| source.framer.held_from(held.0).is_some());
            for held in &held {
                if let Some(before) = self.by_slot.get_mut(held) {
                    before.held_by = Some(slot);
                }
            }
            source.holds = held;
            if !head.is_empty() {
                source.framer.skip_acked(head, frames);
            }
        }
        self.by_slot.insert(slot, source);
        self.weigh(earlier);
        self.weigh(slot);
    }

    /// The source whose framer holds what is held of a source: itself, or a later one.
    pub(super) fn holder(&self, slot: Slot) -> Slot {
        let source = self.by_slot.get(&slot);
        source.and_then(|source| source.held_by).unwrap_or(slot)
    }

    /// Nothing follows in a source, or what does is lost: gives out what its framer holds.
    pub(super) fn finish(&mut self, slot: Slot, is_cut: bool, frames: &mut Frames) {
        if let Some(source) = self.get_mut(slot) {
            match is_cut {
                true => source.framer.finish_cut(frames),
                false => source.framer.finish(frames),
            }
            source.ended = true;
        }
    }

    /// The heads that a push or the end of a source may have moved. Forgets what has ended and is not held.
    pub(super) fn heads(&mut self, slot: Slot, heads: &mut Vec<SourceHead>) {
        self.weigh(slot);
        let Some(source) = self.by_slot.get_mut(&slot) else {
            return;
        };
        for earlier in std::mem::take(&mut source.holds) {
            let Some(head) = self.head(earlier) else {
                continue;
            };
            heads.push(head);
            let is_held = self.by_slot[&slot].framer.held_from(earlier.0).is_some();
            if is_held && let Some(source) = self.by_slot.get_mut(&slot) {
                source.holds.push(earlier);
            } else if let Some(before) = self.by_slot.get_mut(&earlier) {
                before.held_by = None;
                self.forget_ended(earlier);
            }
        }
        if let Some(head) = self.head(slot) {
            match heads.last_mut() {
                Some(last) if last.slot == slot => *last = head,
                _ => heads.push(head),
            }
        }
        self.forget_ended(slot);
    }

    /// What a push may have made known of records that began in the source before.
    pub(super) fn rests(&mut self, slot: Slot, rests: &mut Vec<RestEnds>) {
        if let Some(source) = self.by_slot.get_mut(&slot)
            && let ends = source.framer.rest_ends()
            && ends != source.rests
        {
            source.rests = ends;
            rests.push((slot, ends));
        }
    }

    fn head(&self, slot: Slot) -> Option<SourceHead> {
        let source = self.by_slot.get(&slot)?;
        let by_later = source.held_by.and_then(|later| self.by_slot.get(&later));
        let by_later = by_later.and_then(|later| later.framer.held_from(slot.0));
        let held = source.framer.unacked_from().into_iter().chain(by_later);
        Some(SourceHead {
            slot,
            framed_to: source.framer.offset(),
            held_from: held.min(),
        })
    }

    fn forget_ended(&mut self, slot: Slot) {
        let source = self.by_slot.get(&slot);
        if source.is_some_and(|source| source.ended && source.held_by.is_none()) {
            self.remove(slot);
        }
    }
}
