//! Forms with a grammar of their own: casts, LIKE, EXTRACT, SUBSTRING and the like, subscripts.

use datafusion::sql::sqlparser::ast::{
    AccessExpr, CastKind, CeilFloorKind, DataType as SqlType, DateTimeField, Expr, Spanned,
    Subscript,
};

use super::build::of_values;
use super::expression::{FORMS, nothing};
use super::{Analysis, Force, Want, constant};
use crate::error::Error;
use crate::types::Type;
use crate::value::Function;
use crate::value::array::is_value;

impl Analysis<'_> {
    pub(super) fn like(&mut self, expr: Expr) -> Result<Expr, Error> {
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
            } => self.similar_to(negated, expr, &pattern, escape_char, &around)?,
            other => other,
        };
        self.typed(rebuilt)
    }

    pub(super) fn cast(&mut self, expr: Expr) -> Result<Expr, Error> {
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
        let mut expr = Box::new(self.rewrite(*expr, &want)?);
        if want.ty == Some(Type::Value) && is_value(&self.type_of(&expr)?) {
            expr = Box::new(of_values(Function::ToUint64, vec![*expr]));
        }
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

    pub(super) fn number(&mut self, expr: Expr) -> Result<Expr, Error> {
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

    pub(super) fn text(&mut self, expr: Expr) -> Result<Expr, Error> {
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

    pub(super) fn subscript(&mut self, root: Expr, chain: Vec<AccessExpr>) -> Result<Expr, Error> {
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
        | T::UInt8
        | T::UInt16
        | T::UInt32
        | T::Signed
        | T::SignedInteger => Type::Int64,
        // It may be beyond that.
        T::BigIntUnsigned(_) | T::UInt64 | T::Unsigned | T::UnsignedInteger => Type::Value,
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
