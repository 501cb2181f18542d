//! Intervals are compared by their length, as PostgreSQL has it: a month has 30 days, a day 24 hours. Arrow compares months first, then
//! days, then nanoseconds, so that 25 hours are less than a day.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array};
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, IntervalMonthDayNano, IntervalMonthDayNanoType,
    IntervalUnit,
};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::{Between, InList, ScalarFunction, Sort as SortExpr};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Sort, Volatility,
};
use datafusion::optimizer::AnalyzerRule;

use crate::tree::map_steps;

use super::is_comparison;

const NANOSECONDS_PER_DAY: i128 = 86_400_000_000_000;
const DAYS_PER_MONTH: i128 = 30;
const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// A comparison of intervals as one of their lengths.
pub(super) fn compared(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_interval = |expr: &Expr| expr.get_type(schema).is_ok_and(|ty| ty == INTERVAL);
    let of = |expr: Box<Expr>| Box::new(length(*expr));
    let mended = match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if is_comparison(op) && is_interval(&left) && is_interval(&right) =>
        {
            let (left, right) = (of(left), of(right));
            Expr::BinaryExpr(BinaryExpr { left, op, right })
        }
        Expr::Between(between) if is_interval(&between.expr) => Expr::Between(Between {
            expr: of(between.expr),
            negated: between.negated,
            low: of(between.low),
            high: of(between.high),
        }),
        Expr::InList(list) if is_interval(&list.expr) => Expr::InList(InList {
            expr: of(list.expr),
            list: list.list.into_iter().map(length).collect(),
            negated: list.negated,
        }),
        other => return Ok(Transformed::no(other)),
    };
    Ok(Transformed::yes(mended))
}

/// The keys of an order, those that are intervals by their lengths, and whether there is one.
fn ordered(keys: Vec<SortExpr>, schema: &DFSchema) -> (Vec<SortExpr>, bool) {
    let mut is_mended = false;
    let keys = keys.into_iter().map(|mut key| {
        if key.expr.get_type(schema).is_ok_and(|ty| ty == INTERVAL) {
            is_mended = true;
            key.expr = length(key.expr);
        }
        key
    });
    (keys.collect(), is_mended)
}

/// The rule that orders rows by the length of intervals.
#[derive(Debug)]
pub(super) struct Ordered;

impl AnalyzerRule for Ordered {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        map_steps(plan, &mut |step| {
            let LogicalPlan::Sort(sort) = step else {
                return Ok(Transformed::no(step));
            };
            let schema = merge_schema(&[&*sort.input]);
            let (expr, is_mended) = ordered(sort.expr, &schema);
            let sort = LogicalPlan::Sort(Sort { expr, ..sort });
            Ok(Transformed::new_transformed(sort, is_mended))
        })
    }

    fn name(&self) -> &str {
        "ordered_intervals"
    }
}

fn length(interval: Expr) -> Expr {
    let signature = Signature::any(1, Volatility::Immutable);
    let function = Arc::new(ScalarUDF::new_from_impl(Length { signature }));
    Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![interval]))
}

/// The length of an interval in nanoseconds.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Length {
    signature: Signature,
}

const LENGTH: DataType = DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0);

impl ScalarUDFImpl for Length {
    fn name(&self) -> &str {
        "interval_length"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(LENGTH)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [interval] = &args.args[..] else {
            return internal_err!("{} has one argument", self.name());
        };
        // NULL has a type of its own.
        let array = interval.to_array(args.number_rows)?;
        let intervals = arrow::compute::cast(&array, &INTERVAL)?;
        let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
        let lengths: Decimal128Array = intervals.unary(length_of);
        let lengths: ArrayRef = Arc::new(lengths.with_data_type(LENGTH));
        Ok(match interval {
            ColumnarValue::Scalar(_) if !lengths.is_empty() => {
                ColumnarValue::Scalar(ScalarValue::try_from_array(&lengths, 0)?)
            }
            _ => ColumnarValue::Array(lengths),
        })
    }
}

fn length_of(interval: IntervalMonthDayNano) -> i128 {
    let days = i128::from(interval.months) * DAYS_PER_MONTH + i128::from(interval.days);
    days * NANOSECONDS_PER_DAY + i128::from(interval.nanoseconds)
}
