//! Times of day of moments, as `timestamp::time > '22:00'` asks for. DataFusion 55 casts the least and the greatest moment of a row group in the
//! same way, though the times of day between them are not between theirs, and leaves row groups out that have such rows. It does not look
//! behind a function.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use tailrace_sql::EachExpr;

/// The rule that puts a function around such casts.
pub(super) fn rule() -> EachExpr {
    EachExpr::new("clock_times", of_expr)
}

fn of_expr(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (operand, to) = match &expr {
        Expr::Cast(cast) => (&cast.expr, cast.field.data_type()),
        Expr::TryCast(cast) => (&cast.expr, cast.field.data_type()),
        _ => return Ok(Transformed::no(expr)),
    };
    let is_time = matches!(to, DataType::Time32(_) | DataType::Time64(_));
    let from = operand.get_type(schema);
    if !is_time || !from.is_ok_and(|from| matches!(from, DataType::Timestamp(..))) {
        return Ok(Transformed::no(expr));
    }
    let function = ScalarUDF::new_from_impl(ClockTime(Signature::any(1, Volatility::Immutable)));
    Ok(Transformed::yes(function.call(vec![expr])))
}

/// Gives the time of day that it is given.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ClockTime(Signature);

impl ScalarUDFImpl for ClockTime {
    fn name(&self) -> &str {
        "clock_time"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(args.args[0].clone())
    }
}
