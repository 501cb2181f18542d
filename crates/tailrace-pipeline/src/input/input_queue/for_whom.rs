//! Which outputs the bytes of a batch are for. After a restart or a reload, an output that is behind needs bytes again that
//! others have acknowledged. Whether an output gets a batch is decided for the whole of it: so a batch ends where
//! what follows is for others, and nobody gets twice what only stood beside something new, but for a record that a join of
//! lines still holds there. What the reader hands on at once is cut only so often, for each part is a request of its own.

use crate::watermark::{Slot, Tracker};

/// How often what the reader hands on is cut at most.
const CUTS_MAX: u32 = 64;

/// For whom the bytes of a batch are.
#[derive(Debug)]
pub(super) struct ForWhom {
    /// By output, whether it takes part in the reading.
    attached: Vec<bool>,
    /// It may be cut.
    may_be_cut: bool,
    /// By output, once the batch has bytes.
    outputs: Option<Vec<bool>>,
}

impl ForWhom {
    /// For a batch that was cut so often already.
    pub(super) fn new(attached: Vec<bool>, cuts: u32) -> ForWhom {
        ForWhom {
            attached,
            may_be_cut: cuts < CUTS_MAX,
            outputs: None,
        }
    }

    /// How many of the next bytes of a source the batch may have, from the offset `at` of its file on: none if they are for
    /// other outputs than what it has. An earlier run had read up to `replay_to`.
    pub(super) fn admit(
        &mut self,
        tracker: &Tracker,
        slot: Slot,
        (at, len): (u64, usize),
        replay_to: u64,
    ) -> usize {
        // One output needs whatever is read.
        if self.attached.len() < 2 || !self.may_be_cut {
            return len;
        }
        if at >= replay_to {
            let outputs = self.outputs.get_or_insert_with(|| self.attached.clone());
            return if *outputs == self.attached { len } else { 0 };
        }
        let (outputs, until) = tracker.needed_by(&self.attached, slot, at);
        if *self.outputs.get_or_insert_with(|| outputs.clone()) != outputs {
            return 0;
        }
        let room = usize::try_from(until.saturating_sub(at)).unwrap_or(usize::MAX);
        len.min(room)
    }
}
