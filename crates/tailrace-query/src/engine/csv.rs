//! CSV files as tables. DataFusion finds their types; here are those that are asked for, and what it would get wrong.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use datafusion::common::{DataFusionError, TableReference};
use datafusion::prelude::{CsvReadOptions, SessionContext};

use super::Engine;
use crate::error::{CSV_LINE, Error, text_of};
use crate::table::data_type;

/// Rows that types come from, as DataFusion has it.
const ROWS_SAMPLED: usize = 1000;

impl Engine {
    /// Registers the CSV files of a path as a table, and gives its columns.
    ///
    /// # Errors
    ///
    /// The beginning of a file cannot be read, or is no table.
    pub(super) async fn add_csv(
        &self,
        name: TableReference,
        path: &str,
    ) -> Result<Vec<String>, Error> {
        let failed = |error: DataFusionError| csv_error(path, &error);
        let head = self.head_of_csv(path).await;
        let names = head.iter().map(first_text);
        check_names(path, names)?;
        let registered = self
            .context
            .register_csv(name.clone(), path, CsvReadOptions::new());
        registered.await.map_err(failed)?;
        let table = self.context.table_provider(name.clone()).await;
        let found = table.map_err(failed)?.schema();
        let wanted = |(at, field): (usize, &Arc<Field>)| {
            let asked = self.options.columns.iter().rev();
            let mut asked = asked.filter(|(name, _)| name == field.name());
            let ty = match asked.next() {
                Some((_, ty)) => data_type(*ty),
                None if head.get(at).is_some_and(has_leading_zeros) => DataType::Utf8View,
                None => field.data_type().clone(),
            };
            Field::new(field.name(), ty, true)
        };
        let fields = found.fields().iter().enumerate().map(wanted);
        let schema = Schema::new(fields.collect::<Vec<_>>());
        let names = schema.fields().iter().map(|field| field.name().clone());
        let names = names.collect();
        let is_same = |(a, b): (&Arc<Field>, &Arc<Field>)| a.data_type() == b.data_type();
        if !schema.fields().iter().zip(found.fields()).all(is_same) {
            let known = self.context.deregister_table(name.clone());
            known.map_err(failed)?;
            let options = CsvReadOptions::new().schema(&schema);
            let registered = self.context.register_csv(name, path, options);
            registered.await.map_err(failed)?;
        }
        Ok(names)
    }

    /// The first lines as columns of text, the header among them; none if they cannot be read so.
    async fn head_of_csv(&self, path: &str) -> Vec<ArrayRef> {
        let rows = self.first_rows_of_csv(path).await;
        let columns = rows.as_ref().map_or(&[][..], |rows| rows.columns());
        let texts = columns.iter().map(|column| cast(column, &DataType::Utf8));
        texts.collect::<Result<_, _>>().unwrap_or_default()
    }

    async fn first_rows_of_csv(&self, path: &str) -> datafusion::common::Result<RecordBatch> {
        // Of a large file, several threads would read several parts, and the first rows would be those of the fastest.
        let config = self.context.copied_config().with_target_partitions(1);
        let config = config.with_repartition_file_scans(false);
        let runtime = self.context.runtime_env();
        let context = SessionContext::new_with_config_rt(config, runtime);
        let options = CsvReadOptions::new().has_header(false);
        let rows = context.read_csv(path, options).await?;
        let batches = rows.limit(0, Some(ROWS_SAMPLED))?.collect().await?;
        let schema = batches
            .first()
            .map_or_else(|| Arc::new(Schema::empty()), RecordBatch::schema);
        Ok(concat_batches(&schema, &batches)?)
    }
}

/// Refuses a header that names a column twice.
fn check_names<'n>(path: &str, names: impl Iterator<Item = &'n str>) -> Result<(), Error> {
    let mut known = HashSet::new();
    let mut names = names.filter(|name| !name.is_empty());
    match names.find(|name| !known.insert(*name)) {
        None => Ok(()),
        Some(name) => Err(Error {
            hint: Some("give each column a name of its own in the first line".to_owned()),
            ..Error::failure(format!("{path}: the header names `{name}` more than once"))
        }),
    }
}

fn first_text(column: &ArrayRef) -> &str {
    let texts = column.as_string::<i32>();
    match texts.len() > 0 && texts.is_valid(0) {
        true => texts.value(0),
        false => "",
    }
}

/// Whether a column has numbers that begin with zeros, as postal codes do: as numbers they would lose them.
fn has_leading_zeros(column: &ArrayRef) -> bool {
    let texts = column.as_string::<i32>();
    let mut rows = texts.iter().skip(1).flatten();
    rows.any(|text| {
        text.len() > 1 && text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// What DataFusion says of the beginning of a CSV file.
fn csv_error(path: &str, error: &DataFusionError) -> Error {
    let text = error.find_root().strip_backtrace();
    let lengths = text
        .split_once("unequal lengths between records on CSV file. Expected ")
        .and_then(|(_, rest)| rest.split_once(" records, found "))
        .and_then(|(expected, rest)| Some((expected, rest.split_once(" records at line ")?)));
    match lengths {
        Some((expected, (found, line))) => Error {
            hint: Some(CSV_LINE.to_owned()),
            ..Error::failure(format!(
                "{path}: line {line} does not have as many fields as the lines before it: {found} instead of {expected}"
            ))
        },
        None => Error::failure(format!("{path}: {}", text_of(error))),
    }
}
