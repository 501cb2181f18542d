//! How far an output is behind the shared reading of a source, and how it reads that by itself. Reads nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tailrace_inputs::checkpoint::Counts;

use super::{OpenSpan, Slot, State, Tracker};

/// How far an output is behind the shared reading of a source.
#[derive(Debug, Clone)]
pub(crate) struct Behind {
    /// The first byte that it has to read.
    pub offset: u64,
    /// What is below is acknowledged, or in flight for it: no unfinished record begins there.
    pub ackable_to: u64,
    /// How far its own reading is framed.
    pub framed_to: u64,
    /// How far the shared reading is framed.
    pub shared_to: u64,
    /// How far the source is read.
    pub read_to: u64,
    /// All that was framed for it is acknowledged.
    pub drained: bool,
    /// The shared reading has reached the end of the source.
    pub finished: bool,
    /// It is where the shared reading is, in the middle of the same lines.
    pub level: bool,
    /// It is framed to where the shared reading is, and holds a record that the shared reading gave out: nothing came
    /// for a while that might have gone on with it.
    pub holds_more: bool,
    /// Path of the file.
    pub path: PathBuf,
    /// The source that it continues.
    pub continues: Option<Slot>,
}

impl Behind {
    /// Whether an output that takes part in the shared reading would have to read something again if it were detached now:
    /// what is not framed for it, or belongs to an unfinished record. What is in flight for it stays its own.
    pub(crate) fn would_miss(&self) -> bool {
        self.read_to > self.ackable_to
    }
}

impl Tracker {
    /// How far an output is behind the shared reading; `None` for a source that is not known.
    pub(crate) fn behind(&self, output: usize, slot: Slot) -> Option<Behind> {
        let state = self.lock();
        let source = state.sources.get(&slot)?;
        let view = &source.views[output];
        Some(Behind {
            offset: view.reread_from(),
            ackable_to: view.head.ackable_to(),
            framed_to: view.head.framed_to,
            shared_to: source.head.framed_to,
            read_to: source.read_to,
            drained: view.spans.values().all(|span| span.acked.is_some()),
            finished: source.finished,
            level: view.head.is_level_with(source.head),
            holds_more: view.head.framed_to == source.head.framed_to
                && view.head.ackable_to() < source.head.ackable_to(),
            path: source.opening.path.to_path_buf(),
            continues: source.continues,
        })
    }

    /// A source goes on where another one ended.
    pub(crate) fn continues(&self, slot: Slot, earlier: Slot) {
        if let Some(source) = self.lock().sources.get_mut(&slot) {
            source.continues = Some(earlier);
        }
    }

    /// An output begins to read a source by itself, from [`Behind::offset`]. What it acknowledged beyond
    /// that, between the lines of an unfinished record, comes again: gives how many such records it
    /// had sent. Nothing may be in flight.
    pub(crate) fn begin_catch_up(&self, output: usize, slot: Slot) -> u64 {
        let mut state = self.lock();
        let Some(source) = state.sources.get_mut(&slot) else {
            return 0;
        };
        let view = &mut source.views[output];
        let offset = view.reread_from();
        let again = view.spans.split_off(&offset);
        // They are noted again as they are framed again.
        view.parted.retain(|of| of.start < offset);
        view.head.framed_to = offset;
        view.head.held_from = None;
        let mut sent = 0;
        for span in again.values() {
            view.head.records -= span.records;
            let filtered = span.acked.map_or(0, |counts| counts.filtered);
            sent += span.records - filtered;
        }
        sent
    }

    /// The pipeline ends: what an output has not acknowledged of files that have no name any more, it will never get. Gives
    /// for each such file how many records it goes without. One that was only renamed is found by the next start.
    pub(crate) fn give_up_gone(&self, output: usize) -> Vec<(Arc<Path>, u64)> {
        let State { sources, files, .. } = &mut *self.lock();
        let mut given_up = Vec::new();
        for (&slot, source) in sources.iter_mut() {
            let head = source.head;
            let view = &source.views[output];
            if view.mark.watermark >= head.framed_to || !source.gone {
                continue;
            }
            let view = &mut source.views[output];
            let open = view.spans.values().filter(|span| span.acked.is_none());
            let unsent = head.records.saturating_sub(view.head.records);
            let dropped = open.map(|span| span.records).sum::<u64>() + unsent;
            let acked = std::mem::take(&mut view.spans).into_values();
            let acked = acked.filter_map(|span| span.acked);
            view.mark.counts = acked.fold(view.mark.counts, Counts::plus);
            view.parted.clear();
            view.head = head;
            view.mark.watermark = head.framed_to;
            let counts = Counts {
                dropped,
                ..Counts::default()
            };
            view.mark.counts = view.mark.counts.plus(counts);
            files.changed.insert(slot);
            given_up.push((Arc::clone(&source.opening.path), dropped));
        }
        given_up
    }

    /// What an output has not read of a source will never be: it is level with the shared reading.
    /// Gives how many records it goes without, those that the query would have removed among them. What was framed for it is
    /// still its own: it is in flight, or acknowledged.
    pub(crate) fn give_up(&self, output: usize, slot: Slot) -> u64 {
        let State { sources, files, .. } = &mut *self.lock();
        let Some(source) = sources.get_mut(&slot) else {
            return 0;
        };
        let head = source.head;
        // The lines between those of an unfinished record, as an output has them that takes part.
        let others = source.views.iter().enumerate();
        let mut others = others.filter(|(n, view)| *n != output && view.head.is_level_with(head));
        let between: Vec<(u64, u64)> = match (head.held_from, others.next()) {
            (Some(held), Some((_, other))) => {
                let spans = other.spans.range(held..);
                spans.map(|(&start, span)| (start, span.end)).collect()
            }
            _ => Vec::new(),
        };
        let view = &mut source.views[output];
        let dropped = head.records.saturating_sub(view.head.records);
        let offset = view.head.ackable_to();
        let framed = view.spans.range(offset..);
        let framed: Vec<(u64, u64)> = framed.map(|(&start, span)| (start, span.end)).collect();
        let mut counts = Some(Counts {
            dropped,
            ..Counts::default()
        });
        let unread = (offset < head.ackable_to()).then(|| (offset, head.ackable_to()));
        let missed = unread.into_iter().chain(between);
        for (start, end) in missed.flat_map(|range| without(range, &framed)) {
            let open = OpenSpan {
                end,
                records: 0,
                acked: Some(counts.take().unwrap_or_default()),
            };
            view.spans.insert(start, open);
        }
        if let Some(counts) = counts {
            view.mark.counts = view.mark.counts.plus(counts);
        }
        view.head = head;
        view.advance();
        files.changed.insert(slot);
        dropped
    }
}

/// What is left of a range without others, which are in order and do not overlap.
fn without((start, end): (u64, u64), others: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut left = Vec::new();
    let mut from = start;
    let others = others
        .iter()
        .filter(|other| other.1 > start && other.0 < end);
    for &(other_start, other_end) in others {
        if from < other_start {
            left.push((from, other_start));
        }
        from = other_end;
    }
    if from < end {
        left.push((from, end));
    }
    left
}
