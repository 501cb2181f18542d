//! Keys and functions that only differ by a cast, as in `GROUP BY timestamp, timestamp::date` and `sum(a), sum(a::double)`. DataFusion 55
//! leaves casts out of the names that it gives them, and refuses two of one name.
//!
//! The casts of such a SELECT are put into a CASE that has their type in its condition, and that is gone when the query is
//! optimized.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, CaseWhen, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, GroupByExpr, Ident, OrderBy, OrderByKind, SelectItem, SetExpr, Value,
    VisitorMut,
};
use tailrace_sql::walk::{expressions, expressions_mut, walk_mut};

/// Gives such casts names of their own.
pub(crate) fn apart(query: &mut ast::Query) {
    let _ = walk_mut(query, &mut Casts);
}

struct Casts;

impl VisitorMut for Casts {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<()> {
        each_select(&mut query.body, query.order_by.as_mut());
        ControlFlow::Continue(())
    }
}

/// Looks at the SELECTs of a query; the order is that of a single one.
fn each_select(body: &mut SetExpr, order: Option<&mut OrderBy>) {
    match body {
        SetExpr::Select(select) => of_select(select, order),
        SetExpr::SetOperation { left, right, .. } => {
            each_select(left, None);
            each_select(right, None);
        }
        // A query of its own, or no SELECT.
        _ => {}
    }
}

fn of_select(select: &mut ast::Select, order: Option<&mut OrderBy>) {
    let groups = match &select.group_by {
        GroupByExpr::Expressions(keys, _) => !keys.is_empty(),
        GroupByExpr::All(_) => true,
    };
    let mut parts = parts(select, order);
    if !has_like(&parts, groups) {
        return;
    }
    for part in &mut parts {
        let _ = expressions_mut(*part, &mut |expr| {
            if matches!(expr, Expr::Cast { .. }) {
                *expr = with_type(expr);
            }
            ControlFlow::Continue(())
        });
    }
}

/// What is computed of groups and of rows in an order.
fn parts<'s>(select: &'s mut ast::Select, order: Option<&'s mut OrderBy>) -> Vec<&'s mut Expr> {
    let columns = select.projection.iter_mut().filter_map(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    });
    let keys = match &mut select.group_by {
        GroupByExpr::Expressions(keys, _) => &mut keys[..],
        GroupByExpr::All(_) => &mut [],
    };
    let order = match order.map(|order| &mut order.kind) {
        Some(OrderByKind::Expressions(keys)) => &mut keys[..],
        _ => &mut [],
    };
    let conditions = select.having.iter_mut().chain(&mut select.qualify);
    let order = order.iter_mut().map(|key| &mut key.expr);
    columns.chain(keys).chain(conditions).chain(order).collect()
}

/// Whether two of them are the same but for casts: functions, or keys of groups, which a column may stand for.
fn has_like(parts: &[&mut Expr], groups: bool) -> bool {
    let mut known = HashMap::new();
    let mut is_like = false;
    let mut look = |expr: &Expr| {
        let other = known.entry(without_casts(expr)).or_insert(expr.clone());
        is_like |= other != expr;
    };
    for part in parts {
        if groups {
            look(part);
        }
        let _ = expressions(*part, &mut |expr| {
            match expr {
                Expr::Function(_) => look(expr),
                Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets) => {
                    sets.iter().flatten().for_each(&mut look);
                }
                _ => {}
            }
            ControlFlow::Continue(())
        });
    }
    is_like
}

fn without_casts(expr: &Expr) -> Expr {
    let mut plain = expr.clone();
    let _ = expressions_mut(&mut plain, &mut |expr| {
        let inner = match expr {
            Expr::Cast { expr, .. } | Expr::Nested(expr) => Some((**expr).clone()),
            Expr::CompoundIdentifier(names) => names.last().cloned().map(Expr::Identifier),
            Expr::Function(called) => {
                all_as_one(called);
                None
            }
            _ => None,
        };
        if let Some(inner) = inner {
            *expr = inner;
        }
        ControlFlow::Continue(())
    });
    // In quotes or not.
    let _ = expressions_mut(&mut plain, &mut |expr| {
        if let Expr::Identifier(name) = expr {
            *name = Ident::new(name.value.clone());
        }
        ControlFlow::Continue(())
    });
    plain
}

/// `count(*)` as `count(1)`, which is its name for DataFusion.
fn all_as_one(called: &mut Function) {
    if let FunctionArguments::List(list) = &mut called.args
        && let [FunctionArg::Unnamed(all @ FunctionArgExpr::Wildcard)] = &mut list.args[..]
    {
        *all = FunctionArgExpr::Expr(Expr::value(Value::Number("1".to_owned(), false)));
    }
}

/// The same value, with a name that has the type of the cast in it.
fn with_type(cast: &Expr) -> Expr {
    let Expr::Cast {
        kind, data_type, ..
    } = cast
    else {
        return cast.clone();
    };
    let text = Value::SingleQuotedString(format!("{kind:?} {data_type}"));
    let text = Box::new(Expr::Value(text.into()));
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen {
            condition: Expr::BinaryOp {
                left: text.clone(),
                op: BinaryOperator::Eq,
                right: text,
            },
            result: cast.clone(),
        }],
        else_result: None,
    }
}
