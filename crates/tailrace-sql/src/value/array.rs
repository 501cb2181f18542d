//! Arrays of values of any kind: a text and its JSON kind, as one Arrow struct, read and built row by row.

use std::sync::{Arc, LazyLock};

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, PrimitiveArray, StringViewArray, StringViewBuilder,
    StructArray, UInt8Array, UnionArray,
};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields, Float64Type, Int64Type, UInt8Type, UInt64Type};
use datafusion::common::{Result, plan_err};
use tailrace_model::json::Kind;

use super::counts;
use super::number::{self, Number};

/// The fields of a value: its text (of a string the unescaped text), and its [`Kind`] as a number.
static FIELDS: LazyLock<Fields> = LazyLock::new(|| {
    Fields::from(vec![
        Field::new("text", DataType::Utf8View, true),
        Field::new("kind", DataType::UInt8, true),
    ])
});

/// The Arrow type of values of any kind.
pub(crate) fn data_type() -> DataType {
    DataType::Struct(FIELDS.clone())
}

pub(crate) fn is_value(ty: &DataType) -> bool {
    matches!(ty, DataType::Struct(fields) if *fields == *FIELDS)
}

/// Values of any kind that a query computed, taken apart: their texts, and their kinds beside them as they stand beside
/// a scanned open column. `None` for an array of another type.
pub fn split(array: &ArrayRef) -> Option<(&StringViewArray, &UInt8Array)> {
    if !is_value(array.data_type()) {
        return None;
    }
    let both = array.as_struct();
    Some((
        both.column(0).as_string_view(),
        both.column(1).as_primitive(),
    ))
}

/// The same values, with every NULL of the struct in its columns too, so that [`split`] shows it.
pub(crate) fn with_nulls_inside(array: ArrayRef) -> ArrayRef {
    let Some(nulls) = array.nulls().filter(|nulls| nulls.null_count() > 0) else {
        return array;
    };
    let Some((text, kind)) = split(&array) else {
        return array;
    };
    let both = |inner: Option<&NullBuffer>| NullBuffer::union(inner, Some(nulls));
    let text = StringViewArray::new(
        text.views().clone(),
        text.data_buffers().to_vec(),
        both(text.nulls()),
    );
    let kind = UInt8Array::new(kind.values().clone(), both(kind.nulls()));
    let columns: Vec<ArrayRef> = vec![Arc::new(text), Arc::new(kind)];
    Arc::new(StructArray::new(
        FIELDS.clone(),
        columns,
        Some(nulls.clone()),
    ))
}

/// One value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Number(Number),
    Bool(bool),
    /// Text of this kind.
    Text(Kind, &'a str),
}

/// An argument of a function, read row by row.
pub(crate) enum Values<'a> {
    Null,
    Value(&'a StructArray, &'a StringViewArray, &'a UInt8Array),
    Text(StringViewArray),
    Int64(&'a PrimitiveArray<Int64Type>),
    UInt64(&'a PrimitiveArray<UInt64Type>),
    Float64(PrimitiveArray<Float64Type>),
    Bool(&'a BooleanArray),
    /// What `json_get` and `->` give: one child for each kind, named by it.
    Union(&'a UnionArray, Vec<(i8, Values<'a>)>),
    /// JSON text of an object or an array.
    Json(Kind, StringViewArray),
    /// Integers of another width.
    Widened(PrimitiveArray<Int64Type>),
}

impl<'a> Values<'a> {
    /// # Errors
    /// When values of this type are not of any JSON kind.
    pub(crate) fn new(array: &'a ArrayRef) -> Result<Values<'a>> {
        let text = |array: &ArrayRef| -> Result<StringViewArray> {
            Ok(cast(array, &DataType::Utf8View)?.as_string_view().clone())
        };
        Ok(match array.data_type() {
            DataType::Null => Values::Null,
            ty if is_value(ty) => {
                let both = array.as_struct();
                let (text, kind) = (both.column(0), both.column(1));
                Values::Value(both, text.as_string_view(), kind.as_primitive())
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Values::Text(text(array)?),
            DataType::Boolean => Values::Bool(array.as_boolean()),
            DataType::Int64 => Values::Int64(array.as_primitive()),
            DataType::UInt64 => Values::UInt64(array.as_primitive()),
            ty if ty.is_integer() => {
                Values::Widened(cast(array, &DataType::Int64)?.as_primitive().clone())
            }
            ty if ty.is_floating() || ty.is_decimal() => {
                Values::Float64(cast(array, &DataType::Float64)?.as_primitive().clone())
            }
            DataType::Union(fields, _) => {
                let union = array.as_union();
                let mut children = Vec::with_capacity(fields.len());
                for (id, field) in fields.iter() {
                    let child = union.child(id);
                    let values = match field.name().as_str() {
                        "array" => Values::Json(Kind::Array, text(child)?),
                        "object" => Values::Json(Kind::Object, text(child)?),
                        _ => Values::new(child)?,
                    };
                    children.push((id, values));
                }
                Values::Union(union, children)
            }
            other => return plan_err!("{other} is no number, text or boolean"),
        })
    }

    /// The value of a row; `None` is NULL.
    pub(crate) fn get(&self, row: usize) -> Option<Value<'_>> {
        match self {
            Values::Null => None,
            Values::Value(both, text, kind) => {
                if both.is_null(row) || text.is_null(row) {
                    return None;
                }
                let text = text.value(row);
                match Kind::from_u8(kind.value(row))? {
                    Kind::Null => None,
                    Kind::Bool => Some(Value::Bool(text == "true")),
                    kind => Some(Value::Text(kind, text)),
                }
            }
            Values::Text(text) => text
                .is_valid(row)
                .then(|| Value::Text(Kind::String, text.value(row))),
            Values::Json(kind, text) => text
                .is_valid(row)
                .then(|| Value::Text(*kind, text.value(row))),
            Values::Int64(values) => integer(values, row),
            Values::Widened(values) => integer(values, row),
            Values::UInt64(values) => values
                .is_valid(row)
                .then(|| Value::Number(Number::Integer(values.value(row).into()))),
            Values::Float64(values) => values
                .is_valid(row)
                .then(|| Value::Number(Number::Float(values.value(row)))),
            Values::Bool(values) => values.is_valid(row).then(|| Value::Bool(values.value(row))),
            Values::Union(union, children) => {
                let id = union.type_id(row);
                let (_, child) = children.iter().find(|(of, _)| *of == id)?;
                child.get(union.value_offset(row))
            }
        }
    }
}

fn integer(values: &PrimitiveArray<Int64Type>, row: usize) -> Option<Value<'_>> {
    values
        .is_valid(row)
        .then(|| Value::Number(Number::Integer(values.value(row).into())))
}

impl Value<'_> {
    /// The number that it is, or that its text is exactly; counted where it is none.
    pub(crate) fn number(self) -> Option<Number> {
        counts::count_none(self.as_number())
    }

    pub(super) fn as_number(self) -> Option<Number> {
        match self {
            Value::Number(number) => Some(number),
            Value::Text(kind, text) => number::parse(kind, text),
            Value::Bool(_) => None,
        }
    }
}

/// Values of any kind, built row by row.
pub(crate) struct Builder {
    text: StringViewBuilder,
    kinds: Vec<u8>,
    scratch: String,
}

impl Builder {
    pub(crate) fn new(rows: usize) -> Builder {
        Builder {
            text: StringViewBuilder::with_capacity(rows),
            kinds: Vec::with_capacity(rows),
            scratch: String::new(),
        }
    }

    pub(crate) fn push(&mut self, value: Option<Value<'_>>) {
        let (kind, text) = match value {
            None => {
                self.kinds.push(Kind::Null as u8);
                return self.text.append_null();
            }
            Some(Value::Text(kind, text)) => (kind, text),
            Some(Value::Bool(true)) => (Kind::Bool, "true"),
            Some(Value::Bool(false)) => (Kind::Bool, "false"),
            Some(Value::Number(number)) => {
                self.scratch.clear();
                (number.write(&mut self.scratch), self.scratch.as_str())
            }
        };
        self.kinds.push(kind as u8);
        self.text.append_value(text);
    }

    pub(crate) fn finish(mut self) -> ArrayRef {
        let text = self.text.finish();
        let nulls = text.nulls().cloned();
        let kinds = ScalarBuffer::<u8>::from(self.kinds);
        let kinds = PrimitiveArray::<UInt8Type>::new(kinds, nulls.clone());
        let columns: Vec<ArrayRef> = vec![Arc::new(text), Arc::new(kinds)];
        Arc::new(StructArray::new(FIELDS.clone(), columns, nulls))
    }
}
