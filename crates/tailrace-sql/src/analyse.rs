//! Which keys a query uses as which types, and the query over the physical columns that follow.
//!
//! Rewrites the expressions of one or several SELECTs: every key is replaced by a physical column. A type comes from
//! the place of a use and from what stands beside it (D1 of the design), never from data: a context hands its wish
//! down as a [`Want`], operands that have a type of their own are read first, and keys take the type of their peers.
//! What is not named here is refused. Never plans.

mod build;
mod constant;
mod expression;
mod form;
mod function;
mod lint;
mod literals;
mod peers;
pub(crate) mod similar;

pub(crate) use build::{arrow_cast, as_value, bare};

use std::borrow::Cow;

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArguments, Ident, ObjectNamePart, Spanned,
};
use datafusion::sql::sqlparser::tokenizer::Span;
use tailrace_model::json::Step;
use tailrace_model::reserved::Reserved;

use build::{of_values, try_cast};

use crate::error::{Error, Position, Positions, Warning, planner_message, type_name};
use crate::session::Session;
use crate::types::{ColumnSource, Columns, Options, Type, Use};
use crate::value::Function;
use crate::value::array;

/// The deepest expression that is planned; DataFusion evaluates by recursion.
const DEPTH_MAX: usize = 200;

/// Walks the expressions of one query.
pub(crate) struct Analysis<'a> {
    pub(crate) session: &'a Session,
    pub(crate) options: &'a Options,
    pub(crate) places: &'a Positions,
    pub(crate) columns: Columns,
    pub(crate) warnings: Vec<Warning>,
    /// The name that may qualify columns in the SELECT at hand.
    pub(crate) table: String,
    /// Whether `unnest` may stand in the expression at hand.
    pub(crate) unnest_allowed: bool,
    /// Whether it does.
    pub(crate) unnest_found: bool,
    depth: usize,
}

/// What the place of an expression wants it to be.
#[derive(Clone, Debug)]
struct Want {
    ty: Option<Type>,
    why: Cow<'static, str>,
    /// How much the place insists.
    force: Force,
    /// The expression that decided, as written.
    around: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Force {
    /// Compared or combined with peers: `columns:` may say otherwise where that still has a meaning.
    Peer,
    /// Compared with whole numbers for equality, which text can be, too.
    Whole,
    /// A function or operator of one type only.
    Fixed,
    /// The user wrote the type.
    Cast,
    /// Only whether there is a value matters.
    Presence,
}

impl Want {
    fn new(ty: Type, why: impl Into<Cow<'static, str>>, force: Force, around: &str) -> Want {
        Want {
            ty: Some(ty),
            why: why.into(),
            force,
            around: around.to_owned(),
        }
    }

    /// The value with its own kind.
    fn value(why: &'static str, around: &str) -> Want {
        Want::new(Type::Value, why, Force::Peer, around)
    }

    fn nothing(why: &'static str, around: &str) -> Want {
        Want {
            ty: None,
            why: why.into(),
            force: Force::Peer,
            around: around.to_owned(),
        }
    }
}

/// A key or reserved column where it stands in the text.
pub(crate) struct Key {
    pub(crate) source: ColumnSource,
    pub(crate) span: Span,
    /// The last step is `->>`.
    pub(crate) as_text: bool,
    /// There are steps.
    pub(crate) path: bool,
}

impl<'a> Analysis<'a> {
    pub(crate) fn new(
        session: &'a Session,
        options: &'a Options,
        places: &'a Positions,
    ) -> Analysis<'a> {
        Analysis {
            session,
            options,
            places,
            columns: Columns::default(),
            warnings: Vec::new(),
            table: String::new(),
            unnest_allowed: false,
            unnest_found: false,
            depth: 0,
        }
    }

    /// An expression of the SELECT list that is not handed on as it is.
    pub(crate) fn output(&mut self, expr: Expr) -> Result<Expr, Error> {
        self.unnest_allowed = true;
        self.unnest_found = false;
        self.lint(&expr)?;
        let around = expr.to_string();
        let want = Want::value("handed on as it is", &around);
        let expr = self.rewrite(expr, &want)?;
        self.check_literals(&expr)?;
        self.fit(expr, &want)
    }

    /// The condition of WHERE.
    pub(crate) fn condition(&mut self, expr: Expr) -> Result<Expr, Error> {
        self.unnest_allowed = false;
        self.lint(&expr)?;
        self.lint_condition(&expr)?;
        let around = expr.to_string();
        let place = self.places.of(expr.span());
        let expr = self.rewrite(
            expr,
            &Want::new(Type::Boolean, "a condition", Force::Fixed, &around),
        )?;
        self.check_literals(&expr)?;
        match self.type_of(&expr)? {
            DataType::Boolean | DataType::Null => Ok(expr),
            other => Err(place
                .error(format!(
                    "WHERE wants true or false, this is {}",
                    type_name(&other)
                ))
                .with_hint("compare it with something")),
        }
    }

    /// Hands a key's value on as it is; gives its physical column.
    pub(crate) fn pass(&mut self, key: &Key, around: &str) -> usize {
        let ty = if key.as_text {
            Type::Text
        } else {
            key.source.passed_type()
        };
        let why = if key.as_text {
            "`->>` gives text"
        } else {
            "passed through as it is"
        };
        let usage = self.usage(key, ty, why.to_owned(), around);
        self.columns.passed(&key.source, usage)
    }

    /// The key an expression is, if it is one: an identifier, or a chain of `->` over literal steps.
    ///
    /// # Errors
    /// When it is a qualified name that the table does not have.
    pub(crate) fn key(&self, expr: &Expr) -> Result<Option<Key>, Error> {
        let key = |source, span| {
            Some(Key {
                source,
                span,
                as_text: false,
                path: false,
            })
        };
        match expr {
            Expr::Identifier(ident) => Ok(key(ColumnSource::of_name(&ident.value), ident.span)),
            Expr::CompoundIdentifier(idents) => self
                .qualified(idents)
                .map(|source| key(source, expr.span())),
            // Words that the parser takes for functions without parentheses.
            Expr::Function(function) if matches!(function.args, FunctionArguments::None) => {
                let [ObjectNamePart::Identifier(ident)] = function.name.0.as_slice() else {
                    return Ok(None);
                };
                let clock = ["current_date", "current_time", "current_timestamp"];
                let is_clock = clock
                    .iter()
                    .any(|name| ident.value.eq_ignore_ascii_case(name));
                Ok(if is_clock {
                    None
                } else {
                    key(ColumnSource::of_name(&ident.value), ident.span)
                })
            }
            Expr::BinaryOp {
                left,
                op: op @ (BinaryOperator::Arrow | BinaryOperator::LongArrow),
                right,
            } => {
                let Some(step) = constant::step(right) else {
                    return Ok(None);
                };
                let Some(parent) = self.key(bare(left))? else {
                    return Ok(None);
                };
                let mut steps = match parent.source {
                    _ if parent.as_text => return Ok(None),
                    ColumnSource::Key(steps) => steps,
                    ColumnSource::Reserved(Reserved::Json, _) if matches!(step, Step::Key(_)) => {
                        Vec::new()
                    }
                    ColumnSource::Reserved(..) => return Ok(None),
                };
                steps.push(step);
                let as_text = *op == BinaryOperator::LongArrow;
                Ok(Some(Key {
                    source: ColumnSource::Key(steps),
                    span: expr.span(),
                    as_text,
                    path: true,
                }))
            }
            _ => Ok(None),
        }
    }

    fn qualified(&self, idents: &[Ident]) -> Result<ColumnSource, Error> {
        match idents {
            [table, name] if table.value == self.table => Ok(ColumnSource::of_name(&name.value)),
            _ => {
                let names: Vec<_> = idents.iter().map(|ident| ident.value.as_str()).collect();
                let place = self
                    .places
                    .of(Span::union_iter(idents.iter().map(|ident| ident.span)));
                let path: String = names[1..]
                    .iter()
                    .map(|name| format!("->'{name}'"))
                    .collect();
                let hint = format!(
                    "write {}{path} for a nested value, or \"{}\" for a key with dots in its name",
                    names[0],
                    names.join(".")
                );
                Err(place
                    .error(format!(
                        "`{}` is no column of `{}`",
                        names.join("."),
                        self.table
                    ))
                    .with_hint(hint))
            }
        }
    }

    /// The physical column for a key where `want` is wanted, as an expression.
    fn read(&mut self, key: &Key, want: &Want) -> Expr {
        let ty = self.decide(key, want);
        let natural = match (key.source.passed_type(), ty) {
            (Type::Open, Type::Value) => None,
            _ => key.source.natural_type(),
        };
        let wanted = natural.unwrap_or(ty);
        let why = if natural.is_some() {
            "a reserved column has one type".to_owned()
        } else {
            want.why.to_string()
        };
        let usage = self.usage(key, wanted, why, &want.around);
        let index = self.columns.read(&key.source, usage);
        let column = self.columns.list()[index].name.clone();
        let column = Expr::Identifier(Ident {
            value: column,
            quote_style: Some('"'),
            span: key.span,
        });
        match natural {
            // Text that is to be a number or a time: what does not fit is NULL, as it is for keys.
            Some(Type::Text) if !matches!(ty, Type::Text | Type::Value) => try_cast(column, ty),
            _ => column,
        }
    }

    /// The type of a use, from its place and `columns:`; warns where neither says enough.
    fn decide(&mut self, key: &Key, want: &Want) -> Type {
        if let Some(natural) = key.source.natural_type() {
            return want.ty.unwrap_or(natural);
        }
        let declared = self
            .options
            .declared(&key.source)
            .filter(|ty| *ty != Type::Open);
        match (declared, want.ty) {
            (None, Some(ty)) => ty,
            (Some(declared), None) => declared,
            (None, None) => {
                if want.force != Force::Presence {
                    let label = key.source.label();
                    let message = format!(
                        "nothing in `{}` fixes the type of `{label}`: it is read as text; \
                         write `{label}::bigint` or the like, or name its type under `columns:`",
                        want.around
                    );
                    self.warn(key.span, message);
                }
                Type::Text
            }
            (Some(declared), Some(Type::Value)) if declared != Type::Timestamp => declared,
            (Some(declared), Some(ty)) => self.agree_on(key, want, declared, ty),
        }
    }

    /// `columns:` wins over a use's own type where the use keeps its meaning.
    fn agree_on(&mut self, key: &Key, want: &Want, declared: Type, ty: Type) -> Type {
        let alike = declared == ty || (declared.is_number() && ty.is_number());
        match want.force {
            Force::Cast => ty,
            _ if alike => declared,
            // A literal text is read as the declared type; a whole number compared for equality as text.
            Force::Peer if ty == Type::Text => declared,
            Force::Whole if declared == Type::Text => declared,
            _ => {
                let label = key.source.label();
                let message = format!(
                    "`columns:` says {declared} for `{label}`, but `{}` needs {ty}",
                    want.around
                );
                self.warn(key.span, message);
                ty
            }
        }
    }

    fn usage(&self, key: &Key, ty: Type, why: String, around: &str) -> Use {
        let Position { line, column, .. } = self.places.of(key.span);
        Use {
            expression: around.to_owned(),
            line,
            column,
            ty,
            why,
        }
    }

    fn warn(&mut self, span: Span, message: String) {
        let Position { line, column, .. } = self.places.of(span);
        let warning = Warning {
            line,
            column,
            message,
        };
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// An expression that gives values of any kind, as its place wants it.
    fn fit(&self, expr: Expr, want: &Want) -> Result<Expr, Error> {
        let expr = match self.type_of(&expr)? {
            // Whether there is a value is known without another type.
            _ if want.force == Force::Presence => return Ok(expr),
            // What `json_get` and `->` give.
            DataType::Union(..) if want.ty.is_some() => of_values(Function::Value, vec![expr]),
            ty if array::is_value(&ty) => expr,
            _ => return Ok(expr),
        };
        let function = match want.ty {
            Some(Type::Value | Type::Open) => return Ok(expr),
            Some(Type::Text) => Function::ToText,
            Some(Type::Int64) => Function::ToInt64,
            Some(Type::Boolean) => Function::ToBoolean,
            Some(Type::Timestamp) => Function::ToTimestamp,
            Some(Type::Float64) | None => Function::ToFloat64,
        };
        Ok(of_values(function, vec![expr]))
    }

    /// The type of a rewritten expression.
    pub(crate) fn type_of(&self, expr: &Expr) -> Result<DataType, Error> {
        let schema = DFSchema::try_from(self.columns.schema());
        let ty = schema.and_then(|schema| self.session.type_of(expr, &schema));
        ty.map_err(|error| {
            let message = self.with_labels(planner_message(&error));
            self.places
                .of(expr.span())
                .error(message)
                .with_hint("check the number and the types of what it is given")
        })
    }

    /// Physical names are ours; messages speak of keys.
    pub(crate) fn with_labels(&self, mut message: String) -> String {
        for column in self.columns.list() {
            if column.name != column.label {
                message = message.replace(&column.name, &column.label);
            }
        }
        message
    }

    fn deeper<T>(
        &mut self,
        span: Span,
        inner: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.depth >= DEPTH_MAX {
            let error = self.places.of(span).error(format!(
                "the expression nests more than {DEPTH_MAX} levels deep"
            ));
            return Err(error.with_hint("write long lists of alternatives as `x IN (...)`"));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }
}
