//! What counts, as `array_length`. DataFusion 55 gives unsigned numbers, which become decimals beside a signed one: `json_length(l) / 2` would not be
//! whole, and a difference could not be negative.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl};

/// The functions that count.
pub(super) const FUNCTIONS: [&str; 7] = [
    "array_dims",
    "array_length",
    "array_ndims",
    "array_position",
    "array_positions",
    "cardinality",
    "json_length",
];

/// The type of signed numbers, or of a list of them.
pub(super) fn signed(ty: &DataType) -> DataType {
    match ty {
        DataType::UInt64 => DataType::Int64,
        DataType::List(of) => DataType::List(field(of)),
        other => other.clone(),
    }
}

/// The same field, of signed numbers.
pub(super) fn field(known: &FieldRef) -> FieldRef {
    let ty = signed(known.data_type());
    Arc::new(known.as_ref().clone().with_data_type(ty))
}

pub(super) fn invoke(known: &dyn ScalarUDFImpl, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
    let ty = args.return_field.data_type().clone();
    known.invoke_with_args(args)?.cast_to(&ty, None)
}
