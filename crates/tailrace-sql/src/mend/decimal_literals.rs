//! Numbers with a point that become decimals, as `548.44::decimal(30, 15)` does and as those in VALUES do beside decimals. They are planned as floats, which
//! Arrow multiplies: that was 548.440000000000057.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::Expr;

use super::written_decimal;

/// The cast of the decimal that is written.
pub(super) fn as_written(mut expr: Expr, _: &DFSchema) -> Result<Transformed<Expr>> {
    let (operand, ty) = match &mut expr {
        Expr::Cast(cast) => (&mut cast.expr, cast.field.data_type()),
        Expr::TryCast(cast) => (&mut cast.expr, cast.field.data_type()),
        _ => return Ok(Transformed::no(expr)),
    };
    let written = written_decimal(operand).filter(|_| ty.is_decimal());
    let is_written = written.is_some();
    if let Some(written) = written {
        **operand = Expr::Literal(written, None);
    }
    Ok(Transformed::new_transformed(expr, is_written))
}
