//! Records in parts: those between whose parts others lie, and those that go on in the next source.
//! Takes what was framed, so that no restart takes a part for a record. Never sees a byte of them.

use tailrace_inputs::checkpoint::Rest;

use super::{Parted, Reading, Slot, State, TrackedSource, Tracker};

impl Tracker {
    /// What an earlier run knew of records that began in the source before.
    pub(crate) fn resume_rests(&self, slot: Slot, rests: Vec<Rest>) {
        if let Some(source) = self.lock().sources.get_mut(&slot) {
            source.rests = rests;
        }
    }

    /// Records that began in the source before and end above a watermark, as far as it is known.
    pub(crate) fn rests(&self, slot: Slot) -> Vec<Rest> {
        let state = self.lock();
        let source = state.sources.get(&slot);
        source.map_or_else(Vec::new, |source| source.open_rests())
    }

    /// Notes where records end, by stream, that began in the source before. Call it before what they consist of is framed.
    pub(crate) fn note_rests(&self, slot: Slot, ends: [Option<u64>; 3]) {
        let State { sources, files, .. } = &mut *self.lock();
        let Some(source) = sources.get_mut(&slot) else {
            return;
        };
        for (stream, end) in (0..).zip(ends) {
            let known = source.rests.iter_mut().find(|rest| rest.stream == stream);
            match (known, end) {
                (Some(known), Some(end)) => known.end = end,
                (Some(_), None) => source.rests.retain(|rest| rest.stream != stream),
                (None, Some(end)) => source.rests.push(Rest {
                    stream,
                    end,
                    is_acked: false,
                }),
                (None, None) => {}
            }
        }
        files.changed.insert(slot);
    }

    /// Notes records in parts, before their spans are registered: see [`Tracker::framed`].
    pub(crate) fn note_parted(&self, reading: Reading<'_>, parted: &[Parted]) {
        if parted.is_empty() {
            return;
        }
        let mut state = self.lock();
        for of in parted {
            let Some(source) = state.sources.get_mut(&of.slot) else {
                continue;
            };
            for (output, view) in source.views.iter_mut().enumerate() {
                let takes_part = match reading {
                    Reading::Shared(attached) => attached[output],
                    Reading::CatchUp(only) => output == only,
                };
                if takes_part && of.end > view.mark.watermark {
                    view.parted.push(*of);
                }
            }
        }
    }
}

impl TrackedSource {
    /// Those that matter to a restart: it would read their end again.
    pub(super) fn open_rests(&self) -> Vec<Rest> {
        let lowest = self.lowest();
        let open = self.rests.iter().filter(|rest| lowest < rest.end);
        let is_acked = |end| self.views.iter().all(|view| view.has_acked(end));
        open.map(|rest| Rest {
            is_acked: rest.is_acked || is_acked(rest.end),
            ..*rest
        })
        .collect()
    }
}
