//! Steps of a plan that compare or gather columns of two tables: keys of joins, as USING has them, and UNION.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{NullEquality, Result};
use datafusion::logical_expr::{Expr, ExprSchemable, Join, LogicalPlan, Projection, Union};

use crate::tree::map_steps_of_other_types;

use super::common::Of;
use super::of_types;

/// Casts keys, and columns of unions, from the files upwards.
pub(super) fn with_room(plan: LogicalPlan) -> Result<LogicalPlan> {
    map_steps_of_other_types(plan, &mut |step| match step {
        LogicalPlan::Union(union) => of_union(union),
        LogicalPlan::Join(join) => of_join(join),
        other => Ok(Transformed::no(other)),
    })
}

fn of_join(mut join: Join) -> Result<Transformed<LogicalPlan>> {
    let of = match join.null_equality {
        NullEquality::NullEqualsNothing => Of::Comparison,
        NullEquality::NullEqualsNull => Of::Distinct,
    };
    let mut is_cast = false;
    for (left, right) in &mut join.on {
        let mut types = [
            left.get_type(join.left.schema())?,
            right.get_type(join.right.schema())?,
        ];
        is_cast |= of_types(&mut [left, right], &mut types, of);
    }
    Ok(Transformed::new_transformed(
        LogicalPlan::Join(join),
        is_cast,
    ))
}

fn of_union(mut union: Union) -> Result<Transformed<LogicalPlan>> {
    let mut is_cast = false;
    for at in 0..union.schema.fields().len() {
        let types = union.inputs.iter();
        let types = types.map(|input| input.schema().field(at).data_type().clone());
        let mut types: Vec<_> = types.collect();
        if !types.iter().any(DataType::is_decimal) {
            continue;
        }
        let mut columns: Vec<_> = union.inputs.iter().map(|it| column(it, at)).collect();
        let mut parts: Vec<_> = columns.iter_mut().collect();
        if !of_types(&mut parts, &mut types, Of::Choice) {
            continue;
        }
        is_cast = true;
        for (input, column) in union.inputs.iter_mut().zip(columns) {
            *input = Arc::new(with_column(input, at, column)?);
        }
    }
    if is_cast {
        union = Union::try_new_with_loose_types(union.inputs)?;
    }
    let union = LogicalPlan::Union(union);
    Ok(Transformed::new_transformed(union, is_cast))
}

/// What a step computes as one of its columns.
fn column(step: &LogicalPlan, at: usize) -> Expr {
    match step {
        LogicalPlan::Projection(projection) => projection.expr[at].clone().unalias(),
        other => Expr::Column(other.schema().columns().swap_remove(at)),
    }
}

/// A step that computes something else as one of its columns, of the same name.
fn with_column(step: &LogicalPlan, at: usize, computed: Expr) -> Result<LogicalPlan> {
    let schema = step.schema();
    let (mut columns, input) = match step {
        LogicalPlan::Projection(projection) => {
            (projection.expr.clone(), Arc::clone(&projection.input))
        }
        other => {
            let columns = schema.columns().into_iter().map(Expr::Column);
            (columns.collect(), Arc::new(other.clone()))
        }
    };
    let (table, field) = schema.qualified_field(at);
    columns[at] = computed.alias_qualified(table.cloned(), field.name());
    let projection = Projection::try_new(columns, input)?;
    Ok(LogicalPlan::Projection(projection))
}
