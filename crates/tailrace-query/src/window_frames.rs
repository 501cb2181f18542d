//! Frames of windows in the order of times of day, durations and bytes. DataFusion 55 has no frames by RANGE for them, not even that from
//! the first row to the peers of the current one, which each ORDER BY has. By GROUPS it is the same.

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, WindowFrame, WindowFrameBound, WindowFrameUnits,
};
use datafusion::optimizer::AnalyzerRule;
use tailrace_sql::EachExpr;

/// Makes frames by GROUPS of those by RANGE, where these have no distances.
pub(crate) fn by_groups(plan: LogicalPlan) -> Result<LogicalPlan> {
    EachExpr::new("window_frames", of_expr).analyze(plan, &ConfigOptions::default())
}

fn of_expr(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::WindowFunction(window) = &mut expr else {
        return Ok(Transformed::no(expr));
    };
    let frame = &window.params.window_frame;
    let is_plain = frame.units == WindowFrameUnits::Range
        && [&frame.start_bound, &frame.end_bound]
            .into_iter()
            .all(has_no_distance);
    let is_without_range = |ty: DataType| {
        matches!(
            ty,
            DataType::Time32(_)
                | DataType::Time64(_)
                | DataType::Duration(_)
                | DataType::Interval(_)
        ) || ty.is_binary()
            || matches!(ty, DataType::Struct(_) | DataType::Map(..))
    };
    let first = window.params.order_by.first();
    let ty = first.and_then(|key| key.expr.get_type(schema).ok());
    if !is_plain || !ty.is_some_and(is_without_range) {
        return Ok(Transformed::no(expr));
    }
    window.params.window_frame = WindowFrame::new_bounds(
        WindowFrameUnits::Groups,
        frame.start_bound.clone(),
        frame.end_bound.clone(),
    );
    Ok(Transformed::yes(expr))
}

fn has_no_distance(bound: &WindowFrameBound) -> bool {
    *bound == WindowFrameBound::CurrentRow || bound.is_unbounded()
}
