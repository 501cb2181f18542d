//! `to_timestamp` and its like with the type that they announce: of texts DataFusion 55 gives times without the zone, which nothing can be done with.
//! And what is no finite number is no time, where it gives the year 1970 or the last time that there is.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
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
