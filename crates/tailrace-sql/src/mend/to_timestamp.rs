//! `to_timestamp` and its like with the type that they announce: of texts DataFusion 55 gives times without the zone, which nothing can be done with.
//! And what is not a number is no time, where it gives the year 1970.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::Float64Type;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl};

/// What a call gives, in the type that it announces.
pub(super) fn invoke(
    known: &dyn ScalarUDFImpl,
    mut args: ScalarFunctionArgs,
) -> Result<ColumnarValue> {
    if let Some(seconds) = args.args.first_mut() {
        without_nan(seconds);
    }
    let ty = args.return_field.data_type().clone();
    Ok(match known.invoke_with_args(args)? {
        times if times.data_type() == ty => times,
        ColumnarValue::Array(times) => ColumnarValue::Array(cast(&times, &ty)?),
        ColumnarValue::Scalar(time) => ColumnarValue::Scalar(time.cast_to(&ty)?),
    })
}

fn without_nan(seconds: &mut ColumnarValue) {
    match seconds {
        ColumnarValue::Scalar(ScalarValue::Float64(it)) => *it = it.filter(|it| !it.is_nan()),
        ColumnarValue::Array(array) => {
            if let Some(floats) = array.as_primitive_opt::<Float64Type>()
                && floats.values().iter().any(|it| it.is_nan())
            {
                let known = |it: f64| (!it.is_nan()).then_some(it);
                *array = Arc::new(floats.unary_opt::<_, Float64Type>(known));
            }
        }
        ColumnarValue::Scalar(_) => {}
    }
}
