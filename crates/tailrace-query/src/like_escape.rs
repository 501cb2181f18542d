//! `LIKE ... ESCAPE`. DataFusion 55 only knows the backslash, so that patterns with another character are written with it.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{self, Expr, Value};
use tailrace_sql::walk::expressions_mut;

use crate::error::{Error, place_of};

/// The escape that DataFusion knows.
const KNOWN: char = '\\';

/// Writes patterns with the backslash.
///
/// # Errors
///
/// A pattern is computed, ends within an escape, or has an escape of several characters.
pub(crate) fn with_backslashes(query: &mut ast::Query) -> Result<(), Error> {
    let mut error = None;
    let _ = expressions_mut(query, &mut |expr| {
        let (Expr::Like {
            pattern,
            escape_char: escape @ Some(_),
            ..
        }
        | Expr::ILike {
            pattern,
            escape_char: escape @ Some(_),
            ..
        }) = expr
        else {
            return ControlFlow::Continue(());
        };
        match written(pattern, escape.as_ref().map(|it| &it.value)) {
            Ok(None) => ControlFlow::Continue(()),
            Ok(Some(text)) => {
                **pattern = Expr::Value(Value::SingleQuotedString(text).into());
                *escape = None;
                ControlFlow::Continue(())
            }
            Err(why) => {
                error = Some(Error {
                    place: place_of(&**pattern),
                    ..Error::usage(why)
                });
                ControlFlow::Break(())
            }
        }
    });
    error.map_or(Ok(()), Err)
}

/// A pattern with backslashes; nothing where it has them.
fn written(pattern: &Expr, escape: Option<&Value>) -> Result<Option<String>, &'static str> {
    let Some(Value::SingleQuotedString(escape)) = escape else {
        return Ok(None);
    };
    let mut chars = escape.chars();
    let escape = match (chars.next(), chars.next()) {
        (Some(KNOWN), None) => return Ok(None),
        // Nothing is escaped by an empty text.
        (escape, None) => escape,
        _ => return Err("ESCAPE is one character"),
    };
    let text = match pattern {
        Expr::Value(it) => match &it.value {
            Value::SingleQuotedString(text) => text,
            _ => return Ok(None),
        },
        _ => {
            return Err(
                "ESCAPE with another character than the backslash needs a pattern that is written out",
            );
        }
    };
    let mut made = String::with_capacity(text.len() + 4);
    let mut chars = text.chars();
    while let Some(next) = chars.next() {
        let (plain, is_escaped) = match Some(next) == escape {
            true => (
                chars.next().ok_or("the pattern ends within an escape")?,
                true,
            ),
            false => (next, false),
        };
        if plain == KNOWN || (is_escaped && matches!(plain, '%' | '_')) {
            made.push(KNOWN);
        }
        made.push(plain);
    }
    Ok(Some(made))
}
