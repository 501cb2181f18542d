//! `to_timestamp` and its like with the type that they announce: of texts DataFusion 55 gives times without the zone, which nothing can be done with.

use arrow::compute::cast;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl};

/// What a call gives, in the type that it announces.
pub(super) fn invoke(known: &dyn ScalarUDFImpl, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
    let ty = args.return_field.data_type().clone();
    Ok(match known.invoke_with_args(args)? {
        times if times.data_type() == ty => times,
        ColumnarValue::Array(times) => ColumnarValue::Array(cast(&times, &ty)?),
        ColumnarValue::Scalar(time) => ColumnarValue::Scalar(time.cast_to(&ty)?),
    })
}
