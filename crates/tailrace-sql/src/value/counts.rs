//! What functions over values of any kind could not do: values that were not what they wanted, as the scanner counts them
//! for its columns, and arithmetic without an exact result.
//!
//! Functions count while they run; an evaluator runs on one thread, and asks before and after. A batch that fails and is
//! tried again in halves is set back, so that nothing is counted twice.

use std::cell::Cell;
use std::ops::Sub;

/// Counts of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Values that did not fit.
    pub(crate) mismatches: u64,
    /// Sums, differences and products beyond 64 bits, and divisions by zero.
    pub(crate) failed: u64,
}

impl Sub for Counts {
    type Output = Counts;

    fn sub(self, before: Counts) -> Counts {
        Counts {
            mismatches: self.mismatches - before.mismatches,
            failed: self.failed - before.failed,
        }
    }
}

thread_local! {
    static COUNTS: Cell<Counts> = const { Cell::new(Counts { mismatches: 0, failed: 0 }) };
}

/// What was counted on this thread so far.
pub(crate) fn now() -> Counts {
    COUNTS.get()
}

/// Forgets what was counted since [`now`] gave this.
pub(crate) fn set_back(counts: Counts) {
    COUNTS.set(counts);
}

/// Hands a converted value on; counts it if it did not fit.
#[inline]
pub(super) fn count_none<T>(converted: Option<T>) -> Option<T> {
    if converted.is_none() {
        let counts = COUNTS.get();
        COUNTS.set(Counts {
            mismatches: counts.mismatches + 1,
            ..counts
        });
    }
    converted
}

/// Hands a computed value on; counts it if there is none.
#[inline]
pub(super) fn count_failed<T>(computed: Option<T>) -> Option<T> {
    if computed.is_none() {
        let counts = COUNTS.get();
        COUNTS.set(Counts {
            failed: counts.failed + 1,
            ..counts
        });
    }
    computed
}
