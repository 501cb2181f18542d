//! SIMILAR TO, as SQL has it: the pattern is the whole text's.
//!
//! Translates a literal pattern to a regular expression that is anchored at both ends. DataFusion would read the
//! pattern as a regular expression that may match anywhere.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Query, Spanned, Value, ValueWithSpan};

use super::build::bare;
use super::literals::reason;
use super::{Analysis, constant};
use crate::error::{Error, Positions};
use crate::types::Type;
use crate::walk::expressions_mut;

const HINT: &str = "the pattern has `%` for any text, `_` for any character, `|`, `*`, `+`, `?`, `{n}`, `( )` and \
                    `[ ]`; for a regular expression write `x ~ '...'`";

impl Analysis<'_> {
    /// The same condition as a match of a regular expression.
    pub(super) fn similar_to(
        &mut self,
        negated: bool,
        text: Box<Expr>,
        pattern: &Expr,
        escape: Option<ValueWithSpan>,
        around: &str,
    ) -> Result<Expr, Error> {
        let place = self.places.of(pattern.span());
        let refuse = |message: String| Err(place.error(message).with_hint(HINT));
        let right = match expression(pattern, escape.as_ref()) {
            Ok(regex) => regex,
            Err(message) => return refuse(message),
        };
        let left = self.fixed(text, Type::Text, "SIMILAR TO", around)?;
        let probe = matches(right.clone(), negated, right.clone());
        if let Some(error) = self.failure(&probe) {
            let written = constant_text(pattern).unwrap_or_default();
            return refuse(format!("`{written}`: {}", reason(&error)));
        }
        Ok(Expr::Nested(Box::new(matches(*left, negated, right))))
    }
}

/// Replaces every SIMILAR TO of a query by the same condition as a match of a regular expression.
///
/// # Errors
///
/// A pattern is no literal, or none of SIMILAR TO.
pub(crate) fn replace_similar_to(query: &mut Query, places: &Positions) -> Result<(), Error> {
    let mut error = None;
    let _ = expressions_mut(query, &mut |expr| {
        let Expr::SimilarTo {
            negated,
            expr: text,
            pattern,
            escape_char,
        } = expr
        else {
            return ControlFlow::Continue(());
        };
        match expression(pattern, escape_char.as_ref()) {
            Ok(regex) => {
                let text = std::mem::replace(&mut **text, Expr::value(Value::Null));
                *expr = Expr::Nested(Box::new(matches(text, *negated, regex)));
                ControlFlow::Continue(())
            }
            Err(message) => {
                let found = places.of(pattern.span()).error(message);
                error = Some(found.with_hint(HINT));
                ControlFlow::Break(())
            }
        }
    });
    error.map_or(Ok(()), Err)
}

fn matches(text: Expr, negated: bool, regex: Expr) -> Expr {
    let op = if negated {
        BinaryOperator::PGRegexNotMatch
    } else {
        BinaryOperator::PGRegexMatch
    };
    Expr::BinaryOp {
        left: Box::new(text),
        op,
        right: Box::new(regex),
    }
}

/// The text of a pattern that is a literal.
fn constant_text(pattern: &Expr) -> Option<&str> {
    match bare(pattern) {
        Expr::Value(value) => constant::text(&value.value),
        _ => None,
    }
}

/// A pattern as a literal that is a regular expression, or why it is none.
fn expression(pattern: &Expr, escape: Option<&ValueWithSpan>) -> Result<Expr, String> {
    let escape = match escape.map(|escape| constant::text(&escape.value)) {
        None => Some('\\'),
        Some(Some("")) => None,
        Some(Some(text)) if text.chars().count() == 1 => text.chars().next(),
        Some(_) => return Err("ESCAPE takes one character".to_owned()),
    };
    let Some(literal) = constant_text(pattern) else {
        return Err("the pattern of SIMILAR TO has to be a literal".to_owned());
    };
    let regex = regex(literal, escape).map_err(|problem| format!("`{literal}`: {problem}"))?;
    let value = Value::SingleQuotedString(regex);
    let span = bare(pattern).span();
    Ok(Expr::Value(ValueWithSpan { value, span }))
}

/// The regular expression of a pattern.
fn regex(pattern: &str, escape: Option<char>) -> Result<String, &'static str> {
    let mut regex = String::from("^(?s:");
    let mut open = 0_usize;
    let mut chars = pattern.chars().peekable();
    while let Some(ch) = chars.next() {
        match ch {
            ch if Some(ch) == escape => match chars.next() {
                Some(literal) => push_literal(&mut regex, literal),
                None => return Err("nothing follows the escape character"),
            },
            '%' => regex.push_str(".*"),
            '_' => regex.push('.'),
            '(' => {
                open += 1;
                regex.push_str("(?:");
            }
            ')' => {
                open = open.checked_sub(1).ok_or("`)` without `(`")?;
                regex.push(')');
            }
            '|' | '*' | '+' | '?' | '{' | '}' => regex.push(ch),
            ',' | '0'..='9' => regex.push(ch),
            '[' => bracket(&mut chars, escape, &mut regex)?,
            literal => push_literal(&mut regex, literal),
        }
    }
    if open > 0 {
        return Err("`(` without `)`");
    }
    regex.push_str(")$");
    Ok(regex)
}

/// What stands in `[ ]`, after the first bracket.
fn bracket(
    chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
    escape: Option<char>,
    regex: &mut String,
) -> Result<(), &'static str> {
    const OPEN: &str = "`[` without `]`";
    regex.push('[');
    if chars.next_if_eq(&'^').is_some() {
        regex.push('^');
    }
    let mut is_first = true;
    loop {
        match chars.next().ok_or(OPEN)? {
            ']' if !is_first => break,
            ch if Some(ch) == escape => push_literal(regex, chars.next().ok_or(OPEN)?),
            '[' if chars.next_if_eq(&':').is_some() => {
                regex.push_str("[:");
                loop {
                    let ch = chars.next().ok_or(OPEN)?;
                    regex.push(ch);
                    if ch == ']' {
                        break;
                    }
                }
            }
            // A range, but at either end.
            '-' if !is_first && chars.peek() != Some(&']') => regex.push('-'),
            ch => push_literal(regex, ch),
        }
        is_first = false;
    }
    regex.push(']');
    Ok(())
}

/// Every character of ASCII that is no letter, digit or white space may stand after a backslash.
fn push_literal(regex: &mut String, literal: char) {
    if literal.is_ascii_punctuation() {
        regex.push('\\');
    }
    regex.push(literal);
}

#[cfg(test)]
mod tests {
    use super::regex;

    #[test]
    fn patterns_become_anchored_expressions() {
        let check = |pattern: &str, expected: &str| {
            let found = regex(pattern, Some('\\'));
            let inner = found.as_deref().map(|regex| &regex[5..regex.len() - 2]);
            assert_eq!(
                inner.unwrap_or_else(|problem| problem),
                expected,
                "{pattern}"
            );
        };
        check("abc", "abc");
        check("a%_", "a.*.");
        check("(a|b)+c{2,3}?", "(?:a|b)+c{2,3}?");
        check("a.b^c$", r"a\.b\^c\$");
        check(r"100\%\_", r"100\%\_");
        check("[a-z_%.]", r"[a-z\_\%\.]");
        check("[^]a-]", r"[^\]a\-]");
        check("[[:digit:]x&&]", r"[[:digit:]x\&\&]");
        check("(a", "`(` without `)`");
        check("a)", "`)` without `(`");
        check("[a", "`[` without `]`");
        check("a\\", "nothing follows the escape character");
        assert_eq!(regex("a!%\\", Some('!')).unwrap(), r"^(?s:a\%\\)$");
        assert_eq!(regex("a\\%", None).unwrap(), r"^(?s:a\\.*)$");
    }
}
