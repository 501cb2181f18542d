//! A regular expression with a backslash in its text. DataFusion's optimizer makes a LIKE of one that is a mere text, and forgets that a
//! backslash escapes what follows in a LIKE: `M\\u`, which is `M\u`, would find `Mu`. And it takes `s ~ '.*'` for `s IS NOT NULL`, which is false
//! and not NULL where `s` is NULL.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};

/// An empty group: a regular expression that ends with one is no mere text, finds the same, and is valid if it was.
const GROUP: &str = "()";
const ANYTHING: &str = ".*";

/// The same expression, so that it stays a regular expression.
pub(super) fn kept(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let pattern = match &mut expr {
        Expr::BinaryExpr(BinaryExpr { op, right, .. }) if is_match(*op) => Some(&mut **right),
        Expr::ScalarFunction(function) if function.name() == "regexp_like" => {
            function.args.get_mut(1)
        }
        _ => None,
    };
    let Some(pattern) = pattern else {
        return Ok(Transformed::no(expr));
    };
    let is_kept = match text_of(pattern) {
        Some(text) if !may_have_backslash(text) && text != ANYTHING => false,
        Some(text) => {
            text.push_str(GROUP);
            true
        }
        // It may become one when columns and constants are put in.
        None => {
            let ty = pattern.get_type(schema)?;
            if !ty.is_string() {
                return Ok(Transformed::no(expr));
            }
            let group = Expr::Literal(ScalarValue::new_utf8(GROUP), None).cast_to(&ty, schema)?;
            let left = Box::new(std::mem::take(pattern));
            let (op, right) = (Operator::StringConcat, Box::new(group));
            *pattern = Expr::BinaryExpr(BinaryExpr { left, op, right });
            true
        }
    };
    Ok(Transformed::new_transformed(expr, is_kept))
}

fn is_match(op: Operator) -> bool {
    use Operator::{RegexIMatch, RegexMatch, RegexNotIMatch, RegexNotMatch};
    matches!(
        op,
        RegexMatch | RegexIMatch | RegexNotMatch | RegexNotIMatch
    )
}

/// The text of a pattern that is a literal.
fn text_of(pattern: &mut Expr) -> Option<&mut String> {
    match pattern {
        Expr::Literal(
            ScalarValue::Utf8(Some(text))
            | ScalarValue::LargeUtf8(Some(text))
            | ScalarValue::Utf8View(Some(text)),
            _,
        ) => Some(text),
        Expr::Cast(cast) => text_of(&mut cast.expr),
        _ => None,
    }
}

/// A backslash stands for itself if it is escaped, or written by its number.
fn may_have_backslash(pattern: &str) -> bool {
    let is_by_number = || pattern.contains('\\') && pattern.to_ascii_lowercase().contains("5c");
    pattern.contains(r"\\") || is_by_number()
}
