//! `lead(x, n) IGNORE NULLS`. DataFusion 55 gives NULL for some rows that have a value where n is 2 or more. The n-th value that is not NULL
//! of the rows behind a row is the same, and right. And `lead(x, NULL)` is NULL, as is `lag(x, NULL)`; DataFusion takes one row.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, CaseWhen, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArguments, Ident, NullTreatment, ObjectName, UnaryOperator,
    Value, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowType,
};
use tailrace_sql::walk::expressions_mut;

use crate::error::{Error, place_of};

/// Writes such calls as `nth_value`.
///
/// # Errors
///
/// How many rows further one looks is not known.
pub(crate) fn as_nth_values(query: &mut ast::Query) -> Result<(), Error> {
    let mut error = None;
    let _ = expressions_mut(query, &mut |expr| {
        let Expr::Function(called) = expr else {
            return ControlFlow::Continue(());
        };
        let rows = match ahead(called) {
            Ahead::Right => return ControlFlow::Continue(()),
            Ahead::Rows(rows) => rows,
            Ahead::Null => {
                *expr = null_of(called);
                return ControlFlow::Continue(());
            }
            Ahead::Unknown => {
                error = Some(unknown(called));
                return ControlFlow::Break(());
            }
        };
        // Windows with names are written out; what is left has the name of none.
        let Some(WindowType::WindowSpec(window)) = &mut called.over else {
            return ControlFlow::Continue(());
        };
        window.window_frame = Some(WindowFrame {
            units: WindowFrameUnits::Rows,
            start_bound: WindowFrameBound::Following(Some(Box::new(number("1")))),
            end_bound: Some(WindowFrameBound::Following(None)),
        });
        called.name = ObjectName::from(vec![Ident::new("nth_value")]);
        let FunctionArguments::List(list) = &mut called.args else {
            return ControlFlow::Continue(());
        };
        list.args[1] = unnamed(number(&rows.to_string()));
        let default = (list.args.len() > 2).then(|| list.args.remove(2));
        if let Some(default) = default {
            *expr = or_else(called.clone(), default);
        }
        ControlFlow::Continue(())
    });
    error.map_or(Ok(()), Err)
}

/// How many rows further a call looks that leaves out NULLs.
enum Ahead {
    /// One row, or backwards, where DataFusion is right; or it is another call.
    Right,
    /// More of them.
    Rows(u64),
    /// NULL rows.
    Null,
    /// It may be more.
    Unknown,
}

fn ahead(called: &Function) -> Ahead {
    let FunctionArguments::List(list) = &called.args else {
        return Ahead::Right;
    };
    let name = called.name.0.last().and_then(|part| part.as_ident());
    let name = name.map(|name| name.value.to_ascii_lowercase());
    let is_lead = match name.as_deref() {
        Some("lead") => true,
        Some("lag") => false,
        _ => return Ahead::Right,
    };
    if list.args.get(1).is_some_and(is_null) {
        return Ahead::Null;
    }
    let within = list.clauses.iter().find_map(|clause| match clause {
        FunctionArgumentClause::IgnoreOrRespectNulls(treatment) => Some(*treatment),
        _ => None,
    });
    let leaves_out = called.null_treatment.or(within) == Some(NullTreatment::IgnoreNulls);
    if !leaves_out || !matches!(list.args.len(), 2 | 3) {
        return Ahead::Right;
    }
    let rows = match &list.args[1] {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(offset)) => whole(offset),
        _ => None,
    };
    let rows = match is_lead {
        true => rows,
        false => rows.and_then(i64::checked_neg),
    };
    match rows {
        None => Ahead::Unknown,
        Some(rows) if rows > 1 => Ahead::Rows(rows.unsigned_abs()),
        Some(_) => Ahead::Right,
    }
}

/// The value of a constant whole number.
fn whole(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Nested(inner) => whole(inner),
        Expr::UnaryOp { op, expr } => match op {
            UnaryOperator::Minus => whole(expr)?.checked_neg(),
            UnaryOperator::Plus => whole(expr),
            _ => None,
        },
        Expr::BinaryOp { left, op, right } => {
            let (left, right) = (whole(left)?, whole(right)?);
            match op {
                BinaryOperator::Plus => left.checked_add(right),
                BinaryOperator::Minus => left.checked_sub(right),
                BinaryOperator::Multiply => left.checked_mul(right),
                BinaryOperator::Divide => left.checked_div(right),
                BinaryOperator::Modulo => left.checked_rem(right),
                _ => None,
            }
        }
        Expr::Cast {
            expr, data_type, ..
        } => {
            let is_whole = matches!(
                data_type,
                DataType::BigInt(_)
                    | DataType::Int(_)
                    | DataType::Integer(_)
                    | DataType::SmallInt(_)
                    | DataType::TinyInt(_)
            );
            whole(expr).filter(|_| is_whole)
        }
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => number.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

/// NULL, of the type of a call.
fn null_of(called: &Function) -> Expr {
    let mut first = called.clone();
    if let FunctionArguments::List(list) = &mut first.args {
        list.args.truncate(1);
    }
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen {
            condition: Expr::value(Value::Boolean(false)),
            result: Expr::Function(first),
        }],
        else_result: None,
    }
}

/// What a call gives, or something else where that is NULL: there is no such row.
fn or_else(called: Function, default: FunctionArg) -> Expr {
    let value = match &called.args {
        FunctionArguments::List(list) => list.args.first().cloned(),
        _ => None,
    };
    let default = match (value, &default) {
        // It has the type of the values, as DataFusion has it elsewhere.
        (Some(value), FunctionArg::Unnamed(FunctionArgExpr::Expr(written)))
            if takes_type(written) && !is_null(&value) =>
        {
            unnamed(plain_call("cast_to_type", &called, vec![default, value]))
        }
        _ => default,
    };
    let either = vec![unnamed(Expr::Function(called.clone())), default];
    plain_call("coalesce", &called, either)
}

/// Whether it is a text or a whole number, which is cut by no type.
fn takes_type(default: &Expr) -> bool {
    let is_text = matches!(default, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)));
    is_text || whole(default).is_some()
}

fn is_null(value: &FunctionArg) -> bool {
    matches!(value, FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) if is_null_of_type(value))
}

/// Whether it is NULL, or NULL of a type.
fn is_null_of_type(value: &Expr) -> bool {
    match value {
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => is_null_of_type(inner),
        Expr::Value(value) => value.value == Value::Null,
        _ => false,
    }
}

/// A call without a window, in the place of one that has one.
fn plain_call(name: &str, like: &Function, args: Vec<FunctionArg>) -> Expr {
    let mut call = like.clone();
    call.name = ObjectName::from(vec![Ident::new(name)]);
    (call.over, call.null_treatment) = (None, None);
    if let FunctionArguments::List(list) = &mut call.args {
        list.args = args;
        list.clauses.clear();
    }
    Expr::Function(call)
}

fn unnamed(expr: Expr) -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
}

fn number(text: &str) -> Expr {
    Expr::value(Value::Number(text.to_owned(), false))
}

fn unknown(called: &Function) -> Error {
    Error {
        place: place_of(called),
        hint: Some("write the number itself, as in `lead(x, 2) IGNORE NULLS`".to_owned()),
        ..Error::usage(
            "lead and lag with IGNORE NULLS need a number of rows that is known before the query runs",
        )
    }
}
