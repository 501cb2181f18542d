//! A date and a part of a day are a time. DataFusion gives a date, and forgets the part.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, cast};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Plans the sum of a date and an interval that has a part of a day, and their difference.
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
            _ => return Ok(PlannerResult::Original(expr)),
        };
        let is_date = |expr: &Expr| {
            let ty = expr.get_type(schema);
            ty.is_ok_and(|ty| matches!(ty, DataType::Date32 | DataType::Date64))
        };
        let RawBinaryExpr { left, right, .. } = &expr;
        let (left, right) = if has_part_of_day(right) && is_date(left) {
            (time(left), right.clone())
        } else if op == Operator::Plus && has_part_of_day(left) && is_date(right) {
            (left.clone(), time(right))
        } else {
            return Ok(PlannerResult::Original(expr));
        };
        let (left, right) = (Box::new(left), Box::new(right));
        let sum = Expr::BinaryExpr(BinaryExpr { left, op, right });
        Ok(PlannerResult::Planned(sum))
    }
}

fn has_part_of_day(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(it)), _) => it.nanoseconds != 0,
        Expr::Literal(ScalarValue::IntervalDayTime(Some(it)), _) => it.milliseconds != 0,
        _ => false,
    }
}

fn time(date: &Expr) -> Expr {
    cast(
        date.clone(),
        DataType::Timestamp(TimeUnit::Nanosecond, None),
    )
}
