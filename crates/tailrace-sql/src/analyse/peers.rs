//! Operands that share one type: both sides of a comparison, the members of a list, the branches of a CASE.

use arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::Expr;

use super::constant::{Constant, constant, quoted};
use super::{Analysis, Force, Want};
use crate::error::Error;
use crate::types::Type;

/// What joins the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joined {
    /// `=`, `<>`, IN, CASE x WHEN.
    Equality,
    /// `<`, BETWEEN and the like.
    Order,
    /// `+` and `-`.
    Sum,
    /// `*` and `/`.
    Product,
    /// `%`
    Modulo,
    /// Alternatives of one value: coalesce, CASE.
    Value,
}

/// What operands with a type of their own are.
#[derive(Clone, Copy, Debug, Default)]
struct Facts {
    integers: bool,
    big: bool,
    floats: bool,
    text: bool,
    boolean: bool,
    time: bool,
    interval: bool,
}

impl Analysis<'_> {
    /// Rewrites operands; keys among them take the type of the others, or what is wanted of them all.
    pub(super) fn peers(
        &mut self,
        operands: Vec<Expr>,
        joined: Joined,
        around: &str,
        outer: &Want,
    ) -> Result<Vec<Expr>, Error> {
        let mut facts = Facts::default();
        let mut rewritten = Vec::with_capacity(operands.len());
        for operand in operands {
            if let Some(constant) = constant(&operand) {
                facts.constant(constant);
                rewritten.push((operand, false));
            } else if self.is_open(&operand)? {
                rewritten.push((operand, true));
            } else {
                let operand = self.rewrite(
                    operand,
                    &Want::nothing("nothing beside it fixes a type", around),
                )?;
                facts.data_type(&self.type_of(&operand)?);
                rewritten.push((operand, false));
            }
        }
        let want = facts.want(joined, around, outer);
        let mut as_text = false;
        let mut result = Vec::with_capacity(rewritten.len());
        for (operand, open) in rewritten {
            if open {
                let operand = self.rewrite(operand, &want)?;
                as_text |= self.type_of(&operand)? == DataType::Utf8View;
                result.push(operand);
            } else {
                result.push(operand);
            }
        }
        if joined == Joined::Equality && as_text && facts.integers {
            result = result.into_iter().map(quoted).collect();
        }
        Ok(result)
    }

    /// Whether an expression has no type of its own: a key, or a choice between keys.
    pub(super) fn is_open(&self, expr: &Expr) -> Result<bool, Error> {
        if self.key(expr)?.is_some() {
            return Ok(true);
        }
        match expr {
            Expr::Nested(inner) => self.is_open(inner),
            Expr::BinaryOp { left, op, .. } if super::expression::is_json(op) => {
                Ok(self.is_open(left)?)
            }
            Expr::Case {
                conditions,
                else_result,
                ..
            } => {
                let results = conditions
                    .iter()
                    .map(|when| &when.result)
                    .chain(else_result.as_deref());
                self.all_open(results)
            }
            Expr::Function(function) => match super::function::alternatives(function) {
                Some(arguments) => self.all_open(arguments.into_iter()),
                None => Ok(false),
            },
            _ => Ok(false),
        }
    }

    fn all_open<'e>(&self, exprs: impl Iterator<Item = &'e Expr>) -> Result<bool, Error> {
        let mut any = false;
        for expr in exprs {
            if super::is_null(expr) {
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

impl Facts {
    fn constant(&mut self, constant: Constant) {
        match constant {
            Constant::Integer { big } => {
                self.integers = true;
                self.big |= big;
            }
            Constant::Float => self.floats = true,
            Constant::Text => self.text = true,
            Constant::Boolean => self.boolean = true,
            Constant::Null => {}
            Constant::Time => self.time = true,
            Constant::Interval => self.interval = true,
        }
    }

    fn data_type(&mut self, ty: &DataType) {
        match ty {
            ty if ty.is_integer() => self.integers = true,
            ty if ty.is_floating()
                || matches!(ty, DataType::Decimal128(..) | DataType::Decimal256(..)) =>
            {
                self.floats = true;
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => self.text = true,
            DataType::Dictionary(_, value) => self.data_type(value),
            DataType::Boolean => self.boolean = true,
            DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => self.time = true,
            DataType::Interval(_) | DataType::Duration(_) => self.interval = true,
            _ => {}
        }
    }

    fn want(&self, joined: Joined, around: &str, outer: &Want) -> Want {
        let want = |ty, why: &'static str| Want::new(ty, why, Force::Peer, around);
        let exact = self.big && !self.floats;
        let numbers = self.integers || self.floats;
        match joined {
            Joined::Sum if self.time || self.interval => {
                want(Type::Timestamp, "arithmetic with a time")
            }
            Joined::Modulo if self.integers && !self.floats => {
                want(Type::Int64, "modulo with integers only")
            }
            Joined::Sum | Joined::Product | Joined::Modulo if exact => {
                want(Type::Int64, "arithmetic with an integer beyond 2^53")
            }
            Joined::Sum | Joined::Product | Joined::Modulo => want(Type::Float64, "arithmetic"),
            _ if self.time => want(Type::Timestamp, "beside a time"),
            _ if self.text => want(Type::Text, "beside text"),
            _ if self.boolean => want(Type::Boolean, "beside true or false"),
            Joined::Equality if self.integers && !self.floats => {
                want(Type::Int64, "equality with integers only")
            }
            Joined::Order | Joined::Value if exact => {
                want(Type::Int64, "beside an integer beyond 2^53")
            }
            Joined::Equality if numbers => want(Type::Float64, "equality with a number"),
            Joined::Order if numbers => want(Type::Float64, "ordered comparison with a number"),
            Joined::Value if numbers => want(Type::Float64, "beside a number"),
            // Alternatives are what their place wants them to be.
            Joined::Value => outer.clone(),
            Joined::Equality | Joined::Order => {
                Want::nothing("beside nothing that has a type", around)
            }
        }
    }
}
