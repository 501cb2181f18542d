//! What a framer holds of records that are not complete, and how it is put aside for a while.
//!
//! The bytes are moved out of memory and back; in between a framer only knows its offsets. Never writes them
//! anywhere itself.

use super::Framer;
use crate::frames::Stream;

impl Framer {
    /// Whether the next byte begins a line, and nothing is held or to be skipped: a new framer for the rest of the source
    /// would give the same records, where the format is given or is found again.
    pub fn is_between_records(&self) -> bool {
        let streams = [Stream::None, Stream::Stdout, Stream::Stderr];
        let is_line_open = self.skipping || !self.carry.is_empty() || self.stowed.is_some();
        let are_closed = streams
            .into_iter()
            .all(|stream| self.chains.is_closed(stream));
        !is_line_open && are_closed && !self.has_open_join()
    }

    /// How many bytes of records that are not complete lie in memory.
    pub fn held_bytes(&self) -> usize {
        let joins = self.joins.iter().flat_map(|joins| joins.texts());
        let texts = self.chains.texts().chain(joins);
        self.carry.len() + texts.map(Vec::len).sum::<usize>()
    }

    /// Takes these bytes out of memory, for a source that is not framed for a while. Until [`Framer::restore`] brings them
    /// back, only what asks for offsets may be called.
    #[must_use]
    pub fn stow(&mut self) -> Vec<u8> {
        debug_assert!(self.stowed.is_none(), "stowed twice");
        let mut bytes = Vec::with_capacity(self.held_bytes());
        let mut lens = Vec::new();
        self.for_each_text(|text| {
            lens.push(text.len() as u32);
            bytes.append(text);
            *text = Vec::new();
        });
        self.stowed = Some(lens);
        bytes
    }

    /// Brings back what [`Framer::stow`] gave.
    ///
    /// # Panics
    /// If it is shorter.
    pub fn restore(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        let mut lens = self.stowed.take().into_iter().flatten();
        self.for_each_text(|text| {
            let len = lens.next().unwrap_or(0) as usize;
            let (of_text, behind) = rest.split_at(len);
            text.extend_from_slice(of_text);
            rest = behind;
        });
    }

    /// All bytes of records that are not complete, always in the same order, that of a line first.
    fn for_each_text(&mut self, mut each: impl FnMut(&mut Vec<u8>)) {
        each(&mut self.carry);
        self.chains.texts_mut().for_each(&mut each);
        let joins = self.joins.iter_mut().flat_map(|joins| joins.texts_mut());
        joins.for_each(each);
    }
}
