//! `date_part` without a shortcut of DataFusion's that is wrong: a year that nanoseconds do not reach was NULL for all times compared with it. And
//! seconds since 1970 are the float that is nearest to them: nanoseconds are no float before they are divided.

use std::sync::Arc;

use arrow::array::{AsArray, Float64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl};

use super::casts::per_second;

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

/// What a call gives.
pub(super) fn invoke(known: &dyn ScalarUDFImpl, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
    let [part, times] = &args.args[..] else {
        return known.invoke_with_args(args);
    };
    let (DataType::Timestamp(unit, _) | DataType::Duration(unit)) = times.data_type() else {
        return known.invoke_with_args(args);
    };
    if !is_epoch(part) {
        return known.invoke_with_args(args);
    }
    let numbers = cast(&times.to_array(1)?, &DataType::Int64)?;
    let per_second = per_second(unit);
    let seconds: Float64Array = numbers
        .as_primitive::<Int64Type>()
        .unary(|time| seconds(time, per_second));
    Ok(match times {
        ColumnarValue::Array(_) => ColumnarValue::Array(Arc::new(seconds)),
        ColumnarValue::Scalar(_) => {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&seconds, 0)?)
        }
    })
}

fn is_epoch(part: &ColumnarValue) -> bool {
    let ColumnarValue::Scalar(part) = part else {
        return false;
    };
    let part = part.try_as_str().flatten().unwrap_or_default();
    let bare = part.trim_matches(|quote| quote == '\'' || quote == '"');
    bare.eq_ignore_ascii_case("epoch")
}

/// Floats have all whole numbers up to this one.
const EXACT_MAX: u64 = 1 << 53;

/// The float that is nearest to the seconds of a time.
#[expect(
    clippy::cast_precision_loss,
    reason = "whole numbers beyond 53 bits are taken apart"
)]
fn seconds(time: i64, per_second: i64) -> f64 {
    if time.unsigned_abs() <= EXACT_MAX {
        return time as f64 / per_second as f64;
    }
    // Beyond 2^23 seconds, the error of this fraction is too small to change how the sum is rounded. And no calendar has 2^53 of them.
    let (whole, part) = (time.div_euclid(per_second), time.rem_euclid(per_second));
    whole as f64 + part as f64 / per_second as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parser of the standard library rounds decimal numbers as it should.
    #[test]
    fn seconds_are_the_nearest_float() {
        for digits in [3, 6, 9] {
            let per_second = 10_i64.pow(digits);
            for step in 0..100_000_i64 {
                // Times of all sizes.
                let time = step.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64.cast_signed());
                let time = time >> (step % 40);
                let (whole, part) = (time / per_second, (time % per_second).abs());
                if whole.unsigned_abs() >= EXACT_MAX {
                    continue;
                }
                let sign = if time < 0 { "-" } else { "" };
                let text = format!(
                    "{sign}{}.{part:0width$}",
                    whole.abs(),
                    width = digits as usize
                );
                let nearest: f64 = text.parse().unwrap();
                assert_eq!(seconds(time, per_second), nearest, "{text}");
            }
        }
    }
}
