//! Which columns have a value in a row, as bits.
//!
//! Each record has a bit per column, so that a record with few of many columns costs only its own values, and their presence
//! is tested once. For a [`SimpleColumn`](crate::plan::SimpleColumn) the bit says whether the value is present; for other columns it is
//! always set and means nothing. Memory is reused between calls.

use crate::open::{ABSENT, OpenColumn};
use crate::plan::PartPlan;

/// The bits of one part.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    /// Per record `words`, a bit for each column.
    bits: Vec<u64>,
    words: usize,
    /// [`Self::words`], or 0 where all records have the same bits.
    stride: usize,
}

impl Presence {
    /// Looks at the columns of a part that has output rows for these records (`None`: for each).
    pub(crate) fn fill(&mut self, plan: &PartPlan<'_>, rows: Option<&[u32]>, records: usize) {
        self.words = plan.columns.len().div_ceil(64);
        let sparse_of = |at: usize| plan.columns[at].sparse();
        let mut all = vec![0; self.words];
        for at in (0..plan.columns.len()).filter(|at| sparse_of(*at).is_none()) {
            all[at / 64] |= 1 << (at % 64);
        }
        self.bits.clear();
        self.stride = 0;
        let mut sparse = (0..plan.columns.len()).filter_map(|at| Some((at, sparse_of(at)?)));
        let Some(first) = sparse.next() else {
            self.bits.append(&mut all);
            return;
        };
        self.stride = self.words;
        match *all {
            [word] => self.bits.resize(records, word),
            _ => (0..records).for_each(|_| self.bits.extend_from_slice(&all)),
        }
        let mut set = |at: usize, record: usize| {
            self.bits[record * self.words + at / 64] |= 1 << (at % 64);
        };
        for (at, column) in std::iter::once(first).chain(sparse) {
            match rows {
                // Looking at each record does not pay where few are wanted.
                Some(rows) if rows.len() < records / 4 => {
                    let rows = rows.iter().map(|record| *record as usize);
                    rows.filter(|record| column.state(*record) != ABSENT)
                        .for_each(|record| set(at, record));
                }
                _ => column.for_each_present(records, |record| set(at, record)),
            }
        }
    }

    /// How many words a record has.
    pub(crate) fn words(&self) -> usize {
        self.words
    }

    /// Whether the bit of a column is set.
    #[inline]
    pub(crate) fn has(&self, record: usize, column: usize) -> bool {
        self.bits[record * self.stride + column / 64] >> (column % 64) & 1 == 1
    }

    /// The bits of every record, where all have the same.
    pub(crate) fn of_all(&self) -> Option<&[u64]> {
        (self.stride == 0).then_some(&self.bits)
    }

    /// The bits of a record, 64 columns a word.
    #[inline]
    pub(crate) fn of(&self, record: usize) -> &[u64] {
        let start = record * self.stride;
        &self.bits[start..start + self.words]
    }
}

impl OpenColumn<'_> {
    /// Calls `each` with the places below `end` where a value is, JSON nulls included.
    fn for_each_present(&self, end: usize, mut each: impl FnMut(usize)) {
        for (word, (mut present, mut unread)) in self.validity().enumerate() {
            while unread != 0 {
                let bit = unread.trailing_zeros() as usize;
                unread &= unread - 1;
                if self.state(64 * word + bit) == ABSENT {
                    present &= !(1 << bit);
                }
            }
            while present != 0 {
                let at = 64 * word + present.trailing_zeros() as usize;
                present &= present - 1;
                if at < end {
                    each(at);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use arrow::array::{StringViewArray, UInt8Array};

    #[test]
    fn a_value_is_where_its_state_says_so() {
        for len in [0, 1, 63, 64, 65, 200] {
            let text = (0..len).map(|at| (at % 3 != 1).then_some("x"));
            let text: StringViewArray = text.collect();
            // With a kind and no text a value was unreadable, unless it is null.
            let kinds = (0..len).map(|at| (at % 7 != 2).then_some((at % 5) as u8));
            let kinds: UInt8Array = kinds.collect();
            let column = OpenColumn::new(&text, &kinds);
            let mut present = Vec::new();
            column.for_each_present(150, |at| present.push(at));
            let states = (0..len.min(150)).filter(|at| column.state(*at) != ABSENT);
            assert_eq!(present, states.collect::<Vec<_>>());
        }
    }
}
