//! From values of any kind to the types of columns, by the rules of scanned columns.
//!
//! Converts values to arrays of one type; what does not fit is NULL. Text that is there already is not copied.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, StringViewArray, StringViewBuilder,
    TimestampNanosecondArray, UInt64Array,
};
use arrow::buffer::NullBuffer;
use datafusion::common::Result;
use tailrace_model::json::Kind;
use tailrace_model::time;

use super::array::{Builder, Value, Values, is_value};
use super::counts::count_none;

pub(super) fn to_int64(values: &Values<'_>, rows: usize) -> ArrayRef {
    let integer = |row| count_none(values.get(row)?.number()?.to_i64());
    Arc::new((0..rows).map(integer).collect::<Int64Array>())
}

pub(super) fn to_uint64(values: &Values<'_>, rows: usize) -> ArrayRef {
    let integer = |row| count_none(values.get(row)?.number()?.to_u64());
    Arc::new((0..rows).map(integer).collect::<UInt64Array>())
}

pub(super) fn to_float64(values: &Values<'_>, rows: usize) -> ArrayRef {
    // A negative zero is zero, as in a scanned column.
    let float = |row| Some(values.get(row)?.number()?.to_f64() + 0.0);
    Arc::new((0..rows).map(float).collect::<Float64Array>())
}

pub(super) fn to_boolean(values: &Values<'_>, rows: usize) -> ArrayRef {
    let truth = |row| {
        count_none(match values.get(row)? {
            Value::Bool(truth) => Some(truth),
            Value::Text(Kind::String, "true") => Some(true),
            Value::Text(Kind::String, "false") => Some(false),
            _ => None,
        })
    };
    Arc::new((0..rows).map(truth).collect::<BooleanArray>())
}

pub(super) fn to_timestamp(values: &Values<'_>, rows: usize) -> ArrayRef {
    let mut written = String::new();
    let mut time = |row| match values.get(row)? {
        Value::Text(Kind::String | Kind::Integer | Kind::Float, text) => {
            count_none(time::parse(text, 0))
        }
        Value::Number(number) => {
            written.clear();
            number.write(&mut written);
            count_none(time::parse(&written, 0))
        }
        _ => count_none(None),
    };
    let times: TimestampNanosecondArray = (0..rows).map(&mut time).collect();
    Arc::new(times.with_timezone("UTC"))
}

pub(super) fn to_text(array: &ArrayRef, rows: usize) -> Result<ArrayRef> {
    let values = Values::new(array)?;
    if let Values::Value(both, text, _) = values {
        let nulls = NullBuffer::union(both.nulls(), text.nulls());
        let (views, buffers) = (text.views().clone(), text.data_buffers().to_vec());
        return Ok(Arc::new(StringViewArray::new(views, buffers, nulls)));
    }
    let mut builder = StringViewBuilder::with_capacity(rows);
    let mut scratch = String::new();
    for row in 0..rows {
        match values.get(row) {
            None => builder.append_null(),
            Some(Value::Text(_, text)) => builder.append_value(text),
            Some(Value::Bool(truth)) => builder.append_value(if truth { "true" } else { "false" }),
            Some(Value::Number(number)) => {
                scratch.clear();
                number.write(&mut scratch);
                builder.append_value(&scratch);
            }
        }
    }
    Ok(Arc::new(builder.finish()))
}

/// An array of any type as values of any kind.
pub(super) fn to_value(array: ArrayRef, rows: usize) -> Result<ArrayRef> {
    if is_value(array.data_type()) {
        return Ok(array);
    }
    let values = Values::new(&array)?;
    let mut builder = Builder::new(rows);
    for row in 0..rows {
        builder.push(values.get(row));
    }
    Ok(builder.finish())
}

/// The text of a value that is not a computed number.
pub(super) fn text_of<'a>(value: &Value<'a>) -> Option<&'a str> {
    match value {
        Value::Text(_, text) => Some(text),
        Value::Bool(true) => Some("true"),
        Value::Bool(false) => Some("false"),
        Value::Number(_) => None,
    }
}
