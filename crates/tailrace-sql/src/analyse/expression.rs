//! Every form of expression that a query may hold: an allow-list.

use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, CaseWhen, CastKind, CeilFloorKind, DataType as SqlType,
    DateTimeField, Expr, Spanned, Subscript, UnaryOperator, Value,
};

use super::peers::Joined;
use super::{Analysis, Force, Want, constant, try_cast};
use crate::error::Error;
use crate::types::Type;

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
            Expr::UnaryOp { op, expr } => self.unary(op, *expr),
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
                array.elem = self.peers(array.elem, Joined::Value, &around, &nothing(&around))?;
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

    fn fixed(
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

    fn unary(&mut self, op: UnaryOperator, expr: Expr) -> Result<Expr, Error> {
        let around = format!("{op} {expr}");
        let (ty, why) = match op {
            UnaryOperator::Not | UnaryOperator::BangNot => (Type::Boolean, "NOT"),
            UnaryOperator::Plus | UnaryOperator::Minus => (Type::Float64, "arithmetic"),
            _ => {
                let place = self.places.of(expr.span());
                let error = place.error(format!("the operator {op} is not possible in a query"));
                return Err(error.with_hint(FORMS));
            }
        };
        let op = if op == UnaryOperator::BangNot {
            UnaryOperator::Not
        } else {
            op
        };
        let force = if ty == Type::Boolean {
            Force::Fixed
        } else {
            Force::Peer
        };
        let expr = Box::new(self.rewrite(expr, &Want::new(ty, why, force, &around))?);
        self.typed(Expr::UnaryOp { op, expr })
    }

    // What DataFusion finds wrong is found at the smallest expression that is wrong.
    fn typed(&self, expr: Expr) -> Result<Expr, Error> {
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
            Op::Multiply | Op::Divide => Joined::Product,
            Op::Modulo => Joined::Modulo,
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
        let mut sides = self
            .peers(vec![*left, *right], joined, &around, &nothing(&around))?
            .into_iter();
        match (sides.next(), sides.next()) {
            (Some(left), Some(right)) => self.typed(Expr::BinaryOp {
                left: Box::new(left),
                op,
                right: Box::new(right),
            }),
            _ => Err(place.error("an operand is missing").with_hint(FORMS)),
        }
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
        let left = self.fixed(left, Type::Text, "JSON is read from its text", around)?;
        let right = self.fixed(right, Type::Text, "a step of a path", around)?;
        let expr = self.typed(Expr::BinaryOp { left, op, right })?;
        match want.ty {
            Some(
                ty @ (Type::Int64 | Type::Float64 | Type::Boolean | Type::Timestamp | Type::Text),
            ) => Ok(try_cast(Expr::Nested(Box::new(expr)), ty)),
            Some(Type::Open) | None => Ok(Expr::Nested(Box::new(expr))),
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
            Expr::IsDistinctFrom(left, right) => {
                let [left, right] = self.fixed_peers([*left, *right], Joined::Equality, &outer)?;
                Expr::IsDistinctFrom(Box::new(left), Box::new(right))
            }
            Expr::IsNotDistinctFrom(left, right) => {
                let [left, right] = self.fixed_peers([*left, *right], Joined::Equality, &outer)?;
                Expr::IsNotDistinctFrom(Box::new(left), Box::new(right))
            }
            Expr::Between {
                expr,
                negated,
                low,
                high,
            } => {
                let [expr, low, high] =
                    self.fixed_peers([*expr, *low, *high], Joined::Order, &outer)?;
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
                let mut list = self.peers(list, Joined::Equality, &around, &outer)?;
                let expr = Box::new(list.remove(0));
                Expr::InList {
                    expr,
                    list,
                    negated,
                }
            }
            other => other,
        };
        self.typed(rebuilt)
    }

    fn fixed_peers<const N: usize>(
        &mut self,
        exprs: [Expr; N],
        joined: Joined,
        outer: &Want,
    ) -> Result<[Expr; N], Error> {
        let around = outer.around.clone();
        let peers = self.peers(exprs.into(), joined, &around, outer)?;
        Ok(<[Expr; N]>::try_from(peers).expect("as many peers come back as went in"))
    }

    fn like(&mut self, expr: Expr) -> Result<Expr, Error> {
        let around = expr.to_string();
        let place = self.places.of(expr.span());
        let rebuilt = match expr {
            Expr::Like { any: true, .. } | Expr::ILike { any: true, .. } => {
                return Err(place
                    .error("LIKE ANY is not possible in a query")
                    .with_hint("join several LIKE with OR"));
            }
            Expr::Like {
                negated,
                any,
                expr,
                pattern,
                escape_char,
            } => {
                let expr = self.fixed(expr, Type::Text, "LIKE", &around)?;
                let pattern = self.fixed(pattern, Type::Text, "LIKE", &around)?;
                Expr::Like {
                    negated,
                    any,
                    expr,
                    pattern,
                    escape_char,
                }
            }
            Expr::ILike {
                negated,
                any,
                expr,
                pattern,
                escape_char,
            } => {
                let expr = self.fixed(expr, Type::Text, "ILIKE", &around)?;
                let pattern = self.fixed(pattern, Type::Text, "ILIKE", &around)?;
                Expr::ILike {
                    negated,
                    any,
                    expr,
                    pattern,
                    escape_char,
                }
            }
            Expr::SimilarTo {
                negated,
                expr,
                pattern,
                escape_char,
            } => {
                let expr = self.fixed(expr, Type::Text, "SIMILAR TO", &around)?;
                let pattern = self.fixed(pattern, Type::Text, "SIMILAR TO", &around)?;
                Expr::SimilarTo {
                    negated,
                    expr,
                    pattern,
                    escape_char,
                }
            }
            other => other,
        };
        self.typed(rebuilt)
    }

    fn case(&mut self, expr: Expr, want: &Want) -> Result<Expr, Error> {
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
                let mut all = self.peers(all, Joined::Equality, &around, &nothing(&around))?;
                (Some(Box::new(all.remove(0))), all)
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
        let mut results = self.peers(results, Joined::Value, &around, want)?;
        let else_result = if has_else {
            results.pop().map(Box::new)
        } else {
            None
        };
        let both = whens.into_iter().zip(results);
        let conditions = both
            .map(|(condition, result)| CaseWhen { condition, result })
            .collect();
        self.typed(Expr::Case {
            case_token,
            end_token,
            operand,
            conditions,
            else_result,
        })
    }

    fn cast(&mut self, expr: Expr) -> Result<Expr, Error> {
        let around = expr.to_string();
        let place = self.places.of(expr.span());
        let Expr::Cast {
            kind,
            expr,
            data_type,
            array,
            format,
        } = expr
        else {
            return Ok(expr);
        };
        if array || format.is_some() {
            return Err(place
                .error("this cast is not possible in a query")
                .with_hint("write `x::type`"));
        }
        let want = Want::new(
            cast_type(&data_type),
            "cast to this type",
            Force::Cast,
            &around,
        );
        let expr = Box::new(self.rewrite(*expr, &want)?);
        let kind = if kind == CastKind::SafeCast {
            CastKind::TryCast
        } else {
            kind
        };
        self.typed(Expr::Cast {
            kind,
            expr,
            data_type,
            array,
            format,
        })
    }

    fn number(&mut self, expr: Expr) -> Result<Expr, Error> {
        let around = expr.to_string();
        let place = self.places.of(expr.span());
        let plain = |field: &CeilFloorKind| {
            matches!(
                field,
                CeilFloorKind::DateTimeField(DateTimeField::NoDateTime)
            )
        };
        let rebuilt = match expr {
            Expr::Extract {
                field,
                syntax,
                expr,
            } => {
                let expr = self.fixed(expr, Type::Timestamp, "EXTRACT", &around)?;
                Expr::Extract {
                    field,
                    syntax,
                    expr,
                }
            }
            Expr::AtTimeZone {
                timestamp,
                time_zone,
            } => {
                let timestamp = self.fixed(timestamp, Type::Timestamp, "AT TIME ZONE", &around)?;
                let time_zone = self.fixed(time_zone, Type::Text, "AT TIME ZONE", &around)?;
                Expr::AtTimeZone {
                    timestamp,
                    time_zone,
                }
            }
            Expr::Ceil { expr, field } if plain(&field) => Expr::Ceil {
                expr: self.fixed(expr, Type::Float64, "argument of ceil", &around)?,
                field,
            },
            Expr::Floor { expr, field } if plain(&field) => Expr::Floor {
                expr: self.fixed(expr, Type::Float64, "argument of floor", &around)?,
                field,
            },
            other => {
                return Err(place
                    .error(format!("`{other}` is not possible in a query"))
                    .with_hint(FORMS));
            }
        };
        self.typed(rebuilt)
    }

    fn text(&mut self, expr: Expr) -> Result<Expr, Error> {
        let around = expr.to_string();
        const TEXT: (Type, &str) = (Type::Text, "argument of a text function");
        const COUNT: (Type, &str) = (Type::Int64, "argument of a text function");
        let mut one = |expr: Box<Expr>, (ty, why)| self.fixed(expr, ty, why, &around);
        let rebuilt = match expr {
            Expr::Position { expr, r#in } => Expr::Position {
                expr: one(expr, TEXT)?,
                r#in: one(r#in, TEXT)?,
            },
            Expr::Substring {
                expr,
                substring_from,
                substring_for,
                special,
                shorthand,
            } => Expr::Substring {
                expr: one(expr, TEXT)?,
                substring_from: substring_from.map(|from| one(from, COUNT)).transpose()?,
                substring_for: substring_for.map(|count| one(count, COUNT)).transpose()?,
                special,
                shorthand,
            },
            Expr::Trim {
                trim_where,
                trim_what,
                expr,
                trim_characters,
            } => {
                let characters = trim_characters
                    .map(|all| {
                        all.into_iter()
                            .map(|expr| one(Box::new(expr), TEXT).map(|expr| *expr))
                            .collect()
                    })
                    .transpose()?;
                Expr::Trim {
                    trim_where,
                    trim_what: trim_what.map(|what| one(what, TEXT)).transpose()?,
                    expr: one(expr, TEXT)?,
                    trim_characters: characters,
                }
            }
            Expr::Overlay {
                expr,
                overlay_what,
                overlay_from,
                overlay_for,
            } => Expr::Overlay {
                expr: one(expr, TEXT)?,
                overlay_what: one(overlay_what, TEXT)?,
                overlay_from: one(overlay_from, COUNT)?,
                overlay_for: overlay_for.map(|count| one(count, COUNT)).transpose()?,
            },
            other => other,
        };
        self.typed(rebuilt)
    }

    fn subscript(&mut self, root: Expr, chain: Vec<AccessExpr>) -> Result<Expr, Error> {
        let around = Expr::CompoundFieldAccess {
            root: Box::new(root.clone()),
            access_chain: chain.clone(),
        }
        .to_string();
        let place = self.places.of(root.span());
        if self.is_open(&root)? {
            let hint = format!("write {root}->'key' for a member, {root}->0 for an element");
            return Err(place
                .error(format!(
                    "`{around}`: subscripts are for lists, `{root}` is a key"
                ))
                .with_hint(hint));
        }
        let root = Box::new(self.rewrite(root, &nothing(&around))?);
        let index = Want::new(Type::Int64, "a subscript", Force::Fixed, &around);
        let mut access_chain = Vec::with_capacity(chain.len());
        for access in chain {
            let AccessExpr::Subscript(Subscript::Index { index: at }) = access else {
                return Err(place
                    .error(format!("`{around}` is not possible in a query"))
                    .with_hint("subscripts are single positions, from 1"));
            };
            let at = if constant::constant(&at).is_some() {
                at
            } else {
                self.rewrite(at, &index)?
            };
            access_chain.push(AccessExpr::Subscript(Subscript::Index { index: at }));
        }
        self.typed(Expr::CompoundFieldAccess { root, access_chain })
    }
}

/// What to write instead of what is refused.
const FORMS: &str = "use comparisons, arithmetic, AND, OR, NOT, CASE, casts and functions";

pub(super) fn is_json(op: &BinaryOperator) -> bool {
    matches!(op, BinaryOperator::Arrow | BinaryOperator::LongArrow)
}

fn nothing(around: &str) -> Want {
    Want::nothing("nothing here fixes a type", around)
}

/// The type a key is read as before it is cast.
fn cast_type(ty: &SqlType) -> Type {
    use SqlType as T;
    match ty {
        T::TinyInt(_)
        | T::SmallInt(_)
        | T::MediumInt(_)
        | T::Int(_)
        | T::Integer(_)
        | T::BigInt(_)
        | T::Int2(_)
        | T::Int4(_)
        | T::Int8(_)
        | T::Int16
        | T::Int32
        | T::Int64
        | T::TinyIntUnsigned(_)
        | T::SmallIntUnsigned(_)
        | T::IntUnsigned(_)
        | T::IntegerUnsigned(_)
        | T::BigIntUnsigned(_)
        | T::UInt8
        | T::UInt16
        | T::UInt32
        | T::UInt64
        | T::Signed
        | T::SignedInteger
        | T::Unsigned
        | T::UnsignedInteger => Type::Int64,
        T::Float(_)
        | T::Float4
        | T::Float8
        | T::Float32
        | T::Float64
        | T::Real
        | T::Double(_)
        | T::DoublePrecision => Type::Float64,
        T::Bool | T::Boolean => Type::Boolean,
        T::Timestamp(..) | T::Datetime(_) | T::Date | T::Date32 => Type::Timestamp,
        // Decimals too: text keeps every digit.
        _ => Type::Text,
    }
}
