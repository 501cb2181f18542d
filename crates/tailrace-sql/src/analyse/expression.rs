//! Every form of expression that a query may hold: an allow-list.

use arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Spanned, UnaryOperator, Value,
};

use super::build::{is_json, of_values, try_cast};
use super::peers::Joined;
use super::{Analysis, Force, Want, constant};
use crate::error::Error;
use crate::types::Type;
use crate::value::{Function, Operation};

impl Analysis<'_> {
    /// The same expression over physical columns, its keys typed as `want` and its own parts say.
    pub(super) fn rewrite(&mut self, expr: Expr, want: &Want) -> Result<Expr, Error> {
        let span = expr.span();
        self.deeper(span, |analysis| match analysis.key(&expr)? {
            Some(key) => Ok(analysis.read(&key, want)),
            None => analysis.compound(expr, want),
        })
    }

    fn compound(&mut self, expr: Expr, want: &Want) -> Result<Expr, Error> {
        match expr {
            Expr::Nested(inner) => Ok(Expr::Nested(Box::new(self.rewrite(*inner, want)?))),
            Expr::Value(value) => match value.value {
                Value::Placeholder(_) => Err(self
                    .places
                    .of(value.span)
                    .error("a query has no parameters")
                    .with_hint("write the value itself")),
                _ => Ok(Expr::Value(value)),
            },
            Expr::TypedString(_) => Ok(expr),
            Expr::Interval(_) if constant::constant(&expr).is_some() => Ok(expr),
            Expr::UnaryOp { op, expr } => self.unary(op, *expr, want),
            Expr::BinaryOp { .. } => self.binary(expr, want),
            Expr::IsTrue(_)
            | Expr::IsNotTrue(_)
            | Expr::IsFalse(_)
            | Expr::IsNotFalse(_)
            | Expr::IsUnknown(_)
            | Expr::IsNotUnknown(_)
            | Expr::IsNull(_)
            | Expr::IsNotNull(_) => self.is(expr),
            Expr::IsDistinctFrom(..)
            | Expr::IsNotDistinctFrom(..)
            | Expr::InList { .. }
            | Expr::Between { .. } => self.comparison(expr),
            Expr::Like { .. } | Expr::ILike { .. } | Expr::SimilarTo { .. } => self.like(expr),
            Expr::Case { .. } => self.case(expr, want),
            Expr::Cast { .. } => self.cast(expr),
            Expr::Function(function) => self.function(function, want),
            Expr::Extract { .. }
            | Expr::AtTimeZone { .. }
            | Expr::Ceil { .. }
            | Expr::Floor { .. } => self.number(expr),
            Expr::Position { .. }
            | Expr::Substring { .. }
            | Expr::Trim { .. }
            | Expr::Overlay { .. } => self.text(expr),
            Expr::Array(mut array) => {
                let around = array.to_string();
                let peers = self.peers(array.elem, Joined::Element, &around, &nothing(&around))?;
                array.elem = peers.exprs;
                Ok(Expr::Array(array))
            }
            Expr::CompoundFieldAccess { root, access_chain } => self.subscript(*root, access_chain),
            Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => {
                let place = self.places.of(expr.span());
                Err(place
                    .error("a subquery is not possible here")
                    .with_hint("the only table is `logs`, one record at a time"))
            }
            other => {
                let place = self.places.of(other.span());
                Err(place
                    .error(format!("`{other}` is not possible in a query"))
                    .with_hint(FORMS))
            }
        }
    }

    pub(super) fn fixed(
        &mut self,
        expr: Box<Expr>,
        ty: Type,
        why: &'static str,
        around: &str,
    ) -> Result<Box<Expr>, Error> {
        Ok(Box::new(self.rewrite(
            *expr,
            &Want::new(ty, why, Force::Fixed, around),
        )?))
    }

    fn unary(&mut self, op: UnaryOperator, expr: Expr, want: &Want) -> Result<Expr, Error> {
        let around = format!("{op} {expr}");
        match op {
            UnaryOperator::Not | UnaryOperator::BangNot => {
                let condition = Want::new(Type::Boolean, "NOT", Force::Fixed, &around);
                let expr = Box::new(self.rewrite(expr, &condition)?);
                let op = UnaryOperator::Not;
                self.typed(Expr::UnaryOp { op, expr })
            }
            UnaryOperator::Plus | UnaryOperator::Minus if constant::constant(&expr).is_some() => {
                let expr = Box::new(expr);
                self.typed(Expr::UnaryOp { op, expr })
            }
            UnaryOperator::Plus | UnaryOperator::Minus => {
                let mut peers = self.peers(vec![expr], Joined::Sum, &around, want)?;
                let expr = peers.exprs.remove(0);
                match (op, peers.are_values) {
                    (UnaryOperator::Plus, _) => self.fit(expr, want),
                    (_, true) => self.numeric(Function::Negate, vec![expr], want),
                    (op, false) => self.typed(Expr::UnaryOp {
                        op,
                        expr: Box::new(expr),
                    }),
                }
            }
            _ => {
                let place = self.places.of(expr.span());
                let error = place.error(format!("the operator {op} is not possible in a query"));
                Err(error.with_hint(FORMS))
            }
        }
    }

    /// A function over numbers, and its result as its place wants it.
    fn numeric(
        &self,
        function: Function,
        arguments: Vec<Expr>,
        want: &Want,
    ) -> Result<Expr, Error> {
        let expr = self.typed(of_values(function, arguments))?;
        match want.ty {
            // A number is no condition; the place says so.
            Some(Type::Boolean) => Ok(expr),
            _ => self.fit(expr, want),
        }
    }

    // What DataFusion finds wrong is found at the smallest expression that is wrong.
    pub(super) fn typed(&self, expr: Expr) -> Result<Expr, Error> {
        self.type_of(&expr)?;
        Ok(expr)
    }

    fn binary(&mut self, expr: Expr, want: &Want) -> Result<Expr, Error> {
        let around = expr.to_string();
        let place = self.places.of(expr.span());
        let Expr::BinaryOp { left, op, right } = expr else {
            return Ok(expr);
        };
        use BinaryOperator as Op;
        let joined = match &op {
            Op::Eq | Op::NotEq => Joined::Equality,
            Op::Lt | Op::LtEq | Op::Gt | Op::GtEq => Joined::Order,
            Op::Plus | Op::Minus => Joined::Sum,
            Op::Multiply | Op::Modulo => Joined::Product,
            Op::Divide => Joined::Quotient,
            Op::And | Op::Or => {
                let left = self.fixed(left, Type::Boolean, "a condition", &around)?;
                let right = self.fixed(right, Type::Boolean, "a condition", &around)?;
                return Ok(Expr::BinaryOp { left, op, right });
            }
            Op::StringConcat
            | Op::PGRegexMatch
            | Op::PGRegexIMatch
            | Op::PGRegexNotMatch
            | Op::PGRegexNotIMatch
            | Op::PGLikeMatch
            | Op::PGILikeMatch
            | Op::PGNotLikeMatch
            | Op::PGNotILikeMatch => {
                let left = self.fixed(left, Type::Text, "a text operator", &around)?;
                let right = self.fixed(right, Type::Text, "a text operator", &around)?;
                return self.typed(Expr::BinaryOp { left, op, right });
            }
            Op::BitwiseAnd
            | Op::BitwiseOr
            | Op::BitwiseXor
            | Op::PGBitwiseXor
            | Op::PGBitwiseShiftLeft
            | Op::PGBitwiseShiftRight => {
                let left = self.fixed(left, Type::Int64, "a bit operator", &around)?;
                let right = self.fixed(right, Type::Int64, "a bit operator", &around)?;
                return self.typed(Expr::BinaryOp { left, op, right });
            }
            op if is_json(op) => return self.json(left, right, op.clone(), &around, want),
            _ => {
                let error = place.error(format!("the operator {op} is not possible in a query"));
                return Err(error.with_hint(FORMS));
            }
        };
        let peers = self.peers(vec![*left, *right], joined, &around, &nothing(&around))?;
        let are_values = peers.are_values;
        let Ok([left, right]) = <[Expr; 2]>::try_from(peers.exprs) else {
            return Err(place.error("an operand is missing").with_hint(FORMS));
        };
        let operation = match op {
            _ if joined == Joined::Quotient => self.division(&left, &right)?,
            _ if !are_values => None,
            Op::Plus => Some(Function::Compute(Operation::Add)),
            Op::Minus => Some(Function::Compute(Operation::Subtract)),
            Op::Multiply => Some(Function::Compute(Operation::Multiply)),
            Op::Modulo => Some(Function::Compute(Operation::Remainder)),
            _ => return self.typed(compared(left, op, right)),
        };
        if let Some(function) = operation {
            return self.numeric(function, vec![left, right], want);
        }
        self.typed(Expr::BinaryOp {
            left: Box::new(left),
            op,
            right: Box::new(right),
        })
    }

    /// How to divide integers and floats; DataFusion divides decimals and intervals itself.
    fn division(&self, left: &Expr, right: &Expr) -> Result<Option<Function>, Error> {
        let (left, right) = (self.type_of(left)?, self.type_of(right)?);
        let is_number = |ty: &DataType| ty.is_integer() || ty.is_floating();
        Ok(match (left.is_integer(), right.is_integer()) {
            (true, true) => Some(Function::Compute(Operation::Quotient)),
            _ if is_number(&left) && is_number(&right) => Some(Function::Divide),
            _ => None,
        })
    }

    // A path that is not literal: read from the JSON text of its root, for each record.
    fn json(
        &mut self,
        left: Box<Expr>,
        right: Box<Expr>,
        op: BinaryOperator,
        around: &str,
        want: &Want,
    ) -> Result<Expr, Error> {
        let place = self.places.of(right.span());
        if matches!(*right, Expr::Cast { .. }) {
            let hint = "`::` binds tighter than `->>`: write (a->>'b')::bigint";
            return Err(place.error("a cast is no step of a path").with_hint(hint));
        }
        if let Expr::BinaryOp { op: inner, .. } = &*right
            && let BinaryOperator::Plus
            | BinaryOperator::Minus
            | BinaryOperator::Multiply
            | BinaryOperator::Divide
            | BinaryOperator::Modulo = inner
        {
            let hint = format!("`{inner}` binds tighter than `{op}`: write (a {op} 'b') {inner} 1");
            return Err(place
                .error("a calculation is no step of a path")
                .with_hint(hint));
        }
        let left = self.fixed(left, Type::Text, "JSON is read from its text", around)?;
        let right = self.fixed(right, Type::Text, "a step of a path", around)?;
        let child = self.typed(of_values(Function::JsonGet, vec![*left, *right]))?;
        if op == BinaryOperator::Arrow {
            return self.fit(child, want);
        }
        let text = of_values(Function::ToText, vec![child]);
        match want.ty {
            Some(Type::Text | Type::Open) | None => Ok(text),
            Some(Type::Timestamp) => Ok(try_cast(nested(text), Type::Timestamp)),
            Some(_) => self.fit(of_values(Function::Value, vec![text]), want),
        }
    }

    fn is(&mut self, expr: Expr) -> Result<Expr, Error> {
        let around = expr.to_string();
        let presence = Want {
            force: Force::Presence,
            ..Want::nothing("only its presence matters", &around)
        };
        let boolean = Want::new(
            Type::Boolean,
            "IS TRUE, FALSE or UNKNOWN",
            Force::Fixed,
            &around,
        );
        let mut inner = |expr: Box<Expr>, want: &Want| self.rewrite(*expr, want).map(Box::new);
        Ok(match expr {
            Expr::IsNull(expr) => Expr::IsNull(inner(expr, &presence)?),
            Expr::IsNotNull(expr) => Expr::IsNotNull(inner(expr, &presence)?),
            Expr::IsTrue(expr) => Expr::IsTrue(inner(expr, &boolean)?),
            Expr::IsNotTrue(expr) => Expr::IsNotTrue(inner(expr, &boolean)?),
            Expr::IsFalse(expr) => Expr::IsFalse(inner(expr, &boolean)?),
            Expr::IsNotFalse(expr) => Expr::IsNotFalse(inner(expr, &boolean)?),
            Expr::IsUnknown(expr) => Expr::IsUnknown(inner(expr, &boolean)?),
            Expr::IsNotUnknown(expr) => Expr::IsNotUnknown(inner(expr, &boolean)?),
            other => other,
        })
    }

    fn comparison(&mut self, expr: Expr) -> Result<Expr, Error> {
        let around = expr.to_string();
        let outer = nothing(&around);
        let rebuilt = match expr {
            Expr::IsDistinctFrom(left, right) => self.distinct(*left, *right, &outer, false)?,
            Expr::IsNotDistinctFrom(left, right) => self.distinct(*left, *right, &outer, true)?,
            Expr::Between {
                expr,
                negated,
                low,
                high,
            } => {
                let all = vec![*expr, *low, *high];
                let peers = self.peers(all, Joined::Order, &around, &outer)?;
                let are_values = peers.are_values;
                let [expr, low, high] =
                    <[Expr; 3]>::try_from(peers.exprs).expect("as many peers come back as went in");
                if are_values {
                    let is_between = of_values(Function::Between, vec![expr, low, high]);
                    return self.typed(negated_if(negated, is_between));
                }
                Expr::Between {
                    expr: Box::new(expr),
                    negated,
                    low: Box::new(low),
                    high: Box::new(high),
                }
            }
            Expr::InList {
                expr,
                mut list,
                negated,
            } => {
                list.insert(0, *expr);
                let peers = self.peers(list, Joined::Equality, &around, &outer)?;
                if peers.are_values {
                    let is_in = of_values(Function::In, peers.exprs);
                    return self.typed(negated_if(negated, is_in));
                }
                let mut list = peers.exprs;
                let expr = list.remove(0);
                Expr::InList {
                    expr: Box::new(expr),
                    list,
                    negated,
                }
            }
            other => other,
        };
        self.typed(rebuilt)
    }

    /// `left IS DISTINCT FROM right`, or with `negated` IS NOT DISTINCT FROM.
    fn distinct(
        &mut self,
        left: Expr,
        right: Expr,
        outer: &Want,
        negated: bool,
    ) -> Result<Expr, Error> {
        let around = outer.around.clone();
        let peers = self.peers(vec![left, right], Joined::Identity, &around, outer)?;
        if peers.are_values {
            let is_distinct = of_values(Function::Distinct, peers.exprs);
            return Ok(negated_if(negated, is_distinct));
        }
        let [left, right] = <[Expr; 2]>::try_from(peers.exprs)
            .expect("as many peers come back as went in")
            .map(Box::new);
        Ok(if negated {
            Expr::IsNotDistinctFrom(left, right)
        } else {
            Expr::IsDistinctFrom(left, right)
        })
    }

    pub(super) fn case(&mut self, expr: Expr, want: &Want) -> Result<Expr, Error> {
        let around = expr.to_string();
        let Expr::Case {
            case_token,
            end_token,
            operand,
            conditions,
            else_result,
        } = expr
        else {
            return Ok(expr);
        };
        let (whens, mut results): (Vec<_>, Vec<_>) = conditions
            .into_iter()
            .map(|when| (when.condition, when.result))
            .unzip();
        let has_else = else_result.is_some();
        results.extend(else_result.map(|result| *result));
        let (operand, whens) = match operand {
            Some(operand) => {
                let mut all = vec![*operand];
                all.extend(whens);
                let peers = self.peers(all, Joined::Identity, &around, &nothing(&around))?;
                let mut all = peers.exprs;
                if peers.are_values {
                    // Which of them it is, is found out by one call.
                    let indices = (0..all.len() - 1)
                        .map(|index| Expr::value(Value::Number(index.to_string(), false)));
                    let indices = indices.collect();
                    (Some(Box::new(of_values(Function::IndexOf, all))), indices)
                } else {
                    (Some(Box::new(all.remove(0))), all)
                }
            }
            None => {
                let want = Want::new(Type::Boolean, "a condition", Force::Fixed, &around);
                let whens: Result<Vec<_>, _> = whens
                    .into_iter()
                    .map(|when| self.rewrite(when, &want))
                    .collect();
                (None, whens?)
            }
        };
        let mut results = self.peers(results, Joined::Value, &around, want)?.exprs;
        let else_result = if has_else {
            results.pop().map(Box::new)
        } else {
            None
        };
        let both = whens.into_iter().zip(results);
        let conditions = both
            .map(|(condition, result)| CaseWhen { condition, result })
            .collect();
        let case = self.typed(Expr::Case {
            case_token,
            end_token,
            operand,
            conditions,
            else_result,
        })?;
        self.fit(case, want)
    }
}

/// What to write instead of what is refused.
pub(super) const FORMS: &str =
    "use comparisons, arithmetic, AND, OR, NOT, CASE, casts and functions";

/// A comparison of two numbers as they are written.
fn compared(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    let order = of_values(Function::Compare, vec![left, right]);
    nested(Expr::BinaryOp {
        left: Box::new(order),
        op,
        right: Box::new(Expr::value(Value::Number("0".to_owned(), false))),
    })
}

fn negated_if(negated: bool, expr: Expr) -> Expr {
    if !negated {
        return expr;
    }
    Expr::UnaryOp {
        op: UnaryOperator::Not,
        expr: Box::new(expr),
    }
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

pub(super) fn nothing(around: &str) -> Want {
    Want::nothing("nothing here fixes a type", around)
}
