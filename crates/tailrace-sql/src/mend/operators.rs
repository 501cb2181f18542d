//! Operators whose result DataFusion gives too small a type. A date and an interval are a date for it, which forgets hours; and what counts
//! (`row_number()`, `array_length`) is unsigned, so that the difference of two counts could not be negative.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, cast};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Plans sums and differences.
#[derive(Debug)]
pub(super) struct Planner;

impl ExprPlanner for Planner {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let op = match expr.op {
            BinaryOperator::Plus => Operator::Plus,
            BinaryOperator::Minus => Operator::Minus,
            BinaryOperator::Multiply => Operator::Multiply,
            BinaryOperator::Divide => Operator::Divide,
            BinaryOperator::Modulo => Operator::Modulo,
            _ => return Ok(PlannerResult::Original(expr)),
        };
        let RawBinaryExpr { left, right, .. } = &expr;
        let (Ok(of_left), Ok(of_right)) = (left.get_type(schema), right.get_type(schema)) else {
            return Ok(PlannerResult::Original(expr));
        };
        let (left, right) = match (&of_left, &of_right) {
            // Not a decimal, whose quotient would not be whole.
            (DataType::UInt64, DataType::Int64) if is_count(left) => (signed(left), right.clone()),
            (DataType::Int64, DataType::UInt64) if is_count(right) => (left.clone(), signed(right)),
            (DataType::Date32 | DataType::Date64, DataType::Interval(_))
                if has_part(right) && is_sum(op) =>
            {
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
}

fn is_sum(op: Operator) -> bool {
    matches!(op, Operator::Plus | Operator::Minus)
}

/// `row_number()` and its like.
fn is_count(expr: &Expr) -> bool {
    matches!(expr, Expr::WindowFunction(_))
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

fn signed(count: &Expr) -> Expr {
    cast(count.clone(), DataType::Int64)
}
