//! A decimal that is cast to a float is the nearest one. Arrow divides two floats, of which one is rounded if there are many digits:
//! 1000 with twenty digits behind the point was 999.9999999999999.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Expr, ExprSchemable, cast};

/// Up to so many digits, and with up to so many behind the point, both floats are exact.
const DIGITS_MAX: u8 = 15;
const SCALE_MAX: i8 = 22;

/// The cast by way of the text.
pub(super) fn cast_as_text(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (operand, ty) = match &mut expr {
        Expr::Cast(cast) => (&mut cast.expr, cast.field.data_type()),
        Expr::TryCast(cast) => (&mut cast.expr, cast.field.data_type()),
        _ => return Ok(Transformed::no(expr)),
    };
    let has_many_digits = match operand.get_type(schema) {
        Ok(
            DataType::Decimal32(digits, scale)
            | DataType::Decimal64(digits, scale)
            | DataType::Decimal128(digits, scale)
            | DataType::Decimal256(digits, scale),
        ) => digits > DIGITS_MAX || scale.abs() > SCALE_MAX,
        _ => false,
    };
    if !ty.is_floating() || !has_many_digits {
        return Ok(Transformed::no(expr));
    }
    let decimal = std::mem::take(&mut **operand);
    **operand = cast(decimal, DataType::Utf8View);
    Ok(Transformed::yes(expr))
}
