//! The types that functions want of their arguments.
//!
//! Looks up the type that a key takes as an argument of a function, or none where the signature leaves it open.
//! DataFusion's own signatures decide; a short table settles functions that check types by hand, and those that
//! would take a time as well as a text.

use arrow::datatypes::DataType;
use datafusion::common::types::NativeType;
use datafusion::logical_expr::{ScalarUDF, TypeSignature, TypeSignatureClass};

use crate::types::Type;

/// How a function treats its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arguments {
    /// Each position by [`argument`].
    Each,
    /// They are alternatives of one value, and so is the result.
    Alternatives,
}

/// Whether the function picks one of its arguments.
pub(crate) fn arguments(name: &str) -> Arguments {
    match name {
        "coalesce" | "nvl" | "ifnull" | "nullif" | "nvl2" | "greatest" | "least" | "make_array"
        | "make_list" => Arguments::Alternatives,
        _ => Arguments::Each,
    }
}

/// The type of the argument at `index` of `count`, if the function fixes it.
pub(crate) fn argument(
    function: &ScalarUDF,
    name: &str,
    index: usize,
    count: usize,
) -> Option<Type> {
    if let Some(known) = known(name, index, count) {
        return known;
    }
    let mut found = Found::default();
    found.signature(&function.signature().type_signature, index, count);
    found.pick()
}

/// Functions that check types by hand, or take times as well as texts.
fn known(name: &str, index: usize, count: usize) -> Option<Option<Type>> {
    let first = |ty| Some((index == 0).then_some(ty));
    match name {
        "abs" | "ceil" | "floor" | "power" | "pow" | "log" | "nanvl" | "isnan" | "iszero" => {
            Some(Some(Type::Float64))
        }
        "round" | "trunc" => Some(Some(if index == 0 {
            Type::Float64
        } else {
            Type::Int64
        })),
        "concat" | "concat_ws" => Some(Some(Type::Text)),
        // With formats they read text; without, the model's time parser is the better reader.
        "to_timestamp" | "to_date" | "to_unixtime" if count == 1 => first(Type::Timestamp),
        "to_timestamp_seconds"
        | "to_timestamp_millis"
        | "to_timestamp_micros"
        | "to_timestamp_nanos"
            if count == 1 =>
        {
            first(Type::Int64)
        }
        "to_timestamp"
        | "to_date"
        | "to_unixtime"
        | "to_timestamp_seconds"
        | "to_timestamp_millis"
        | "to_timestamp_micros"
        | "to_timestamp_nanos"
        | "to_time" => Some(Some(Type::Text)),
        "from_unixtime" => first(Type::Int64),
        "make_date" | "make_time" | "gcd" | "lcm" => Some(Some(Type::Int64)),
        "to_char" | "date_format" | "to_local_time" => first(Type::Timestamp),
        "date_part" | "datepart" | "date_trunc" | "datetrunc" => Some(Some(if index == 0 {
            Type::Text
        } else {
            Type::Timestamp
        })),
        "date_bin" => Some((index > 0).then_some(Type::Timestamp)),
        _ if name.starts_with("json_") => first(Type::Text),
        _ => None,
    }
}

/// Types that the alternatives of a signature allow at one position.
#[derive(Default)]
struct Found {
    types: Vec<Type>,
    open: bool,
}

impl Found {
    fn signature(&mut self, signature: &TypeSignature, index: usize, count: usize) {
        match signature {
            TypeSignature::OneOf(alternatives) => {
                for alternative in alternatives {
                    self.signature(alternative, index, count);
                }
            }
            TypeSignature::Exact(types) if types.len() == count => {
                self.data_types(&types[index..=index])
            }
            TypeSignature::Uniform(arity, types) if *arity == count => self.data_types(types),
            TypeSignature::Variadic(types) => self.data_types(types),
            TypeSignature::Coercible(coercions) if coercions.len() == count => {
                self.class(coercions[index].desired_type());
            }
            TypeSignature::String(arity) if *arity == count => self.types.push(Type::Text),
            TypeSignature::Numeric(arity) if *arity == count => self.types.push(Type::Float64),
            TypeSignature::Exact(_)
            | TypeSignature::Uniform(..)
            | TypeSignature::Coercible(_)
            | TypeSignature::String(_)
            | TypeSignature::Numeric(_)
            | TypeSignature::Nullary => {}
            TypeSignature::UserDefined
            | TypeSignature::VariadicAny
            | TypeSignature::Comparable(_)
            | TypeSignature::Any(_)
            | TypeSignature::ArraySignature(_) => self.open = true,
        }
    }

    fn data_types(&mut self, types: &[DataType]) {
        for ty in types {
            self.native(&NativeType::from(ty.clone()));
        }
    }

    fn class(&mut self, class: &TypeSignatureClass) {
        match class {
            TypeSignatureClass::Timestamp => self.types.push(Type::Timestamp),
            TypeSignatureClass::Integer => self.types.push(Type::Int64),
            TypeSignatureClass::Float
            | TypeSignatureClass::Decimal
            | TypeSignatureClass::Numeric => {
                self.types.push(Type::Float64);
            }
            TypeSignatureClass::Native(logical) => self.native(logical.native()),
            TypeSignatureClass::Binary => self.types.push(Type::Text),
            TypeSignatureClass::Any
            | TypeSignatureClass::Time
            | TypeSignatureClass::Interval
            | TypeSignatureClass::Duration => self.open = true,
        }
    }

    fn native(&mut self, native: &NativeType) {
        match native_type(native) {
            Some(ty) => self.types.push(ty),
            None => self.open = true,
        }
    }

    // A text is what a key always has; then the widest.
    fn pick(&self) -> Option<Type> {
        let order = [
            Type::Text,
            Type::Timestamp,
            Type::Float64,
            Type::Int64,
            Type::Boolean,
        ];
        order.into_iter().find(|ty| self.types.contains(ty))
    }
}

/// The type a key takes to become a value of this Arrow type, if one fits.
pub(crate) fn key_type(ty: &DataType) -> Option<Type> {
    native_type(&NativeType::from(ty.clone()))
}

fn native_type(native: &NativeType) -> Option<Type> {
    Some(match native {
        NativeType::Boolean => Type::Boolean,
        native if native.is_integer() => Type::Int64,
        NativeType::Float16
        | NativeType::Float32
        | NativeType::Float64
        | NativeType::Decimal(..) => Type::Float64,
        NativeType::Timestamp(..) | NativeType::Date => Type::Timestamp,
        NativeType::String | NativeType::Binary | NativeType::FixedSizeBinary(_) => Type::Text,
        _ => return None,
    })
}
