//! Rows as Parquet or as an Arrow stream: the bytes of a file, a batch at a time.

use std::sync::Arc;

use anyhow::Context;
use arrow::array::ArrayRef;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use arrow::ipc::writer::StreamWriter;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use parquet::arrow::{ArrowSchemaConverter, ArrowWriter};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

/// Rows of a row group: the unit in which readers leave out rows, and work at the same time.
const ROW_GROUP_ROWS: usize = 300_000;
/// And at most so many bytes, which wait in memory until it is complete.
const ROW_GROUP_BYTES: usize = 64 << 20;
/// Rows of a page: the least that a reader looks at.
const PAGE_ROWS: usize = 4_096;
/// Compression that costs less time than it saves in reading.
const ZSTD_LEVEL: i32 = 3;

/// A file in the making.
pub struct Encoder {
    schema: SchemaRef,
    form: Form,
}

enum Form {
    Parquet(Box<ArrowWriter<Vec<u8>>>),
    Arrow(Box<StreamWriter<Vec<u8>>>),
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder")
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

impl Encoder {
    /// A Parquet file with rows of these columns.
    ///
    /// # Errors
    ///
    /// A column has a type that Parquet lacks.
    pub fn parquet(schema: &Schema) -> anyhow::Result<Encoder> {
        let schema = compact_schema(schema);
        let writer = ArrowWriter::try_new(
            Vec::new(),
            Arc::clone(&schema),
            Some(properties(&schema, None)?),
        );
        let writer = writer.context("a column has no form in Parquet")?;
        Ok(Encoder {
            schema,
            form: Form::Parquet(Box::new(writer)),
        })
    }

    /// A stream of Arrow's IPC format with rows of these columns.
    ///
    /// # Errors
    ///
    /// A column has a type that the format lacks.
    pub fn arrow(schema: &Schema) -> anyhow::Result<Encoder> {
        let schema = compact_schema(schema);
        let writer =
            StreamWriter::try_new(Vec::new(), &schema).context("a column has no form in Arrow")?;
        Ok(Encoder {
            schema,
            form: Form::Arrow(Box::new(writer)),
        })
    }

    /// Takes the rows of a batch; gives the bytes that are ready, perhaps none.
    ///
    /// # Errors
    ///
    /// The batch has other columns.
    pub fn add(&mut self, batch: &RecordBatch) -> anyhow::Result<Vec<u8>> {
        let batch = compact(batch, &self.schema)?;
        match &mut self.form {
            Form::Parquet(writer) => {
                writer.write(&batch)?;
                // The writer counts by itself what was written.
                Ok(std::mem::take(writer.inner_mut()))
            }
            Form::Arrow(writer) => {
                writer.write(&batch)?;
                // The next batch is about as long.
                let next = Vec::with_capacity(writer.get_ref().len());
                Ok(std::mem::replace(writer.get_mut(), next))
            }
        }
    }

    /// The last bytes.
    ///
    /// # Errors
    ///
    /// The rows that wait cannot be encoded.
    pub fn finish(self) -> anyhow::Result<Vec<u8>> {
        match self.form {
            Form::Parquet(writer) => Ok(writer.into_inner()?),
            Form::Arrow(mut writer) => {
                writer.finish()?;
                Ok(std::mem::take(writer.get_mut()))
            }
        }
    }
}

/// How Parquet is written; `sorted_by` is the column by which the rows are in order.
pub(crate) fn properties(
    schema: &Schema,
    sorted_by: Option<usize>,
) -> anyhow::Result<WriterProperties> {
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("tailrace ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_max_row_group_bytes(Some(ROW_GROUP_BYTES))
        .set_data_page_row_count_limit(PAGE_ROWS);
    for field in schema.fields() {
        let column = ColumnPath::new(vec![field.name().clone()]);
        properties = match field.data_type() {
            DataType::Utf8 => properties.set_column_bloom_filter_enabled(column, true),
            // Least and greatest values leave out NaN, which readers then do not find.
            ty if ty.is_floating() => {
                properties.set_column_statistics_enabled(column, EnabledStatistics::None)
            }
            _ => properties,
        };
    }
    if let Some(column) = sorted_by {
        // Parquet counts the members of objects, too.
        let leaves = ArrowSchemaConverter::new().convert(schema)?;
        let name = schema.field(column).name();
        let leaf = leaves
            .columns()
            .iter()
            .position(|leaf| leaf.path().parts() == [name.clone()]);
        let sorted = leaf.map(|leaf| -> anyhow::Result<_> {
            Ok(SortingColumn {
                column_idx: i32::try_from(leaf)?,
                descending: false,
                nulls_first: false,
            })
        });
        properties = properties.set_sorting_columns(sorted.transpose()?.map(|sorted| vec![sorted]));
    }
    Ok(properties.build())
}

/// The type with values one behind the other. Views hold on to all that was read with them, and files have no such type.
pub(crate) fn compact_type(ty: &DataType) -> DataType {
    match ty {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        // All that Parquet knows of it is that there is nothing.
        DataType::Null => DataType::Utf8,
        // It has no seconds.
        DataType::Timestamp(TimeUnit::Second, zone) => {
            DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
        }
        DataType::Time32(TimeUnit::Second) => DataType::Time32(TimeUnit::Millisecond),
        // Others would read a plain number.
        DataType::Date64 => DataType::Timestamp(TimeUnit::Millisecond, None),
        other => other.clone(),
    }
}

fn compact_schema(schema: &Schema) -> SchemaRef {
    let fields = schema
        .fields()
        .iter()
        .map(|field| Field::new(field.name(), compact_type(field.data_type()), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// A batch with columns of these types.
fn compact(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let whole = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let columns = batch.columns().iter().zip(schema.fields());
    let columns: Vec<ArrayRef> = columns
        // A time in seconds that microseconds cannot hold is not made NULL.
        .map(|(column, field)| cast_with_options(column, field.data_type(), &whole))
        .collect::<Result<_, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use arrow::array::{Date64Array, Time32SecondArray, TimestampSecondArray};
    use bytes::Bytes;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;

    #[test]
    fn times_and_dates_are_so_for_other_readers_of_parquet() {
        let batch = RecordBatch::try_from_iter([
            (
                "time",
                Arc::new(Time32SecondArray::from(vec![11_045])) as ArrayRef,
            ),
            ("date", Arc::new(Date64Array::from(vec![86_400_000]))),
            ("seconds", Arc::new(TimestampSecondArray::from(vec![1]))),
        ])
        .unwrap();
        let mut encoder = Encoder::parquet(&batch.schema()).unwrap();
        let mut file = encoder.add(&batch).unwrap();
        file.extend(encoder.finish().unwrap());
        let reader = SerializedFileReader::new(Bytes::from(file)).unwrap();
        let schema = reader.metadata().file_metadata().schema_descr();
        for column in schema.columns() {
            assert!(column.logical_type_ref().is_some(), "{column:?}");
        }
        let row = reader.get_row_iter(None).unwrap().next().unwrap().unwrap();
        let shown = row.to_string();
        assert!(
            shown.contains("03:04:05") && shown.contains("1970-01-02"),
            "{shown}"
        );
    }
}
