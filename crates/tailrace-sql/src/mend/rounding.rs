//! `round` and `trunc` of floats that are too large for DataFusion's, which multiply by a power of ten first: beyond the
//! largest float that is infinite, and with many digits it is not exact, so that `round(40.709, 14)` is another number.

use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray, Int64Array, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl};

/// What `round` gives, or `trunc`, which cuts.
pub(super) fn invoke(
    known: &dyn ScalarUDFImpl,
    args: ScalarFunctionArgs,
    is_cut: bool,
) -> Result<ColumnarValue> {
    let given = args.args.clone();
    let rounded = known.invoke_with_args(args)?;
    match (rounded.data_type(), given.as_slice()) {
        (DataType::Float64, [value, places @ ..]) => {
            mended::<Float64Type>(value, places.first(), rounded, |value, places| {
                decimal(value, places, is_cut)
            })
        }
        (DataType::Float32, [value, places @ ..]) => {
            mended::<Float32Type>(value, places.first(), rounded, |value, places| {
                decimal(value.into(), places, is_cut) as f32
            })
        }
        _ => Ok(rounded),
    }
}

/// What was rounded, with the values in their places that have no digits to round, or none left.
fn mended<T>(
    value: &ColumnarValue,
    places: Option<&ColumnarValue>,
    rounded: ColumnarValue,
    exact: impl Fn(T::Native, i32) -> T::Native,
) -> Result<ColumnarValue>
where
    T: ArrowPrimitiveType,
    T::Native: Into<f64>,
{
    let (rows, is_scalar) = match &rounded {
        ColumnarValue::Array(array) => (array.len(), false),
        ColumnarValue::Scalar(_) => (1, true),
    };
    let array = rounded.to_array(rows)?;
    let values = cast(&value.to_array(rows)?, &T::DATA_TYPE)?;
    let places: ArrayRef = match places {
        Some(places) => cast(&places.to_array(rows)?, &DataType::Int64)?,
        None => Arc::new(Int64Array::from_value(0, rows)),
    };
    let (values, places) = (
        values.as_primitive::<T>(),
        places.as_primitive::<Int64Type>(),
    );
    let rows = array.as_primitive::<T>().iter().zip(values).zip(places);
    let all = rows.map(|((rounded, value), places)| {
        let (rounded, value) = (rounded?, value?);
        Some(one(value, places.unwrap_or(0), rounded, &exact))
    });
    let mended: ArrayRef = Arc::new(all.collect::<PrimitiveArray<T>>());
    Ok(match is_scalar {
        true => ColumnarValue::Scalar(ScalarValue::try_from_array(&mended, 0)?),
        false => ColumnarValue::Array(mended),
    })
}

/// One value.
fn one<N>(value: N, places: i64, rounded: N, exact: &impl Fn(N, i32) -> N) -> N
where
    N: Copy + Into<f64>,
{
    /// Floats from here on are whole numbers, so that there is nothing to round behind the point.
    const WHOLE: f64 = 4_503_599_627_370_496.0;
    /// A float has no digits so far from the point.
    const PLACES_MAX: i64 = 1_100;
    /// Up to here, what is multiplied is rounded by less than a hundredth.
    const SCALED_MAX: f64 = (1_u64 << 45) as f64;
    let float: f64 = value.into();
    if !float.is_finite() || places >= 0 && float.abs() >= WHOLE {
        return value;
    }
    let places = places.clamp(-PLACES_MAX, PLACES_MAX) as i32;
    let is_exact = places >= 0 && float.abs() * 10_f64.powi(places) < SCALED_MAX;
    match places == 0 || is_exact {
        true => rounded,
        false => exact(value, places),
    }
}

/// By the digits that the float is written with; half is rounded away from zero.
fn decimal(value: f64, places: i32, is_cut: bool) -> f64 {
    let text = value.abs().to_string();
    let (whole, behind) = text.split_once('.').unwrap_or((&text, ""));
    let digits = [whole, behind].concat();
    let Ok(kept) = usize::try_from(whole.len() as i64 + i64::from(places)) else {
        return 0.0;
    };
    let (Some(first), Some(next)) = (digits.get(..kept), digits.as_bytes().get(kept)) else {
        // It has no digits there.
        return value;
    };
    let Ok(mut number) = first.parse::<u128>().or_else(|error| match first {
        "" => Ok(0),
        _ => Err(error),
    }) else {
        return value;
    };
    number += u128::from(!is_cut && *next >= b'5');
    let rounded = format!("{number}e{}", -places).parse();
    rounded.map_or(value, |rounded: f64| rounded.copysign(value))
}
