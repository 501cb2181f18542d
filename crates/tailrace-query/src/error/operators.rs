//! Operators between values of types that they do not take.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{self, Expr};
use tailrace_sql::walk::expressions;

use super::Error;
use super::planning::{SEVERAL_KINDS, place_of, type_name};

/// What DataFusion's text says of an operator.
pub(super) fn of_operator(text: &str, query: &ast::Query) -> Option<Error> {
    let types = text
        .split_once("Cannot coerce arithmetic expression ")
        .and_then(|(_, rest)| rest.split_once(" to valid types"))
        .map(|(types, _)| types)
        .or_else(|| Some(text.split_once("for logical boolean operation ")?.1))
        .or_else(|| Some(text.split_once("for comparison operation ")?.1));
    match types {
        Some(types) => of_two(types, query),
        None => of_one(text, query).or_else(|| of_condition(text, query)),
    }
}

/// `types` are those of both sides, with the operator between them.
fn of_two(types: &str, query: &ast::Query) -> Option<Error> {
    let (left, rest) = parted(types)?;
    let (op, right) = rest.split_once(' ')?;
    let (left, right) = (type_name(left), type_name(right));
    let is_it = |expr: &Expr| matches!(expr, Expr::BinaryOp { op: it, .. } if it.to_string() == op);
    let found = only(query, &is_it);
    let hint = match (left, right) {
        (SEVERAL_KINDS, _) | (_, SEVERAL_KINDS) => {
            "json_get_int, json_get_float, json_get_str or a cast gives values of one kind"
        }
        ("timestamp", _) | (_, "timestamp") if matches!(op, "+" | "-") => {
            "a time is moved by an interval: timestamp + INTERVAL '1 hour'"
        }
        ("boolean", _) | (_, "boolean") => {
            "write `x = true` of a condition, and `x <> 0` of a number"
        }
        ("text", _) | (_, "text") => {
            "TRY_CAST(x AS DOUBLE) is the number that a text is, or NULL; `||` puts texts together"
        }
        _ => "CAST and TRY_CAST change types",
    };
    let beside = format!("{left} and {right} beside `{op}`, which does not take them");
    Some(Error {
        place: found.as_ref().and_then(place_of),
        hint: Some(hint.to_owned()),
        ..Error::usage(match &found {
            Some(expr) => format!("`{expr}` has {beside}"),
            None => format!("the query has {beside}"),
        })
    })
}

/// The one expression of a query that is so; of several it is not known which was meant.
fn only(query: &ast::Query, is_it: &dyn Fn(&Expr) -> bool) -> Option<Expr> {
    let mut found = Vec::new();
    let _ = expressions(query, &mut |expr| {
        if is_it(expr) {
            found.push(expr.clone());
        }
        ControlFlow::Continue(())
    });
    found.pop().filter(|_| found.is_empty())
}

/// The first type, and what follows; a type may have spaces in parentheses.
fn parted(types: &str) -> Option<(&str, &str)> {
    let mut depth = 0;
    let end = types.find(|sign| {
        match sign {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        sign == ' ' && depth == 0
    })?;
    Some((&types[..end], &types[end + 1..]))
}

fn of_one(text: &str, query: &ast::Query) -> Option<Error> {
    let (_, rest) = text.split_once("Unary operator '")?;
    let (op, _) = rest.split_once('\'')?;
    let found = only(query, &|expr| match expr {
        Expr::UnaryOp { op: it, .. } => it.to_string() == op,
        _ => false,
    });
    let what = match &found {
        Some(expr) => format!("`{expr}`"),
        None => format!("`{op}`"),
    };
    let unsigned = text.split_once(" cannot be used with UInt");
    let (takes, hint) = match op {
        "-" if unsigned.is_some() => (
            "a number that has a sign",
            "`-CAST(x AS BIGINT)` is the negative of an unsigned number; of one beyond 2^63, `-CAST(x AS DECIMAL(20, 0))`",
        ),
        "NOT" => ("a condition", "compare the column first, as in NOT x = 'y'"),
        _ => (
            "a number",
            "TRY_CAST(x AS DOUBLE) is the number that a text is",
        ),
    };
    Some(Error {
        place: found.as_ref().and_then(place_of),
        hint: Some(hint.to_owned()),
        ..Error::usage(format!("{what}: `{op}` takes {takes}"))
    })
}

/// A condition that is none.
fn of_condition(text: &str, query: &ast::Query) -> Option<Error> {
    let (_, rest) = text.split_once("Cannot create filter with non-boolean predicate '")?;
    let (condition, ty) = rest.rsplit_once("' returning ")?;
    let name = super::clauses::found_name(query, condition);
    let what = name
        .as_ref()
        .map_or(condition.to_owned(), ToString::to_string);
    Some(Error {
        place: name.as_ref().and_then(place_of),
        hint: Some(format!(
            "compare it with something, or write `{what} IS NOT NULL`"
        )),
        ..Error::usage(format!(
            "a condition is true or false, and `{what}` is {}",
            type_name(ty)
        ))
    })
}
