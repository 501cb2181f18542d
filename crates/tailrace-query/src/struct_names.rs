//! The columns that `SELECT unnest(s)` makes of the members of a struct. They are called as these are in the result, where DataFusion 55 writes the
//! expression before their names, as it is called inside.

use std::collections::HashMap;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use tailrace_sql::tree::each_step;

/// How DataFusion calls what is unnested.
const UNNESTED: &str = "__unnest_placeholder(";

/// Calls them so, but for those whose name another column of the result has.
pub(crate) fn bare(plan: LogicalPlan) -> Result<LogicalPlan> {
    let members = members(&plan);
    if members.is_empty() {
        return Ok(plan);
    }
    let fields = || plan.schema().iter();
    let shown = |name: &str| members.get(name).map_or(name.to_owned(), Clone::clone);
    let is_alone = |name: &str| fields().filter(|(_, it)| shown(it.name()) == name).count() == 1;
    let columns = fields().map(|(table, field)| {
        let column = Expr::Column(Column::from((table, field)));
        match members.get(field.name()).filter(|name| is_alone(name)) {
            Some(name) => column.alias(name),
            None => column,
        }
    });
    let columns: Vec<_> = columns.collect();
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

/// The names of such members by those of their columns.
fn members(plan: &LogicalPlan) -> HashMap<String, String> {
    let mut members = HashMap::new();
    // The closure gives no error.
    let _ = each_step(plan, &mut |step| {
        if let LogicalPlan::Unnest(unnest) = step
            && !unnest.struct_type_columns.is_empty()
        {
            for field in unnest.schema.fields() {
                let inner = field.name().strip_prefix(UNNESTED);
                if let Some((unnested, member)) = inner.and_then(|it| it.rsplit_once(").")) {
                    members.insert(format!("{unnested}.{member}"), member.to_owned());
                }
            }
        }
        Ok(TreeNodeRecursion::Continue)
    });
    members
}
