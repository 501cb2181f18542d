//! Several lists of IN over one value. DataFusion makes one list of them, of the elements that are in both or in one of them, as they are
//! written: a column is another element than the number that it has, and a value that is NULL is in no list and not in any. So
//! `i IN (1, 2) AND i IN (2, j)` was `i IN (2)`, and `s NOT IN ('a') OR s NOT IN ('b')` was true for NULL.

use std::hash::{DefaultHasher, Hash, Hasher};

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

use super::casts::keep_apart;

/// A list of one element as a comparison, and lists that would become a wrong one as such of values that are not told to be the same.
pub(super) fn told_apart(expr: Expr, _: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::InList(mut list) if list.list.len() == 1 => {
            let element = list.list.swap_remove(0);
            Transformed::yes(match list.negated {
                true => (*list.expr).not_eq(element),
                false => (*list.expr).eq(element),
            })
        }
        // Conditions may come together later.
        Expr::InList(mut list) if !list.list.iter().all(is_known) => {
            apart(&mut list);
            Transformed::yes(Expr::InList(list))
        }
        Expr::BinaryExpr(mut it) if matches!(it.op, Operator::And | Operator::Or) => {
            let is_changed = tell_apart(&mut it)?;
            Transformed::new_transformed(Expr::BinaryExpr(it), is_changed)
        }
        other => Transformed::no(other),
    })
}

/// Whether an element is a value, and not NULL.
fn is_known(element: &Expr) -> bool {
    match element {
        Expr::Literal(value, _) => !value.is_null(),
        Expr::Cast(cast) => is_known(&cast.expr),
        Expr::Negative(of) => is_known(of),
        _ => false,
    }
}

/// The lists on the right whose value has a list on the left; whether there are such.
fn tell_apart(it: &mut BinaryExpr) -> Result<bool> {
    let (left, right) = (lists(&it.left)?, lists(&it.right)?);
    let may_be_wrong = |one: &List, other: &List| {
        let is_right = match it.op {
            Operator::And => one.is_plain && other.is_plain && one.negated && other.negated,
            _ => one.is_plain && other.is_plain && !one.negated && !other.negated,
        };
        one.value == other.value && !is_right
    };
    let wrong: Vec<Expr> = right
        .iter()
        .filter(|list| left.iter().any(|other| may_be_wrong(other, list)))
        .map(|list| list.value.clone())
        .collect();
    if wrong.is_empty() {
        return Ok(false);
    }
    let side = std::mem::take(&mut *it.right);
    *it.right = side.transform_up(|expr| Ok(of_values(expr, &wrong)))?.data;
    Ok(true)
}

/// The lists of these values, and comparisons with them of which lists are made.
fn of_values(mut expr: Expr, values: &[Expr]) -> Transformed<Expr> {
    let is_changed = match &mut expr {
        Expr::InList(list) if values.contains(&list.expr) => {
            apart(list);
            true
        }
        Expr::BinaryExpr(it) if it.op == Operator::Eq => {
            let mark = mark_of(&(&it.left, &it.right));
            let sides = [&mut *it.left, &mut *it.right].into_iter();
            let side = sides.into_iter().find(|side| values.contains(side));
            side.map(|side| keep_apart(side, mark)).is_some()
        }
        _ => false,
    };
    Transformed::new_transformed(expr, is_changed)
}

/// What is looked for in a list.
struct List {
    value: Expr,
    negated: bool,
    /// Whether it is a list as it stands, and the whole side.
    is_plain: bool,
}

/// The lists that a condition consists of, also those that DataFusion makes of `a = 1 OR a = 2`.
fn lists(condition: &Expr) -> Result<Vec<List>> {
    let mut found = Vec::new();
    condition.apply(|expr| {
        let is_plain = std::ptr::eq(expr, condition);
        match expr {
            Expr::InList(list) => found.push(List {
                value: (*list.expr).clone(),
                negated: list.negated,
                is_plain,
            }),
            Expr::BinaryExpr(it) if it.op == Operator::Eq && !is_plain => {
                let sides = [&it.left, &it.right].into_iter();
                let columns = sides.filter(|side| matches!(***side, Expr::Column(_)));
                found.extend(columns.map(|side| List {
                    value: (**side).clone(),
                    negated: false,
                    is_plain,
                }));
            }
            Expr::BinaryExpr(it) if matches!(it.op, Operator::And | Operator::Or) => {}
            Expr::Not(_) => {}
            // What else has a condition within it is a value.
            _ => return Ok(TreeNodeRecursion::Jump),
        }
        Ok(match expr {
            Expr::BinaryExpr(it) if matches!(it.op, Operator::And | Operator::Or) => {
                TreeNodeRecursion::Continue
            }
            Expr::Not(_) => TreeNodeRecursion::Continue,
            _ => TreeNodeRecursion::Jump,
        })
    })?;
    Ok(found)
}

/// The value of a list, which is another one than that of a list with other elements.
fn apart(list: &mut InList) {
    let mark = mark_of(&(&list.list, list.negated));
    keep_apart(&mut list.expr, mark);
}

fn mark_of(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}
