//! A float that is cast to a time is seconds, as a whole number is. Arrow takes it for nanoseconds.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::functions::math::expr_fn::round;
use datafusion::logical_expr::{Expr, ExprSchemable, cast, lit, try_cast};

const MICROSECONDS_PER_SECOND: f64 = 1e6;

/// The cast of a float as one of whole microseconds, which is as exact as a float of today's seconds.
pub(super) fn cast_as_seconds(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (operand, ty, is_try) = match &expr {
        Expr::Cast(cast) => (&cast.expr, cast.field.data_type(), false),
        Expr::TryCast(cast) => (&cast.expr, cast.field.data_type(), true),
        _ => return Ok(Transformed::no(expr)),
    };
    let is_float = || operand.get_type(schema).is_ok_and(|ty| ty.is_floating());
    if !matches!(ty, DataType::Timestamp(..)) || !is_float() {
        return Ok(Transformed::no(expr));
    }
    let of = |expr, ty| match is_try {
        true => try_cast(expr, ty),
        false => cast(expr, ty),
    };
    let seconds = cast((**operand).clone(), DataType::Float64);
    let microseconds = round(vec![seconds * lit(MICROSECONDS_PER_SECOND)]);
    let whole = of(microseconds, DataType::Int64);
    let time = of(whole, DataType::Timestamp(TimeUnit::Microsecond, None));
    Ok(Transformed::yes(of(time, ty.clone())))
}
