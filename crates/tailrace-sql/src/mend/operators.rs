//! Operators whose result or operands DataFusion gives too small a type. A date and an interval are a date for it, which forgets hours; and what counts
//! (`array_length`) is unsigned, so that the difference of two counts could not be negative. The numbers of rows are signed from the
//! start: with a whole number they would be decimals, whose quotient is not whole. A float that is compared with a decimal would have 15 digits
//! before and behind the point: it stays a float, unless it is a literal with so few.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr, RawWindowExpr};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, cast};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::interval_times;

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
                return Ok(times.map_or(PlannerResult::Original(expr), PlannerResult::Planned));
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
                if !is_sum
                    && decimal.is_decimal()
                    && float.is_floating()
                    && !is_exact(decimal, left)
                    && !is_exact(decimal, right) =>
            {
                (float64(left), float64(right))
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

    fn plan_window(&self, window: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
        const NUMBERS: [&str; 4] = ["row_number", "rank", "dense_rank", "ntile"];
        if !NUMBERS.contains(&window.func_def.name()) {
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

/// In microseconds, which have the years of dates that mean "never".
fn time(date: &Expr) -> Expr {
    cast(
        date.clone(),
        DataType::Timestamp(TimeUnit::Microsecond, None),
    )
}

/// Whether this is a literal float that DataFusion makes the same decimal of: both have at most 15 digits behind the point, and it has as
/// many before it.
fn is_exact(decimal: &DataType, float: &Expr) -> bool {
    let has_few = match decimal {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => *scale <= 15,
        _ => false,
    };
    match float {
        Expr::Negative(float) => is_exact(decimal, float),
        Expr::Literal(ScalarValue::Float64(Some(float)), _) => {
            let text = float.abs().to_string();
            let (whole, behind) = text.split_once('.').unwrap_or((&text, ""));
            has_few && whole.len() <= 15 && behind.len() <= 15
        }
        _ => false,
    }
}

fn float64(number: &Expr) -> Expr {
    cast(number.clone(), DataType::Float64)
}

fn signed(count: &Expr) -> Expr {
    cast(count.clone(), DataType::Int64)
}
