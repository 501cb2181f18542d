//! A time that is cast to a coarser unit, as in `t::timestamp(0)`, and one that becomes seconds by `to_unixtime`, is rounded down. Arrow rounds towards zero, which is up before 1970.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Expr, ExprSchemable, lit};

use super::casts::per_second;
use super::functions;

/// The cast, or `to_unixtime`, of what is truncated before.
pub(super) fn downwards(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (operand, to) = match &mut expr {
        Expr::Cast(cast) => (&mut *cast.expr, unit_of(cast.field.data_type())),
        Expr::TryCast(cast) => (&mut *cast.expr, unit_of(cast.field.data_type())),
        Expr::ScalarFunction(call) if call.func.name() == "to_unixtime" => {
            match call.args.as_mut_slice() {
                [time] => (time, Some(TimeUnit::Second)),
                _ => return Ok(Transformed::no(expr)),
            }
        }
        _ => return Ok(Transformed::no(expr)),
    };
    let Some(to) = to else {
        return Ok(Transformed::no(expr));
    };
    let unit = match to {
        TimeUnit::Second => "second",
        TimeUnit::Millisecond => "millisecond",
        TimeUnit::Microsecond => "microsecond",
        TimeUnit::Nanosecond => return Ok(Transformed::no(expr)),
    };
    let of = operand.get_type(schema).ok().and_then(|ty| unit_of(&ty));
    if of.is_none_or(|of| per_second(of) <= per_second(to)) {
        return Ok(Transformed::no(expr));
    }
    let time = std::mem::take(operand);
    *operand = functions::date_trunc().call(vec![lit(unit), time]);
    Ok(Transformed::yes(expr))
}

fn unit_of(ty: &DataType) -> Option<TimeUnit> {
    match ty {
        DataType::Timestamp(unit, _) => Some(*unit),
        _ => None,
    }
}
