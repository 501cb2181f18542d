//! Which columns may have a value in a row, as bits.
//!
//! Takes a part's plan, gives for each record a bit per column, so that a record of few among many columns costs its
//! own values only. A bit that is set promises nothing; one that is not says that the value is absent. Memory is kept
//! between calls. Never looks at a value.

use crate::lift::PartPlan;

/// The bits of one part.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    /// Per record [`Self::stride`] words, a bit for each column.
    bits: Vec<u64>,
    /// 0 where all records have the same bits.
    stride: usize,
}

impl Presence {
    /// Looks at the columns of a part that has `rows` output rows of `records` records.
    pub(crate) fn fill(&mut self, plan: &PartPlan<'_>, rows: usize, records: usize) {
        let words = plan.columns.len().div_ceil(64);
        // Looking at each record does not pay where few are wanted.
        let looks = rows >= records / 4;
        let nulls_of = |column: usize| plan.columns[column].nulls_by_record().filter(|_| looks);
        let is_sparse = |column: &usize| nulls_of(*column).is_some();
        let mut all = vec![0; words];
        for column in (0..plan.columns.len()).filter(|column| !is_sparse(column)) {
            all[column / 64] |= 1 << (column % 64);
        }
        self.bits.clear();
        if !(0..plan.columns.len()).any(|column| is_sparse(&column)) {
            self.stride = 0;
            self.bits.append(&mut all);
            return;
        }
        self.stride = words;
        for _ in 0..records {
            self.bits.extend_from_slice(&all);
        }
        for column in 0..plan.columns.len() {
            let Some(nulls) = nulls_of(column) else {
                continue;
            };
            let (word, bit) = (column / 64, 1 << (column % 64));
            for record in nulls.valid_indices().take_while(|record| *record < records) {
                self.bits[record * words + word] |= bit;
            }
        }
    }

    /// The bits of columns `64 * word` and up to 63 behind it.
    #[inline]
    pub(crate) fn word(&self, record: usize, word: usize) -> u64 {
        self.bits[record * self.stride + word]
    }
}
