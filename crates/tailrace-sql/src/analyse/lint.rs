//! Queries that are valid and surely not meant so.
//!
//! Reads expressions as the user wrote them; warns and says what to write instead, and reports one error: a value in
//! double quotes, which makes it a key. Never changes an expression, never looks at data.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, Ident, Spanned, UnaryOperator, Visitor,
};
use datafusion::sql::sqlparser::tokenizer::Span;
use tailrace_model::json::Step;
use tailrace_model::reserved::{
    BODY_KEYS, NAMES, Reserved, SEVERITY_KEYS, SPAN_ID_KEYS, TIMESTAMP_KEYS, TRACE_ID_KEYS, lookup,
};
use tailrace_model::severity::{number_of_text, short_name};

use super::build::{bare, is_json, is_null, sql_type};
use super::constant::Constant;
use super::{Analysis, constant};
use crate::error::Error;
use crate::time_formats::other_format;
use crate::types::{Column, ColumnSource, Type};
use crate::walk::walk;

impl Analysis<'_> {
    /// Looks at an expression and all that it holds.
    ///
    /// # Errors
    /// A value in double quotes.
    pub(super) fn lint(&mut self, expr: &Expr) -> Result<(), Error> {
        let mut lint = Lint {
            analysis: self,
            paths: Vec::new(),
            error: None,
        };
        let _ = walk(expr, &mut lint);
        lint.error.map_or(Ok(()), |error| Err(*error))
    }

    /// Keys that stand as conditions by themselves, and are never true or false.
    pub(super) fn lint_condition(&mut self, expr: &Expr) -> Result<(), Error> {
        match expr {
            Expr::Nested(inner) => self.lint_condition(inner),
            Expr::UnaryOp {
                op: UnaryOperator::Not | UnaryOperator::BangNot,
                expr,
            } => self.lint_condition(expr),
            Expr::BinaryOp {
                left,
                op: BinaryOperator::And | BinaryOperator::Or,
                right,
            } => {
                self.lint_condition(left)?;
                self.lint_condition(right)
            }
            _ => {
                if let Some(key) = self.key(expr)?
                    && let Some(what) = self.never_boolean(&key.source)
                {
                    let message = format!(
                        "`{expr}` alone is met only where its value is true or false, and {what}: \
                         compare it with something, or write `{expr} IS NOT NULL`"
                    );
                    self.warn(expr.span(), message);
                }
                Ok(())
            }
        }
    }

    /// Types under `columns:` that change nothing, because no expression reads the key.
    pub(crate) fn lint_columns(&mut self) {
        let options = self.options;
        for (label, ty) in &options.columns {
            let reads = |column: &Column| {
                let is_it = options.declares(label, &column.source);
                is_it && column.uses.iter().any(|it| it.ty != Type::Open)
            };
            if *ty != Type::Open && !self.columns.list().iter().any(reads) {
                let written = if label.contains("->") {
                    format!("({label})")
                } else {
                    label.clone()
                };
                let message = format!(
                    "`columns:` says {ty} for `{label}`, which no expression reads: values that are handed on stay as they \
                     are in the record; `{written}::{} AS ...` changes them",
                    sql_type(*ty)
                );
                self.warn(Span::empty(), message);
            }
        }
    }

    /// What a key is, if that is known and neither true nor false.
    fn never_boolean(&self, source: &ColumnSource) -> Option<&'static str> {
        let name = match source {
            ColumnSource::Reserved(..) => {
                return match source.natural_type()? {
                    Type::Boolean => None,
                    Type::Int64 | Type::Float64 => Some("it is a number"),
                    Type::Timestamp => Some("it is a time"),
                    Type::Open | Type::Text | Type::Value => Some("it is text"),
                };
            }
            ColumnSource::Key(steps) => match steps.as_slice() {
                [Step::Key(name)] if self.options.declared(source).is_none() => name.as_str(),
                _ => return None,
            },
        };
        let is_one_of = |keys: &[&str]| keys.contains(&name);
        if is_one_of(&SEVERITY_KEYS) {
            Some("a level is text or a number")
        } else if is_one_of(&BODY_KEYS) || is_one_of(&TRACE_ID_KEYS) || is_one_of(&SPAN_ID_KEYS) {
            Some("it is text")
        } else {
            is_one_of(&TIMESTAMP_KEYS).then_some("it is a time")
        }
    }

    /// A time that would be written as the letters of its format.
    fn time_format(&mut self, called: &Function) {
        let name = called.name.to_string().to_ascii_lowercase();
        if matches!(name.as_str(), "to_char" | "date_format")
            && let Some(other) = other_format(called)
        {
            let message = format!("{}: {}", other.message, other.hint);
            self.warn(other.argument.span(), message);
        }
    }

    fn compared(&mut self, around: &Expr, left: &Expr, right: &Expr) -> Flow {
        for (one, other) in [(left, right), (right, left)] {
            if is_null(other) {
                let message = format!(
                    "`{around}` is never true, since a comparison with NULL is NULL: write `{one} IS NULL` or `{one} IS NOT NULL`"
                );
                self.warn(around.span(), message);
                return ControlFlow::Continue(());
            }
            self.compared_kinds(around, one, other)?;
        }
        self.quoted_value(left, right)
    }

    /// A reserved column of one kind beside a constant of the other.
    fn compared_kinds(&mut self, around: &Expr, key: &Expr, other: &Expr) -> Flow {
        let Ok(Some(found)) = self.key(bare(key)) else {
            return ControlFlow::Continue(());
        };
        let ColumnSource::Reserved(reserved, name) = &found.source else {
            return ControlFlow::Continue(());
        };
        let literal = match bare(other) {
            Expr::Value(value) => constant::text(&value.value).unwrap_or_default(),
            _ => "",
        };
        let message = match (reserved, constant::constant(other)) {
            (Reserved::SeverityText, Some(Constant::Integer { .. } | Constant::Float { .. })) => {
                format!(
                    "`{around}` compares a text with a number, which no level is: write `severity_number`, \
                 which is 1 to 24, 17 for errors, or `severity_text = 'ERROR'`"
                )
            }
            (
                Reserved::Iostream | Reserved::FileName | Reserved::FilePath,
                Some(Constant::Integer { .. } | Constant::Float { .. }),
            ) => format!("`{around}` compares a text with a number: `{name}` never is one"),
            (Reserved::SeverityNumber, Some(Constant::Text)) if literal.parse::<f64>().is_err() => {
                let number = match number_of_text(literal) {
                    0 => String::new(),
                    number => format!(", {number} for {}", short_name(number)),
                };
                let error = self.places.of(around.span()).error(format!(
                    "`{around}` compares a number with a text: `severity_number` is 1 to 24{number}"
                ));
                let hint = format!("write the number, or `severity_text = {other}`");
                return ControlFlow::Break(Box::new(error.with_hint(hint)));
            }
            _ => return ControlFlow::Continue(()),
        };
        self.warn(around.span(), message);
        ControlFlow::Continue(())
    }

    /// `level = "ERROR"`: double quotes stand around names.
    fn quoted_value(&mut self, left: &Expr, right: &Expr) -> Flow {
        let Expr::Identifier(ident) = bare(right) else {
            return ControlFlow::Continue(());
        };
        let is_key = matches!(self.key(bare(left)), Ok(Some(_)));
        if ident.quote_style != Some('"') || !is_key || lookup(&ident.value).is_some() {
            return ControlFlow::Continue(());
        }
        let name = ident.value.as_str();
        let text = format!("'{}'", name.replace('\'', "''"));
        if is_surely_value(name) {
            let key = if is_plain(ident) {
                format!("{name} without quotes")
            } else {
                format!("json->{text}")
            };
            let error = self.places.of(right.span()).error(format!(
                "{right} is a key: double quotes stand around names, single quotes around texts"
            ));
            let hint = format!("write {text} for the text, {key} for the key");
            return ControlFlow::Break(Box::new(error.with_hint(hint)));
        }
        let left_is_quoted =
            matches!(bare(left), Expr::Identifier(ident) if ident.quote_style.is_some());
        if is_plain(ident) && !left_is_quoted {
            let message = format!("{right} is a key here: for the text write {text}");
            self.warn(right.span(), message);
        }
        ControlFlow::Continue(())
    }

    /// `http->status`: the step is the value of a key.
    fn step(&mut self, left: &Expr, op: &BinaryOperator, right: &Expr) {
        if let Expr::Identifier(ident) = right {
            let name = ident.value.replace('\'', "''");
            let message = format!(
                "the step `{right}` is a key of the record, whose value names the member: for the member \
                 `{}` write {left}{op}'{name}'",
                ident.value
            );
            self.warn(right.span(), message);
        }
    }
}

type Flow = ControlFlow<Box<Error>>;

struct Lint<'a, 'b> {
    analysis: &'a mut Analysis<'b>,
    /// Places of what was said to stand at the left of a path.
    paths: Vec<Span>,
    error: Option<Box<Error>>,
}

impl Lint<'_, '_> {
    /// `a || b->>'c'` is `(a || b)->>'c'`: both bind alike, so the left comes first.
    fn path(&mut self, whole: &Expr) -> Flow {
        let mut steps = String::new();
        let mut at = whole;
        while let Expr::BinaryOp { left, op, right } = at {
            if is_json(op) {
                steps.insert_str(0, &format!("{op}{right}"));
                at = left;
                continue;
            }
            if steps.is_empty() || self.paths.contains(&at.span()) {
                break;
            }
            self.paths.push(at.span());
            let what = format!("`{steps}` is applied to the whole of `{at}`, which is no JSON");
            let mend = format!("write `{left} {op} ({right}{steps})`");
            if *op == BinaryOperator::StringConcat {
                self.analysis.warn(whole.span(), format!("{what}: {mend}"));
                break;
            }
            let error = self.analysis.places.of(whole.span()).error(what);
            return ControlFlow::Break(Box::new(error.with_hint(mend)));
        }
        ControlFlow::Continue(())
    }
}

impl Visitor for Lint<'_, '_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.look_at(expr)
            .map_break(|error| self.error = Some(error))
    }
}

impl Lint<'_, '_> {
    fn look_at(&mut self, expr: &Expr) -> Flow {
        use BinaryOperator as Op;
        match expr {
            Expr::BinaryOp { left, op, right } if is_json(op) => {
                self.path(expr)?;
                self.analysis.step(left, op, right);
            }
            Expr::BinaryOp {
                left,
                op: Op::Eq | Op::NotEq | Op::Lt | Op::LtEq | Op::Gt | Op::GtEq,
                right,
            } => self.analysis.compared(expr, left, right)?,
            Expr::Between {
                expr: key,
                low,
                high,
                ..
            } => {
                self.analysis.compared(expr, key, low)?;
                self.analysis.compared(expr, key, high)?;
            }
            Expr::InList {
                expr: key,
                list,
                negated,
            } => {
                if *negated && list.iter().any(is_null) {
                    let message = format!(
                        "`{expr}` is never true, since a comparison with NULL is NULL: leave NULL out"
                    );
                    self.analysis.warn(expr.span(), message);
                }
                for item in list.iter().filter(|item| !is_null(item)) {
                    self.analysis.compared(expr, key, item)?;
                }
            }
            Expr::Like {
                expr: key, pattern, ..
            }
            | Expr::ILike {
                expr: key, pattern, ..
            } => self.analysis.quoted_value(key, pattern)?,
            Expr::Function(called) => self.analysis.time_format(called),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Whether a name in double quotes is a value in wrong quotes: a level, a number, capitals only, or no name at all.
fn is_surely_value(name: &str) -> bool {
    let is_capital = |ch: char| ch.is_uppercase() || ch.is_ascii_digit() || "_-".contains(ch);
    name.is_empty()
        || number_of_text(name) != 0
        || name.parse::<f64>().is_ok()
        || name.contains([' ', '\t', '%', '/', ':'])
        || (name.chars().all(is_capital) && name.contains(char::is_alphabetic))
}

/// Whether a name needs no quotes.
fn is_plain(ident: &Ident) -> bool {
    let name = &ident.value;
    let starts = name.starts_with(|ch: char| ch.is_alphabetic() || ch == '_');
    let is_reserved = NAMES.contains(&name.as_str());
    starts && !is_reserved && name.chars().all(|ch| ch.is_alphanumeric() || ch == '_')
}
