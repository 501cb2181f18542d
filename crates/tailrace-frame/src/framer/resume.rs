//! Going on with the records of an earlier source: where a log was rotated in the middle of one.

use super::Framer;
use crate::chain::ChainOutcome;
use crate::config::Format;
use crate::frames::{Frames, Piece};

impl Framer {
    /// This source continues where `earlier` ended: records that began there end here. What the earlier one holds of
    /// partial lines and joins is held here from now on; an unterminated line stays there.
    pub fn continue_from(&mut self, earlier: &mut Framer) {
        if matches!(self.format, Format::Auto | Format::Container) {
            self.format = earlier.format;
        }
        let (end, start) = (earlier.offset, self.offset);
        self.chains.continue_from(&mut earlier.chains, end, start);
        if let (Some(joins), Some(earlier_joins)) = (&mut self.joins, &mut earlier.joins) {
            joins.continue_from(earlier_joins, (earlier.source, end), start);
        }
    }

    /// After [`Framer::continue_from`], where this source is not read from its first byte: what it begins with, as much
    /// as there is before its offset or a good part of that, which an earlier run acknowledged. What is held of a record that
    /// has bytes in `head` is skipped: it was acknowledged with them. One that ends before `head` is given out.
    pub fn skip_acked(&mut self, head: &[u8], out: &mut Frames) {
        out.begin_push();
        self.chains.rewind();
        if let Some(joins) = &mut self.joins {
            joins.rewind(self.offset);
            joins.begin(out);
        }
        let again = Reread::new(self, head);
        // What decided how lines are read may stand there.
        (self.format, self.flags) = (again.framer.format, again.framer.flags);
        let outcome = |held: &Piece| again.outcome(held, self.source);
        if let Some(joins) = &mut self.joins {
            joins.skip_acked(outcome, out);
        }
        let is_whole = head.len() as u64 >= self.offset;
        let chains = &again.framer.chains;
        self.chains
            .skip_acked(chains, is_whole, outcome, self.flags, out);
    }
}

/// The head of a source, framed again by a copy of its framer.
struct Reread {
    framer: Framer,
    frames: Frames,
}

impl Reread {
    fn new(framer: &Framer, head: &[u8]) -> Reread {
        let (mut framer, mut frames) = (framer.clone(), Frames::default());
        framer.offset = 0;
        framer.skipping = false;
        framer.push(head, 0, 0, &mut frames);
        Reread { framer, frames }
    }

    /// What became of the record that has the piece `held` of an earlier source; `source` is the one whose head this is.
    fn outcome(&self, held: &Piece, source: u32) -> ChainOutcome {
        let has_held = |pieces: &[Piece]| {
            let mut pieces = pieces.iter().filter(|piece| piece.source == held.source);
            pieces.any(|piece| (piece.start..piece.end).contains(&held.start))
        };
        let has_bytes_here = |pieces: &[Piece]| pieces.iter().any(|piece| piece.source == source);
        let joins = self.framer.joins.iter().flat_map(|joins| joins.open());
        let mut open = self.framer.chains.open().chain(joins);
        if let Some(pieces) = open.find(|pieces| has_held(pieces)) {
            return if has_bytes_here(pieces) {
                ChainOutcome::Acked
            } else {
                ChainOutcome::Open
            };
        }
        let mut given = (0..self.frames.records.len()).map(|record| self.frames.pieces_of(record));
        match given.find(|pieces| has_held(pieces)) {
            Some(pieces) if !has_bytes_here(pieces) => ChainOutcome::Given,
            _ => ChainOutcome::Acked,
        }
    }
}
