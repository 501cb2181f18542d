//! Regular expressions of a query that are refused, while it is planned or when it runs.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Value};
use regex::Regex;
use tailrace_sql::walk::{expressions, first};

use super::Error;
use super::planning::place_of;

/// A regular expression of the query that is wrong, or too large once it is compiled.
pub(super) fn refused_regex(text: &str, sql: &str) -> Option<Error> {
    let is_regex = |expr: &Expr| match expr {
        Expr::BinaryOp { op, .. } => matches!(
            op,
            BinaryOperator::PGRegexMatch
                | BinaryOperator::PGRegexIMatch
                | BinaryOperator::PGRegexNotMatch
                | BinaryOperator::PGRegexNotIMatch
        ),
        Expr::Function(called) => called
            .name
            .to_string()
            .to_lowercase()
            .starts_with("regexp_"),
        _ => false,
    };
    // Of several the one that is written out and wrong.
    let is_wrong =
        |expr: &Expr| is_regex(expr) && texts(expr).iter().any(|it| Regex::new(it).is_err());
    let said = |message: String, hint: &str| {
        let query = tailrace_sql::parse_query(sql).ok()?;
        let wrong = first(&query, &is_wrong);
        let wrong = wrong.or_else(|| first(&query, &is_regex));
        Some(Error {
            place: wrong.and_then(|expr| place_of(&expr)),
            hint: Some(hint.to_owned()),
            ..Error::usage(message)
        })
    };
    if let Some((_, rest)) = text.split_once("Regular expression did not compile: CompiledTooBig(")
    {
        let limit = rest.split(')').next()?;
        return said(
            format!("a regular expression is too large: compiled it has more than {limit} bytes"),
            "repeat less: (x{1000}){1000} is a million states",
        );
    }
    let unparsed = text
        .split_once("regex parse error: ")
        .or_else(|| text.split_once("did not compile: "));
    let (_, rest) = unparsed?;
    // Some say the expression alone.
    let alone = || Some(Regex::new(rest).err()?.to_string());
    let text = match rest.contains("error: ") {
        true => rest.to_owned(),
        false => alone()?,
    };
    let (_, what) = text.rsplit_once("error: ")?;
    said(
        format!("a regular expression is wrong: {what}"),
        "its syntax is that of RE2, without look-around and backreferences",
    )
}

/// The texts that are written out in an expression.
fn texts(expr: &Expr) -> Vec<String> {
    let mut texts = Vec::new();
    let _ = expressions(expr, &mut |part| {
        if let Expr::Value(value) = part
            && let Value::SingleQuotedString(text) = &value.value
        {
            texts.push(text.clone());
        }
        ControlFlow::Continue(())
    });
    texts
}
