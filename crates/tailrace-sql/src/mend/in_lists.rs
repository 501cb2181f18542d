//! Several lists of IN over one value. DataFusion makes one list of them, of the elements that are in both or in one of them, as they are
//! written: a column is another element than the number that it has, and a value that is NULL is in no list and not in any. So
//! `i IN (1, 2) AND i IN (2, j)` was `i IN (2)`, and `s NOT IN ('a') OR s NOT IN ('b')` was true for NULL.

use std::hash::{DefaultHasher, Hash, Hasher};

use datafusion::common::tree_node::{Transformed, TreeNode};
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

/// The lists on the right whose value has a list on the left; whether there are such. What is in one of two lists, or in neither, is in
/// or not in one of both.
fn tell_apart(it: &mut BinaryExpr) -> Result<bool> {
    let is_or = it.op == Operator::Or;
    let (mut left, mut right) = (Vec::new(), Vec::new());
    lists(&it.right, false, &mut right);
    if right.is_empty() {
        return Ok(false);
    }
    lists(&it.left, false, &mut left);
    let is_wrong = |list: &&List<'_>| {
        let mut others = left.iter().filter(|other| other.value == list.value);
        // Also under NOT, which makes the other operator and the other lists of them.
        others.any(|other| list.negated == is_or || other.negated == is_or)
    };
    let wrong: Vec<Expr> = right
        .iter()
        .filter(is_wrong)
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
struct List<'a> {
    value: &'a Expr,
    negated: bool,
}

/// The lists that a condition consists of, also those that DataFusion makes of `a = 1 OR a = 2`; `is_flipped` within NOT.
fn lists<'a>(condition: &'a Expr, is_flipped: bool, found: &mut Vec<List<'a>>) {
    match condition {
        Expr::InList(list) => found.push(List {
            value: &list.expr,
            negated: list.negated != is_flipped,
        }),
        Expr::Not(inner) => lists(inner, !is_flipped, found),
        Expr::BinaryExpr(it) if it.op == Operator::And => {
            lists(&it.left, is_flipped, found);
            lists(&it.right, is_flipped, found);
        }
        Expr::BinaryExpr(it) if it.op == Operator::Or => {
            let mut compared: Vec<(&Expr, bool)> = Vec::new();
            let mut open = vec![&it.left, &it.right];
            while let Some(operand) = open.pop() {
                match &**operand {
                    Expr::BinaryExpr(it) if it.op == Operator::Or => {
                        open.extend([&it.left, &it.right]);
                    }
                    Expr::BinaryExpr(it) if it.op == Operator::Eq => {
                        let sides = [&*it.left, &*it.right].into_iter();
                        for side in sides.filter(|side| matches!(side, Expr::Column(_))) {
                            match compared.iter_mut().find(|(value, _)| *value == side) {
                                Some((_, is_list)) => *is_list = true,
                                None => compared.push((side, false)),
                            }
                        }
                    }
                    other => lists(other, is_flipped, found),
                }
            }
            let made = compared.into_iter().filter(|(_, is_list)| *is_list);
            found.extend(made.map(|(value, _)| List {
                value,
                negated: is_flipped,
            }));
        }
        // What else has a condition within it is a value.
        _ => {}
    }
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
