//! What the footers of Parquet files say: their columns, and statistics of these.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use anyhow::{anyhow, bail};
use arrow::datatypes::{Schema, SchemaRef, TimeUnit};
use datafusion::catalog::Session;
use datafusion::common::{ColumnStatistics, Result, Statistics};
use datafusion::config::ParquetOptions;
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::execution::cache::cache_manager::FileMetadataCache;
use futures::{StreamExt, TryStreamExt};
use object_store::ObjectMeta;
use tailrace_sql::caught;

use crate::merge::viewed;
use crate::store::Store;

/// Footers that are fetched at the same time.
const FOOTERS_AT_ONCE: usize = 32;
/// Times of 96 bits, as Spark and Hive wrote them, are moments; a span of years that microseconds have and nanoseconds lack is usual.
const TIME_UNIT: TimeUnit = TimeUnit::Microsecond;
const TIME_ZONE: &str = "UTC";

/// How DataFusion reads times of 96 bits in the rows: as [`Footers`] says.
pub(crate) fn configure(options: &mut ParquetOptions) {
    options.coerce_int96 = Some("us".to_owned());
    options.coerce_int96_tz = Some(TIME_ZONE.to_owned());
}

/// The footers of the files of a store, each of which is fetched once.
pub(crate) struct Footers<'s> {
    store: &'s Store,
    cache: Arc<FileMetadataCache>,
}

impl<'s> Footers<'s> {
    pub(crate) fn new(store: &'s Store, session: &dyn Session) -> Footers<'s> {
        let cache = session
            .runtime_env()
            .cache_manager
            .get_file_metadata_cache();
        Footers { store, cache }
    }

    /// The columns of files, in their order.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or is no Parquet.
    pub(crate) async fn schemas<'o>(
        &self,
        objects: &'o [ObjectMeta],
    ) -> anyhow::Result<Vec<SchemaRef>>
    where
        's: 'o,
    {
        let schemas = self.each(objects, |footer| async move { footer.fetch_schema().await });
        Ok(schemas.await?.into_iter().map(Arc::new).collect())
    }

    /// Statistics of files with these columns, for the columns of a table.
    ///
    /// # Errors
    ///
    /// As [`Self::schemas`].
    pub(crate) async fn statistics<'o>(
        &self,
        objects: &'o [ObjectMeta],
        schemas: &[SchemaRef],
        table: &SchemaRef,
    ) -> anyhow::Result<Vec<Statistics>>
    where
        's: 'o,
    {
        let known = self.each(objects, |footer| async move {
            footer.fetch_statistics(table).await
        });
        let known = known.await?.into_iter().zip(schemas);
        Ok(known
            .map(|(known, schema)| of_same_types(known, schema, table))
            .collect())
    }

    async fn each<'o, T, R>(
        &self,
        objects: &'o [ObjectMeta],
        read: impl Fn(DFParquetMetadata<'o>) -> R,
    ) -> anyhow::Result<Vec<T>>
    where
        R: Future<Output = Result<T>>,
        's: 'o,
    {
        let each = objects.iter().map(|object| {
            let footer = DFParquetMetadata::new(self.store.objects.as_ref(), object)
                .with_file_metadata_cache(Some(Arc::clone(&self.cache)))
                .with_coerce_int96(Some(TIME_UNIT))
                .with_coerce_int96_tz(Some(TIME_ZONE.into()));
            let answer = read(footer);
            async move {
                let name = || self.store.name(&object.location);
                let mut answer = pin!(answer);
                // The decoder panics at a footer whose lengths lie.
                let polled = poll_fn(|task| match caught(|| answer.as_mut().poll(task)) {
                    Ok(answer) => answer.map(Ok),
                    Err(panic) => Poll::Ready(Err(panic)),
                });
                let Ok(answer) = polled.await else {
                    bail!("{}: its footer is damaged", name());
                };
                answer.map_err(|error| anyhow!("{}: {error}", name()))
            }
        });
        futures::stream::iter(each)
            .buffered(FOOTERS_AT_ONCE)
            .try_collect()
            .await
    }
}

/// Statistics without those of columns that the file has in another type than the table, for the least number is not the least
/// text, and of floats, for they leave out NaN.
fn of_same_types(mut known: Statistics, file: &Schema, table: &Schema) -> Statistics {
    for (field, column) in table.fields().iter().zip(&mut known.column_statistics) {
        let of_file = file.field_with_name(field.name());
        if field.data_type().is_floating()
            || of_file.is_ok_and(|of_file| viewed(of_file.data_type()) != *field.data_type())
        {
            *column = ColumnStatistics::new_unknown();
        }
    }
    known
}
