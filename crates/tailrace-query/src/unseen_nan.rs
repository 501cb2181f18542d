//! NaN in Parquet files of others. The least and greatest values that they keep of floats leave NaN out, which is greater than every number: the
//! greatest value is not known then, nor are those of pages. The least one is. Files that were written here keep none of floats.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::common::Result;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::ParquetFileReaderFactory;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt;
use futures::future::BoxFuture;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::basic::{LogicalType, Type};
use parquet::errors::Result as Read;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::statistics::Statistics;

/// Makes readers of files with floats, to which their greatest values are not known.
#[derive(Debug)]
pub(crate) struct OfFloats(pub(crate) Arc<dyn ParquetFileReaderFactory>);

impl ParquetFileReaderFactory for OfFloats {
    fn create_reader(
        &self,
        partition: usize,
        file: PartitionedFile,
        footer_bytes: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let reader = self
            .0
            .create_reader(partition, file, footer_bytes, metrics)?;
        Ok(Box::new(Reader(reader)))
    }
}

struct Reader(Box<dyn AsyncFileReader + Send>);

impl AsyncFileReader for Reader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Read<Bytes>> {
        self.0.get_bytes(range)
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Read<Vec<Bytes>>> {
        self.0.get_byte_ranges(ranges)
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Read<Arc<ParquetMetaData>>> {
        async move {
            let known = self.0.get_metadata(options).await?;
            without_greatest(known)
        }
        .boxed()
    }
}

fn without_greatest(known: Arc<ParquetMetaData>) -> Read<Arc<ParquetMetaData>> {
    let mut chunks = known.row_groups().iter().flat_map(|it| it.columns());
    if !chunks.any(has_greatest) {
        return Ok(known);
    }
    let mut file = Arc::unwrap_or_clone(known).into_builder();
    let mut pages = file.take_column_index();
    let mut groups = file.take_row_groups();
    for (at, group) in groups.iter_mut().enumerate() {
        let mut of_group = group.clone().into_builder();
        let mut columns = of_group.take_columns();
        for (column, chunk) in columns.iter_mut().enumerate() {
            if !has_greatest(chunk) {
                continue;
            }
            let index = pages
                .as_mut()
                .and_then(|it| it.get_mut(at)?.get_mut(column));
            if let Some(index) = index {
                *index = ColumnIndexMetaData::NONE;
            }
            let statistics = chunk.statistics().map(of_floats);
            let made = chunk
                .clone()
                .into_builder()
                .set_column_index_offset(None)
                .set_column_index_length(None);
            *chunk = match statistics {
                Some(statistics) => made.set_statistics(statistics).build()?,
                None => made.build()?,
            };
        }
        *group = of_group.set_column_metadata(columns).build()?;
    }
    let file = file.set_row_groups(groups).set_column_index(pages);
    Ok(Arc::new(file.build()))
}

/// Whether a column has floats of which something is kept.
fn has_greatest(chunk: &ColumnChunkMetaData) -> bool {
    let is_float = match chunk.column_type() {
        Type::FLOAT | Type::DOUBLE => true,
        _ => chunk.column_descr().logical_type_ref() == Some(&LogicalType::Float16),
    };
    is_float && (chunk.statistics().is_some() || chunk.column_index_offset().is_some())
}

/// What is kept of floats, without the greatest one. The least one may be NaN where a writer did not leave it out.
fn of_floats(known: &Statistics) -> Statistics {
    let (distinct, nulls) = (known.distinct_count_opt(), known.null_count_opt());
    match known {
        Statistics::Float(of) => {
            let least = of.min_opt().copied().filter(|it| !it.is_nan());
            Statistics::float(least, None, distinct, nulls, false)
        }
        Statistics::Double(of) => {
            let least = of.min_opt().copied().filter(|it| !it.is_nan());
            Statistics::double(least, None, distinct, nulls, false)
        }
        _ => Statistics::fixed_len_byte_array(None, None, distinct, nulls, false),
    }
}
