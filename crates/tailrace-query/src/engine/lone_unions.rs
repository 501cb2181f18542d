//! A UNION ALL of which one query is left, as the others have no rows: `SELECT a AS x ... WHERE false UNION ALL SELECT DISTINCT b FROM ...`. Its columns have
//! the names of the first query. DataFusion 55 looks for these in the query that is left, which may have others.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The rule that leaves out what has no rows does not see such unions.
pub(super) fn named(
    rule: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let Some(left) = lone(&plan) else {
        return rule.rewrite(plan, config);
    };
    let columns = left.schema().columns().into_iter();
    let named = columns.zip(plan.schema().iter());
    let named = named.map(|(column, (table, field))| {
        Expr::Column(column).alias_qualified(table.cloned(), field.name())
    });
    let schema = Arc::clone(plan.schema());
    let named = Projection::try_new_with_schema(named.collect(), left, schema)?;
    Ok(Transformed::yes(LogicalPlan::Projection(named)))
}

/// The one query of a union that may have rows, if its columns have other names.
fn lone(plan: &LogicalPlan) -> Option<Arc<LogicalPlan>> {
    let LogicalPlan::Union(union) = plan else {
        return None;
    };
    let is_empty = |input: &LogicalPlan| matches!(input, LogicalPlan::EmptyRelation(it) if !it.produce_one_row);
    let mut others = union.inputs.iter().filter(|input| !is_empty(input));
    let left = others.next()?;
    let is_lone = others.next().is_none() && union.inputs.len() > 1;
    (is_lone && left.schema() != plan.schema()).then(|| Arc::clone(left))
}
