//! PostgreSQL's operators for LIKE: `~~`, `~~*`, `!~~` and `!~~*`.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{self, BinaryOperator, Expr, Value};
use tailrace_sql::walk::expressions_mut;

/// Writes them as LIKE and ILIKE.
pub(crate) fn as_like(query: &mut ast::Query) {
    let _ = expressions_mut(query, &mut |expr| {
        use BinaryOperator::{PGILikeMatch, PGLikeMatch, PGNotILikeMatch, PGNotLikeMatch};
        let Expr::BinaryOp { left, op, right } = expr else {
            return ControlFlow::Continue(());
        };
        let (is_exact, negated) = match op {
            PGLikeMatch => (true, false),
            PGNotLikeMatch => (true, true),
            PGILikeMatch => (false, false),
            PGNotILikeMatch => (false, true),
            _ => return ControlFlow::Continue(()),
        };
        let taken = |side: &mut Expr| Box::new(std::mem::replace(side, Expr::value(Value::Null)));
        let (text, pattern) = (taken(left), taken(right));
        *expr = Expr::Nested(Box::new(like(is_exact, negated, text, pattern)));
        ControlFlow::Continue(())
    });
}

fn like(is_exact: bool, negated: bool, text: Box<Expr>, pattern: Box<Expr>) -> Expr {
    match is_exact {
        true => Expr::Like {
            negated,
            any: false,
            expr: text,
            pattern,
            escape_char: None,
        },
        false => Expr::ILike {
            negated,
            any: false,
            expr: text,
            pattern,
            escape_char: None,
        },
    }
}
