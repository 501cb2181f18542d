//! Numbers of lines: where in a source the newlines are, of the bytes of records that are not complete.

use std::collections::VecDeque;

use tailrace_frame::Piece;

/// The lines of a source as far as it was read.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Offsets of newlines, ascending, without those that were forgotten.
    newlines: VecDeque<u64>,
    /// How many were forgotten.
    before: u64,
    /// The offset of the byte that comes next.
    offset: u64,
}

impl Lines {
    /// Notes the next bytes of the source.
    pub(super) fn note(&mut self, bytes: &[u8]) {
        let numbered = (self.offset..).zip(bytes);
        let newlines = numbered.filter(|(_, byte)| **byte == b'\n');
        self.newlines.extend(newlines.map(|(offset, _)| offset));
        self.offset += bytes.len() as u64;
    }

    /// Forgets the lines before this offset: no record that is still to come has bytes of them.
    pub(super) fn forget(&mut self, offset: u64) {
        let forgotten = self.newlines_before(offset);
        self.newlines.drain(..forgotten);
        self.before += forgotten as u64;
    }

    /// The number of the first line of a record, from 1, and how many lines it is made of.
    pub(super) fn of(&self, pieces: &[Piece]) -> (u64, u64) {
        let first = pieces.first().map_or(self.offset, |piece| piece.start);
        let lines = |piece: &Piece| {
            // The newline that ends the last line begins no other.
            let last = piece.end.saturating_sub(1).max(piece.start);
            let newlines = self.newlines_before(last) - self.newlines_before(piece.start);
            1 + newlines as u64
        };
        let number = 1 + self.before + self.newlines_before(first) as u64;
        (number, pieces.iter().map(lines).sum())
    }

    fn newlines_before(&self, offset: u64) -> usize {
        self.newlines.partition_point(|&newline| newline < offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_across_chunks() {
        let mut lines = Lines::default();
        let piece = |start, end| Piece {
            source: 0,
            start,
            end,
        };
        // Lines at 0, 2, 4, 6.
        lines.note(b"a\nb");
        lines.note(b"\nc\nd");
        assert_eq!(lines.of(&[piece(0, 2)]), (1, 1));
        assert_eq!(lines.of(&[piece(2, 6)]), (2, 2));
        assert_eq!(lines.of(&[piece(0, 2), piece(4, 6)]), (1, 2));
        lines.forget(4);
        assert_eq!(lines.newlines.len(), 1);
        assert_eq!(lines.of(&[piece(4, 7)]), (3, 2));
        assert_eq!(lines.of(&[piece(6, 7)]), (4, 1));
    }
}
