//! Where a file has a hole, and what stands before it.

use std::io;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::File;
use crate::identity::{FingerprintKey, ends_in_line};

/// What stands before the offset of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Before {
    /// The end of a line, or nothing.
    #[default]
    LineEnd,
    /// NULs that a line begins with.
    Nuls,
    /// Text of a line.
    Text,
    /// NULs behind text of a line.
    NulsInLine,
}

impl Before {
    /// What these bytes say; `otherwise` is whether a line goes on before them, should they all be NULs.
    pub(super) fn of(bytes: &[u8], otherwise: bool) -> Self {
        let in_line = ends_in_line(bytes, otherwise);
        match bytes.last() {
            Some(0) if in_line => Self::NulsInLine,
            Some(0) => Self::Nuls,
            _ if in_line => Self::Text,
            _ => Self::LineEnd,
        }
    }
}

/// What stands before an offset, and how many turns in a row ended within a line: in one byte, since every file has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LineState(u8);

impl LineState {
    const TURNS: u8 = 0b11_1111;

    pub(super) fn before(self) -> Before {
        match self.0 >> Self::TURNS.count_ones() {
            0 => Before::LineEnd,
            1 => Before::Nuls,
            2 => Before::Text,
            _ => Before::NulsInLine,
        }
    }

    #[must_use]
    pub(super) fn behind(self, before: Before) -> Self {
        Self((before as u8) << Self::TURNS.count_ones() | self.unended_turns())
    }

    /// At most 63.
    pub(super) fn unended_turns(self) -> u8 {
        self.0 & Self::TURNS
    }

    #[must_use]
    pub(super) fn one_more_turn(self) -> Self {
        let turns = (self.unended_turns() + 1).min(Self::TURNS);
        Self(self.0 & !Self::TURNS | turns)
    }
}

impl File {
    /// Where the first bytes at or behind `offset` are that were written: `size` if there are none, `offset` if that is not
    /// known.
    pub(crate) fn hole_end(&self, size: u64) -> io::Result<u64> {
        match rustix::fs::seek(self.handle()?, SeekFrom::Data(self.offset)) {
            Ok(end) => Ok(end.min(size)),
            // Also where it was cut before the offset; then it does not hold what is known of it.
            Err(Errno::NXIO) => Ok(size),
            // The filesystem knows no holes.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(self.offset),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether it may have a hole at `offset`: nothing was read yet, or only NULs at last.
    pub(crate) fn may_have_hole(&self) -> bool {
        match self.chunked {
            true => matches!(self.line.before(), Before::Nuls | Before::NulsInLine),
            false => self.offset == 0,
        }
    }

    /// Whether a line goes on at `offset`. NULs that a line begins with belong to none.
    pub(crate) fn is_in_line(&self) -> bool {
        matches!(self.line.before(), Before::Text | Before::NulsInLine)
    }

    /// Moves the offset behind a hole without reading. False if the file does not begin with what is known of it, or is
    /// shorter.
    pub(crate) fn skip_to(&mut self, offset: u64, key: FingerprintKey) -> io::Result<bool> {
        let from = std::mem::replace(&mut self.offset, offset);
        let before = self.line.before();
        let holds = self.verify(key)?.is_some();
        // What was a line before it still is one.
        self.line = self.line.behind(before);
        if !holds {
            self.offset = from;
        }
        Ok(holds)
    }
}
