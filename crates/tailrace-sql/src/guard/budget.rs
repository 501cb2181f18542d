//! What the constants of one query may cost while it is planned.
//!
//! Adds up what each call makes, and refuses a call once all of them together made too much. One constant is bounded
//! by its size; this bounds how many there are, so that planning ends soon and its plan stays small. It holds only
//! where constants are evaluated: a batch of records has its own bounds.

use std::cell::Cell;

use datafusion::common::{Result, exec_err};

/// What all constants of a query may make together, in bytes.
pub(crate) const CONSTANT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Steps and bytes taken for a moment count for as much less than bytes that stay.
const TRANSIENT_SHARE: usize = 4;

thread_local! {
    /// What is left for the constants that this thread evaluates; `None` where it evaluates no constants.
    static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// What `work` gives, which evaluates a constant, and what is left of `left` bytes after it.
pub(crate) fn within<T>(left: usize, work: impl FnOnce() -> T) -> (T, usize) {
    let outer = LEFT.replace(Some(left));
    let result = work();
    let left = LEFT.replace(outer).unwrap_or(0);
    (result, left)
}

/// Whether constants are evaluated.
pub(super) fn is_limited() -> bool {
    LEFT.get().is_some()
}

/// A call takes so many steps, or bytes for a moment.
///
/// # Errors
/// If that is too much.
pub(super) fn spend_transient(name: &str, steps: usize) -> Result<()> {
    spend(name, steps / TRANSIENT_SHARE)
}

/// A call made so many bytes.
///
/// # Errors
/// If that is too much.
pub(super) fn spend(name: &str, bytes: usize) -> Result<()> {
    let Some(left) = LEFT.get() else {
        return Ok(());
    };
    LEFT.set(Some(left.saturating_sub(bytes)));
    if bytes > left {
        return exec_err!(
            "with `{name}` the constants of this query make more than {CONSTANT_BYTES_MAX} bytes together"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_share_what_there_is_and_nothing_is_limited_outside() {
        assert!(!is_limited() && spend("f", usize::MAX).is_ok());
        let ((), left) = within(100, || {
            assert!(is_limited());
            assert!(spend("f", 60).is_ok() && spend_transient("f", 4 * 40).is_ok());
            assert!(spend("f", 0).is_ok() && spend("f", 1).is_err());
        });
        assert_eq!(left, 0);
        let (refused, left) = within(10, || spend("f", 11).is_err());
        assert!(refused && left == 0 && !is_limited());
    }
}
