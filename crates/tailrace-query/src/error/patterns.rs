//! Regular expressions of a query that are refused, while it is planned or when it runs.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr};
use tailrace_sql::walk::first;

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
    let said = |message: String, hint: &str| {
        let query = tailrace_sql::parse_query(sql).ok()?;
        Some(Error {
            place: first(&query, &is_regex).and_then(|expr| place_of(&expr)),
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
    let (_, rest) = text.split_once("regex parse error: ")?;
    let (_, what) = rest.rsplit_once("error: ")?;
    said(
        format!("a regular expression is wrong: {what}"),
        "its syntax is that of RE2, without look-around and backreferences",
    )
}
