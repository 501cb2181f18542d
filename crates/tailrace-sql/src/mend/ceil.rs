//! `ceil` and `floor` of decimals: the next whole number may have one digit more, as 100 above 99.5, for which DataFusion 55 has no room.

use std::sync::Arc;

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl};

/// The type with one digit more, if it has digits behind the point.
pub(super) fn wider(ty: &DataType) -> DataType {
    match ty {
        DataType::Decimal128(digits, scale) if *scale > 0 && *digits < DECIMAL128_MAX_PRECISION => {
            DataType::Decimal128(digits + 1, *scale)
        }
        other => other.clone(),
    }
}

/// The same field, of the wider type.
pub(super) fn field(known: &FieldRef) -> FieldRef {
    let ty = wider(known.data_type());
    Arc::new(known.as_ref().clone().with_data_type(ty))
}

pub(super) fn invoke(
    known: &dyn ScalarUDFImpl,
    mut args: ScalarFunctionArgs,
) -> Result<ColumnarValue> {
    let ty = args.return_field.data_type();
    if matches!(ty, DataType::Decimal128(..)) {
        for number in &mut args.args {
            *number = number.cast_to(ty, None)?;
        }
    }
    known.invoke_with_args(args)
}
