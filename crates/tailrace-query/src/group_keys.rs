//! Keys of ROLLUP, CUBE and GROUPING SETS. DataFusion 55 takes a number among them for a constant, where SQL means the place of a
//! column as it does elsewhere in GROUP BY, and it refuses keys that come and go together, as `ROLLUP ((a, b), c)` has them, ROLLUP and CUBE among
//! GROUPING SETS, and no key at all, as `GROUP BY ()` has it.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, GroupByWithModifier,
    SelectItem, Value, VisitorMut,
};
use tailrace_sql::walk::walk_mut;

use crate::error::{Error, place_of};

/// More sets are not written out: a CUBE of n keys has 2 to the power of n.
const CUBE_KEYS_MAX: usize = 12;

/// Puts the columns in the place of their numbers, and writes out the sets of keys that come together.
///
/// # Errors
///
/// There is no column with such a number.
pub(crate) fn written_out(query: &mut ast::Query) -> Result<(), Error> {
    let mut keys = Keys(None);
    let _ = walk_mut(query, &mut keys);
    keys.0.map_or(Ok(()), Err)
}

struct Keys(Option<Error>);

impl VisitorMut for Keys {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<()> {
        let GroupByExpr::Expressions(keys, modifiers) = &mut select.group_by else {
            return ControlFlow::Continue(());
        };
        match modifiers[..] {
            [GroupByWithModifier::Rollup] => *keys = vec![Expr::Rollup(each_alone(keys))],
            [GroupByWithModifier::Cube] => *keys = vec![Expr::Cube(each_alone(keys))],
            _ => {}
        }
        if matches!(
            modifiers[..],
            [GroupByWithModifier::Rollup | GroupByWithModifier::Cube]
        ) {
            modifiers.clear();
        }
        without_empty(keys);
        for key in keys {
            if let Err(error) = of_key(key, &select.projection) {
                self.0 = Some(error);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}

fn of_key(key: &mut Expr, items: &[SelectItem]) -> Result<(), Error> {
    if let Expr::GroupingSets(sets) = key {
        without_nested(sets)?;
    }
    let (Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets)) = key else {
        return Ok(());
    };
    for key in sets.iter_mut().flatten() {
        if let Some(column) = column_of(key, items)? {
            *key = column;
        }
    }
    without_tuples(key);
    Ok(())
}

/// The sets that ROLLUP and CUBE stand for, in their place. The parser takes these for functions there.
fn without_nested(sets: &mut Vec<Vec<Expr>>) -> Result<(), Error> {
    for set in std::mem::take(sets) {
        match nested(&set) {
            None => sets.push(set),
            Some((true, parts)) => sets.extend(of_rollup(&parts)),
            Some((false, parts)) if parts.len() <= CUBE_KEYS_MAX => sets.extend(of_cube(&parts)),
            Some(_) => {
                return Err(Error {
                    place: set.first().and_then(place_of),
                    ..Error::usage(format!(
                        "CUBE among GROUPING SETS has at most {CUBE_KEYS_MAX} keys"
                    ))
                });
            }
        }
    }
    Ok(())
}

/// Whether a set is ROLLUP, or CUBE, and the keys of each of its parts.
fn nested(set: &[Expr]) -> Option<(bool, Vec<Vec<Expr>>)> {
    let [Expr::Function(called)] = set else {
        return None;
    };
    let is_rollup = match called.name.to_string().to_ascii_uppercase().as_str() {
        "ROLLUP" => true,
        "CUBE" => false,
        _ => return None,
    };
    let FunctionArguments::List(list) = &called.args else {
        return None;
    };
    let parts = list.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Tuple(keys))) => Some(keys.clone()),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(key)) => Some(vec![key.clone()]),
        _ => None,
    });
    Some((is_rollup, parts.collect::<Option<_>>()?))
}

/// Leaves `()` out beside other keys; by itself it is one group, of all rows.
fn without_empty(keys: &mut Vec<Expr>) {
    let is_empty = |key: &Expr| matches!(key, Expr::Tuple(parts) if parts.is_empty());
    let had_some = keys.iter().any(is_empty);
    keys.retain(|key| !is_empty(key));
    if had_some && keys.is_empty() {
        keys.push(Expr::GroupingSets(vec![Vec::new()]));
    }
}

fn each_alone(keys: &mut Vec<Expr>) -> Vec<Vec<Expr>> {
    keys.drain(..).map(|key| vec![key]).collect()
}

/// What stands in SELECT at the place that a key names, if it is a number.
fn column_of(key: &Expr, items: &[SelectItem]) -> Result<Option<Expr>, Error> {
    let Expr::Value(value) = key else {
        return Ok(None);
    };
    let Value::Number(number, _) = &value.value else {
        return Ok(None);
    };
    let place = number.parse().unwrap_or(0_usize);
    let before = items.get(..place).unwrap_or_default();
    match before.last() {
        Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. })
            if !before.iter().any(is_star) =>
        {
            Ok(Some(expr.clone()))
        }
        _ => Err(Error {
            place: place_of(key),
            hint: Some("name the column instead".to_owned()),
            ..Error::usage(match before.iter().any(is_star) {
                true => format!("the place {number} in GROUP BY is behind a `*`"),
                false => format!("there is no column {number} in SELECT"),
            })
        }),
    }
}

fn is_star(item: &SelectItem) -> bool {
    !matches!(
        item,
        SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }
    )
}

/// The same key with all sets written out, if some of its parts are several keys.
fn without_tuples(key: &mut Expr) {
    let sets = match key {
        Expr::Rollup(parts) if has_tuples(parts) => of_rollup(parts),
        Expr::Cube(parts) if has_tuples(parts) && parts.len() <= CUBE_KEYS_MAX => of_cube(parts),
        _ => return,
    };
    *key = Expr::GroupingSets(sets);
}

fn of_rollup(parts: &[Vec<Expr>]) -> Vec<Vec<Expr>> {
    let ends = (0..=parts.len()).rev();
    ends.map(|end| parts[..end].concat()).collect()
}

fn of_cube(parts: &[Vec<Expr>]) -> Vec<Vec<Expr>> {
    let chosen = (0..1_usize << parts.len()).rev();
    let set = |chosen: usize| {
        let parts = parts.iter().enumerate();
        let parts = parts.filter(|(at, _)| chosen & (1 << at) != 0);
        parts.flat_map(|(_, part)| part.clone()).collect()
    };
    chosen.map(set).collect()
}

fn has_tuples(parts: &[Vec<Expr>]) -> bool {
    parts.iter().any(|part| part.len() != 1)
}
