//! Values of several kinds, which `json_get` and `->` give. A result, an order and groups want values of one kind: where there is none, the query
//! is refused. DataFusion compares such a value with a whole number as one: 12.5 was neither more nor less than 3. Here it is compared as the
//! number that it is.

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::logical_expr::expr::Between;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, binary_expr, cast,
};
use datafusion::optimizer::AnalyzerRule;
use tailrace_sql::EachExpr;

use crate::error::Error;

/// Checks that every column of the result, and every key of an order and of groups, has values of one kind.
///
/// # Errors
///
/// One has not.
pub(crate) fn check_kinds(plan: &LogicalPlan) -> std::result::Result<(), Error> {
    for field in plan.schema().fields() {
        if has_several(field.data_type()) {
            return Err(refused(field.name()));
        }
    }
    let mut found = None;
    let _ = plan.apply_with_subqueries(|step| {
        let schema = merge_schema(&step.inputs());
        let mut keys: Vec<&Expr> = match step {
            LogicalPlan::Sort(sort) => sort.expr.iter().map(|key| &key.expr).collect(),
            LogicalPlan::Aggregate(groups) => groups.group_expr.iter().collect(),
            _ => Vec::new(),
        };
        if let LogicalPlan::Window(windows) = step {
            for expr in &windows.window_expr {
                let _ = expr.apply(|part| {
                    if let Expr::WindowFunction(window) = part {
                        keys.extend(&window.params.partition_by);
                        keys.extend(window.params.order_by.iter().map(|key| &key.expr));
                    }
                    Ok(TreeNodeRecursion::Continue)
                });
            }
        }
        let is_of_several = |key: &&&Expr| key.get_type(&schema).is_ok_and(|ty| has_several(&ty));
        found = keys
            .iter()
            .find(is_of_several)
            .map(|key| refused(&key.schema_name().to_string()));
        Ok(match found {
            Some(_) => TreeNodeRecursion::Stop,
            None => TreeNodeRecursion::Continue,
        })
    });
    found.map_or(Ok(()), Err)
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

/// Compares them with whole numbers. DataFusion has not made the types agree yet.
pub(crate) fn compared(plan: LogicalPlan) -> Result<LogicalPlan> {
    EachExpr::new("several_kinds", of_expr).analyze(plan, &ConfigOptions::default())
}

fn of_expr(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    Ok(match expr {
        Expr::BinaryExpr(it) => {
            let compares = matches!(
                it.op,
                Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom
            );
            if compares && is_of_both(&it.left, &it.right, schema) {
                Transformed::yes(comparison(it, schema)?)
            } else {
                Transformed::no(Expr::BinaryExpr(it))
            }
        }
        Expr::Between(it)
            if is_of_both(&it.expr, &it.low, schema) || is_of_both(&it.expr, &it.high, schema) =>
        {
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
        other => Transformed::no(other),
    })
}

/// Whether one has values of several kinds and the other one whole numbers.
fn is_of_both(left: &Expr, right: &Expr, schema: &DFSchema) -> bool {
    let (Ok(left), Ok(right)) = (left.get_type(schema), right.get_type(schema)) else {
        return false;
    };
    has_several(&left) && right.is_integer() || left.is_integer() && has_several(&right)
}

/// As whole numbers, which is NULL where the value is none, and else as floats, which is NULL where it is none of these.
fn comparison(it: BinaryExpr, schema: &DFSchema) -> Result<Expr> {
    let BinaryExpr { left, op, right } = it;
    let as_float = |side: &Expr| -> Result<Expr> {
        Ok(match side.get_type(schema)?.is_integer() {
            true => cast(side.clone(), DataType::Float64),
            false => side.clone(),
        })
    };
    let plain = match op {
        Operator::IsDistinctFrom | Operator::IsNotDistinctFrom => Operator::Eq,
        op => op,
    };
    let floats = binary_expr(as_float(&left)?, plain, as_float(&right)?);
    let both_null = (*left).clone().is_null().and((*right).clone().is_null());
    let wholes = binary_expr(*left, plain, *right);
    Ok(match op {
        Operator::IsNotDistinctFrom => coalesce(vec![wholes, floats, both_null]),
        Operator::IsDistinctFrom => Expr::Not(Box::new(coalesce(vec![wholes, floats, both_null]))),
        _ => coalesce(vec![wholes, floats]),
    })
}
