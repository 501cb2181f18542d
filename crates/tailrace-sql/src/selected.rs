//! Which records a branch keeps, and what it computed for them.

use arrow::array::ArrayRef;

/// The rows of one branch.
#[derive(Clone, Debug)]
pub struct Selected {
    /// Which records they come from.
    pub rows: Rows,
    /// One array for each computed output, in order, as long as there are rows.
    pub computed: Vec<ArrayRef>,
    /// The values among them that are NULL because their expression failed, ascending.
    pub failed: Vec<FailedOutput>,
}

/// A value that could not be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FailedOutput {
    /// Its row.
    pub row: u32,
    /// Which of the computed outputs it is.
    pub output: usize,
}

/// Records of a batch, by index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Each once.
    All,
    /// These, ascending; one may repeat after an unnest.
    Some(Vec<u32>),
}

impl Rows {
    /// How many rows there are, for a batch of so many records.
    pub fn count(&self, records: usize) -> usize {
        match self {
            Rows::All => records,
            Rows::Some(rows) => rows.len(),
        }
    }
}
