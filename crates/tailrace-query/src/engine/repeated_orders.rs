//! Keys of an order that are the same. DataFusion 55 leaves repeated keys of aggregates and of DISTINCT ON out when it plans them; those that it
//! finds to be the same later, as `k, k | k`, it counts in one place and not in another, and panics.

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use tailrace_sql::tree::{map_exprs, map_parts};

/// A rule that leaves the later ones out.
#[derive(Debug)]
pub(super) struct RepeatedOrders;

impl OptimizerRule for RepeatedOrders {
    fn name(&self) -> &str {
        "repeated_orders"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        if !matches!(plan, LogicalPlan::Aggregate(_)) {
            return Ok(Transformed::no(plan));
        }
        let names = NamePreserver::new(&plan);
        map_exprs(plan, &mut |expr| {
            let name = names.save(&expr);
            let once = map_parts(expr, &mut |part| Ok(of_call(part)))?;
            Ok(once.update_data(|expr| name.restore(expr)))
        })
    }
}

fn of_call(mut expr: Expr) -> Transformed<Expr> {
    let Expr::AggregateFunction(call) = &mut expr else {
        return Transformed::no(expr);
    };
    let keys = &mut call.params.order_by;
    let all = keys.len();
    let mut known = Vec::with_capacity(all);
    keys.retain(|key| {
        // What it was called before.
        let value = key.expr.clone().unalias_nested().data;
        let is_new = !known.contains(&value);
        known.push(value);
        is_new
    });
    let is_shorter = keys.len() < all;
    Transformed::new_transformed(expr, is_shorter)
}
