//! Literal patterns, formats, units, zones and casts, tried when the query is compiled.
//!
//! Reports an error at a literal of a rewritten expression that DataFusion would refuse in every record, and warns of a
//! format that no text can have. What a literal does is found out by calling its function with it, on a value that no
//! such function refuses. Never looks at keys.

use std::ops::ControlFlow;

use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Spanned, TypedString, Value, ValueWithSpan, Visitor,
};
use datafusion::sql::sqlparser::tokenizer::Span;

use super::build::{self, try_cast};
use super::{Analysis, constant};
use crate::error::{Error, planner_message};
use crate::walk::{expressions, walk};

impl Analysis<'_> {
    /// # Errors
    /// The first literal that fails for every record.
    pub(super) fn check_literals(&mut self, expr: &Expr) -> Result<(), Error> {
        let mut check = Check(self, None);
        let _ = walk(expr, &mut check);
        check.1.map_or(Ok(()), |error| Err(*error))
    }

    /// What a constant expression fails with.
    pub(super) fn failure(&self, expr: &Expr) -> Option<DataFusionError> {
        self.session.constant(expr).err()
    }

    fn refused(&self, span: Span, what: &str, error: &DataFusionError, hint: &str) -> Box<Error> {
        let message = format!("{what}: {}", reason(error));
        Box::new(self.places.of(span).error(message).with_hint(hint))
    }

    fn call(&mut self, call: &Function) -> ControlFlow<Box<Error>> {
        let name = call.name.to_string().to_lowercase();
        let Some(arguments) = arguments(call) else {
            return ControlFlow::Continue(());
        };
        if let Some(at) = formats(&name) {
            for format in arguments.iter().skip(at) {
                self.format(&name, format)?;
            }
            return ControlFlow::Continue(());
        }
        let Some((data, hint)) = settings(&name) else {
            return ControlFlow::Continue(());
        };
        let mut probed = Vec::with_capacity(arguments.len());
        let mut first = None;
        for (index, argument) in arguments.iter().enumerate() {
            let probe = data.iter().find(|(at, _)| *at == index);
            match probe {
                Some((_, probe)) => probed.push(probe()),
                None if is_constant(argument) => {
                    first = first.or(Some(*argument));
                    probed.push((*argument).clone());
                }
                None => return ControlFlow::Continue(()),
            }
        }
        let Some(first) = first else {
            return ControlFlow::Continue(());
        };
        if let Some(error) = self.failure(&build::call(&name, probed)) {
            let last = arguments.last().filter(|_| reason(&error).contains("flag"));
            let culprit = last.copied().unwrap_or(first);
            let what = format!("`{name}` cannot use {culprit}");
            return ControlFlow::Break(self.refused(culprit.span(), &what, &error, hint));
        }
        ControlFlow::Continue(())
    }

    /// A format of time: refused if it is none, warned of if no text has it.
    fn format(&mut self, name: &str, format: &Expr) -> ControlFlow<Box<Error>> {
        if !is_constant(format) {
            return ControlFlow::Continue(());
        }
        let written = build::call("to_char", vec![time(), with_zone(format)]);
        let hint = "formats are those of strftime: %Y-%m-%d %H:%M:%S%.f %z";
        if let Some(error) = self.failure(&written) {
            let what = format!("{format} is no format of time");
            return ControlFlow::Break(self.refused(format.span(), &what, &error, hint));
        }
        let read = match name {
            "to_char" | "date_format" => written,
            _ => build::call(name, vec![written, format.clone()]),
        };
        let value = self.session.constant(&read);
        if value.is_ok_and(|value| !value.is_null()) {
            return ControlFlow::Continue(());
        }
        let message = format!(
            "`{name}` with {format} is NULL in every record: such a text does not say which point in time it is; \
             a date needs year, month and day, a time of day hour and minute"
        );
        self.warn(format.span(), message);
        ControlFlow::Continue(())
    }

    fn escape(&self, escape: Option<&ValueWithSpan>) -> ControlFlow<Box<Error>> {
        let Some(escape) = escape else {
            return ControlFlow::Continue(());
        };
        if constant::text(&escape.value) == Some("\\") {
            return ControlFlow::Continue(());
        }
        let error = self.places.of(escape.span);
        let error = error.error(format!(
            "LIKE has no escape character but the backslash, not {escape}"
        ));
        ControlFlow::Break(Box::new(
            error.with_hint("write `LIKE '100\\%'`, without ESCAPE"),
        ))
    }

    /// Arithmetic with constants, which may fail as arithmetic with keys may.
    fn arithmetic(&mut self, expr: &Expr) -> ControlFlow<Box<Error>> {
        if let Some(error) = self.failure(expr) {
            let message = format!("this is NULL in every record: {}", reason(&error));
            // What it is part of fails of the same.
            if !self
                .warnings
                .iter()
                .any(|warning| warning.message == message)
            {
                self.warn(expr.span(), message);
            }
        }
        ControlFlow::Continue(())
    }

    /// A call of constants only.
    fn constants(&mut self, call: &Function, expr: &Expr) -> ControlFlow<Box<Error>> {
        let all = arguments(call).unwrap_or_default();
        if all.is_empty() || !is_constant(expr) {
            return ControlFlow::Continue(());
        }
        if is_ours(&call.name) {
            return self.arithmetic(expr);
        }
        let hint =
            "check what the function is given: these are constants, it fails in every record";
        let what = if is_ours(expr) {
            "this has no value".to_owned()
        } else {
            format!("`{expr}` has no value")
        };
        match self.failure(expr) {
            Some(error) => ControlFlow::Break(self.refused(expr.span(), &what, &error, hint)),
            None => ControlFlow::Continue(()),
        }
    }

    fn check_one(&mut self, expr: &Expr) -> ControlFlow<Box<Error>> {
        if let Expr::Function(call) = expr {
            self.call(call)?;
            return self.constants(call, expr);
        }
        if let Expr::Like { escape_char, .. } | Expr::ILike { escape_char, .. } = expr {
            return self.escape(escape_char.as_ref());
        }
        let Some(Trial {
            probe,
            literal,
            what,
            hint,
        }) = trial(expr)
        else {
            return ControlFlow::Continue(());
        };
        match self.failure(&probe) {
            Some(error) => ControlFlow::Break(self.refused(literal.span(), &what, &error, hint)),
            None => ControlFlow::Continue(()),
        }
    }
}

/// A literal, and a constant expression that fails if the literal cannot be used.
struct Trial<'a> {
    probe: Expr,
    literal: &'a Expr,
    /// What is wrong if it fails.
    what: String,
    hint: &'static str,
}

/// How to try the literal of an expression that is no call, if it has one.
fn trial(expr: &Expr) -> Option<Trial<'_>> {
    let (probe, literal, what, hint) = match expr {
        Expr::BinaryOp { left: _, op, right } if is_regex(op) && is_constant(right) => {
            let probe = Expr::BinaryOp {
                left: Box::new(text("x")),
                op: op.clone(),
                right: right.clone(),
            };
            let what = format!("{right} is no regular expression");
            (probe, right.as_ref(), what, REGEX)
        }
        Expr::Extract {
            field,
            syntax,
            expr: _,
        } => {
            let probe = Expr::Extract {
                field: field.clone(),
                syntax: syntax.clone(),
                expr: Box::new(time()),
            };
            let what = format!("EXTRACT has no field {field}");
            (probe, expr, what, UNIT)
        }
        Expr::AtTimeZone {
            timestamp: _,
            time_zone,
        } if is_constant(time_zone) => {
            let local = Expr::AtTimeZone {
                timestamp: Box::new(time()),
                time_zone: time_zone.clone(),
            };
            // The zone is first looked up by who asks for a part of the time.
            let probe = build::call("date_part", vec![text("hour"), local]);
            let what = format!("{time_zone} is no time zone");
            let hint = "write a name such as 'Europe/Berlin', or an offset such as '+02:00'";
            (probe, time_zone.as_ref(), what, hint)
        }
        Expr::Cast {
            kind: CastKind::Cast | CastKind::DoubleColon,
            expr: inner,
            data_type,
            ..
        } if is_constant(inner) && !is_ours(inner) => {
            let what = format!("{inner} is no {data_type}");
            let hint = "write a value of this type, or NULL";
            (expr.clone(), inner.as_ref(), what, hint)
        }
        Expr::TypedString(TypedString { .. }) => {
            let hint = "write a time such as '2026-01-02T03:04:05Z'";
            (expr.clone(), expr, format!("`{expr}` has no value"), hint)
        }
        _ => return None,
    };
    Some(Trial {
        probe,
        literal,
        what,
        hint,
    })
}

/// Whether it calls functions that only rewritten queries call, and is not to be shown.
fn is_ours(written: &impl ToString) -> bool {
    written.to_string().contains('#')
}

/// Looks at each expression after those that it holds.
struct Check<'a, 'b>(&'a mut Analysis<'b>, Option<Box<Error>>);

impl Visitor for Check<'_, '_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.0
            .check_one(expr)
            .map_break(|error| self.1 = Some(error))
    }
}

const REGEX: &str = "the syntax is that of Rust's regex: no look-around, no back-references; `\\` takes a character's meaning";

const UNIT: &str =
    "write one of year, quarter, month, week, day, hour, minute, second, millisecond, microsecond";

/// An argument by its position, and what to put there to try the others.
type Data = &'static [(usize, fn() -> Expr)];

/// Functions whose other arguments are patterns, units and the like; with a hint.
fn settings(name: &str) -> Option<(Data, &'static str)> {
    Some(match name {
        "regexp_like" | "regexp_match" | "regexp_count" | "regexp_instr" => {
            (&[(0, || text("x"))], REGEX)
        }
        "regexp_replace" => (&[(0, || text("x")), (2, || text("x"))], REGEX),
        "date_trunc" | "datetrunc" | "date_part" | "datepart" => (&[(1, time)], UNIT),
        "date_bin" => (
            &[(1, time)],
            "write `date_bin(interval '5 minutes', time)`: a stride above 0, of days or less",
        ),
        "encode" | "decode" => (&[(0, || text(""))], "write 'hex' or 'base64'"),
        _ => return None,
    })
}

/// From which argument on a function takes formats of time.
fn formats(name: &str) -> Option<usize> {
    matches!(
        name,
        "to_timestamp"
            | "to_timestamp_seconds"
            | "to_timestamp_millis"
            | "to_timestamp_micros"
            | "to_timestamp_nanos"
            | "to_date"
            | "to_time"
            | "to_unixtime"
            | "to_char"
            | "date_format"
    )
    .then_some(1)
}

fn is_regex(op: &BinaryOperator) -> bool {
    matches!(
        op,
        BinaryOperator::PGRegexMatch
            | BinaryOperator::PGRegexIMatch
            | BinaryOperator::PGRegexNotMatch
            | BinaryOperator::PGRegexNotIMatch
    )
}

/// Whether an expression has one value, whatever the record and the time.
pub(super) fn is_constant(expr: &Expr) -> bool {
    let varies = expressions(expr, &mut |expr| {
        let varies = match expr {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => true,
            Expr::Function(function) => matches!(
                function.name.to_string().to_lowercase().as_str(),
                "now"
                    | "today"
                    | "random"
                    | "uuid"
                    | "unnest"
                    | "current_date"
                    | "current_time"
                    | "current_timestamp"
            ),
            _ => false,
        };
        if varies {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    varies.is_continue()
}

fn arguments(call: &Function) -> Option<Vec<&Expr>> {
    let FunctionArguments::List(list) = &call.args else {
        return None;
    };
    let plain = list.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    });
    plain.collect()
}

fn text(text: &str) -> Expr {
    Expr::value(Value::SingleQuotedString(text.to_owned()))
}

/// A format to write with that names a zone as a text to be read has it: `%Z` writes an offset.
fn with_zone(format: &Expr) -> Expr {
    let literal = match format {
        Expr::Value(value) => constant::text(&value.value),
        _ => None,
    };
    match literal {
        Some(literal) => text(&literal.replace("%Z", "UTC")),
        None => format.clone(),
    }
}

/// A point in time.
fn time() -> Expr {
    try_cast(
        text("2026-01-02T03:04:05.678Z"),
        crate::types::Type::Timestamp,
    )
}

/// What DataFusion says, in one line. A regular expression's message has its reason in a line of its own.
pub(super) fn reason(error: &DataFusionError) -> String {
    let whole = error.strip_backtrace();
    if whole.contains("CompiledTooBig") {
        return "it is too large when compiled".to_owned();
    }
    let marked = whole.lines().find_map(|line| line.strip_prefix("error: "));
    marked.map_or_else(|| planner_message(error), str::to_owned)
}
