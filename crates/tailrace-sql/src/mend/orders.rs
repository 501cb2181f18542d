//! The order of what a function gives. DataFusion 55 finds it out from the bounds of what the function takes, and fails where they have no type, as
//! those of most functions, or reach beyond what the function is for, as for `sqrt(a)`. Then it no longer knows that rows are in the order in
//! which it has put them, and refuses the query.

use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::sort_properties::SortProperties;

/// The functions that look at bounds, beside `ceil` and `floor`.
pub(super) const FUNCTIONS: [&str; 22] = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh",
    "degrees", "exp", "ln", "log10", "log2", "radians", "sin", "sinh", "sqrt", "tan", "tanh",
];

/// None instead of a failure.
pub(super) fn bounds(found: Result<Interval>) -> Result<Interval> {
    found.or_else(|_| Interval::make_unbounded(&DataType::Null))
}

/// None instead of a failure.
pub(super) fn order(found: Result<SortProperties>) -> SortProperties {
    found.unwrap_or(SortProperties::Unordered)
}
