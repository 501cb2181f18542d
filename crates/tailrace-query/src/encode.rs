//! Rows as Parquet or as an Arrow stream: the bytes of a file, a batch at a time.

use std::sync::Arc;

use anyhow::{Context, bail};
use arrow::array::ArrayRef;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, Schema, SchemaRef, TimeUnit};
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
    if let Some(field) = schema
        .fields()
        .iter()
        .find(|it| has_interval(it.data_type()))
    {
        let name = field.name();
        bail!(
            "`{name}` has intervals, which Parquet files do not hold here: write CAST({name} AS TEXT), or extract(epoch FROM {name}), which is seconds"
        );
    }
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

/// Whether a column has intervals of months, days and nanoseconds, which the writer lacks: those of Parquet have milliseconds.
fn has_interval(ty: &DataType) -> bool {
    match ty {
        DataType::Interval(IntervalUnit::MonthDayNano) => true,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => has_interval(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|it| has_interval(it.data_type())),
        _ => false,
    }
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
        DataType::List(item) => DataType::List(compact_field(item)),
        DataType::LargeList(item) => DataType::LargeList(compact_field(item)),
        DataType::FixedSizeList(item, count) => {
            DataType::FixedSizeList(compact_field(item), *count)
        }
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(compact_field).collect()),
        other => other.clone(),
    }
}

fn compact_field(field: &FieldRef) -> FieldRef {
    let ty = compact_type(field.data_type());
    Arc::new(field.as_ref().clone().with_data_type(ty))
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
    use arrow::array::{Date64Array, ListArray, Time32SecondArray, TimestampSecondArray};
    use arrow::buffer::OffsetBuffer;
    use bytes::Bytes;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;

    #[test]
    fn intervals_are_refused_by_the_name_of_their_column() {
        let interval = DataType::Interval(IntervalUnit::MonthDayNano);
        let list = DataType::new_list(interval.clone(), true);
        for ty in [interval, list] {
            let schema = Schema::new(vec![Field::new("age", ty, true)]);
            let error = Encoder::parquet(&schema).unwrap_err().to_string();
            assert!(error.contains("`age` has intervals"), "{error}");
            assert!(error.contains("CAST(age AS TEXT)"), "{error}");
            assert!(Encoder::arrow(&schema).is_ok());
        }
    }

    #[test]
    fn times_and_dates_are_so_for_other_readers_of_parquet() {
        let item = Arc::new(Field::new_list_field(
            DataType::Timestamp(TimeUnit::Second, None),
            true,
        ));
        let seconds = Arc::new(TimestampSecondArray::from(vec![86_400]));
        let list = ListArray::new(item, OffsetBuffer::from_lengths([1]), seconds, None);
        let batch = RecordBatch::try_from_iter([
            (
                "time",
                Arc::new(Time32SecondArray::from(vec![11_045])) as ArrayRef,
            ),
            ("date", Arc::new(Date64Array::from(vec![86_400_000]))),
            ("seconds", Arc::new(TimestampSecondArray::from(vec![1]))),
            ("list", Arc::new(list)),
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
