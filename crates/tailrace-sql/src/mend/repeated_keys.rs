//! Orders with one key twice, as in `first_value(s ORDER BY n, n DESC)` and `DISTINCT ON (n) ... ORDER BY n, n DESC`: the second one decides
//! nothing, and DataFusion panics.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use crate::tree::map_steps;

/// The order of an aggregate without what it repeats.
pub(super) fn of_aggregate(expr: Expr, _: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::AggregateFunction(mut it) => {
            let is_shorter = shorten(&mut it.params.order_by);
            Transformed::new_transformed(Expr::AggregateFunction(it), is_shorter)
        }
        other => Transformed::no(other),
    })
}

/// The order of `DISTINCT ON` without what it repeats.
#[derive(Debug)]
pub(super) struct OfDistinct;

impl AnalyzerRule for OfDistinct {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        map_steps(plan, &mut |step| {
            Ok(match step {
                LogicalPlan::Distinct(Distinct::On(mut on)) => {
                    let is_shorter = on.sort_expr.as_mut().is_some_and(shorten);
                    let step = LogicalPlan::Distinct(Distinct::On(on));
                    Transformed::new_transformed(step, is_shorter)
                }
                other => Transformed::no(other),
            })
        })
    }

    fn name(&self) -> &str {
        "repeated_keys_of_distinct"
    }
}

/// Leaves out keys that an earlier one is equal to; whether there are any.
fn shorten(keys: &mut Vec<Sort>) -> bool {
    let before = keys.len();
    let mut kept: Vec<Sort> = Vec::with_capacity(before);
    for key in keys.drain(..) {
        if kept.iter().all(|other| other.expr != key.expr) {
            kept.push(key);
        }
    }
    *keys = kept;
    keys.len() < before
}
