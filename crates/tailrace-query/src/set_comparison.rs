//! `x > ALL (SELECT ...)` and ANY. DataFusion 55 compares the column of the subquery by its name, within the subquery: a column of the
//! same name and table on the left would be taken for the same one. So the column of the subquery gets a name that no other has.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr::SetComparison;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Subquery};
use tailrace_sql::tree::{map_exprs, map_parts, map_steps};

const NAME: &str = "column of the subquery";

/// The same plan, in which such comparisons have two names.
pub(crate) fn told_apart(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut of_node = |node: LogicalPlan| {
        map_exprs(node, &mut |expr| {
            map_parts(expr, &mut |expr| match expr {
                Expr::SetComparison(comparison) => {
                    Ok(Transformed::yes(Expr::SetComparison(renamed(comparison)?)))
                }
                other => Ok(Transformed::no(other)),
            })
        })
    };
    map_steps(plan, &mut of_node)
}

fn renamed(comparison: SetComparison) -> Result<SetComparison> {
    Ok(SetComparison {
        subquery: with_own_name(comparison.subquery)?,
        ..comparison
    })
}

/// A subquery of one column, which has a name that no other has.
pub(crate) fn with_own_name(subquery: Subquery) -> Result<Subquery> {
    let plan = subquery.subquery;
    let column = Column::from(plan.schema().qualified_field(0));
    let plan = LogicalPlanBuilder::from(plan)
        .project([Expr::Column(column).alias(NAME)])?
        .build()?;
    Ok(Subquery {
        subquery: Arc::new(plan),
        ..subquery
    })
}
