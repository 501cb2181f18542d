//! Expressions that failed, and for which records.
//!
//! Collects what goes wrong while a batch is evaluated: how many records it concerned and, for each expression, how
//! often and an example of the reason. Never allocates while nothing fails.

use std::fmt::Display;

use crate::selected::Rows;

/// An expression that failed for some records of a batch: its value was NULL there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The branch of the query.
    pub branch: usize,
    /// Which of the branch's computed outputs it is; `None` is the condition.
    pub output: Option<usize>,
    /// What went wrong for the first of the records.
    pub reason: String,
    /// How many records.
    pub rows: u64,
}

/// What failed in one batch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failures {
    /// Records by index; one may be in it several times.
    records: Vec<u32>,
    failures: Vec<Failure>,
    /// The branch at hand.
    branch: usize,
}

/// Why an expression failed for a record that counts as failed and has no [`Failure`].
pub const NOT_EXACT: &str = "a division by zero, or arithmetic beyond 64 bits";

/// A longer reason is cut: it may hold a record's value.
pub(crate) const REASON_CHARS_MAX: usize = 300;

impl Failures {
    pub(crate) fn clear(&mut self) {
        self.records.clear();
        self.failures.clear();
    }

    /// What is added from now on is of this branch.
    pub(crate) fn of_branch(&mut self, branch: usize) -> &mut Failures {
        self.branch = branch;
        self
    }

    pub(crate) fn add(&mut self, record: u32, output: Option<usize>, reason: &dyn Display) {
        self.records.push(record);
        let branch = self.branch;
        let known = |failure: &&mut Failure| failure.branch == branch && failure.output == output;
        if let Some(failure) = self.failures.iter_mut().find(known) {
            failure.rows += 1;
            return;
        }
        self.failures.push(Failure {
            branch,
            output,
            reason: reason.to_string().chars().take(REASON_CHARS_MAX).collect(),
            rows: 1,
        });
    }

    /// Adds failures in a batch of selected rows.
    pub(crate) fn add_selected(&mut self, failed: Failures, selected: &Rows) {
        let record = |row: u32| match selected {
            Rows::All => row,
            Rows::Some(records) => records[row as usize],
        };
        self.records.extend(failed.records.into_iter().map(record));
        self.failures.extend(failed.failures);
    }

    /// How many records there are, and the expressions.
    pub(crate) fn take(&mut self) -> (u64, Vec<Failure>) {
        self.records.sort_unstable();
        self.records.dedup();
        (
            self.records.len() as u64,
            std::mem::take(&mut self.failures),
        )
    }
}
