//! Multiples and parts of intervals, which DataFusion has not: `k * INTERVAL '1 day'`, `INTERVAL '1 hour' / 2`. By a whole number each part is
//! multiplied on its own. Otherwise what is less than a month becomes days, and what is less than a day becomes nanoseconds, as
//! PostgreSQL has it.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::{cast, try_binary};
use arrow::datatypes::{
    DataType, Float64Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
};
use arrow::error::ArrowError;
use datafusion::common::{Result, ScalarValue, exec_err, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
const DAYS_PER_MONTH: f64 = 30.0;
const MICROSECONDS_PER_DAY: f64 = 86_400e6;

/// The multiple or part of an interval that an operator between values of these types means.
pub(super) fn planned(
    op: &BinaryOperator,
    (left, of_left): (&Expr, &DataType),
    (right, of_right): (&Expr, &DataType),
) -> Option<Expr> {
    let is_interval = |ty: &DataType| matches!(ty, DataType::Interval(_));
    let is_part = *op == BinaryOperator::Divide;
    let (interval, number) = match op {
        BinaryOperator::Multiply | BinaryOperator::Divide
            if is_interval(of_left) && of_right.is_numeric() =>
        {
            (left, right)
        }
        BinaryOperator::Multiply if is_interval(of_right) && of_left.is_numeric() => (right, left),
        _ => return None,
    };
    let signature = Signature::any(2, Volatility::Immutable);
    let function = ScalarUDF::new_from_impl(Times { signature, is_part });
    Some(function.call(vec![interval.clone(), number.clone()]))
}

/// An interval so many times, or the part of it that it is divided into.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Times {
    signature: Signature,
    is_part: bool,
}

impl ScalarUDFImpl for Times {
    fn name(&self) -> &str {
        match self.is_part {
            true => "interval_part",
            false => "interval_times",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(INTERVAL)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [interval, number] = &args.args[..] else {
            return internal_err!("{} has two arguments", self.name());
        };
        let are_scalars = args
            .args
            .iter()
            .all(|it| matches!(it, ColumnarValue::Scalar(_)));
        let rows = if are_scalars { 1 } else { args.number_rows };
        let intervals = cast(&interval.to_array(rows)?, &INTERVAL)?;
        let numbers = number.to_array(rows)?;
        let Some(intervals) = intervals.as_primitive_opt::<IntervalMonthDayNanoType>() else {
            return exec_err!("{} is no interval", intervals.data_type());
        };
        let is_whole = numbers.data_type().is_integer() && *numbers.data_type() != DataType::UInt64;
        let found: PrimitiveArray<IntervalMonthDayNanoType> = if is_whole && !self.is_part {
            let numbers = cast(&numbers, &DataType::Int64)?;
            try_binary(intervals, numbers.as_primitive::<Int64Type>(), whole)?
        } else {
            let numbers = cast(&numbers, &DataType::Float64)?;
            let numbers = numbers.as_primitive::<Float64Type>();
            match self.is_part {
                true => try_binary(intervals, numbers, part)?,
                false => try_binary(intervals, numbers, |of, by| scaled(of, |part| part * by))?,
            }
        };
        let found: ArrayRef = Arc::new(found);
        Ok(match are_scalars {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?),
            false => ColumnarValue::Array(found),
        })
    }
}

fn beyond() -> ArrowError {
    ArrowError::ComputeError("a multiple of an interval is beyond its type".to_owned())
}

fn whole(of: IntervalMonthDayNano, by: i64) -> Result<IntervalMonthDayNano, ArrowError> {
    let small = |part: i32| i32::try_from(i64::from(part).checked_mul(by)?).ok();
    let parts = small(of.months).zip(small(of.days));
    let parts = parts.zip(of.nanoseconds.checked_mul(by));
    let ((months, days), nanoseconds) = parts.ok_or_else(beyond)?;
    Ok(IntervalMonthDayNano::new(months, days, nanoseconds))
}

fn part(of: IntervalMonthDayNano, by: f64) -> Result<IntervalMonthDayNano, ArrowError> {
    match by {
        0.0 => Err(ArrowError::DivideByZero),
        by => scaled(of, |part| part / by),
    }
}

/// See `interval_mul` of PostgreSQL.
fn scaled(
    of: IntervalMonthDayNano,
    scale: impl Fn(f64) -> f64,
) -> Result<IntervalMonthDayNano, ArrowError> {
    let months = scale(f64::from(of.months));
    let days_of_month = rounded(months.fract() * DAYS_PER_MONTH);
    let days = scale(f64::from(of.days));
    // To a microsecond, as PostgreSQL has them: a float is a little beside the part of a day.
    let microseconds = ((days.fract() + days_of_month.fract()) * MICROSECONDS_PER_DAY).round();
    let days_of_parts = (microseconds / MICROSECONDS_PER_DAY).trunc();
    let microseconds = microseconds - days_of_parts * MICROSECONDS_PER_DAY;
    let nanoseconds = scale(of.nanoseconds as f64) + microseconds * 1000.0;
    let days = days.trunc() + days_of_month.trunc() + days_of_parts;
    let is_within = |part: f64, most: f64| part.abs() < most;
    let most_small = f64::from(i32::MAX);
    match is_within(months, most_small)
        && is_within(days, most_small)
        && is_within(nanoseconds, i64::MAX as f64)
    {
        true => Ok(IntervalMonthDayNano::new(
            months as i32,
            days as i32,
            nanoseconds.round() as i64,
        )),
        false => Err(beyond()),
    }
}

/// Days without what a float adds to them.
fn rounded(days: f64) -> f64 {
    const PARTS: f64 = 1e9;
    (days * PARTS).round() / PARTS
}
