//! `date_part` without a shortcut of DataFusion's that is wrong: a year that nanoseconds do not reach was NULL for all times compared with it.

use datafusion::common::Result;
use datafusion::logical_expr::preimage::PreimageResult;

/// The times that have a part, none if a bound of them is beyond their type.
pub(super) fn preimage(found: Result<PreimageResult>) -> PreimageResult {
    match found {
        Ok(PreimageResult::Range { interval, .. })
            if interval.lower().is_null() || interval.upper().is_null() =>
        {
            PreimageResult::None
        }
        Err(_) => PreimageResult::None,
        Ok(found) => found,
    }
}
