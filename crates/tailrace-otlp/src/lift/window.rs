//! The values of an open column in the rows of a block.
//!
//! Where the records of a block are consecutive, as they nearly always are, a window borrows from the column; else the values
//! are gathered first. Either way a row of the block is the index, so that reading takes no checks. Values of rows in which the
//! column has none mean nothing.

use arrow::buffer::Buffer;
use tailrace_model::json::Kind;

use super::block::{BLOCK_ROWS, Block};
use crate::number::{INLINE_MAX, view_len};
use crate::open::{OpenColumn, Place, place};

/// A column's values in the rows of a block.
#[derive(Clone, Copy)]
pub(crate) struct Window<'w> {
    pub(crate) kinds: &'w [u8; BLOCK_ROWS],
    pub(crate) views: &'w [u128; BLOCK_ROWS],
    buffers: &'w [Buffer],
}

/// Memory for a window whose values are gathered.
#[derive(Debug)]
pub(crate) struct Gathered {
    kinds: [u8; BLOCK_ROWS],
    views: [u128; BLOCK_ROWS],
}

impl Default for Gathered {
    fn default() -> Gathered {
        Gathered {
            kinds: [0; BLOCK_ROWS],
            views: [0; BLOCK_ROWS],
        }
    }
}

impl<'w> Window<'w> {
    #[inline]
    pub(crate) fn new<'a: 'w>(
        column: &OpenColumn<'a>,
        block: &Block,
        memory: &'w mut Gathered,
    ) -> Window<'w> {
        let buffers = column.buffers();
        if let Some(first) = block.first_of_run() {
            let kinds = column.kinds().get(first..).and_then(<[u8]>::first_chunk);
            let views = column.views().get(first..).and_then(<[u128]>::first_chunk);
            if let (Some(kinds), Some(views)) = (kinds, views) {
                return Window {
                    kinds,
                    views,
                    buffers,
                };
            }
        }
        memory.gather(column, block);
        Window {
            kinds: &memory.kinds,
            views: &memory.views,
            buffers,
        }
    }

    /// Where the text of a value is.
    #[inline(always)]
    pub(crate) fn place(&self, at: usize) -> Place<'w> {
        place(self.views[at], self.buffers)
    }

    /// Where the text of a value is, if it is a string.
    #[inline(always)]
    pub(crate) fn string(&self, at: usize) -> Option<Place<'w>> {
        (self.kinds[at] == Kind::String as u8).then(|| self.place(at))
    }

    /// The text of a string that its view holds.
    #[inline(always)]
    pub(crate) fn short_string(&self, at: usize) -> Option<(u128, usize)> {
        let (view, is_string) = (self.views[at], self.kinds[at] == Kind::String as u8);
        let len = view_len(view);
        (is_string && len <= INLINE_MAX).then_some((view >> 32, len))
    }

    /// The rows of a set whose value is no JSON null.
    #[inline]
    pub(super) fn without_nulls(&self, rows: u64) -> u64 {
        const NULL: u8 = Kind::Null as u8;
        const ONES: u64 = u64::from_ne_bytes([1; 8]);
        const { assert!(NULL == 0) };
        // The highest bit of a byte that is zero, and perhaps of others if there is one.
        let zeros = |word: u64| word.wrapping_sub(ONES) & !word & (ONES << 7);
        let (words, _) = self.kinds.as_chunks::<8>();
        let words = words.iter().map(|word| zeros(u64::from_ne_bytes(*word)));
        if words.fold(0, |any, zeros| any | zeros) == 0 {
            return rows;
        }
        let is_null = |at: usize| u64::from(self.kinds[at] == NULL);
        super::RowsOf(rows).fold(rows, |rows, at| rows & !(is_null(at) << at))
    }
}

impl Gathered {
    #[inline(never)]
    fn gather(&mut self, column: &OpenColumn<'_>, block: &Block) {
        for at in super::RowsOf(block.all()) {
            let record = block.record(at);
            self.kinds[at] = column.kinds()[record];
            self.views[at] = column.views()[record];
        }
    }
}
