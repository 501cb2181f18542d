//! Rows as separated values. Lists and objects, for which the format has nothing, are JSON.

use std::sync::Arc;

use anyhow::Context;
use arrow::array::{Array, ArrayRef, StringArray};
use arrow::datatypes::{Field, Schema};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use arrow_json::writer::LineDelimited;

use super::json;

/// Appends rows, after the names of their columns if there is to be a header. NULL is nothing, and an empty text is `""`, as
/// PostgreSQL and DuckDB write them; where it is the only value of a row, it is `""` too.
///
/// # Errors
///
/// A value has no form.
pub(super) fn csv(
    batch: &RecordBatch,
    delimiter: u8,
    has_header: bool,
    out: &mut Vec<u8>,
) -> anyhow::Result<()> {
    if has_header {
        for (at, field) in batch.schema().fields().iter().enumerate() {
            if at > 0 {
                out.push(delimiter);
            }
            add(field.name(), delimiter, out);
        }
        out.push(b'\n');
    }
    let batch = with_texts(batch)?;
    let options = FormatOptions::default();
    let columns = batch.columns().iter().map(|column| {
        let formatter = ArrayFormatter::try_new(column, &options)?;
        Ok((formatter, column.logical_nulls()))
    });
    let columns: Vec<_> = columns
        .collect::<Result<_, ArrowError>>()
        .context("a column has no form in CSV")?;
    let mut text = String::new();
    for row in 0..batch.num_rows() {
        for (at, (formatter, nulls)) in columns.iter().enumerate() {
            if at > 0 {
                out.push(delimiter);
            }
            text.clear();
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                // Readers skip lines without anything.
                if columns.len() == 1 {
                    add(&text, delimiter, out);
                }
                continue;
            }
            let shown = formatter.value(row).write(&mut text);
            shown.context("a value has no form in CSV")?;
            add(&text, delimiter, out);
        }
        out.push(b'\n');
    }
    Ok(())
}

/// Appends a text, in quotes where it would be read as something else without them.
fn add(text: &str, delimiter: u8, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\n' | b'\r') || *byte == delimiter;
    if !bytes.is_empty() && !bytes.iter().any(is_special) {
        return out.extend_from_slice(bytes);
    }
    out.push(b'"');
    for part in bytes.split_inclusive(|byte| *byte == b'"') {
        out.extend_from_slice(part);
        if part.ends_with(b"\"") {
            out.push(b'"');
        }
    }
    out.push(b'"');
}

/// The rows with JSON in the place of lists and objects.
fn with_texts(batch: &RecordBatch) -> anyhow::Result<RecordBatch> {
    let schema = batch.schema();
    if !schema.fields().iter().any(|it| it.data_type().is_nested()) {
        return Ok(batch.clone());
    }
    let mut columns = Vec::with_capacity(batch.num_columns());
    let mut fields = Vec::with_capacity(batch.num_columns());
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        let column: ArrayRef = match field.data_type().is_nested() {
            true => Arc::new(texts(column)?),
            false => Arc::clone(column),
        };
        fields.push(Field::new(field.name(), column.data_type().clone(), true));
        columns.push(column);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).context("columns of texts")
}

/// The values of a column as JSON.
fn texts(column: &ArrayRef) -> anyhow::Result<StringArray> {
    const NAME: &str = "v";
    let field = Field::new(NAME, column.data_type().clone(), true);
    let one = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![Arc::clone(column)]);
    let mut lines = Vec::new();
    json::<LineDelimited>(&one.context("a column of its own")?, &mut lines)?;
    let lines = String::from_utf8(lines).context("a value has no form in JSON")?;
    // {"v":VALUE}
    let value = |line: &str| line.get(NAME.len() + 4..line.len() - 1).map(str::to_owned);
    let values = lines.lines().enumerate();
    Ok(values
        .map(|(at, line)| value(line).filter(|_| column.is_valid(at)))
        .collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_row_of_one_null_is_a_line_that_readers_see() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("")]));
        let one = RecordBatch::try_from_iter([("t", Arc::clone(&texts))]).unwrap();
        let two = RecordBatch::try_from_iter([("t", Arc::clone(&texts)), ("u", texts)]).unwrap();
        let written = |batch| {
            let mut out = Vec::new();
            csv(batch, b',', false, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(&one), "a\n\"\"\n\"\"\n");
        assert_eq!(written(&two), "a,a\n,\n\"\",\"\"\n");
    }
}
