//! Batches for tests: JSON lines to the physical columns of a query, by the plain reading of D1's conversions.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, StringViewArray, StructArray,
    TimestampNanosecondArray, UInt8Array,
};
use arrow::datatypes::DataType;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use serde_json::Value;
use tailrace_model::json::Kind;

use crate::{
    Column, ColumnSource, Evaluated, Options, OutputValue, Query, Reserved, Rows, Step, Type,
};

pub(super) const OBSERVED_NS: i64 = 1_767_323_045_000_000_000;
const OBSERVED: &str = "2026-01-02T03:04:05Z";

pub(crate) fn compile(sql: &str) -> Query {
    Query::compile(sql, &Options::default()).unwrap_or_else(|error| panic!("{sql}: {error:?}"))
}

/// Lines as a batch of the query's columns.
pub(super) fn batch(query: &Query, lines: &[&str]) -> RecordBatch {
    let records: Vec<Value> = lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let columns = query
        .columns()
        .iter()
        .map(|column| array(column, &records))
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(lines.len()));
    RecordBatch::try_new_with_options(query.schema(), columns, &options).unwrap()
}

fn array(column: &Column, records: &[Value]) -> ArrayRef {
    let values = records.iter().map(|record| value(&column.source, record));
    match column.ty {
        Type::Open | Type::Text => Arc::new(
            values
                .map(|value| value.and_then(text))
                .collect::<StringViewArray>(),
        ),
        Type::Value => values_of_any_kind(values),
        Type::Int64 => Arc::new(
            values
                .map(|value| value.and_then(integer))
                .collect::<Int64Array>(),
        ),
        Type::Float64 => Arc::new(
            values
                .map(|value| value.and_then(float))
                .collect::<Float64Array>(),
        ),
        Type::Boolean => Arc::new(
            values
                .map(|value| value.and_then(|value| value.as_bool()))
                .collect::<BooleanArray>(),
        ),
        Type::Timestamp => {
            let time = |value| text(value).and_then(|text| tailrace_model::time::parse(&text, 0));
            let times: TimestampNanosecondArray =
                values.map(|value| value.and_then(time)).collect();
            Arc::new(times.with_timezone("UTC"))
        }
    }
}

fn values_of_any_kind(values: impl Iterator<Item = Option<Value>>) -> ArrayRef {
    let (mut texts, mut kinds) = (Vec::new(), Vec::new());
    for value in values {
        kinds.push(value.as_ref().map(|value| match value {
            Value::Null => Kind::Null as u8,
            Value::Bool(_) => Kind::Bool as u8,
            Value::Number(number) if number.is_f64() => Kind::Float as u8,
            Value::Number(_) => Kind::Integer as u8,
            Value::String(_) => Kind::String as u8,
            Value::Array(_) => Kind::Array as u8,
            Value::Object(_) => Kind::Object as u8,
        }));
        texts.push(value.and_then(text));
    }
    let DataType::Struct(fields) = crate::types::data_type(Type::Value) else {
        unreachable!("values are structs");
    };
    let texts = StringViewArray::from_iter(texts);
    let nulls = texts.nulls().cloned();
    let columns: Vec<ArrayRef> = vec![Arc::new(texts), Arc::new(UInt8Array::from(kinds))];
    Arc::new(StructArray::new(fields, columns, nulls))
}

fn value(source: &ColumnSource, record: &Value) -> Option<Value> {
    match source {
        ColumnSource::Key(steps) => {
            let mut at = record;
            for step in steps {
                at = match step {
                    Step::Key(key) => at.get(key)?,
                    Step::Index(index) => at.get(usize::try_from(*index).ok()?)?,
                };
            }
            Some(at.clone())
        }
        ColumnSource::Reserved(Reserved::Body, _) => record.get("msg").cloned(),
        ColumnSource::Reserved(Reserved::Json, _) => Some(record.clone()),
        ColumnSource::Reserved(Reserved::Timestamp, _) => record.get("ts").cloned(),
        ColumnSource::Reserved(Reserved::ObservedTimestamp, _) => Some(Value::from(OBSERVED)),
        ColumnSource::Reserved(Reserved::SeverityNumber, _) => Some(Value::from(9)),
        ColumnSource::Reserved(Reserved::Malformed, _) => Some(Value::from(false)),
        ColumnSource::Reserved(_, name) => Some(Value::from(name.as_str())),
    }
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    }
}

fn float(value: Value) -> Option<f64> {
    text(value).and_then(|text| text.parse().ok())
}

fn integer(value: Value) -> Option<i64> {
    let text = text(value)?;
    let whole = |number: f64| number.fract() == 0.0 && number.abs() < 9e15;
    text.parse().ok().or_else(|| {
        text.parse()
            .ok()
            .filter(|number| whole(*number))
            .map(|number| number as i64)
    })
}

/// Output rows as text, one line for each, branch after branch: `0: a=1 b=x`.
pub(super) fn rows(query: &Query, batch: &RecordBatch, evaluated: &Evaluated) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let format = |array: &ArrayRef, row: usize| {
        if let Some((text, kind)) = crate::split_values(array) {
            return match text.is_valid(row).then(|| text.value(row)) {
                None => "NULL".to_owned(),
                Some(text) if kind.value(row) == Kind::String as u8 => format!("{text:?}"),
                Some(text) => text.to_owned(),
            };
        }
        ArrayFormatter::try_new(array, &options)
            .unwrap()
            .value(row)
            .to_string()
    };
    let mut lines = Vec::new();
    for (branch, selected) in query.branches().iter().zip(&evaluated.branches) {
        let records: Vec<u32> = match &selected.rows {
            Rows::All => (0..batch.num_rows() as u32).collect(),
            Rows::Some(rows) => rows.clone(),
        };
        assert!(records.is_sorted());
        for (row, &record) in records.iter().enumerate() {
            let mut line = format!("{record}:");
            let mut computed = selected.computed.iter();
            for output in &branch.outputs {
                let value = match &output.value {
                    OutputValue::Column(index) => format(batch.column(*index), record as usize),
                    OutputValue::Computed(ty) => {
                        let array = computed.next().unwrap();
                        assert_eq!(
                            (array.data_type(), array.len()),
                            (ty, records.len()),
                            "{}",
                            output.name
                        );
                        format(array, row)
                    }
                };
                line.push_str(&format!(" {}={value}", output.name));
            }
            assert!(computed.next().is_none());
            lines.push(line);
        }
    }
    lines
}

/// Compiles, evaluates and prints; failed rows come last.
pub(super) fn run(sql: &str, lines: &[&str]) -> Vec<String> {
    let query = compile(sql);
    let batch = batch(&query, lines);
    let evaluated = query.evaluator().evaluate(&batch, OBSERVED_NS);
    let mut result = rows(&query, &batch, &evaluated);
    if evaluated.failed_rows > 0 {
        result.push(format!("failed: {}", evaluated.failed_rows));
    }
    result
}
