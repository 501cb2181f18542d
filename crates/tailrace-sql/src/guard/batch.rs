//! What all calls of one batch may build together.
//!
//! A caller that can cut a batch says so by [`bounded`]: beyond the budget every call fails at once, the evaluator does
//! not try halves, and the caller does, with what the whole batch gave thrown away ([`is_exhausted`]). Without it, and for
//! a single record, only the bound of each value holds. Per thread.

use std::cell::Cell;

use datafusion::common::{Result, exec_err};

/// What the calls of a batch may build.
const BYTES_MAX: usize = 8 * 1024 * 1024;
/// What a call builds of a record up to this is not counted.
const RECORD_BYTES_USUAL: usize = 256;

thread_local! {
    static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
    static EXHAUSTED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`, which evaluates so many records, within the budget.
pub fn bounded<T>(records: usize, work: impl FnOnce() -> T) -> T {
    LEFT.set((records > 1).then_some(BYTES_MAX));
    EXHAUSTED.set(false);
    let result = work();
    LEFT.set(None);
    result
}

/// Whether what this thread evaluated last within a budget exceeded it: the result holds NULLs that mean nothing.
#[must_use]
pub fn is_exhausted() -> bool {
    EXHAUSTED.get()
}

/// Whether this thread is evaluating a batch whose budget is used up.
pub(crate) fn is_over() -> bool {
    EXHAUSTED.get() && LEFT.get().is_some()
}

/// # Errors
/// If the budget is used up.
pub(super) fn check() -> Result<()> {
    if is_over() {
        exec_err!("the batch makes too much for one piece")
    } else {
        Ok(())
    }
}

/// Counts what a call built for so many records.
///
/// # Errors
/// If the budget is used up.
pub(crate) fn spend(bytes: usize, records: usize) -> Result<()> {
    let Some(left) = LEFT.get() else {
        return Ok(());
    };
    let left = left.checked_sub(bytes.saturating_sub(RECORD_BYTES_USUAL * records));
    EXHAUSTED.set(EXHAUSTED.get() || left.is_none());
    LEFT.set(Some(left.unwrap_or(0)));
    check()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_several_records_have_a_budget() {
        let spent = |records, bytes: &[usize]| {
            bounded(records, || {
                bytes.iter().all(|&bytes| spend(bytes, 2).is_ok())
            })
        };
        assert!(spent(2, &[2 * RECORD_BYTES_USUAL; 100]) && !is_exhausted());
        assert!(!spent(2, &[BYTES_MAX, BYTES_MAX]) && is_exhausted());
        assert!(spent(1, &[usize::MAX; 3]) && !is_exhausted());
        assert!(bounded(2, || spend(usize::MAX, 1).is_err() && check().is_err()));
        // Nothing is bounded after it.
        assert!(check().is_ok() && spend(usize::MAX, 1).is_ok());
    }
}
