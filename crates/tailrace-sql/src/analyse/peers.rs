//! Operands that share one type: both sides of a comparison, the members of a list, the branches of a CASE.

use arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::{
    CastKind, DataType as SqlType, ExactNumberInfo, Expr, Spanned, Value,
};

use super::build::{self, is_json, is_null, of_values};
use super::constant::{self, Constant, constant, quoted};
use super::{Analysis, Force, Want};
use crate::error::Error;
use crate::types::Type;
use crate::value::{Function, array};

/// What joins the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joined {
    /// `=`, `<>`, IN.
    Equality,
    /// `<`, BETWEEN and the like.
    Order,
    /// CASE x WHEN, IS DISTINCT FROM: equality where NULL is not the end.
    Identity,
    /// `+` and `-`.
    Sum,
    /// `*` and `%`.
    Product,
    /// `/`
    Quotient,
    /// Alternatives of one value: coalesce, CASE.
    Value,
    /// The elements of a list, which have one type.
    Element,
}

/// Operands over physical columns.
pub(super) struct Peers {
    pub(super) exprs: Vec<Expr>,
    /// They meet in functions over values of any kind, not in DataFusion's own operators.
    pub(super) are_values: bool,
}

/// What operands with a type of their own are.
#[derive(Clone, Copy, Debug, Default)]
struct Facts {
    integers: bool,
    /// A constant that a 64-bit float may not hold.
    big: bool,
    floats: bool,
    text: bool,
    boolean: bool,
    time: bool,
    interval: bool,
    /// A decimal, list or the like.
    other: bool,
    decimal: bool,
    /// Operands that are numbers of any kind: their rows decide.
    dynamic: bool,
    /// How many operands are not constant.
    varying: usize,
}

/// An operand on its way.
struct Operand {
    expr: Expr,
    /// A key, or a choice between keys: not rewritten before its type is known.
    is_open: bool,
}

/// What operands become.
#[derive(Clone, Debug)]
enum Meeting {
    /// Keys have this type.
    Typed(Want),
    /// Values of any kind.
    Values,
}

impl Analysis<'_> {
    /// Rewrites operands; keys among them take the type of the others, or what is wanted of them all.
    pub(super) fn peers(
        &mut self,
        operands: Vec<Expr>,
        joined: Joined,
        around: &str,
        outer: &Want,
    ) -> Result<Peers, Error> {
        let mut facts = Facts::default();
        let mut rewritten = Vec::with_capacity(operands.len());
        for operand in operands {
            let operand = self.operand(operand, around, &mut facts)?;
            rewritten.push(operand);
        }
        let any_open = rewritten.iter().any(|operand| operand.is_open);
        if any_open && facts.says_nothing() {
            let open = rewritten.iter().filter(|operand| operand.is_open);
            open.for_each(|operand| facts.constants_of_choice(&operand.expr));
        }
        match facts.meeting(joined, around, outer, any_open) {
            Meeting::Values => self.values(rewritten, joined, around),
            Meeting::Typed(want) => self.typed_operands(rewritten, joined, &want, facts),
        }
    }

    fn operand(&mut self, expr: Expr, around: &str, facts: &mut Facts) -> Result<Operand, Error> {
        if let Some(constant) = constant(&expr) {
            facts.constant(constant);
            return Ok(Operand {
                expr,
                is_open: false,
            });
        }
        facts.varying += 1;
        if self.is_open(&expr)? || self.is_choice(&expr)? {
            facts.time |= self.is_time(&expr)?;
            return Ok(Operand {
                expr,
                is_open: true,
            });
        }
        let want = Want::value("nothing beside it fixes a type", around);
        let expr = self.rewrite(expr, &want)?;
        let expr = self.fit(expr, &want)?;
        facts.data_type(&self.type_of(&expr)?);
        Ok(Operand {
            expr,
            is_open: false,
        })
    }

    fn typed_operands(
        &mut self,
        operands: Vec<Operand>,
        joined: Joined,
        want: &Want,
        facts: Facts,
    ) -> Result<Peers, Error> {
        let mut as_text = false;
        let mut exprs = Vec::with_capacity(operands.len());
        for operand in operands {
            let expr = if operand.is_open {
                let expr = self.rewrite(operand.expr, want)?;
                as_text |= self.type_of(&expr)? == DataType::Utf8View;
                expr
            } else if constant(&operand.expr).is_some() {
                if facts.decimal {
                    as_decimal(operand.expr)
                } else {
                    operand.expr
                }
            } else {
                self.fit(operand.expr, want)?
            };
            exprs.push(expr);
        }
        let is_equality = matches!(joined, Joined::Equality | Joined::Identity);
        if is_equality && as_text && facts.integers {
            exprs = exprs.into_iter().map(quoted).collect();
        }
        Ok(Peers {
            exprs,
            are_values: false,
        })
    }

    /// The operands as values of any kind. Numbers that are compared or computed with stay as they are: the functions
    /// take them, too.
    fn values(
        &mut self,
        operands: Vec<Operand>,
        joined: Joined,
        around: &str,
    ) -> Result<Peers, Error> {
        let why = match joined {
            Joined::Value => "one of several values, handed on as it is",
            Joined::Sum | Joined::Product => "arithmetic, exact for integers",
            _ if operands.iter().any(|it| constant::is_rounded(&it.expr)) => {
                "compared exactly, with a constant as a float"
            }
            _ => "compared exactly",
        };
        let is_compared = matches!(joined, Joined::Equality | Joined::Order | Joined::Identity);
        let want = Want::value(why, around);
        let mut exprs = Vec::with_capacity(operands.len());
        for operand in operands {
            let expr = if operand.is_open {
                self.rewrite(operand.expr, &want)?
            } else {
                if is_compared && constant::is_rounded(&operand.expr) {
                    self.warn_rounded(&operand.expr);
                }
                constant::exact(operand.expr, is_compared)
            };
            let is_value =
                joined != Joined::Value || is_null(&expr) || array::is_value(&self.type_of(&expr)?);
            exprs.push(if is_value {
                expr
            } else {
                of_values(Function::Value, vec![expr])
            });
        }
        Ok(Peers {
            exprs,
            are_values: true,
        })
    }

    fn warn_rounded(&mut self, expr: &Expr) {
        let message = format!(
            "`{expr}` has more than 38 digits, so it is compared as the nearest float64, which many integers share: \
             for equality, compare text instead, such as `id::text = '{expr}'`"
        );
        self.warn(expr.span(), message);
    }

    /// Whether an expression chooses between values of which one is a key's.
    fn is_choice(&self, expr: &Expr) -> Result<bool, Error> {
        for alternative in alternatives(expr) {
            if self.is_open(alternative)? || self.is_choice(alternative)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether an expression is a reserved column of times, or a choice with one.
    fn is_time(&self, expr: &Expr) -> Result<bool, Error> {
        let key = self.key(build::bare(expr))?;
        let natural = key.and_then(|key| key.source.natural_type());
        if natural == Some(Type::Timestamp) {
            return Ok(true);
        }
        for alternative in alternatives(expr) {
            if self.is_time(alternative)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether an expression has no type of its own: a key, or a choice between keys.
    pub(super) fn is_open(&self, expr: &Expr) -> Result<bool, Error> {
        if self.key(expr)?.is_some() {
            return Ok(true);
        }
        match expr {
            Expr::Nested(inner) => self.is_open(inner),
            Expr::BinaryOp { left, op, .. } if is_json(op) => Ok(self.is_open(left)?),
            expr => self.all_open(alternatives(expr).into_iter()),
        }
    }

    fn all_open<'e>(&self, exprs: impl Iterator<Item = &'e Expr>) -> Result<bool, Error> {
        let mut any = false;
        for expr in exprs {
            if is_null(expr) {
                continue;
            }
            if !self.is_open(expr)? {
                return Ok(false);
            }
            any = true;
        }
        Ok(any)
    }
}

/// The values that an expression chooses from, if it is such an expression.
fn alternatives(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::Nested(inner) => alternatives(inner),
        Expr::Case {
            conditions,
            else_result,
            ..
        } => {
            let results = conditions.iter().map(|when| &when.result);
            results.chain(else_result.as_deref()).collect()
        }
        Expr::Function(function) => build::alternatives(function).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// An integer beyond 64 bits beside a decimal: DataFusion would make floats of both.
fn as_decimal(expr: Expr) -> Expr {
    let Some(text) = constant::wide_integer(&expr) else {
        return expr;
    };
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(Expr::value(Value::SingleQuotedString(text))),
        data_type: SqlType::Decimal(ExactNumberInfo::PrecisionAndScale(38, 0)),
        array: false,
        format: None,
    }
}

impl Facts {
    fn constant(&mut self, constant: Constant) {
        match constant {
            Constant::Integer { big } => {
                self.integers = true;
                self.big |= big;
            }
            Constant::Float { big } => {
                self.floats = true;
                self.big |= big;
            }
            Constant::Text => self.text = true,
            Constant::Boolean => self.boolean = true,
            Constant::Null => {}
            Constant::Time => self.time = true,
            Constant::Interval => self.interval = true,
        }
    }

    /// What the constants say that a choice may give.
    fn constants_of_choice(&mut self, expr: &Expr) {
        for alternative in alternatives(expr) {
            match constant(alternative) {
                Some(constant) => self.constant(constant),
                None => self.constants_of_choice(alternative),
            }
        }
    }

    fn data_type(&mut self, ty: &DataType) {
        match ty {
            ty if array::is_value(ty) => self.dynamic = true,
            ty if ty.is_integer() => self.integers = true,
            ty if ty.is_floating() => self.floats = true,
            DataType::Decimal128(..) | DataType::Decimal256(..) => {
                self.floats = true;
                self.other = true;
                self.decimal = true;
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => self.text = true,
            DataType::Dictionary(_, value) => self.data_type(value),
            DataType::Boolean => self.boolean = true,
            DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => self.time = true,
            DataType::Interval(_) | DataType::Duration(_) => self.interval = true,
            DataType::Null => {}
            _ => self.other = true,
        }
    }

    fn says_nothing(&self) -> bool {
        let kinds = self.integers || self.floats || self.text || self.boolean;
        !(kinds || self.time || self.interval || self.dynamic)
    }

    fn meeting(&self, joined: Joined, around: &str, outer: &Want, any_open: bool) -> Meeting {
        match joined {
            Joined::Sum | Joined::Product | Joined::Quotient => {
                self.computed(joined, around, any_open)
            }
            Joined::Value => self.chosen(around, outer, any_open || self.dynamic),
            Joined::Element => self.chosen(around, outer, false),
            Joined::Equality | Joined::Order | Joined::Identity => self.compared(joined, around),
        }
    }

    fn computed(&self, joined: Joined, around: &str, any_open: bool) -> Meeting {
        let want = |ty, why: &'static str| Want::new(ty, why, Force::Peer, around);
        if self.interval && joined != Joined::Sum {
            return Meeting::Typed(want(Type::Float64, "a multiple of an interval"));
        }
        if self.time || self.interval {
            return Meeting::Typed(want(Type::Timestamp, "arithmetic with a time"));
        }
        let is_plain = !self.other && !self.boolean;
        let is_exact = any_open || self.dynamic || self.integers && !self.floats;
        match joined {
            // The result is a float anyway.
            Joined::Quotient => Meeting::Typed(want(Type::Float64, "a division")),
            _ if is_plain && is_exact => Meeting::Values,
            _ => Meeting::Typed(want(Type::Float64, "arithmetic")),
        }
    }

    fn chosen(&self, around: &str, outer: &Want, varies: bool) -> Meeting {
        let want = |ty, why: &'static str| Meeting::Typed(Want::new(ty, why, Force::Peer, around));
        let is_plain = !(self.time || self.interval || self.other);
        let keeps_kind = varies && is_plain;
        match outer.ty {
            Some(Type::Value) if is_plain && self.integers && self.floats => Meeting::Values,
            _ if self.time => want(Type::Timestamp, "beside a time"),
            Some(Type::Value | Type::Int64 | Type::Float64 | Type::Boolean) if keeps_kind => {
                Meeting::Values
            }
            // DataFusion would make numbers of texts beside a number.
            Some(Type::Text) | None
                if keeps_kind && (self.integers || self.floats || self.boolean) =>
            {
                Meeting::Values
            }
            Some(Type::Text | Type::Timestamp) => Meeting::Typed(outer.clone()),
            _ if self.text => want(Type::Text, "beside text"),
            _ if self.boolean => want(Type::Boolean, "beside true or false"),
            _ if self.big && !self.floats => want(Type::Int64, "beside an integer beyond 2^53"),
            _ if self.integers || self.floats || self.dynamic => {
                want(Type::Float64, "beside a number")
            }
            // Alternatives are what their place wants them to be.
            _ => Meeting::Typed(outer.clone()),
        }
    }

    /// A float holds enough of any number for a comparison with a constant below 2^53: rounding keeps their order.
    /// Whatever else is compared with a number is compared as it is written.
    fn compared(&self, joined: Joined, around: &str) -> Meeting {
        let want = |ty, why: &'static str| Meeting::Typed(Want::new(ty, why, Force::Peer, around));
        let whole = |ty| {
            Meeting::Typed(Want::new(
                ty,
                "equality with a whole number",
                Force::Whole,
                around,
            ))
        };
        let numbers = self.integers || self.floats || self.dynamic;
        let is_exact = self.big || self.varying > 1;
        if self.time {
            want(Type::Timestamp, "beside a time")
        } else if self.text {
            want(Type::Text, "beside text")
        } else if self.boolean {
            want(Type::Boolean, "beside true or false")
        } else if !numbers {
            Meeting::Typed(Want::nothing("beside nothing that has a type", around))
        } else if is_exact && !self.other {
            Meeting::Values
        } else if joined == Joined::Identity && self.integers && !self.floats {
            whole(Type::Int64)
        } else if joined == Joined::Order {
            want(Type::Float64, "ordered comparison with a number")
        } else if self.floats {
            want(Type::Float64, "equality with a number")
        } else {
            whole(Type::Float64)
        }
    }
}
