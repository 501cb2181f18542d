//! Values of several kinds, which `json_get` and `->` give. A result, an order, groups and aggregates want values of one kind: where there is
//! none, the query is refused. Beside a number, such a value is the number that it is (`compared.rs`), beside a text its text (`text.rs`).

mod compared;
mod number;
mod text;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Distinct, Expr, ExprSchemable, LogicalPlan};
use tailrace_sql::tree::{each_part, each_step};

pub(crate) use self::compared::compared;
pub(crate) use self::text::{Planner, rule as as_texts};
use crate::error::Error;

/// Checks that every column of the result, every key of an order and of groups, and what aggregates take has values of one kind.
///
/// # Errors
///
/// One has not.
pub(crate) fn check_kinds(plan: &LogicalPlan) -> Result<(), Error> {
    let mut found = of_columns(plan);
    let _ = each_step(plan, &mut |step| {
        found = found.take().or_else(|| of_step(step));
        Ok(match found {
            Some(_) => TreeNodeRecursion::Stop,
            None => TreeNodeRecursion::Continue,
        })
    });
    found.map_or(Ok(()), Err)
}

fn of_columns(plan: &LogicalPlan) -> Option<Error> {
    let mut fields = plan.schema().fields().iter();
    let several = fields.find(|field| has_several(field.data_type()));
    several.map(|field| refused(field.name()))
}

fn of_step(step: &LogicalPlan) -> Option<Error> {
    match step {
        LogicalPlan::Distinct(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Aggregate(_)
        | LogicalPlan::Window(_) => {}
        _ => return None,
    }
    let schema = merge_schema(&step.inputs());
    let is_of_several = |key: &&Expr| key.get_type(&schema).is_ok_and(|ty| has_several(&ty));
    let refuse = |key: &Expr| refused(&key.schema_name().to_string());
    let first = |keys: &[Expr]| keys.iter().find(is_of_several).map(refuse);
    let first_of = |keys: &[Sort]| {
        let mut keys = keys.iter().map(|key| &key.expr);
        keys.find(is_of_several).map(refuse)
    };
    match step {
        LogicalPlan::Distinct(Distinct::On(distinct)) => return first(&distinct.on_expr),
        LogicalPlan::Distinct(_) => return of_columns(step),
        LogicalPlan::Sort(sort) => return first_of(&sort.expr),
        LogicalPlan::Aggregate(groups) if first(&groups.group_expr).is_some() => {
            return first(&groups.group_expr);
        }
        _ => {}
    }
    let mut found = None;
    let _ = step.apply_expressions(|expr| {
        each_part(expr, &mut |part| {
            found = found.take().or_else(|| match part {
                Expr::WindowFunction(window) => {
                    first(&window.params.partition_by).or_else(|| first_of(&window.params.order_by))
                }
                // It looks at no value.
                Expr::AggregateFunction(call)
                    if call.func.name() == "count" && !call.params.distinct =>
                {
                    None
                }
                Expr::AggregateFunction(call) => {
                    first(&call.params.args).or_else(|| first_of(&call.params.order_by))
                }
                _ => None,
            });
            Ok(TreeNodeRecursion::Continue)
        })
    });
    found
}

fn refused(name: &str) -> Error {
    Error {
        hint: Some("`->>`, json_get_str, json_get_int, json_get_float, json_get_bool or a cast give one kind".to_owned()),
        ..Error::usage(format!("`{name}` has values of several kinds"))
    }
}

fn has_several(ty: &DataType) -> bool {
    matches!(ty, DataType::Union(..))
}
