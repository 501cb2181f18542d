//! What is seen in the plan of a query.

use arrow::compute::kernels::cast_utils::parse_interval_month_day_nano;
use arrow::datatypes::{DataType, IntervalMonthDayNano};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, WindowFrame, WindowFrameBound, WindowFrameUnits,
};
use tailrace_sql::tree::{each_part, each_step};

use super::defaults::cut_default;
use super::places::wrong_place;
use crate::error::{Error, word_in};

/// Refuses frames of months, defaults of `lag` and `lead` that would be cut, aggregates in opposite orders of which one is over distinct
/// values, and FILTER with what is not true or false.
///
/// # Errors
///
/// There is one.
pub(crate) fn check_plan(plan: &LogicalPlan, sql: &str) -> Result<(), Error> {
    let sql = sql.to_ascii_lowercase();
    let mut error = None;
    // The closures give no error.
    let _ = each_step(plan, &mut |node| {
        error = error.take().or_else(|| match node {
            LogicalPlan::Window(window) => window
                .window_expr
                .iter()
                .find_map(|expr| {
                    frame_of_months(expr, &sql)
                        .or_else(|| wrong_place(expr, &sql))
                        .or_else(|| cut_default(expr, window.input.schema(), &sql))
                })
                .or_else(|| filters(&window.window_expr, window.input.schema(), &sql)),
            LogicalPlan::Aggregate(aggregate) => aggregate
                .aggr_expr
                .iter()
                .find_map(|expr| wrong_place(expr, &sql))
                .or_else(|| orders(&aggregate.aggr_expr, &sql))
                .or_else(|| filters(&aggregate.aggr_expr, aggregate.input.schema(), &sql)),
            _ => None,
        });
        Ok(match error {
            Some(_) => TreeNodeRecursion::Stop,
            None => TreeNodeRecursion::Continue,
        })
    });
    error.map_or(Ok(()), Err)
}

/// DataFusion 55 looks for the ends of a frame forwards only, but a month before the 31st may be before a month before the 30th.
fn frame_of_months(expr: &Expr, sql: &str) -> Option<Error> {
    let mut error = None;
    let _ = each_part(expr, &mut |expr| {
        if let Expr::WindowFunction(window) = expr
            && has_months(&window.params.window_frame)
        {
            error = Some(Error {
                place: word_in(sql, "range"),
                hint: Some("write days, or join the table with itself".to_owned()),
                ..Error::usage(
                    "a frame by RANGE cannot have months or years, which are not equally long",
                )
            });
        }
        Ok(TreeNodeRecursion::Continue)
    });
    error
}

fn has_months(frame: &WindowFrame) -> bool {
    let of_bound = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::Preceding(by) | WindowFrameBound::Following(by) => match by {
            ScalarValue::IntervalYearMonth(Some(months)) => *months != 0,
            ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano { months, .. })) => {
                *months != 0
            }
            // Not made a value yet.
            ScalarValue::Utf8(Some(text)) => is_of_months(text),
            _ => false,
        },
        WindowFrameBound::CurrentRow => false,
    };
    frame.units == WindowFrameUnits::Range
        && (of_bound(&frame.start_bound) || of_bound(&frame.end_bound))
}

/// Whether it is an interval with months, or with what is made of them. Numbers alone are none.
fn is_of_months(text: &str) -> bool {
    text.contains(char::is_alphabetic)
        && parse_interval_month_day_nano(text).is_ok_and(|interval| interval.months != 0)
}

/// DataFusion 55 takes any number but 0 for true.
fn filters(calls: &[Expr], input: &DFSchema, sql: &str) -> Option<Error> {
    let mut error = None;
    for call in calls {
        let _ = each_part(call, &mut |expr| {
            let filter = match expr {
                Expr::AggregateFunction(called) => &called.params.filter,
                Expr::WindowFunction(called) => &called.params.filter,
                _ => &None,
            };
            if let Some(filter) = filter
                && let Ok(ty) = filter.get_type(input)
                && !matches!(ty, DataType::Boolean | DataType::Null)
            {
                error = Some(Error {
                    place: word_in(sql, "filter"),
                    hint: Some("compare it, as FILTER (WHERE x <> 0) does".to_owned()),
                    ..Error::usage("the condition of FILTER is not true or false")
                });
            }
            Ok(TreeNodeRecursion::Continue)
        });
    }
    error
}

/// DataFusion 55 gives rows to all aggregates of a query in the order of one of them, and takes the opposite order for as good. Those over
/// distinct values do not turn it.
fn orders(aggregates: &[Expr], sql: &str) -> Option<Error> {
    let mut known: Vec<(bool, &Sort)> = Vec::new();
    for aggregate in aggregates {
        let aggregate = match aggregate {
            Expr::Alias(named) => &*named.expr,
            other => other,
        };
        // The order of a percentile is one of values, and the first value is found in any order of the rows.
        if let Expr::AggregateFunction(called) = aggregate
            && !called.func.supports_within_group_clause()
            && called.func.order_sensitivity() != AggregateOrderSensitivity::Beneficial
            && let Some(first) = called.params.order_by.first()
        {
            known.push((called.params.distinct, first));
        }
    }
    let are_opposite = |(a, a_key): &(bool, &Sort), (b, b_key): &(bool, &Sort)| {
        (*a || *b) && a_key.expr == b_key.expr && a_key != b_key
    };
    let mut pairs = known.iter().flat_map(|a| known.iter().map(move |b| (a, b)));
    pairs
        .any(|(a, b)| are_opposite(a, b))
        .then(|| conflict(sql))
}

/// Aggregates that want rows in orders of which one is not the other.
pub(crate) fn conflict(sql: &str) -> Error {
    Error {
        place: word_in(&sql.to_ascii_lowercase(), "order"),
        hint: Some("compute one of them in a subquery of its own".to_owned()),
        ..Error::usage("aggregates of one SELECT want their rows in different orders")
    }
}
