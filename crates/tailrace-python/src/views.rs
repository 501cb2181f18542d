//! Types that every consumer reads. Texts are views of the bytes of the files, which all consumers know as columns, but not
//! all of them in lists and structs: there they become texts of their own.

use std::sync::Arc;

use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};

/// The columns of a result as consumers get them.
pub(crate) fn exported(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter();
    let fields: Vec<FieldRef> = fields
        .map(|field| match field.data_type() {
            DataType::Utf8View => Arc::clone(field),
            _ => without_views(field),
        })
        .collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// A batch with these columns.
///
/// # Errors
///
/// A text is longer than 2 GiB in all of a batch.
pub(crate) fn converted(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    if batch.schema_ref() == schema {
        return Ok(batch);
    }
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(
        |(column, field)| match column.data_type() == field.data_type() {
            true => Ok(Arc::clone(column)),
            false => cast(column, field.data_type()),
        },
    );
    let columns = columns.collect::<Result<_, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

fn without_views(field: &FieldRef) -> FieldRef {
    let ty = match field.data_type() {
        DataType::Utf8View => DataType::Utf8,
        DataType::List(of) => DataType::List(without_views(of)),
        DataType::LargeList(of) => DataType::LargeList(without_views(of)),
        DataType::FixedSizeList(of, len) => DataType::FixedSizeList(without_views(of), *len),
        DataType::Struct(of) => DataType::Struct(of.iter().map(without_views).collect()),
        _ => return Arc::clone(field),
    };
    Arc::new(Field::clone(field).with_data_type(ty))
}
