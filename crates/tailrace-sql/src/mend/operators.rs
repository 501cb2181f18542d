//! Operators whose result or operands DataFusion gives the wrong type. A date and an interval are a date for it, which forgets hours. An unsigned
//! number of 64 bits and a signed one are decimals, whose quotient is not whole, and the difference of two unsigned ones could not be negative.
//! So the numbers of rows are signed from the start, as are counts. A float that is compared with a decimal would have 15 digits before and
//! behind the point: it stays a float, unless it is written as a decimal (see [`written_decimal`](mod@super::written_decimal)). And times of day of several units are
//! not compared at all.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::planner::{
    ExprPlanner, PlannerResult, RawAggregateExpr, RawBinaryExpr, RawWindowExpr,
};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, cast, lit};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::{interval_times, written_decimal};

/// As many as an unsigned number of 64 bits has.
const WIDE_DIGITS: u8 = 20;

/// The aggregates that count without a sign.
const COUNTS: [&str; 2] = ["approx_distinct", "regr_count"];

/// Plans sums, differences, multiples of intervals and numbers of rows.
#[derive(Debug)]
pub(super) struct Planner;

impl ExprPlanner for Planner {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let RawBinaryExpr { left, right, .. } = &expr;
        let (Ok(of_left), Ok(of_right)) = (left.get_type(schema), right.get_type(schema)) else {
            return Ok(PlannerResult::Original(expr));
        };
        let op = match expr.op {
            BinaryOperator::Multiply | BinaryOperator::Divide => {
                let times = interval_times::planned(&expr.op, (left, &of_left), (right, &of_right));
                let planned = times.or_else(|| {
                    let is_quotient = matches!(expr.op, BinaryOperator::Divide);
                    is_quotient.then(|| quotient((left, &of_left), (right, &of_right)))?
                });
                return Ok(planned.map_or(PlannerResult::Original(expr), PlannerResult::Planned));
            }
            BinaryOperator::Plus => Operator::Plus,
            BinaryOperator::Minus => Operator::Minus,
            BinaryOperator::Eq => Operator::Eq,
            BinaryOperator::NotEq => Operator::NotEq,
            BinaryOperator::Lt => Operator::Lt,
            BinaryOperator::LtEq => Operator::LtEq,
            BinaryOperator::Gt => Operator::Gt,
            BinaryOperator::GtEq => Operator::GtEq,
            _ => return Ok(PlannerResult::Original(expr)),
        };
        let is_sum = matches!(op, Operator::Plus | Operator::Minus);
        let (left, right) = match (&of_left, &of_right) {
            (decimal, float) | (float, decimal)
                if !is_sum && decimal.is_decimal() && float.is_floating() =>
            {
                let written = written_decimal::sides((left, &of_left), (right, &of_right));
                written.unwrap_or_else(|| (float64(left), float64(right)))
            }
            (one, other) if !is_sum && is_time(one) && is_time(other) && one != other => {
                (clock_time(left), clock_time(right))
            }
            _ if !is_sum => return Ok(PlannerResult::Original(expr)),
            (DataType::Date32 | DataType::Date64, DataType::Interval(_)) if has_part(right) => {
                (time(left), right.clone())
            }
            (DataType::Interval(_), DataType::Date32 | DataType::Date64)
                if has_part(left) && op == Operator::Plus =>
            {
                (left.clone(), time(right))
            }
            (DataType::UInt64, DataType::UInt64) if op == Operator::Minus => {
                (signed(left), signed(right))
            }
            _ => return Ok(PlannerResult::Original(expr)),
        };
        let (left, right) = (Box::new(left), Box::new(right));
        let sum = Expr::BinaryExpr(BinaryExpr { left, op, right });
        Ok(PlannerResult::Planned(sum))
    }

    fn plan_aggregate(
        &self,
        aggregate: RawAggregateExpr,
    ) -> Result<PlannerResult<RawAggregateExpr>> {
        if !COUNTS.contains(&aggregate.func.name()) {
            return Ok(PlannerResult::Original(aggregate));
        }
        let count = AggregateFunction::new_udf(
            aggregate.func,
            aggregate.args,
            aggregate.distinct,
            aggregate.filter,
            aggregate.order_by,
            aggregate.null_treatment,
        );
        let count = Expr::AggregateFunction(count);
        Ok(PlannerResult::Planned(signed(&count)))
    }

    fn plan_window(&self, window: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
        const NUMBERS: [&str; 4] = ["row_number", "rank", "dense_rank", "ntile"];
        let name = window.func_def.name();
        if !NUMBERS.contains(&name) && !COUNTS.contains(&name) {
            return Ok(PlannerResult::Original(window));
        }
        let number = WindowFunction {
            fun: window.func_def,
            params: WindowFunctionParams {
                args: window.args,
                partition_by: window.partition_by,
                order_by: window.order_by,
                window_frame: window.window_frame,
                filter: window.filter,
                null_treatment: window.null_treatment,
                distinct: window.distinct,
            },
        };
        let number = Expr::WindowFunction(Box::new(number));
        Ok(PlannerResult::Planned(signed(&number)))
    }
}

/// Whether an interval may have a part of a day.
fn has_part(interval: &Expr) -> bool {
    match interval {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(it), _) => {
            it.is_some_and(|it| it.nanoseconds != 0)
        }
        Expr::Literal(ScalarValue::IntervalDayTime(it), _) => {
            it.is_some_and(|it| it.milliseconds != 0)
        }
        Expr::Literal(ScalarValue::IntervalYearMonth(_), _) => false,
        _ => true,
    }
}

/// The whole quotient of an unsigned number of 64 bits and a signed one.
fn quotient(left: (&Expr, &DataType), right: (&Expr, &DataType)) -> Option<Expr> {
    let is_wide = |ty: &DataType| *ty == DataType::UInt64;
    let is_mixed = is_wide(left.1) && right.1.is_signed_integer()
        || left.1.is_signed_integer() && is_wide(right.1);
    if !is_mixed {
        return None;
    }
    let unsigned = |of: &Expr| match of {
        Expr::Literal(ScalarValue::Int64(Some(it)), _) => u64::try_from(*it).ok(),
        _ => None,
    };
    if let Some(divisor) = unsigned(right.0) {
        return Some(left.0.clone() / lit(divisor));
    }
    if let Some(dividend) = unsigned(left.0) {
        return Some(lit(dividend) / right.0.clone());
    }
    let [left, right] =
        [left.0, right.0].map(|it| cast(it.clone(), DataType::Decimal128(WIDE_DIGITS, 0)));
    let whole = super::functions::trunc().call(vec![left / right]);
    Some(cast(whole, DataType::Decimal128(WIDE_DIGITS, 0)))
}

/// In microseconds, which have the years of dates that mean "never".
fn time(date: &Expr) -> Expr {
    cast(
        date.clone(),
        DataType::Timestamp(TimeUnit::Microsecond, None),
    )
}

fn is_time(ty: &DataType) -> bool {
    matches!(ty, DataType::Time32(_) | DataType::Time64(_))
}

/// In nanoseconds, which all times of day have.
fn clock_time(time: &Expr) -> Expr {
    cast(time.clone(), DataType::Time64(TimeUnit::Nanosecond))
}

fn float64(number: &Expr) -> Expr {
    cast(number.clone(), DataType::Float64)
}

fn signed(count: &Expr) -> Expr {
    cast(count.clone(), DataType::Int64)
}
