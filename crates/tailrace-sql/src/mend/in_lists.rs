//! Several lists of IN over one value. When DataFusion 55 simplifies a condition, it makes one list of them, of the elements that are in both or
//! in one of them, as they are written: a column is another element than the number that it has, and a value that is NULL is in no list
//! and not in any. So `i IN (1, 2) AND i IN (2, j)` was `i IN (2)`, and `s NOT IN ('a') OR s NOT IN ('b')` was true for NULL. Only lists that
//! OR joins, of what is in one of them, become the right one.
//!
//! Which lists meet is seen only while it simplifies: casts fall away, and conditions move between steps. So for as long as it does, each
//! list stands in a call that gives what it is given, and that DataFusion does not look behind.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, LogicalPlan, Operator, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::simplify_expressions::SimplifyExpressions;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::tree::{each_part, map_exprs, map_parts};

/// DataFusion's rule of this name, for which lists are apart.
#[derive(Debug, Default)]
pub struct SimplifiedApart(SimplifyExpressions);

impl OptimizerRule for SimplifiedApart {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        if !has_several(&plan)? {
            return self.0.rewrite(plan, config);
        }
        let names = NamePreserver::new(&plan);
        let shielded = |expr: Expr| {
            let name = names.save(&expr);
            let expr = expr.transform_down(|part| Ok(inwards(part)))?.data;
            let expr = map_parts(expr, &mut |part| Ok(apart(part)))?;
            Ok(expr.update_data(|expr| name.restore(expr)))
        };
        let plan = map_exprs(plan, &mut |expr| match expr {
            Expr::GroupingSet(_) => expr.map_children(shielded),
            _ => shielded(expr),
        })?;
        let plan = self.0.rewrite(plan.data, config)?;
        plan.map_data(|plan| {
            let plan = map_exprs(plan, &mut |expr| {
                map_parts(expr, &mut |part| Ok(bare(part)))
            })?;
            Ok(plan.data)
        })
    }
}

/// Whether an expression of a step has two lists, or what becomes one.
fn has_several(step: &LogicalPlan) -> Result<bool> {
    let mut is_found = false;
    step.apply_expressions(|expr| {
        let (mut lists, mut is_within) = (0, false);
        each_part(expr, &mut |part| {
            let is_or = matches!(part, Expr::BinaryExpr(it) if it.op == Operator::Or);
            // Lists that OR joins are one.
            lists += usize::from(is_list(part) || (is_or && !is_within && is_joined(part)));
            is_within = is_or;
            Ok(match lists {
                2.. => TreeNodeRecursion::Stop,
                _ => TreeNodeRecursion::Continue,
            })
        })?;
        is_found |= lists > 1;
        Ok(match is_found {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(is_found)
}

/// Whether an expression is a list, or what becomes one: a regular expression of some texts, or an array of constants.
fn is_list(expr: &Expr) -> bool {
    match expr {
        Expr::InList(_) => true,
        Expr::BinaryExpr(it) => matches!(
            it.op,
            Operator::RegexMatch
                | Operator::RegexNotMatch
                | Operator::RegexIMatch
                | Operator::RegexNotIMatch
        ),
        Expr::ScalarFunction(call) => matches!(call.name(), "array_has" | "regexp_like"),
        _ => false,
    }
}

/// NOT, which DataFusion would bring to the comparisons if they did not stand in calls.
fn inwards(expr: Expr) -> Transformed<Expr> {
    let Expr::Not(inner) = expr else {
        return Transformed::no(expr);
    };
    match *inner {
        Expr::Not(inner) => Transformed::yes(*inner),
        Expr::InList(list) => Transformed::yes(Expr::InList(InList {
            negated: !list.negated,
            ..list
        })),
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if matches!(op, Operator::And | Operator::Or) =>
        {
            let op = match op {
                Operator::And => Operator::Or,
                _ => Operator::And,
            };
            let [left, right] = [left, right].map(|side| Box::new(Expr::Not(side)));
            Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        }
        other => Transformed::no(Expr::Not(Box::new(other))),
    }
}

/// Whether an expression is an OR of which a list is made, as `a = 1 OR a = 2`.
fn is_joined(mut expr: &Expr) -> bool {
    let is_part = |side: &Expr| match side {
        Expr::InList(list) => !list.negated,
        Expr::BinaryExpr(it) => it.op == Operator::Eq,
        _ => false,
    };
    // Most are nested on the left.
    while let Expr::BinaryExpr(it) = expr
        && it.op == Operator::Or
    {
        if is_part(&it.right) || is_part(&it.left) || is_joined(&it.right) {
            return true;
        }
        expr = &it.left;
    }
    false
}

/// A list in a call, or lists that OR joins in one.
fn apart(expr: Expr) -> Transformed<Expr> {
    let kept = |expr: Expr| Transformed::yes(ScalarUDF::from(Kept::new()).call(vec![expr]));
    match expr {
        expr if is_list(&expr) => kept(expr),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if op == Operator::Or => {
            let [left, right] = [left, right].map(|side| match joined(&side) {
                true => Box::new(bare(*side).data),
                false => side,
            });
            let expr = Expr::BinaryExpr(BinaryExpr { left, op, right });
            match is_joined(&expr) {
                true => kept(expr),
                false => Transformed::no(expr),
            }
        }
        other => Transformed::no(other),
    }
}

/// Whether a call holds what OR may join with more.
fn joined(expr: &Expr) -> bool {
    inner(expr).is_some_and(|inner| match inner {
        Expr::InList(list) => !list.negated,
        other => is_joined(other),
    })
}

/// What a call holds, if it is one of this module.
fn inner(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::ScalarFunction(call) if call.func.inner().is::<Kept>() => call.args.first(),
        _ => None,
    }
}

/// What such a call holds, or any other expression as it is.
fn bare(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::ScalarFunction(mut call) if call.func.inner().is::<Kept>() => {
            Transformed::yes(call.args.swap_remove(0))
        }
        other => Transformed::no(other),
    }
}

/// Gives what it is given, and has its name.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Kept(Signature);

impl Kept {
    fn new() -> Kept {
        Kept(Signature::any(1, Volatility::Immutable))
    }
}

impl ScalarUDFImpl for Kept {
    fn name(&self) -> &str {
        "list_apart"
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        match args {
            [list] => Ok(list.schema_name().to_string()),
            _ => internal_err!("{} takes one value", self.name()),
        }
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(args.args[0].clone())
    }
}
