//! Distinct floats of an aggregate. DataFusion 55 tells them apart by their bits, so that 0.0 and -0.0 are two values there, where groups and
//! comparisons have one. What is added to 0.0 is never -0.0.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::{Expr, ExprSchemable};
use tailrace_sql::EachExpr;

/// The rule that gives such aggregates one zero.
pub(super) fn rule() -> EachExpr {
    EachExpr::new("one_zero", of_expr)
}

fn of_expr(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (args, order_by) = match &mut expr {
        Expr::AggregateFunction(it) if it.params.distinct => {
            (&mut it.params.args, Some(&mut it.params.order_by))
        }
        Expr::WindowFunction(it) if it.params.distinct => (&mut it.params.args, None),
        _ => return Ok(Transformed::no(expr)),
    };
    let mut is_other = false;
    // DataFusion wants values in an order that one of the arguments gives.
    let keys = order_by.into_iter().flatten();
    for value in args.iter_mut().chain(keys.map(|Sort { expr, .. }| expr)) {
        let ty = value.get_type(schema)?;
        if ty.is_floating() && !matches!(value, Expr::Literal(..)) {
            *value = std::mem::take(value) + zero(&ty)?;
            is_other = true;
        }
    }
    Ok(Transformed::new_transformed(expr, is_other))
}

fn zero(ty: &DataType) -> Result<Expr> {
    Ok(Expr::Literal(ScalarValue::new_zero(ty)?, None))
}
