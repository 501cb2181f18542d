//! Rows that are put in order wait for each other, in memory or on disk. A text that is a view holds on to all that was read with
//! it, and is counted with it, so that texts are copied first.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Sort, cast};

/// The rows of a plan with copies of their texts.
pub(crate) fn copied(plan: LogicalPlan) -> Result<LogicalPlan> {
    let schema = Arc::clone(plan.schema());
    let columns = schema.iter().map(|(table, field)| {
        let column = Expr::Column(Column::new(table.cloned(), field.name()));
        let ty = match field.data_type() {
            DataType::Utf8View => DataType::Utf8,
            DataType::BinaryView => DataType::Binary,
            _ => return column,
        };
        cast(column, ty).alias_qualified(table.cloned(), field.name())
    });
    LogicalPlanBuilder::from(plan)
        .project(columns.collect::<Vec<_>>())?
        .build()
}

/// A plan that copies texts before it puts all rows of its result in order. One that only wants the first rows does not.
pub(crate) fn copied_before_order(plan: LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => Ok(LogicalPlan::Sort(Sort {
            input: Arc::new(copied(Arc::unwrap_or_clone(sort.input))?),
            ..sort
        })),
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => {
            let inputs = plan.inputs().into_iter().cloned().map(copied_before_order);
            plan.with_new_exprs(plan.expressions(), inputs.collect::<Result<_>>()?)
        }
        other => Ok(other),
    }
}

/// The same plan that copies texts wherever rows wait for others. Its columns have the same types.
pub(crate) fn copied_before_waiting(plan: &LogicalPlan) -> Result<LogicalPlan> {
    let copied = with_copies(plan)?;
    let columns = plan.schema().iter().zip(copied.schema().iter());
    let columns: Vec<_> = columns
        .map(|((table, field), (_, other))| {
            let column = Expr::Column(Column::new(table.cloned(), field.name()));
            match field.data_type() == other.data_type() {
                true => column,
                false => cast(column, field.data_type().clone())
                    .alias_qualified(table.cloned(), field.name()),
            }
        })
        .collect();
    LogicalPlanBuilder::from(copied).project(columns)?.build()
}

fn with_copies(plan: &LogicalPlan) -> Result<LogicalPlan> {
    let waits = matches!(
        plan,
        LogicalPlan::Join(_) | LogicalPlan::Sort(_) | LogicalPlan::Window(_)
    );
    let inputs = plan.inputs().into_iter().map(|input| {
        let input = with_copies(input)?;
        if waits { copied(input) } else { Ok(input) }
    });
    let inputs = inputs.collect::<Result<_>>()?;
    plan.with_new_exprs(plan.expressions(), inputs)
}
