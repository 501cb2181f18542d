//! Whether a query can be answered row by row, as one that follows files must be, and what of it prevents that.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};
use tailrace_sql::tree::each_step;

use crate::error::{Error, word_in};
use crate::kind::is_listed;

/// Checks that every row of the result is made of one row of one log table.
///
/// # Errors
///
/// The part of the query that prevents it.
pub(crate) fn check_row_wise(plan: &LogicalPlan, sql: &str) -> Result<(), Error> {
    let mut found = None;
    let mut scans = 0;
    // The closures give no error.
    let _ = each_step(plan, &mut |node| {
        found = preventing(node, &mut scans);
        Ok(match found {
            Some(_) => TreeNodeRecursion::Stop,
            None => TreeNodeRecursion::Continue,
        })
    });
    let (what, words) = match found {
        Some(found) => found,
        None if scans == 0 => ("a query without a log file", &[][..]),
        None => return Ok(()),
    };
    let upper = sql.to_ascii_uppercase();
    let place = words.iter().find_map(|word| word_in(&upper, word));
    Err(Error {
        place,
        hint: Some(
            "`-f` prints rows as they are written, so it takes SELECT and WHERE; without `-f` the query answers once"
                .to_owned(),
        ),
        ..Error::usage(format!("{what} cannot be followed"))
    })
}

/// Why the node is not row-wise, and words of SQL for it.
fn preventing(
    node: &LogicalPlan,
    scans: &mut usize,
) -> Option<(&'static str, &'static [&'static str])> {
    if has_subquery(node) {
        return Some(("a subquery in an expression", &["EXISTS", "IN", "SELECT"]));
    }
    match node {
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Limit(_) => None,
        LogicalPlan::TableScan(scan) => {
            *scans += 1;
            let is_log = !is_listed(scan.table_name.table().as_ref());
            (!is_log).then_some(("a table that is no log file", &["FROM"]))
        }
        LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => {
            Some(("an aggregate", &["SELECT"]))
        }
        LogicalPlan::Aggregate(_) => Some(("GROUP BY", &["GROUP", "SELECT"])),
        LogicalPlan::Distinct(_) => Some(("DISTINCT", &["DISTINCT", "UNION"])),
        LogicalPlan::Sort(_) => Some(("ORDER BY", &["ORDER"])),
        LogicalPlan::Window(_) => Some(("a window function", &["OVER"])),
        LogicalPlan::Join(_) => Some(("a join", &["JOIN", "FROM"])),
        LogicalPlan::Union(_) => Some(("UNION", &["UNION"])),
        LogicalPlan::Unnest(_) => Some(("unnest", &["UNNEST"])),
        LogicalPlan::RecursiveQuery(_) => Some(("WITH RECURSIVE", &["RECURSIVE"])),
        LogicalPlan::Values(_) => Some(("VALUES", &["VALUES"])),
        LogicalPlan::EmptyRelation(_) => None,
        _ => Some(("this query", &[])),
    }
}

fn has_subquery(node: &LogicalPlan) -> bool {
    let is_subquery = |expr: &Expr| {
        Ok(matches!(
            expr,
            Expr::InSubquery(_) | Expr::Exists(_) | Expr::ScalarSubquery(_)
        ))
    };
    let has = |expr: &Expr| expr.exists(is_subquery).unwrap_or(true);
    node.expressions().iter().any(has)
}
