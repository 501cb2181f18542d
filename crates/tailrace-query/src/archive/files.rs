//! The files of an archive, one open at a time.

use std::io::ErrorKind;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use anyhow::{Context, ensure};
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::partition;
use arrow::datatypes::{
    DataType, Field, Schema, SchemaRef, TimeUnit, TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use chrono::Utc;
use object_store::ObjectStoreExt;
use object_store::buffered::BufWriter;
use object_store::path::Path;
use parquet::arrow::AsyncArrowWriter;
use parquet::file::properties::WriterProperties;

use super::{Archive, Written, time_column};
use crate::encode::{compact_type, properties};
use crate::hive::directory;
use crate::store::{Store, is_url};

/// A file that has become so long is followed by another one.
const FILE_BYTES_MAX: usize = 1 << 30;
/// Microseconds are the finest times that Spark reads.
const TIME_UNIT: TimeUnit = TimeUnit::Microsecond;

/// Writes the files of an archive.
pub(crate) struct Files {
    store: Store,
    prefix: Path,
    /// The columns of the batches, by place, that become directories.
    by: Vec<usize>,
    /// The others.
    kept: Vec<usize>,
    schema: SchemaRef,
    properties: WriterProperties,
    open: Option<Open>,
    /// Where a file of this machine is until it is complete.
    unfinished: Option<Path>,
    written: Written,
}

/// A file that is being written.
struct Open {
    directory: String,
    name: String,
    /// Where it is until it is complete, and after that.
    unfinished: Path,
    location: Path,
    writer: AsyncArrowWriter<BufWriter>,
}

impl Files {
    /// Begins to write rows of these columns.
    ///
    /// # Errors
    ///
    /// The store cannot be used.
    pub(crate) fn new(archive: &Archive, schema: &Schema) -> anyhow::Result<Files> {
        let to = archive.to.strip_prefix("file://").unwrap_or(&archive.to);
        let (store, prefix) = if is_url(to) {
            let (store, key) = Store::of_url(to)?;
            (
                store,
                Path::parse(key.trim_end_matches('/')).with_context(|| to.to_owned())?,
            )
        } else {
            let path = real(FilePath::new(to)).with_context(|| to.to_owned())?;
            (
                Store::local(),
                Path::from_absolute_path(path).with_context(|| to.to_owned())?,
            )
        };
        let is_directory = |at: &usize| archive.partition_by.contains(schema.field(*at).name());
        let by = archive
            .partition_by
            .iter()
            .map(|name| schema.index_of(name))
            .collect::<Result<_, _>>()?;
        let kept: Vec<_> = (0..schema.fields().len())
            .filter(|at| !is_directory(at))
            .collect();
        let fields = kept.iter().map(|at| {
            let field = schema.field(*at);
            let ty = match field.data_type() {
                DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
                    DataType::Timestamp(TIME_UNIT, zone.clone())
                }
                ty => compact_type(ty),
            };
            Field::new(field.name(), ty, true)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(Files {
            properties: properties(&schema, time_column(&schema))?,
            store,
            prefix,
            by,
            kept,
            schema,
            open: None,
            unfinished: None,
            written: Written {
                run: format!(
                    "{}-{:x}",
                    Utc::now().format("%Y%m%dT%H%M%S%6f"),
                    std::process::id()
                ),
                ..Written::default()
            },
        })
    }

    /// What is complete.
    pub(crate) fn written(&self) -> &Written {
        &self.written
    }

    /// Writes rows, which come in the order of their directories.
    ///
    /// # Errors
    ///
    /// The store does not take them.
    pub(crate) async fn add(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        ensure!(
            !self.kept.is_empty(),
            "the files would have no column: one of the result must not be in `--partition-by`"
        );
        let by: Vec<ArrayRef> = self
            .by
            .iter()
            .map(|at| Arc::clone(batch.column(*at)))
            .collect();
        let ranges = match by.is_empty() {
            true => std::iter::once(0..batch.num_rows()).collect(),
            false => partition(&by)?.ranges(),
        };
        let rows = self.rows(batch)?;
        for range in ranges {
            let mut path = String::new();
            let mut has_empty = false;
            for (at, column) in self.by.iter().zip(&by) {
                let (directory, is_empty) =
                    directory(batch.schema().field(*at).name(), column, range.start)?;
                path += &format!("{directory}/");
                has_empty |= is_empty;
            }
            if has_empty {
                self.written.empty += range.len() as u64;
            }
            self.append(path, rows.slice(range.start, range.len()))
                .await?;
        }
        Ok(())
    }

    /// The columns of the files.
    fn rows(&mut self, batch: &RecordBatch) -> anyhow::Result<RecordBatch> {
        let mut columns = Vec::with_capacity(self.kept.len());
        for (at, field) in self.kept.iter().zip(self.schema.fields()) {
            let column = batch.column(*at);
            columns.push(match (column.data_type(), field.data_type()) {
                (
                    DataType::Timestamp(TimeUnit::Nanosecond, _),
                    ty @ DataType::Timestamp(TIME_UNIT, _),
                ) => {
                    let times = column.as_primitive::<TimestampNanosecondType>();
                    self.written.cut +=
                        times.iter().flatten().filter(|ns| ns % 1_000 != 0).count() as u64;
                    let cut = times.unary::<_, TimestampMicrosecondType>(|ns| ns.div_euclid(1_000));
                    Arc::new(cut.with_data_type(ty.clone()))
                }
                (_, ty) => arrow::compute::cast(column, ty)?,
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            columns,
            &options,
        )?)
    }

    async fn append(&mut self, directory: String, rows: RecordBatch) -> anyhow::Result<()> {
        let is_other = |open: &Open| {
            open.directory != directory || open.writer.bytes_written() >= FILE_BYTES_MAX
        };
        if self.open.as_ref().is_some_and(is_other) {
            self.close().await?;
        }
        let open = match &mut self.open {
            Some(open) => open,
            None => {
                let open = begin(
                    &self.store,
                    &self.prefix,
                    &self.written,
                    directory,
                    &self.schema,
                    &self.properties,
                )?;
                self.unfinished =
                    (open.unfinished != open.location).then(|| open.unfinished.clone());
                self.open.insert(open)
            }
        };
        open.writer
            .write(&rows)
            .await
            .map_err(|error| unwritten(&open.name, &error))
    }

    /// Completes the file that is open: only then it is there.
    async fn close(&mut self) -> anyhow::Result<()> {
        let Some(Open {
            name,
            unfinished,
            location,
            mut writer,
            ..
        }) = self.open.take()
        else {
            return Ok(());
        };
        let meta = writer
            .finish()
            .await
            .map_err(|error| unwritten(&name, &error))?;
        if unfinished != location {
            let moved = self.store.objects.rename(&unfinished, &location).await;
            moved.map_err(|error| unwritten(&name, &error))?;
            self.unfinished = None;
        }
        self.written.files += 1;
        self.written.rows += u64::try_from(meta.file_metadata().num_rows()).unwrap_or_default();
        self.written.bytes += writer.bytes_written() as u64;
        Ok(())
    }

    /// Removes what is not complete.
    pub(crate) async fn abandon(&mut self) {
        self.open = None;
        if let Some(unfinished) = self.unfinished.take() {
            // It may not be there yet, and is hidden where it cannot be removed.
            let _ = self.store.objects.delete(&unfinished).await;
        }
    }

    /// Completes the archive.
    ///
    /// # Errors
    ///
    /// As [`Self::add`].
    pub(crate) async fn finish(&mut self) -> anyhow::Result<()> {
        self.close().await
    }
}

/// A path without links and `..`; its end may not be there yet.
fn real(path: &FilePath) -> std::io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let mut missing = Vec::new();
    let mut there = path.as_path();
    loop {
        match (there.canonicalize(), there.parent(), there.file_name()) {
            (Ok(real), _, _) => {
                return Ok(missing
                    .iter()
                    .rev()
                    .fold(real, |real, name| real.join(name)));
            }
            (Err(error), Some(parent), Some(name)) if error.kind() == ErrorKind::NotFound => {
                missing.push(name.to_owned());
                there = parent;
            }
            (Err(error), _, _) => return Err(error),
        }
    }
}

/// Begins a file.
fn begin(
    store: &Store,
    prefix: &Path,
    written: &Written,
    directory: String,
    schema: &SchemaRef,
    properties: &WriterProperties,
) -> anyhow::Result<Open> {
    let name = format!("{}-{:05}", written.run, written.files);
    // Not `Path::from`, which would encode what is encoded.
    let path = |file: &str| {
        let path = format!("{prefix}/{directory}{file}");
        Path::parse(&path).with_context(|| format!("{path}: is no name of a file"))
    };
    let location = path(&format!("{name}.parquet"))?;
    // Object stores show an object once it is complete; of what is unfinished in a directory, readers must not know, also those
    // that look for all names that end in `.parquet`.
    let unfinished = match store.is_local() {
        true => path(&format!(".{name}.unfinished"))?,
        false => location.clone(),
    };
    let name = store.name(&location);
    let object = BufWriter::new(Arc::clone(&store.objects), unfinished.clone());
    let writer = AsyncArrowWriter::try_new(object, Arc::clone(schema), Some(properties.clone()));
    Ok(Open {
        writer: writer.context("a column of the result has no form in Parquet")?,
        directory,
        name,
        unfinished,
        location,
    })
}

/// Why a file cannot be written, without the names of what stands between.
fn unwritten(name: &str, error: &dyn std::error::Error) -> anyhow::Error {
    let text = error.to_string();
    let text = text.strip_prefix("External: ").unwrap_or(&text);
    let text = text
        .strip_prefix("Generic LocalFileSystem error: ")
        .unwrap_or(text);
    anyhow::anyhow!("{name}: cannot be written: {text}")
}
