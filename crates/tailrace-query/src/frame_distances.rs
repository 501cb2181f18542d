//! Frames of windows with distances: `RANGE BETWEEN 2 PRECEDING AND CURRENT ROW`. DataFusion 55 computes the bounds of a frame in the type of
//! the key. What is beyond the type is then 0 or the end of the rows, and a part of the distance that the type does not have is left
//! out. So keys get a type that has room for both. Distances of rows and groups wrap around, which no number of rows needs.

mod room;

use std::sync::Arc;

use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, IntervalUnit, TimeUnit,
};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Sort, WindowFunctionParams};
use datafusion::logical_expr::utils::generate_sort_key;
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, Window, WindowFrame, WindowFrameBound, WindowFrameUnits, cast,
};
use datafusion::optimizer::AnalyzerRule;
use tailrace_sql::EachExpr;
use tailrace_sql::tree::map_steps_of_other_types;

/// No table has as many rows, and twice as many still are a number.
const ROWS_MAX: u64 = 1 << 60;
/// Digits of the largest integer.
const DIGITS_OF_INTEGERS: u8 = 20;
const NANOSECONDS_OF_DAY: i64 = 86_400_000_000_000;

/// The keys that rows are sorted by, each with whether it is one of a partition.
type Order = Vec<(Sort, bool)>;

/// Gives the keys of frames types that have room for the distances, and keeps counts within the rows that there can be.
pub(crate) fn with_distances(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan =
        EachExpr::new("frame_distances", of_expr).analyze(plan, &ConfigOptions::default())?;
    map_steps_of_other_types(plan, &mut |step| match step {
        LogicalPlan::Window(window) => apart(window),
        other => Ok(Transformed::no(other)),
    })
}

/// A step for each order: windows of one step had the same before some of their keys got another type.
fn apart(window: Window) -> Result<Transformed<LogicalPlan>> {
    let mut groups: Vec<(Order, Vec<Expr>)> = Vec::new();
    for expr in &window.window_expr {
        let order = match expr.clone().unalias() {
            Expr::WindowFunction(called) => {
                let WindowFunctionParams {
                    partition_by,
                    order_by,
                    ..
                } = &called.params;
                generate_sort_key(partition_by, order_by)?
            }
            _ => Vec::new(),
        };
        match groups.iter_mut().find(|(known, _)| *known == order) {
            Some((_, exprs)) => exprs.push(expr.clone()),
            None => groups.push((order, vec![expr.clone()])),
        }
    }
    if groups.len() < 2 {
        return Ok(Transformed::no(LogicalPlan::Window(window)));
    }
    let mut step = window.input;
    for (_, exprs) in groups {
        step = Arc::new(LogicalPlan::Window(Window::try_new(exprs, step)?));
    }
    Ok(Transformed::yes(Arc::unwrap_or_clone(step)))
}

fn of_expr(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::WindowFunction(window) = &mut expr else {
        return Ok(Transformed::no(expr));
    };
    let frame = &mut window.params.window_frame;
    let bounds = [&frame.start_bound, &frame.end_bound];
    if frame.units != WindowFrameUnits::Range {
        if !bounds.into_iter().any(is_beyond_rows) {
            return Ok(Transformed::no(expr));
        }
        let [start, end] = bounds.map(within_rows);
        *frame = WindowFrame::new_bounds(frame.units, start, end);
        return Ok(Transformed::yes(expr));
    }
    let distances: Vec<&str> = bounds.into_iter().filter_map(distance).collect();
    let [key] = &mut window.params.order_by[..] else {
        return Ok(Transformed::no(expr));
    };
    let ty = key.expr.get_type(schema)?;
    if let Some(reach) = reach(&ty, &distances) {
        let integer = key.expr.clone();
        key.expr = match ty {
            DataType::Int64 => room::checked(integer, reach),
            _ => cast(integer, DataType::Int64),
        };
        return Ok(Transformed::yes(expr));
    }
    let Some(wider) = wider(&ty, &distances).filter(|wider| *wider != ty) else {
        return Ok(Transformed::no(expr));
    };
    key.expr = cast(key.expr.clone(), wider);
    Ok(Transformed::yes(expr))
}

fn value(bound: &WindowFrameBound) -> Option<&ScalarValue> {
    match bound {
        WindowFrameBound::Preceding(value) | WindowFrameBound::Following(value) => Some(value),
        WindowFrameBound::CurrentRow => None,
    }
}

fn is_beyond_rows(bound: &WindowFrameBound) -> bool {
    matches!(value(bound), Some(ScalarValue::UInt64(Some(rows))) if *rows > ROWS_MAX)
}

fn within_rows(bound: &WindowFrameBound) -> WindowFrameBound {
    let most = ScalarValue::UInt64(Some(ROWS_MAX));
    match bound {
        bound if !is_beyond_rows(bound) => bound.clone(),
        WindowFrameBound::Following(_) => WindowFrameBound::Following(most),
        _ => WindowFrameBound::Preceding(most),
    }
}

/// As it is written: DataFusion finds out later what type it has.
fn distance(bound: &WindowFrameBound) -> Option<&str> {
    match value(bound)? {
        ScalarValue::Utf8(text) => text.as_deref(),
        _ => None,
    }
}

/// The longest distance, where keys are integers that 64 bits have, and all distances whole numbers.
fn reach(ty: &DataType, distances: &[&str]) -> Option<i64> {
    if !ty.is_integer() || *ty == DataType::UInt64 {
        return None;
    }
    let whole = distances.iter().map(|distance| distance.parse().ok());
    let whole: Vec<i64> = whole.collect::<Option<_>>()?;
    let reach = whole.into_iter().max()?;
    (0..=room::REACH_MAX).contains(&reach).then_some(reach)
}

/// The type that keys of a type need, if it is another one and there is one. None where a distance is not understood, which DataFusion says.
fn wider(ty: &DataType, distances: &[&str]) -> Option<DataType> {
    if distances.is_empty() {
        return None;
    }
    if let DataType::Dictionary(_, of) = ty {
        return wider(of, distances);
    }
    let (whole, places) = match ty {
        ty if ty.is_integer() => (DIGITS_OF_INTEGERS, 0),
        DataType::Decimal32(all, places)
        | DataType::Decimal64(all, places)
        | DataType::Decimal128(all, places)
        | DataType::Decimal256(all, places) => {
            (all.saturating_add_signed(places.saturating_neg()), *places)
        }
        DataType::Date32 | DataType::Date64 => return of_dates(distances),
        DataType::Timestamp(unit, zone) => {
            let needed = unit_of(distances)?;
            return (needed > *unit).then(|| DataType::Timestamp(needed, zone.clone()));
        }
        _ => return None,
    };
    let (mut whole_needed, mut places_needed) = (whole, u8::try_from(places).unwrap_or(0));
    for distance in distances {
        let (whole, places) = digits(distance)?;
        whole_needed = whole_needed.max(whole);
        places_needed = places_needed.max(places);
    }
    let is_changed = (whole_needed, i16::from(places_needed)) != (whole, i16::from(places));
    if matches!(ty, DataType::Decimal128(all, _) if *all < DECIMAL128_MAX_PRECISION) && !is_changed
    {
        return None;
    }
    // The sum of two has one more.
    let needed = whole_needed.checked_add(places_needed)?.checked_add(1)?;
    let places = i8::try_from(places_needed).ok()?;
    if needed <= DECIMAL128_MAX_PRECISION {
        Some(DataType::Decimal128(DECIMAL128_MAX_PRECISION, places))
    } else {
        let fits = needed <= DECIMAL256_MAX_PRECISION;
        fits.then_some(DataType::Decimal256(DECIMAL256_MAX_PRECISION, places))
    }
}

/// How many digits a number has before the point and behind it.
fn digits(number: &str) -> Option<(u8, u8)> {
    let (digits, exponent) = match number.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i16>().ok()?),
        None => (number, 0),
    };
    let digits = digits.trim_start_matches(['-', '+']);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if digits.len() <= usize::from(whole.is_empty()) || !are_digits(whole) || !are_digits(part) {
        return None;
    }
    let length = |text: &str| i16::try_from(text.len()).ok();
    let whole = length(whole.trim_start_matches('0'))?.checked_add(exponent)?;
    let places = length(part.trim_end_matches('0'))?.checked_sub(exponent)?;
    Some((
        u8::try_from(whole.max(0)).ok()?,
        u8::try_from(places.max(0)).ok()?,
    ))
}

/// Dates stay what they are where distances are whole days.
fn of_dates(distances: &[&str]) -> Option<DataType> {
    let is_of_days = |distance: &&str| Some(nanoseconds(distance)? % NANOSECONDS_OF_DAY == 0);
    let is_of_days: Option<Vec<bool>> = distances.iter().map(is_of_days).collect();
    if is_of_days?.into_iter().all(|it| it) {
        return None;
    }
    Some(DataType::Timestamp(unit_of(distances)?, None))
}

/// The coarsest unit of time that has all distances.
fn unit_of(distances: &[&str]) -> Option<TimeUnit> {
    let units = distances.iter().map(|distance| {
        let nanoseconds = nanoseconds(distance)?;
        Some(match nanoseconds {
            it if it % 1_000_000_000 == 0 => TimeUnit::Second,
            it if it % 1_000_000 == 0 => TimeUnit::Millisecond,
            it if it % 1_000 == 0 => TimeUnit::Microsecond,
            _ => TimeUnit::Nanosecond,
        })
    });
    let units: Option<Vec<_>> = units.collect();
    units?.into_iter().max()
}

/// What an interval has beside months and days.
fn nanoseconds(interval: &str) -> Option<i64> {
    let ty = DataType::Interval(IntervalUnit::MonthDayNano);
    match ScalarValue::try_from_string(interval.to_owned(), &ty).ok()? {
        ScalarValue::IntervalMonthDayNano(interval) => Some(interval?.nanoseconds),
        _ => None,
    }
}
