//! Parquet files, of this machine or of an object store, as a table of DataFusion. What is not needed is not read: files by
//! the values of their directories, row groups and pages by their statistics, columns by the query.

use std::sync::Arc;

use anyhow::{anyhow, bail, ensure};
use arrow::array::{Array, AsArray};
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, DFSchema, Result, ScalarValue, Statistics};
use datafusion::config::TableParquetOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{
    CachedParquetFileReaderFactory, ParquetFileReaderFactory,
};
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use object_store::ObjectMeta;

use crate::engine::threads;
use crate::footers::Footers;
use crate::hive::{Partitions, partitions};
use crate::merge::{merged, named_twice};
use crate::notes::Notes;
use crate::store::Store;
use crate::store::object::Object;
use crate::unseen_nan::OfFloats;

/// Two marks and the length of what the footer says.
const BYTES_MIN: u64 = 12;

/// Rows that are decoded at once.
const BATCH_ROWS: usize = 2048;
/// A batch holds the decompressed pages of all columns that its texts are views of: where a condition leaves few rows of each page, these
/// are many. So batches with a condition have fewer rows the more columns they have.
const BATCH_CELLS: usize = 8192;
const BATCH_ROWS_MIN: usize = 512;

/// Some Parquet files.
#[derive(Debug)]
pub(crate) struct ParquetTable {
    store: Store,
    files: Vec<PartitionedFile>,
    schema: TableSchema,
    notes: Arc<Notes>,
}

impl ParquetTable {
    /// Reads the footers of files.
    ///
    /// # Errors
    ///
    /// A file cannot be read or is no Parquet, or two of them have columns of one name with nothing in common.
    pub(crate) async fn open(
        session: &dyn Session,
        store: Store,
        objects: Vec<Object>,
        notes: Arc<Notes>,
    ) -> anyhow::Result<ParquetTable> {
        let runtime = session.runtime_env();
        runtime.register_object_store(store.url.as_ref(), Arc::clone(&store.objects));
        let found = partitions(objects.iter().map(|object| object.below.as_str()))?;
        let objects: Vec<ObjectMeta> = objects.into_iter().map(|object| object.meta).collect();
        if let Some(object) = objects.iter().find(|object| object.size < BYTES_MIN) {
            bail!(
                "{}: is no Parquet file: it is too short",
                store.name(&object.location)
            );
        }
        let footers = Footers::new(&store, session);
        let schemas = footers.schemas(&objects).await?;
        check_names(&store, &objects, &schemas)?;
        check_overlap(&store, &objects, &schemas, &found)?;
        let Partitions { fields, values, .. } = found;
        let of_files = merged(schemas.iter().cloned()).map_err(|column| {
            anyhow!("the column `{column}` has types in these files that have nothing in common: name fewer files")
        })?;
        // What a directory says is true of all of its records.
        let is_in_files =
            |field: &&FieldRef| !fields.iter().any(|known| known.name() == field.name());
        let of_files: Vec<_> = of_files
            .fields()
            .iter()
            .filter(is_in_files)
            .cloned()
            .collect();
        let of_files = Arc::new(Schema::new(of_files));
        let statistics = footers.statistics(&objects, &schemas, &of_files).await?;
        let schema = TableSchema::builder(of_files)
            .with_table_partition_cols(fields)
            .build();
        let files = objects.into_iter().zip(values).zip(statistics);
        let files = files.map(|((object, values), statistics)| {
            let file = PartitionedFile::new_from_meta(object).with_partition_values(values);
            with_statistics(file, statistics)
        });
        Ok(ParquetTable {
            files: files.collect(),
            store,
            schema,
            notes,
        })
    }

    /// Whether an expression speaks of directories only.
    fn is_of_partitions(&self, expr: &Expr) -> bool {
        let of_partition = |name: &str| {
            self.schema
                .table_partition_cols()
                .iter()
                .any(|field| field.name() == name)
        };
        let columns = expr.column_refs();
        !columns.is_empty()
            && !expr.is_volatile()
            && columns.iter().all(|column| of_partition(column.name()))
    }

    /// The files whose directories meet a condition.
    fn kept(&self, session: &dyn Session, filters: Vec<Expr>) -> Result<Vec<PartitionedFile>> {
        let Some(condition) = conjunction(filters) else {
            return Ok(self.files.clone());
        };
        let schema = Arc::new(Schema::new(self.schema.table_partition_cols().clone()));
        let columns = (0..schema.fields().len()).map(|at| {
            ScalarValue::iter_to_array(
                self.files
                    .iter()
                    .map(|file| file.partition_values[at].clone()),
            )
        });
        let options = RecordBatchOptions::new().with_row_count(Some(self.files.len()));
        let batch = RecordBatch::try_new_with_options(
            Arc::clone(&schema),
            columns.collect::<Result<_>>()?,
            &options,
        )?;
        let condition = session.create_physical_expr(condition, &DFSchema::try_from(schema)?)?;
        let met = condition.evaluate(&batch)?.into_array(batch.num_rows())?;
        let met = met.as_boolean();
        let kept = self
            .files
            .iter()
            .enumerate()
            .filter(|(at, _)| met.is_valid(*at) && met.value(*at));
        Ok(kept.map(|(_, file)| file.clone()).collect())
    }
}

/// Checks that no file has two columns of one name: one of them would not be seen.
fn check_names(store: &Store, objects: &[ObjectMeta], schemas: &[SchemaRef]) -> anyhow::Result<()> {
    for (object, schema) in objects.iter().zip(schemas) {
        if let Some(name) = named_twice(schema) {
            bail!(
                "{}: it has more than one column `{name}`",
                store.name(&object.location)
            );
        }
    }
    Ok(())
}

/// Checks that no file has a column that is a directory of other files: its values would not be seen.
fn check_overlap(
    store: &Store,
    objects: &[ObjectMeta],
    schemas: &[SchemaRef],
    found: &Partitions,
) -> anyhow::Result<()> {
    for (file, column) in &found.lacking {
        let name = found.fields[*column].name();
        ensure!(
            schemas[*file].index_of(name).is_err(),
            "{}: has a column `{name}`, which for other files is a directory `{name}=...`: name one kind of them",
            store.name(&objects[*file].location)
        );
    }
    Ok(())
}

/// A file with what is known of its rows.
fn with_statistics(file: PartitionedFile, known: Statistics) -> PartitionedFile {
    let (of_file, rows) = (known.column_statistics.len(), known.num_rows);
    let mut file = file.with_statistics(Arc::new(known));
    if let Some(statistics) = &mut file.statistics {
        let columns = &mut Arc::make_mut(statistics).column_statistics[of_file..];
        for (column, value) in columns.iter_mut().zip(&file.partition_values) {
            if value.is_null() {
                // DataFusion takes it for a value.
                *column = ColumnStatistics::new_unknown();
                column.null_count = rows;
            }
        }
    }
    file
}

#[async_trait]
impl TableProvider for ParquetTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.schema.table_schema())
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match self.is_of_partitions(filter) {
            true => TableProviderFilterPushDown::Exact,
            false => TableProviderFilterPushDown::Inexact,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (of_partitions, others): (Vec<_>, Vec<_>) = filters
            .iter()
            .cloned()
            .partition(|filter| self.is_of_partitions(filter));
        let mut files = self.kept(session, of_partitions)?;
        if !session.config().options().execution.collect_statistics {
            for known in files.iter_mut().filter_map(|it| it.statistics.as_mut()) {
                without_bounds(Arc::make_mut(known));
            }
        }
        self.notes.parquet(self.files.len(), files.len());
        let table_schema = Arc::clone(self.schema.table_schema());
        if files.is_empty() {
            let projected = projection
                .map(|projection| table_schema.project(projection))
                .transpose()?;
            return Ok(Arc::new(EmptyExec::new(
                projected.map_or(table_schema, Arc::new),
            )));
        }
        let statistics = statistics_of(&files, &table_schema);
        let groups = FileGroup::new(files).split_files(threads(session));
        let mut options = TableParquetOptions::default();
        options.global = session.config().options().execution.parquet.clone();
        // Conditions are met while Parquet is decoded, and of the other columns only the rows that are left are. Where there
        // are no others, that would decode the same columns twice.
        let names = |at: &usize| table_schema.field(*at).name().as_str();
        options.global.pushdown_filters = !projection
            .is_some_and(|columns| are_of_conditions(columns.iter().map(names), &others));
        let runtime = session.runtime_env();
        let cache = runtime.cache_manager.get_file_metadata_cache();
        let reader =
            CachedParquetFileReaderFactory::new(runtime.object_store(&self.store.url)?, cache);
        let reader = Arc::new(reader) as Arc<dyn ParquetFileReaderFactory>;
        let may_have_floats = |at: &usize| {
            let ty = table_schema.field(*at).data_type();
            ty.is_floating() || ty.is_nested()
        };
        let reader = match projection.is_none_or(|columns| columns.iter().any(may_have_floats)) {
            true => Arc::new(OfFloats(reader)),
            false => reader,
        };
        let source = ParquetSource::new(self.schema.clone())
            .with_table_parquet_options(options)
            .with_parquet_file_reader_factory(reader);
        let columns = projection.map_or(table_schema.fields().len(), Vec::len);
        let batch_rows = match others.is_empty() {
            true => BATCH_ROWS,
            false => (BATCH_CELLS / columns.max(1)).clamp(BATCH_ROWS_MIN, BATCH_ROWS),
        };
        let config = FileScanConfigBuilder::new(self.store.url.clone(), Arc::new(source))
            .with_file_groups(groups)
            .with_statistics(statistics)
            .with_projection_indices(projection.cloned())?
            // Files are not dealt out to whoever is free: the rows keep their order.
            .with_preserve_order(true)
            // A limit before a condition that the files have not met yet would lose rows.
            .with_limit(limit.filter(|_| others.is_empty()))
            .with_batch_size(Some(batch_rows.min(session.config().batch_size())))
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }
}

/// Whether the conditions read each of these columns.
fn are_of_conditions<'c>(mut columns: impl Iterator<Item = &'c str>, conditions: &[Expr]) -> bool {
    let read: Vec<_> = conditions.iter().flat_map(Expr::column_refs).collect();
    columns.all(|name| read.iter().any(|column| column.name() == name))
}

/// Leaves out which values there are, for a plan that DataFusion does not make with them.
fn without_bounds(known: &mut Statistics) {
    for column in &mut known.column_statistics {
        column.min_value = Precision::Absent;
        column.max_value = Precision::Absent;
        column.sum_value = Precision::Absent;
        column.distinct_count = Precision::Absent;
    }
}

/// What is known of all rows of some files.
fn statistics_of(files: &[PartitionedFile], schema: &SchemaRef) -> Statistics {
    let each: Option<Vec<&Statistics>> = files
        .iter()
        .map(|file| file.statistics.as_deref())
        .collect();
    let all = each.and_then(|each| Statistics::try_merge_iter(each, schema).ok());
    all.unwrap_or_else(|| {
        let mut unknown = Statistics::new_unknown(schema);
        let bytes: u64 = files.iter().map(|file| file.object_meta.size).sum();
        unknown.total_byte_size = Precision::Inexact(usize::try_from(bytes).unwrap_or(usize::MAX));
        unknown
    })
}
