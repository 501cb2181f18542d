//! How many values were not what a function wanted, as the scanner counts them for its columns.
//!
//! Functions count while they run; an evaluator runs on one thread, and asks before and after. A batch that fails and is
//! tried again in halves is set back, so that nothing is counted twice.

use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// Values counted on this thread so far.
pub(crate) fn count() -> u64 {
    COUNT.get()
}

/// Forgets what was counted since [`count`] gave this.
pub(crate) fn set_back(count: u64) {
    COUNT.set(count);
}

/// Hands a converted value on; counts it if it did not fit.
#[inline]
pub(super) fn count_none<T>(converted: Option<T>) -> Option<T> {
    if converted.is_none() {
        COUNT.set(COUNT.get() + 1);
    }
    converted
}
