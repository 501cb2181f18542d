//! `round` and `trunc` of floats that are too large for DataFusion's, which multiply by a power of ten first: beyond the
//! largest float that is infinite, and beyond 2^53 it is not exact.

use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray, Int64Array, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Float32Type, Float64Type, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions::math as functions;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

/// The functions, in the place of DataFusion's.
pub(super) fn functions() -> [ScalarUDF; 2] {
    [functions::round(), functions::trunc()]
        .map(|known| ScalarUDF::new_from_impl(Rounding { known }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Rounding {
    known: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for Rounding {
    fn name(&self) -> &str {
        self.known.name()
    }

    fn signature(&self) -> &Signature {
        self.known.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.known.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.known.return_field_from_args(args)
    }

    fn is_strict(&self) -> bool {
        self.known.inner().is_strict()
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.known.output_ordering(inputs)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let given = args.args.clone();
        let rounded = self.known.invoke_with_args(args)?;
        match (rounded.data_type(), given.as_slice()) {
            (DataType::Float64, [value, places @ ..]) => {
                mended::<Float64Type>(value, places.first(), rounded)
            }
            (DataType::Float32, [value, places @ ..]) => {
                mended::<Float32Type>(value, places.first(), rounded)
            }
            _ => Ok(rounded),
        }
    }
}

/// What was rounded, with the values in their places that have no digits to round, or none left.
fn mended<T>(
    value: &ColumnarValue,
    places: Option<&ColumnarValue>,
    rounded: ColumnarValue,
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
        Some(one(value, places.unwrap_or(0), rounded))
    });
    let mended: ArrayRef = Arc::new(all.collect::<PrimitiveArray<T>>());
    Ok(match is_scalar {
        true => ColumnarValue::Scalar(ScalarValue::try_from_array(&mended, 0)?),
        false => ColumnarValue::Array(mended),
    })
}

/// One value.
fn one<N: Copy + Default + Into<f64>>(value: N, places: i64, rounded: N) -> N {
    /// Floats from here on are whole numbers, so that there is nothing to round behind the point.
    const WHOLE: f64 = 4_503_599_627_370_496.0;
    let float: f64 = value.into();
    if !float.is_finite() {
        return rounded;
    }
    if places >= 0 && float.abs() >= WHOLE {
        return value;
    }
    match rounded.into().is_finite() {
        true => rounded,
        false if places > 0 => value,
        // So many places before the point are more than there are.
        false => N::default(),
    }
}
