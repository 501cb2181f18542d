//! Whether a result depends on the order in which the rows of a table are read or has this order, and where it must not.

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use tailrace_sql::tree::each_step;

use crate::error::Error;

/// Whether LIMIT or OFFSET takes the first rows of a table, without an order of its own: they are those of the first
/// file, which partitions that run side by side would not give.
pub(crate) fn takes_first_rows(plan: &LogicalPlan) -> bool {
    let mut found = false;
    // The closure gives no error.
    let _ = each_step(plan, &mut |node| {
        found |= matches!(node, LogicalPlan::Limit(limit) if is_of_rows(&limit.input));
        Ok(if found {
            TreeNodeRecursion::Stop
        } else {
            TreeNodeRecursion::Continue
        })
    });
    found
}

/// Checks that every OFFSET in a subquery has an order and a LIMIT of its own: otherwise which rows it skips is left to
/// chance, and DataFusion 55 moves an order from around it to below it, after which other rows are skipped.
///
/// # Errors
///
/// There is one.
pub(crate) fn check_offsets(plan: &LogicalPlan) -> Result<(), Error> {
    let mut inner = plan;
    while let LogicalPlan::Projection(_)
    | LogicalPlan::SubqueryAlias(_)
    | LogicalPlan::Sort(_)
    | LogicalPlan::Limit(_) = inner
        && let [input] = inner.inputs()[..]
        && !(matches!(inner, LogicalPlan::Sort(_)) && has_offset(input))
    {
        inner = input;
    }
    let mut found = false;
    // The closure gives no error.
    let _ = each_step(inner, &mut |node| {
        found |= has_offset(node);
        Ok(TreeNodeRecursion::Continue)
    });
    match found {
        false => Ok(()),
        true => Err(Error {
            hint: Some("write ORDER BY before it and LIMIT with it".to_owned()),
            ..Error::usage("OFFSET in a subquery needs ORDER BY and LIMIT there")
        }),
    }
}

/// Whether it is an OFFSET without an order or without a LIMIT.
fn has_offset(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Limit(limit) = plan else {
        return matches!(
            plan,
            LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_)
        ) && plan.inputs().into_iter().any(has_offset);
    };
    let mut input = &*limit.input;
    while let LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) = input
        && let [of_input] = input.inputs()[..]
    {
        input = of_input;
    }
    limit.skip.is_some() && (limit.fetch.is_none() || !matches!(input, LogicalPlan::Sort(_)))
}

/// Whether the rows are those of a table, one for one and in its order.
pub(crate) fn is_of_rows(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(_) => true,
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Unnest(_) => plan.inputs().into_iter().any(is_of_rows),
        _ => false,
    }
}
