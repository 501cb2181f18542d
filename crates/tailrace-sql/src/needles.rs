//! Literals that a record must hold for a conjunct to be true.
//!
//! Derives [`Needles`] from one rewritten conjunct, for exactly the forms of D3: `=`, `IN`, `LIKE`, `starts_with` and
//! `contains` between a key of the record that is read as text and literals. The text of such a key is a piece of the
//! record as it is written, or a string of it with its escapes undone; so what the text must hold, the record must
//! hold, up to escapes, which whoever searches allows for. Never needles for a negation, a number, a reserved column
//! or a literal of another type.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value,
};

use tailrace_model::needle::{Needle, Needles};

use crate::analyse::bare;
use crate::types::{ColumnSource, Columns, Type};

/// The texts of which a record must hold one for this conjunct to be true; `None` if no text must be there.
pub(crate) fn needles(conjunct: &Expr, columns: &Columns) -> Option<Needles> {
    let any = match bare(conjunct) {
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Eq,
            right,
        } => {
            let literal = match (is_text_key(left, columns), is_text_key(right, columns)) {
                (true, false) => literal(right)?,
                (false, true) => literal(left)?,
                _ => return None,
            };
            vec![Needle::whole(literal)?]
        }
        Expr::InList {
            expr,
            list,
            negated: false,
        } if is_text_key(expr, columns) => list
            .iter()
            .map(|item| Needle::whole(literal(item)?))
            .collect::<Option<Vec<_>>>()?,
        Expr::Like {
            negated: false,
            any: false,
            expr,
            pattern,
            escape_char: None,
        } if is_text_key(expr, columns) => vec![Needle::like(literal(pattern)?)?],
        Expr::Function(function) => {
            let (key, part) = arguments(function)?;
            if !is_text_key(key, columns) {
                return None;
            }
            vec![Needle::part(literal(part)?)?]
        }
        _ => return None,
    };
    (!any.is_empty()).then_some(Needles { any })
}

/// Whether this is a column of a key, or of a path below it, read as text.
fn is_text_key(expr: &Expr, columns: &Columns) -> bool {
    let Expr::Identifier(ident) = bare(expr) else {
        return false;
    };
    let column = columns.position(&ident.value).map(|at| &columns.list()[at]);
    column.is_some_and(|column| {
        matches!(column.source, ColumnSource::Key(_))
            && matches!(column.ty, Type::Open | Type::Text)
    })
}

/// The text of a string literal, as the planner reads it.
fn literal(expr: &Expr) -> Option<&str> {
    match bare(expr) {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Some(text),
            Value::DollarQuotedString(quoted) => Some(&quoted.value),
            _ => None,
        },
        _ => None,
    }
}

/// Key and literal of `starts_with` or `contains`.
fn arguments(function: &Function) -> Option<(&Expr, &Expr)> {
    if !matches!(
        function.name.to_string().as_str(),
        "starts_with" | "contains"
    ) {
        return None;
    }
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    match list.args.as_slice() {
        [
            FunctionArg::Unnamed(FunctionArgExpr::Expr(key)),
            FunctionArg::Unnamed(FunctionArgExpr::Expr(part)),
        ] => Some((key, part)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::compile;
    use crate::{Conjunct, When};

    /// The needles of each conjunct, quoted ones in quotes, alternatives joined by `|`; `-` for none.
    fn check(condition: &str, expect: &[&str]) {
        let query = compile(&format!("SELECT msg FROM logs WHERE {condition}"));
        let text = |conjunct: &Conjunct| match &conjunct.when {
            When::Prefilter(needles) => {
                let texts = needles.any.iter().map(|needle| {
                    if needle.quoted {
                        format!("\"{}\"", needle.text)
                    } else {
                        needle.text.clone()
                    }
                });
                texts.collect::<Vec<_>>().join("|")
            }
            When::PushedDown => "-".to_owned(),
            When::After => "after".to_owned(),
        };
        let found: Vec<_> = query.branches()[0].predicate.iter().map(text).collect();
        assert_eq!(found, expect, "{condition}");
        let prefilter = query
            .pushdown()
            .map_or(0, |pushdown| pushdown.prefilter.len());
        let needles = expect
            .iter()
            .filter(|found| !matches!(**found, "-" | "after"));
        assert_eq!(prefilter, needles.count(), "{condition}");
    }

    #[test]
    fn equality() {
        check("level = 'ERROR'", &["\"ERROR\""]);
        check("'ERROR' = level", &["\"ERROR\""]);
        check("(level = ('E'))", &["\"E\""]);
        check("level IN ('a', 'b c')", &["\"a\"|\"b c\""]);
        check("status = '404'", &["404"]);
        check("status IN ('-1.5e+3', 'x')", &["-1.5e+3|\"x\""]);
        check("a = '1.2.3'", &["1.2.3"]);
        check("a = '10.0.0.x'", &["\"10.0.0.x\""]);
        for bare in ["true", "false", "null", "{}", "[1]", " [1]"] {
            check(&format!("a = '{bare}'"), &[bare]);
        }
        check("a = 'say \"hi\"'", &["\"say \"hi\"\""]);
        check("a = E'x\\ny'", &["\"x\ny\""]);
        check("http->>'status' = 'x'", &["\"x\""]);
        check("json->>'level' = 'x'", &["\"x\""]);
    }

    #[test]
    fn parts() {
        check("starts_with(msg, 'GET')", &["GET"]);
        check("Contains(msg, 'GET')", &["GET"]);
        check("msg LIKE 'GET'", &["\"GET\""]);
        check("msg LIKE 'GET%'", &["GET"]);
        check("msg LIKE '%a%longest_short'", &["longest"]);
        check("msg LIKE 'a_b'", &["a"]);
        check("msg LIKE '%100\\%%'", &["100%"]);
        check("msg LIKE 'a\\\\b%'", &["a\\b"]);
        check("msg LIKE 'a\\bc'", &["abc"]);
        check("msg LIKE 'abc\\'", &["abc"]);
        check("msg LIKE '%a\u{fffd}bc%'", &["bc"]);
    }

    #[test]
    fn conjuncts_each_for_itself() {
        check(
            "level = 'ERROR' AND status >= 500 AND (msg LIKE 'a%' AND NOT ok)",
            &["\"ERROR\"", "-", "a", "-"],
        );
    }

    #[test]
    fn nothing_else_has_needles() {
        for condition in [
            "a = ''",
            "a = '\u{fffd}'",
            "a LIKE '%_'",
            "a LIKE '%\u{fffd}%'",
            "a LIKE ''",
            "a IN ('x', '')",
            "a IN ('x', b)",
            "a NOT IN ('x', 'y')",
            "a NOT LIKE 'x%'",
            "a ILIKE 'x%'",
            "a <> 'x'",
            "NOT a = 'x'",
            "a = 'x' OR a = 'y'",
            "lower(a) = 'x'",
            "a = lower('X')",
            "a = b",
            "a > 'x'",
            "status = 404",
            "status IN (404, 500)",
            "a = '2026-01-01'::timestamp",
            "a IS NOT DISTINCT FROM 'x'",
            "ends_with(a, 'x')",
            "contains('x', a)",
            "strpos(a, 'x') > 0",
            "body = 'x'",
            "severity_text = 'ERROR'",
            "\"log.file.name\" = 'x'",
            "\"log.iostream\" = 'stderr'",
            "json LIKE '%x%'",
            "coalesce(a, b) = 'x'",
            "a->>b = 'x'",
        ] {
            check(condition, &["-"]);
        }
    }
}
