//! Rows as separated values. Lists and objects, for which the format has nothing, are JSON.

use std::sync::Arc;

use anyhow::Context;
use arrow::array::{Array, ArrayRef, StringArray};
use arrow::datatypes::{Field, Schema};
use arrow::record_batch::RecordBatch;
use arrow_csv::writer::WriterBuilder as CsvBuilder;
use arrow_json::writer::LineDelimited;

use super::json;

/// Appends rows, after the names of their columns if there is to be a header.
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
    let builder = CsvBuilder::new()
        .with_delimiter(delimiter)
        .with_header(has_header);
    let batch = with_texts(batch)?;
    builder
        .build(out)
        .write(&batch)
        .context("a value has no form in CSV")
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
