//! Values of several kinds, which `json_get` and `->` give. A result, an order, groups and aggregates want values of one kind: where there is
//! none, the query is refused. DataFusion compares such a value with a number as one of that number's kind: 12.5 was neither more nor less
//! than 3. Here it is compared as the number that it is.

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::logical_expr::expr::{Between, InList, Sort};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, binary_expr, cast,
};
use datafusion::optimizer::AnalyzerRule;
use tailrace_sql::EachExpr;

use crate::error::Error;

/// Checks that every column of the result, every key of an order and of groups, and what aggregates take has values of one kind.
///
/// # Errors
///
/// One has not.
pub(crate) fn check_kinds(plan: &LogicalPlan) -> std::result::Result<(), Error> {
    let mut found = of_columns(plan);
    let _ = plan.apply_with_subqueries(|step| {
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
    if let LogicalPlan::Distinct(_) = step {
        return of_columns(step);
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
        LogicalPlan::Sort(sort) => return first_of(&sort.expr),
        LogicalPlan::Aggregate(groups) if first(&groups.group_expr).is_some() => {
            return first(&groups.group_expr);
        }
        LogicalPlan::Aggregate(_) | LogicalPlan::Window(_) => {}
        _ => return None,
    }
    let mut found = None;
    let _ = step.apply_expressions(|expr| {
        expr.apply(|part| {
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

/// Compares them with numbers. DataFusion has not made the types agree yet.
pub(crate) fn compared(plan: LogicalPlan) -> Result<LogicalPlan> {
    EachExpr::new("several_kinds", of_expr).analyze(plan, &ConfigOptions::default())
}

fn of_expr(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    let is_several = |expr: &Expr| expr.get_type(schema).is_ok_and(|ty| has_several(&ty));
    let is_number = |expr: &Expr| expr.get_type(schema).is_ok_and(|ty| ty.is_numeric());
    let are_both = |one: &Expr, other: &Expr| is_several(one) && is_number(other);
    Ok(match expr {
        Expr::BinaryExpr(it)
            if matches!(
                it.op,
                Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom
            ) && (are_both(&it.left, &it.right) || are_both(&it.right, &it.left)) =>
        {
            Transformed::yes(comparison(it, is_several))
        }
        Expr::Between(it) if are_both(&it.expr, &it.low) && is_number(&it.high) => {
            let Between {
                expr,
                negated,
                low,
                high,
            } = it;
            let low = binary_expr((*expr).clone(), GtEq, *low);
            let high = binary_expr(*expr, LtEq, *high);
            let both = of_expr(low, schema)?.data.and(of_expr(high, schema)?.data);
            Transformed::yes(match negated {
                true => Expr::Not(Box::new(both)),
                false => both,
            })
        }
        Expr::InList(it) if is_several(&it.expr) && it.list.iter().all(is_number) => {
            let InList {
                expr,
                list,
                negated,
            } = it;
            let wholes = whole((*expr).clone()).in_list(list.clone(), negated);
            Transformed::yes(coalesce(vec![wholes, float(*expr).in_list(list, negated)]))
        }
        other => Transformed::no(other),
    })
}

/// NULL where the value is no whole number.
fn whole(value: Expr) -> Expr {
    cast(value, DataType::Int64)
}

/// NULL where the value is no number with a fraction or an exponent.
fn float(value: Expr) -> Expr {
    cast(value, DataType::Float64)
}

/// As whole numbers, where they are, and else as floats.
fn comparison(it: BinaryExpr, is_several: impl Fn(&Expr) -> bool) -> Expr {
    let BinaryExpr { left, op, right } = it;
    let plain = match op {
        Operator::IsDistinctFrom | Operator::IsNotDistinctFrom => Operator::Eq,
        op => op,
    };
    let compared = |of: fn(Expr) -> Expr| {
        let side = |side: &Expr| match is_several(side) {
            true => of(side.clone()),
            false => side.clone(),
        };
        binary_expr(side(&left), plain, side(&right))
    };
    let (wholes, floats) = (compared(whole), compared(float));
    let both_null = (*left).is_null().and((*right).is_null());
    match op {
        Operator::IsNotDistinctFrom => coalesce(vec![wholes, floats, both_null]),
        Operator::IsDistinctFrom => Expr::Not(Box::new(coalesce(vec![wholes, floats, both_null]))),
        _ => coalesce(vec![wholes, floats]),
    }
}
