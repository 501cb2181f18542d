//! A regular expression with a backslash in its text. DataFusion's optimizer makes a LIKE of one that is a mere text, and forgets that a
//! backslash escapes what follows in a LIKE: `M\\u`, which is `M\u`, would find `Mu`.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

/// An empty group: a regular expression that has one is no mere text, and finds the same.
const GROUP: &str = "()";

/// The same expression, so that it stays a regular expression.
pub(super) fn kept(mut expr: Expr, _: &DFSchema) -> Result<Transformed<Expr>> {
    let pattern = match &mut expr {
        Expr::BinaryExpr(BinaryExpr { op, right, .. }) if is_match(*op) => Some(&mut **right),
        Expr::ScalarFunction(function) if function.name() == "regexp_like" => {
            function.args.get_mut(1)
        }
        _ => None,
    };
    let is_kept = pattern.is_some_and(keep);
    Ok(Transformed::new_transformed(expr, is_kept))
}

fn is_match(op: Operator) -> bool {
    use Operator::{RegexIMatch, RegexMatch, RegexNotIMatch, RegexNotMatch};
    matches!(
        op,
        RegexMatch | RegexIMatch | RegexNotMatch | RegexNotIMatch
    )
}

/// Whether the pattern is one that was changed.
fn keep(pattern: &mut Expr) -> bool {
    match pattern {
        Expr::Literal(
            ScalarValue::Utf8(Some(text))
            | ScalarValue::LargeUtf8(Some(text))
            | ScalarValue::Utf8View(Some(text)),
            _,
        ) if may_have_backslash(text) && !text.starts_with(GROUP) => {
            text.insert_str(0, GROUP);
            true
        }
        Expr::Cast(cast) => keep(&mut cast.expr),
        _ => false,
    }
}

/// A backslash stands for itself if it is escaped, or written by its number.
fn may_have_backslash(pattern: &str) -> bool {
    pattern.contains(r"\\") || pattern.to_ascii_lowercase().contains("5c")
}
