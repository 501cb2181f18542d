//! Where the bytes of a framed batch were read: the spans that the tracker knows, and the place of each record.

use std::ops::Range;
use std::sync::Arc;

use tailrace_frame::Piece;

use super::{FrameMark, Framed, FramedSource, SourceRun};
use crate::watermark::{Parted, Slot, Span};

impl Framed {
    /// Adds the run and the spans of what one push of a source framed.
    pub(super) fn add_spans(&mut self, source: &FramedSource, before: &FrameMark) {
        let records = before.records..self.frames.records.len();
        if !self.add_lines(records.clone(), source.replay_to) {
            self.add_pieces(records.clone(), source.replay_to);
        }
        for skip in &self.frames.skips[before.skips..] {
            let span = Span {
                slot: Slot(skip.source),
                start: skip.start,
                end: skip.end,
                records: 0,
            };
            extend_spans(&mut self.spans, span);
        }
        self.add_run(records, source);
    }

    /// [`Framed::add_pieces`] the short way, if each of the records is one piece, and all of one source; else says `false`
    /// and adds nothing.
    fn add_lines(&mut self, records: Range<usize>, replay_to: u64) -> bool {
        let first = self.first_piece(records.start);
        let pieces = &self.frames.pieces[first as usize..];
        let Some(line) = pieces.first() else {
            return false;
        };
        // No record is without a piece.
        let is_lines = pieces.len() == records.len()
            && pieces
                .iter()
                .fold(0, |differs, piece| differs | (piece.source ^ line.source))
                == 0;
        if !is_lines {
            return false;
        }
        let slot = Slot(line.source);
        self.locations.add_lines(slot, pieces);
        let neighbours = pieces.iter().zip(&pieces[1..]);
        if neighbours.fold(0, |gaps, (a, b)| gaps | (a.end ^ b.start)) == 0 {
            let span = Span {
                slot,
                start: line.start,
                end: pieces[pieces.len() - 1].end,
                records: pieces.len() as u64,
            };
            extend_spans(&mut self.spans, span);
        } else {
            for piece in pieces {
                extend_spans(&mut self.spans, span_of(piece, 1));
            }
        }
        let replayed = |piece: &Piece| u64::from(piece.start < replay_to);
        self.replayed += pieces.iter().map(replayed).sum::<u64>();
        true
    }

    /// Adds the spans and places of records of any number of pieces.
    fn add_pieces(&mut self, records: Range<usize>, replay_to: u64) {
        let mut first = self.first_piece(records.start);
        let Framed {
            frames,
            spans,
            parted,
            locations,
            replayed,
            ..
        } = self;
        locations.add(frames.piece_ends[records].iter().filter_map(|&end| {
            let pieces = &frames.pieces[first as usize..end as usize];
            first = end;
            let (last, before) = pieces.split_last()?;
            if !before.is_empty() {
                add_parted(parted, pieces);
            }
            for piece in before {
                extend_spans(spans, span_of(piece, 0));
            }
            extend_spans(spans, span_of(last, 1));
            let own = before.iter().find(|piece| piece.source == last.source);
            let start = own.unwrap_or(last).start;
            *replayed += u64::from(start < replay_to);
            Some((Slot(last.source), (start, last.end)))
        }));
    }

    /// Where the pieces of a record begin.
    fn first_piece(&self, record: usize) -> u32 {
        let before = record.checked_sub(1);
        before.map_or(0, |last| self.frames.piece_ends[last])
    }

    /// Adds the records to the run of their source.
    fn add_run(&mut self, records: Range<usize>, source: &FramedSource) {
        if records.is_empty() {
            return;
        }
        let index = |n: usize| u32::try_from(n).expect("records of a batch fit u32");
        let records = index(records.start)..index(records.end);
        match self.runs.last_mut() {
            Some(last) if Arc::ptr_eq(&last.facts, &source.facts.facts) => {
                last.records.end = records.end
            }
            _ => self.runs.push(SourceRun {
                records,
                facts: Arc::clone(&source.facts.facts),
            }),
        }
    }

    /// Joins spans that touch, so that a batch of one file is one span.
    pub(super) fn merge_spans(&mut self) {
        self.spans.retain(|span| span.start < span.end);
        self.spans
            .sort_unstable_by_key(|span| (span.slot, span.start));
        let mut merged: Vec<Span> = Vec::with_capacity(self.spans.len().min(16));
        for span in self.spans.drain(..) {
            extend_spans(&mut merged, span);
        }
        self.spans = merged;
    }
}

/// Adds a record of several pieces, in each source in which it has more than one.
fn add_parted(parted: &mut Vec<Parted>, pieces: &[Piece]) {
    let of_source = pieces.chunk_by(|a, b| a.source == b.source);
    parted.extend(
        of_source
            .filter(|pieces| pieces.len() > 1)
            .map(|pieces| Parted {
                slot: Slot(pieces[0].source),
                start: pieces[0].start,
                end: pieces[pieces.len() - 1].end,
            }),
    );
}

/// The bytes of a piece, with which so many records end.
fn span_of(piece: &Piece, records: u64) -> Span {
    Span {
        slot: Slot(piece.source),
        start: piece.start,
        end: piece.end,
        records,
    }
}

/// Extends the last span if this one continues it, else adds it.
pub(super) fn extend_spans(spans: &mut Vec<Span>, span: Span) {
    match spans.last_mut() {
        Some(last) if last.slot == span.slot && last.end == span.start => {
            last.end = span.end;
            last.records += span.records;
        }
        _ => spans.push(span),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tailrace_frame::{Flags, Record, Stream};

    use super::*;

    /// A batch of records of so many pieces, of so many bytes each, with a gap before some.
    fn framed(records: &[Vec<(u8, bool)>], base: u64) -> Framed {
        let mut framed = Framed::default();
        let frames = &mut framed.frames;
        let mut at = base;
        for pieces in records {
            for &(bytes, is_apart) in pieces {
                let start = at + 3 * u64::from(is_apart);
                at = start + u64::from(bytes);
                let (source, end) = (5, at);
                frames.pieces.push(Piece { source, start, end });
            }
            let record = Record {
                buffer: 0,
                start: 0,
                end: 0,
                flags: Flags::NONE,
                stream: Stream::None,
                time_ns: 0,
            };
            frames.records.push(record);
            frames.piece_ends.push(frames.pieces.len() as u32);
        }
        framed
    }

    fn places(framed: &Framed) -> Vec<Option<(Slot, (u64, u64))>> {
        let records = 0..framed.frames.records.len() as u32;
        records.map(|record| framed.locations.of(record)).collect()
    }

    proptest! {
        #[test]
        fn lines_are_added_as_pieces_are(
            lines in prop::collection::vec((1_u8..9, any::<bool>()), 0..40),
            before in prop::collection::vec(prop::collection::vec((1_u8..9, any::<bool>()), 1..4), 0..4),
            base in prop_oneof![Just(0), Just(u64::from(u32::MAX) * 3)],
            replay in 0_u64..300,
        ) {
            let lines = lines.iter().map(|&line| vec![line]);
            let all: Vec<_> = before.iter().cloned().chain(lines).collect();
            let (mut quick, mut plain) = (framed(&all, base), framed(&all, base));
            for framed in [&mut quick, &mut plain] {
                framed.add_pieces(0..before.len(), base + replay);
            }
            let records = before.len()..all.len();
            prop_assert_eq!(quick.add_lines(records.clone(), base + replay), !records.is_empty());
            plain.add_pieces(records, base + replay);
            prop_assert_eq!(places(&quick), places(&plain));
            prop_assert_eq!(&quick.spans, &plain.spans);
            prop_assert_eq!(quick.replayed, plain.replayed);
        }

        #[test]
        fn records_of_several_pieces_are_no_lines(
            records in prop::collection::vec(prop::collection::vec((1_u8..9, any::<bool>()), 1..4), 1..9),
        ) {
            let mut framed = framed(&records, 0);
            let is_lines = records.iter().all(|pieces| pieces.len() == 1);
            prop_assert_eq!(framed.add_lines(0..records.len(), u64::MAX), is_lines);
            prop_assert_eq!(is_untouched(&framed), !is_lines);
        }
    }

    #[test]
    fn lines_of_two_sources_are_no_lines() {
        for other in 1..9 {
            let mut framed = framed(&vec![vec![(4, false)]; 9], 0);
            framed.frames.pieces[other].source += 1;
            assert!(!framed.add_lines(0..9, u64::MAX));
            assert!(is_untouched(&framed));
        }
    }

    fn is_untouched(framed: &Framed) -> bool {
        framed.spans.is_empty()
            && framed.replayed == 0
            && places(framed).iter().all(Option::is_none)
    }
}
