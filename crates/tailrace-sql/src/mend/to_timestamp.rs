//! `to_timestamp` and its like with the type that they announce: of texts DataFusion 55 gives times without the zone, which nothing can be done with.
//! What is no finite number is no time, where it gives the year 1970 or the last time that there is. And a float of seconds has no more digits
//! behind its point than floats of its size tell apart, microseconds today: as nanoseconds it would be a little before or after what is written.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, TimestampNanosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{ArrowPrimitiveType, DataType, Float16Type, Float32Type, Float64Type};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl};

/// More seconds since 1970 have no whole number of nanoseconds in 64 bits.
const SECONDS_MAX: f64 = 9_223_372_036.854_775;

/// What a call gives, in the type that it announces.
pub(super) fn invoke(
    known: &dyn ScalarUDFImpl,
    mut args: ScalarFunctionArgs,
) -> Result<ColumnarValue> {
    if let Some(seconds) = args.args.first_mut() {
        only_finite(seconds);
        if known.name() == "to_timestamp" {
            check_range(seconds)?;
            if seconds.data_type().is_floating() {
                *seconds = of_floats(seconds)?;
            }
        }
    }
    let ty = args.return_field.data_type().clone();
    Ok(match known.invoke_with_args(args)? {
        times if times.data_type() == ty => times,
        ColumnarValue::Array(times) => ColumnarValue::Array(cast(&times, &ty)?),
        ColumnarValue::Scalar(time) => ColumnarValue::Scalar(time.cast_to(&ty)?),
    })
}

/// Refuses floats of seconds that are beyond the times of nanoseconds, as DataFusion refuses whole numbers.
fn check_range(seconds: &ColumnarValue) -> Result<()> {
    let floats = match seconds.data_type() {
        DataType::Float32 | DataType::Float64 => seconds.cast_to(&DataType::Float64, None)?,
        // Those of 16 bits are at most 65504.
        _ => return Ok(()),
    };
    let is_beyond = |it: &f64| it.abs() >= SECONDS_MAX;
    let beyond = match &floats {
        ColumnarValue::Scalar(ScalarValue::Float64(it)) => it.filter(is_beyond),
        ColumnarValue::Array(floats) => {
            let floats = floats.as_primitive::<Float64Type>();
            floats.iter().flatten().find(is_beyond)
        }
        ColumnarValue::Scalar(_) => None,
    };
    match beyond {
        None => Ok(()),
        Some(it) => exec_err!("Cannot cast Timestamp(s) value {it} to Timestamp(ns)"),
    }
}

/// The times of floats of seconds.
fn of_floats(seconds: &ColumnarValue) -> Result<ColumnarValue> {
    let floats = cast(&seconds.to_array(1)?, &DataType::Float64)?;
    let times: TimestampNanosecondArray = floats.as_primitive::<Float64Type>().unary(nanoseconds);
    Ok(match seconds {
        ColumnarValue::Array(_) => ColumnarValue::Array(Arc::new(times)),
        ColumnarValue::Scalar(_) => ColumnarValue::Scalar(ScalarValue::try_from_array(&times, 0)?),
    })
}

/// Seconds, rounded to the last decimal digit that floats of this size tell apart.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a float is cast to the nearest whole number, and NULL may be any"
)]
fn nanoseconds(seconds: f64) -> i64 {
    // Below these powers of two neighbours are closer than one, 10 and 100 nanoseconds.
    let digit = match seconds.abs() {
        ..8_388_608.0 => 1,
        ..67_108_864.0 => 10,
        ..536_870_912.0 => 100,
        _ => 1_000,
    };
    let whole = seconds.trunc();
    let fraction = ((seconds - whole) * (1e9 / f64::from(digit))).round() as i64;
    (whole as i64)
        .saturating_mul(1_000_000_000)
        .saturating_add(fraction * i64::from(digit))
}

/// NULL in the place of floats that are not finite.
fn only_finite(seconds: &mut ColumnarValue) {
    match seconds {
        ColumnarValue::Scalar(ScalarValue::Float16(it)) => *it = it.filter(|it| it.is_finite()),
        ColumnarValue::Scalar(ScalarValue::Float32(it)) => *it = it.filter(|it| it.is_finite()),
        ColumnarValue::Scalar(ScalarValue::Float64(it)) => *it = it.filter(|it| it.is_finite()),
        ColumnarValue::Scalar(_) => {}
        ColumnarValue::Array(floats) => match floats.data_type() {
            DataType::Float16 => only::<Float16Type>(floats, |it| it.is_finite()),
            DataType::Float32 => only::<Float32Type>(floats, f32::is_finite),
            DataType::Float64 => only::<Float64Type>(floats, f64::is_finite),
            _ => {}
        },
    }
}

fn only<T: ArrowPrimitiveType>(floats: &mut ArrayRef, is_finite: fn(T::Native) -> bool) {
    let known = floats.as_primitive::<T>();
    if !known.values().iter().all(|it| is_finite(*it)) {
        let finite = |it| is_finite(it).then_some(it);
        *floats = Arc::new(known.unary_opt::<_, T>(finite));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A float that is written with so many digits is the time that is written.
    #[test]
    fn floats_are_the_times_that_are_written() {
        for (whole, digits) in [
            (1_772_359_205_i64, 6),
            (-1_772_359_205, 6),
            (300_000_000, 7),
            (50_000_000, 8),
            (4_000_000, 9),
            (0, 9),
            (-1, 9),
        ] {
            let unit = 10_i64.pow(9 - digits);
            for step in 0..1_000 {
                let fraction = step * 999_983 % 10_i64.pow(digits);
                let text = format!("{whole}.{fraction:0width$}", width = digits as usize);
                let expected =
                    whole * 1_000_000_000 + fraction * unit * if whole < 0 { -1 } else { 1 };
                assert_eq!(nanoseconds(text.parse().unwrap()), expected, "{text}");
            }
        }
    }
}
