//! Some rows of a part, and which of them have a value in a column.
//!
//! A set of rows is a word with a bit for each, so that a column is read for all rows of the set before the next one is. Finds
//! the column that decides about a field: the first of the candidates with a value that is not null. What the value means is
//! decided elsewhere.

use arrow::buffer::NullBuffer;

use super::window::{Gathered, Window};
use crate::cell::Cell;
use crate::field::Field;
use crate::open::{ABSENT, OpenColumn};
use crate::plan::PartPlan;

/// So many rows are lifted at a time.
pub(crate) const BLOCK_ROWS: usize = 64;

/// Up to [`BLOCK_ROWS`] rows of a part, one behind the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    /// The first row.
    start: usize,
    /// How many.
    len: usize,
    /// The record of each.
    records: [u32; BLOCK_ROWS],
    /// The records are one behind the other, too.
    is_run: bool,
}

/// The rows of a set, ascending.
pub(crate) struct RowsOf(pub(crate) u64);

impl Iterator for RowsOf {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let row = self.0.trailing_zeros() as usize % BLOCK_ROWS;
        self.0 &= self.0 - 1;
        Some(row)
    }
}

impl Default for Block {
    fn default() -> Block {
        Block {
            start: 0,
            len: 0,
            records: [0; BLOCK_ROWS],
            is_run: true,
        }
    }
}

impl Block {
    /// The rows from `start` on, of a part that has rows for these records (`None`: for each).
    pub(super) fn new(rows: Option<&[u32]>, records: usize, start: usize) -> Block {
        let len = rows.map_or(records, <[u32]>::len) - start;
        let mut block = Block {
            start,
            len: len.min(BLOCK_ROWS),
            ..Block::default()
        };
        for (at, record) in block
            .records
            .iter_mut()
            .take(len.min(BLOCK_ROWS))
            .enumerate()
        {
            *record = rows.map_or((start + at) as u32, |rows| rows[start + at]);
        }
        let records = &block.records[..block.len];
        block.is_run = records.windows(2).all(|pair| pair[1] == pair[0] + 1);
        block
    }

    /// The part's first row behind the block.
    #[inline]
    pub(super) fn end(&self) -> usize {
        self.start + self.len
    }

    /// The place of a row of the part in the block.
    #[inline]
    pub(crate) fn place(&self, row: usize) -> usize {
        (row - self.start) % BLOCK_ROWS
    }

    /// The row of the part at a place.
    #[inline]
    pub(crate) fn row(&self, at: usize) -> usize {
        self.start + at
    }

    #[inline]
    pub(crate) fn record(&self, at: usize) -> usize {
        self.records[at] as usize
    }

    /// The first and the last record, if the records are one behind the other.
    pub(super) fn ends_of_run(&self) -> Option<(usize, usize)> {
        let last = self.len.checked_sub(1)?;
        self.is_run.then(|| (self.record(0), self.record(last)))
    }

    /// The first record, if the records are one behind the other.
    #[inline]
    pub(super) fn first_of_run(&self) -> Option<usize> {
        self.is_run.then(|| self.record(0))
    }

    /// All rows.
    pub(crate) fn all(&self) -> u64 {
        match self.len {
            0 => 0,
            len => u64::MAX >> (BLOCK_ROWS - len),
        }
    }

    /// The rows of a set for which something holds.
    #[inline]
    pub(crate) fn filter(&self, rows: u64, mut holds: impl FnMut(usize) -> bool) -> u64 {
        RowsOf(rows).fold(0, |set, at| set | u64::from(holds(at)) << at)
    }

    pub(super) fn cell<'r>(&self, plan: &'r PartPlan<'_>, column: usize, at: usize) -> Cell<'r> {
        plan.cell(column, self.row(at), self.record(at))
    }

    /// The rows in which a column has a value, JSON nulls included.
    pub(super) fn present(&self, column: &OpenColumn<'_>) -> u64 {
        let all = self.all();
        if self.is_run {
            return column.present(self.record(0), all);
        }
        self.filter(all, |at| column.state(self.record(at)) != ABSENT)
    }

    /// Calls `each` with each column that decides about a field in some rows, with its values if it is a simple column, and
    /// with these rows.
    #[inline(always)]
    pub(super) fn for_each_deciding(
        &self,
        plan: &PartPlan<'_>,
        field: Field,
        present: &[u64],
        mut each: impl FnMut(usize, Option<Window<'_>>, u64),
    ) {
        let mut undecided = self.all();
        let mut memory = Gathered::default();
        for &column in &plan.candidates[field as usize] {
            let column = column as usize;
            let rows = undecided & present[column];
            if rows == 0 {
                continue;
            }
            let simple = plan.columns[column].simple.as_ref();
            let window = simple.map(|simple| Window::new(&simple.column, self, &mut memory));
            let found = match &window {
                Some(window) => window.without_nulls(rows),
                None => self.with_values(plan, column, rows),
            };
            if found != 0 {
                undecided &= !found;
                each(column, window, found);
            }
        }
    }

    /// The rows of a set in which a column decides for its name, and is not null.
    fn with_values(&self, plan: &PartPlan<'_>, column: usize, rows: u64) -> u64 {
        self.filter(rows, |at| {
            let (row, record) = (self.row(at), self.record(at));
            plan.deciding_cell(column, row, record).has_value()
        })
    }
}

impl OpenColumn<'_> {
    /// Of the values from `start` on, those of a set in which a value is.
    fn present(&self, start: usize, all: u64) -> u64 {
        let mut present = all & word_of(self.kind_nulls(), start);
        for at in RowsOf(present & !word_of(self.text_nulls(), start)) {
            if self.state(start + at) == ABSENT {
                present &= !(1 << at);
            }
        }
        present
    }
}

/// The bits of `nulls` from `start` on, set ones behind its end.
fn word_of(nulls: Option<&NullBuffer>, start: usize) -> u64 {
    let Some(nulls) = nulls else {
        return u64::MAX;
    };
    let at = nulls.offset() + start;
    let rest = nulls.validity().get(at / 8..).unwrap_or_default();
    let mut bytes = [0xff; 16];
    let len = rest.len().min(9);
    bytes[..len].copy_from_slice(&rest[..len]);
    (u128::from_le_bytes(bytes) >> (at % 8)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    use arrow::array::{StringViewArray, UInt8Array};

    #[test]
    fn a_value_is_where_its_state_says_so() {
        let len = 300;
        // With a kind and no text a value was unreadable, unless it is null.
        let text: StringViewArray = (0..len).map(|at| (at % 3 != 1).then_some("x")).collect();
        let kinds = (0..len).map(|at| (at % 7 != 2).then_some((at % 5) as u8));
        let kinds: UInt8Array = kinds.collect();
        let rows: Vec<u32> = (0..len)
            .filter(|at| at % 4 == 1)
            .flat_map(|at| [at; 4])
            .collect();
        for offset in [0, 1, 7, 8, 63, 64, 65] {
            let len = len as usize - offset;
            let (text, kinds) = (text.slice(offset, len), kinds.slice(offset, len));
            let column = OpenColumn::new(&text, &kinds);
            for start in [0, 1, 100, len - 85, len - 64, len - 21] {
                for rows in [None, Some(&rows[..len - 20])] {
                    let block = Block::new(rows, len, start);
                    let is_present = |at| column.state(block.record(at)) != ABSENT;
                    let is_inside = (start..rows.map_or(len, <[u32]>::len))
                        .map(|row| rows.map_or(row, |rows| rows[row] as usize));
                    let mut expected = 0;
                    for (at, record) in is_inside.take(BLOCK_ROWS).enumerate() {
                        assert_eq!(block.record(at), record);
                        expected |= u64::from(is_present(at)) << at;
                    }
                    assert_eq!(block.present(&column), expected, "{offset} {start}");
                    check_window(&column, &block);
                }
            }
        }
    }

    /// A window has what the column has, also where it is gathered.
    fn check_window(column: &OpenColumn<'_>, block: &Block) {
        let mut memory = Gathered::default();
        let window = Window::new(column, block, &mut memory);
        for at in RowsOf(block.all()) {
            assert_eq!(window.kinds[at], column.kind(block.record(at)));
            assert_eq!(window.views[at], column.views()[block.record(at)]);
        }
        let rows = block.all() & 0x5555_5555_5555_0f0f;
        let expected = block.filter(rows, |at| window.kinds[at] != 0);
        assert_eq!(window.without_nulls(rows), expected);
    }
}
