//! What a query needs, and the query as a prepared plan.
//!
//! [`Query::compile`] reads one SELECT (or a UNION ALL of them) over the table `logs`. A [`Query`] has the physical
//! columns it needs with their types and the reasons for them, and makes [`Evaluator`]s, which turn record batches
//! of those columns into a selection of rows and computed columns. A query is planned once, never per batch. Never
//! sees JSON, never reads a clock, never opens anything.
//!
//! ```
//! use tailrace_sql::{Options, Query, Type};
//!
//! let query = Query::compile("SELECT status, msg FROM logs WHERE status >= 400", &Options::default())?;
//! let types: Vec<_> = query.columns().iter().map(|column| (column.name.as_str(), column.ty)).collect();
//! assert_eq!(types, [("status", Type::Open), ("msg", Type::Open), ("status#float64", Type::Float64)]);
//! # Ok::<(), tailrace_sql::Error>(())
//! ```

mod error;
pub mod tree;
mod types;
pub mod walk;

mod copies;
mod dialect;
mod group_keys;
mod parse;

mod session;
mod signature;
mod value;

mod analyse;
mod any_query;
mod branch;
mod needles;
mod other_functions;
mod plan;
mod pushdown;
mod query;

mod conditions;
mod evaluate;
mod failures;
mod general;
mod guard;
mod kept_share;
mod mend;
mod row_wise;
mod selected;
mod sha256;
mod time_formats;

pub use any_query::parse_query;
pub use branch::{Branch, Conjunct, Output, OutputValue, When};
pub use conditions::{Conditions, Outcome, Unmet};
pub use error::{Error, Warning};
pub use evaluate::{Evaluated, Evaluator, Selection};
pub use failures::{Failure, NOT_EXACT};
pub use guard::batch::{bounded, is_exhausted};
pub use guard::caught;
pub use kept_share::KeptShare;
pub use mend::{
    EachExpr, SimplifiedApart, is_comparison, mend_functions, mending_planner, mending_rules,
    with_room, written_decimal,
};
pub use other_functions::{other_aggregate, other_function};
pub use plan::planning_time;
pub use pushdown::Pushdown;
pub use query::Query;
pub use selected::{FailedOutput, Rows, Selected};
pub use session::nearest;
pub use sha256::sha256;
pub use tailrace_model::json::Step;
pub use tailrace_model::needle::{Needle, Needles};
pub use tailrace_model::reserved::Reserved;
pub use time_formats::{OtherFormat, other_format};
pub use types::{Column, ColumnSource, Options, Star, Type, Use};
pub use value::split as split_values;

#[cfg(test)]
mod tests;
