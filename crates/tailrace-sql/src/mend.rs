//! What DataFusion 55 answers wrongly, in pipelines and in queries over files: mended in its plans, before it optimizes them.

mod casts;
mod ceil;
mod coarse_time;
pub(crate) mod compared_decimals;
mod counts;
mod date_part;
mod date_trunc;
mod decimal_float;
mod decimal_literals;
mod float_time;
mod functions;
mod in_lists;
mod interval;
mod interval_times;
mod operators;
mod orders;
mod regex;
mod regexp_match;
mod regexp_replace;
mod repeated_keys;
mod rounding;
mod to_timestamp;
mod written_decimal;

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator};
use datafusion::optimizer::AnalyzerRule;

use crate::tree::{map_exprs, map_parts, map_steps};

pub use compared_decimals::with_room;
pub use functions::mend_functions;
pub use in_lists::SimplifiedApart;
pub use written_decimal::written_decimal;

/// The rules that mend plans, in their order. They come after DataFusion's, which make types agree.
#[must_use]
pub fn mending_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    vec![
        Arc::new(EachExpr::new("compared_intervals", interval::compared)),
        Arc::new(interval::Ordered),
        Arc::new(EachExpr::new("escaped_backslashes", regex::kept)),
        Arc::new(EachExpr::new(
            "floats_as_times",
            float_time::cast_as_seconds,
        )),
        Arc::new(EachExpr::new("mended_functions", functions::replaced)),
        Arc::new(EachExpr::new(
            "decimal_literals",
            decimal_literals::as_written,
        )),
        Arc::new(EachExpr::new(
            "decimals_as_floats",
            decimal_float::cast_as_text,
        )),
        Arc::new(EachExpr::new("kept_casts", casts::kept)),
        Arc::new(EachExpr::new("coarse_times", coarse_time::downwards)),
        Arc::new(EachExpr::new("unknown_is_null", unknown_is_null)),
        Arc::new(EachExpr::new("repeated_keys", repeated_keys::of_aggregate)),
        Arc::new(repeated_keys::OfDistinct),
    ]
}

/// What plans operators in DataFusion's place where it would give another type than it should.
#[must_use]
pub fn mending_planner() -> Arc<dyn ExprPlanner> {
    Arc::new(operators::Planner)
}

/// `IS UNKNOWN` as `IS NULL`, which is the same: DataFusion takes it for a value that may be missing in one place and not in another, and
/// fails.
fn unknown_is_null(expr: Expr, _: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::IsUnknown(operand) => Transformed::yes(Expr::IsNull(operand)),
        Expr::IsNotUnknown(operand) => Transformed::yes(Expr::IsNotNull(operand)),
        other => Transformed::no(other),
    })
}

/// Whether an operator compares two values.
#[must_use]
pub fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(
        op,
        Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom
    )
}

/// What becomes of an expression over columns.
type Of = fn(Expr, &DFSchema) -> Result<Transformed<Expr>>;

/// A rule that looks at each expression of a plan, from the inside out. Names of columns stay.
#[derive(Debug)]
pub struct EachExpr {
    name: &'static str,
    of: Of,
}

impl EachExpr {
    /// A rule.
    #[must_use]
    pub fn new(name: &'static str, of: Of) -> EachExpr {
        EachExpr { name, of }
    }

    /// `is_changed` where another step has become another, which this one may stand on: what is known of its columns is found out
    /// again, which takes long where they are many.
    fn of_step(
        &self,
        step: LogicalPlan,
        is_changed: &mut bool,
    ) -> Result<Transformed<LogicalPlan>> {
        let names = NamePreserver::new(&step);
        let mut schema = merge_schema(&step.inputs());
        if let LogicalPlan::TableScan(scan) = &step {
            schema.merge(&scan.projected_schema);
        }
        let of_one = |expr: Expr| {
            let name = names.save(&expr);
            let expr = map_parts(expr, &mut |expr| (self.of)(expr, &schema))?;
            Ok(expr.update_data(|expr| name.restore(expr)))
        };
        let step = map_exprs(step, &mut |expr| match expr {
            // Each of its expressions is a column with a name.
            Expr::GroupingSet(_) => expr.map_children(of_one),
            _ => of_one(expr),
        })?;
        *is_changed |= step.transformed;
        match is_changed {
            true => step.map_data(LogicalPlan::recompute_schema),
            false => Ok(step),
        }
    }
}

impl AnalyzerRule for EachExpr {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut is_changed = false;
        // From the files upwards.
        map_steps(plan, &mut |step| self.of_step(step, &mut is_changed))
    }

    fn name(&self) -> &str {
        self.name
    }
}
