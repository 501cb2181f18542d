//! `date_trunc` of times, in their own unit: DataFusion 55 rounds constants before 1970 towards zero, wraps around at the first times of
//! nanoseconds, and fails where a coarser unit holds more than nanoseconds do.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use chrono::{Datelike, NaiveDate};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl};

use super::casts::per_second;

/// What a call gives.
pub(super) fn invoke(known: &dyn ScalarUDFImpl, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
    let [unit, times] = &args.args[..] else {
        return known.invoke_with_args(args);
    };
    let ty = times.data_type();
    let (DataType::Timestamp(of_type, zone), Some(to)) = (&ty, To::named(unit)) else {
        return known.invoke_with_args(args);
    };
    let is_utc = zone
        .as_deref()
        .is_none_or(|zone| matches!(zone, "UTC" | "+00:00"));
    if !is_utc && to.is_local() {
        return known.invoke_with_args(args);
    }
    let is_scalar = matches!(times, ColumnarValue::Scalar(_));
    let rows = if is_scalar { 1 } else { args.number_rows };
    let numbers = cast(&times.to_array(rows)?, &DataType::Int64)?;
    let numbers = numbers.as_primitive::<Int64Type>();
    let per_second = per_second(*of_type);
    let truncated: Int64Array = numbers.try_unary(|time| {
        to.truncated(time, per_second).ok_or_else(|| {
            exec_datafusion_err!("date_trunc of {time} gives a time before the first of its type")
        })
    })?;
    let truncated: ArrayRef = Arc::new(truncated);
    let truncated = cast(&truncated, &ty)?;
    Ok(match is_scalar {
        true => ColumnarValue::Scalar(ScalarValue::try_from_array(&truncated, 0)?),
        false => ColumnarValue::Array(truncated),
    })
}

/// Down to what a time is truncated.
#[derive(Clone, Copy)]
enum To {
    /// A part of a second: so many of them are one.
    PerSecond(i64),
    Seconds(i64),
    /// Monday.
    Week,
    /// The first of so many months of a year.
    Months(u32),
}

const DAY_SECONDS: i64 = 86_400;

impl To {
    fn named(unit: &ColumnarValue) -> Option<To> {
        let ColumnarValue::Scalar(unit) = unit else {
            return None;
        };
        let unit = unit.try_as_str()??.to_lowercase();
        Some(match unit.as_str() {
            "microsecond" => To::PerSecond(1_000_000),
            "millisecond" => To::PerSecond(1_000),
            "second" => To::Seconds(1),
            "minute" => To::Seconds(60),
            "hour" => To::Seconds(3_600),
            "day" => To::Seconds(DAY_SECONDS),
            "week" => To::Week,
            "month" => To::Months(1),
            "quarter" => To::Months(3),
            "year" => To::Months(12),
            _ => return None,
        })
    }

    /// Whether it depends on the zone.
    fn is_local(self) -> bool {
        !matches!(self, To::PerSecond(_) | To::Seconds(..=60))
    }

    /// A time of so many units per second; none if it is beyond 64 bits.
    fn truncated(self, time: i64, per_second: i64) -> Option<i64> {
        let day = DAY_SECONDS * per_second;
        let over = match self {
            To::PerSecond(count) => time.rem_euclid((per_second / count).max(1)),
            To::Seconds(seconds) => time.rem_euclid(seconds * per_second),
            // The epoch is a Thursday.
            To::Week => (time.rem_euclid(7 * day) + 3 * day).rem_euclid(7 * day),
            To::Months(months) => {
                let days = time.div_euclid(day);
                let date = NaiveDate::from_epoch_days(days.try_into().ok()?)?;
                let first = date
                    .with_day0(0)?
                    .with_month0(date.month0() / months * months)?;
                return i64::from(first.to_epoch_days()).checked_mul(day);
            }
        };
        time.checked_sub(over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNITS: [To; 10] = [
        To::PerSecond(1_000_000),
        To::PerSecond(1_000),
        To::Seconds(1),
        To::Seconds(60),
        To::Seconds(3_600),
        To::Seconds(DAY_SECONDS),
        To::Week,
        To::Months(1),
        To::Months(3),
        To::Months(12),
    ];

    /// The calendar repeats itself after 400 years, which are whole weeks.
    #[test]
    fn every_age_is_truncated_as_the_present() {
        const AGE_SECONDS: i64 = 146_097 * DAY_SECONDS;
        for per_second in [1, 1_000, 1_000_000] {
            for to in UNITS {
                for step in 0..5_000 {
                    // 1970 to 2288.
                    let time = step * 2_000_003 * per_second + step % per_second;
                    let age = AGE_SECONDS * per_second;
                    let expect = to.truncated(time, per_second).map(|time| time - age);
                    assert_eq!(to.truncated(time - age, per_second), expect, "{time}");
                }
            }
        }
    }

    #[test]
    fn nothing_wraps_around() {
        for to in UNITS {
            let first = to.truncated(i64::MIN, 1_000_000_000);
            assert_eq!(first, None);
            assert!(to.truncated(i64::MAX, 1_000_000_000).is_some());
        }
        assert_eq!(To::Months(1).truncated(i64::MAX, 1), None);
    }
}
