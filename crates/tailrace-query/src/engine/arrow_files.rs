//! Arrow files as tables, in either form: with a footer, or as a stream. Their beginning tells the columns; DataFusion reads the
//! rows.
//!
//! DataFusion takes the columns of all files of a table by their places. So only files with the same columns in the same order are
//! one table to it, and the rows of several such tables are put together by the names of columns.

use std::sync::Arc;

use anyhow::{anyhow, bail};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::ipc::reader::StreamReader;
use datafusion::catalog::TableProvider;
use datafusion::common::{Result, ScalarValue, TableReference};
use datafusion::datasource::file_format::options::{ArrowReadOptions, ReadOptions};
use datafusion::datasource::listing::{ListingTable, ListingTableConfig};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, lit};
use tailrace_sql::caught;

use super::csv::url;
use super::hidden_nulls::{may_hide_nulls, nullable, with_nulls};
use super::{Engine, arrow_lengths};
use crate::error::{Error, text_of};
use crate::input::Input;
use crate::merge::{merged, named_twice};

/// What the form with a footer begins and ends with.
const MARK: &[u8] = b"ARROW1";
/// What is read of a file for its columns.
const HEAD_BYTES: u64 = 1 << 20;
const HEAD_BYTES_MAX: u64 = 64 << 20;

/// Files of one form that have the same columns in the same order.
#[derive(Debug)]
struct Group {
    has_footer: bool,
    schema: SchemaRef,
    inputs: Vec<Input>,
}

impl Engine {
    /// Registers Arrow files as a table.
    ///
    /// # Errors
    ///
    /// The beginning of a file cannot be read or is not Arrow's, or files have columns of one name with nothing in common.
    pub(super) fn add_arrow(
        &self,
        name: TableReference,
        word: &str,
        inputs: Vec<Input>,
    ) -> Result<(), Error> {
        let groups = grouped(inputs).map_err(|error| Error::failed(&error))?;
        let schemas = groups.iter().map(|group| Arc::clone(&group.schema));
        let columns = merged(schemas).map_err(|column| Error {
            hint: Some("name fewer files".to_owned()),
            ..Error::failure(format!(
                "{word}: the column `{column}` has types in these files that have nothing in common"
            ))
        })?;
        let table = self.arrow_table(&groups, &columns);
        let table = table.map_err(|error| Error::failure(format!("{word}: {}", text_of(&error))));
        self.add(name, table?)
    }

    fn arrow_table(&self, groups: &[Group], columns: &Schema) -> Result<Arc<dyn TableProvider>> {
        let [first, others @ ..] = groups else {
            return datafusion::common::internal_err!("an Arrow table without files");
        };
        if others.is_empty() {
            // Its columns keep their types.
            return match first.schema.fields().iter().any(|it| may_hide_nulls(it)) {
                true => Ok(Arc::new(ViewTable::new(
                    self.arrow_rows(first, &first.schema)?,
                    None,
                ))),
                false => self.arrow_files(first),
            };
        }
        let mut rows = LogicalPlanBuilder::from(self.arrow_rows(first, columns)?);
        for group in others {
            rows = rows.union(self.arrow_rows(group, columns)?)?;
        }
        Ok(Arc::new(ViewTable::new(rows.build()?, None)))
    }

    /// The rows of files, with the columns of the table.
    fn arrow_rows(&self, group: &Group, columns: &Schema) -> Result<LogicalPlan> {
        let name = group.inputs.first().map(Input::name).unwrap_or_default();
        let table = TableReference::bare(name);
        let rows = provider_as_source(self.arrow_files(group)?);
        let rows = LogicalPlanBuilder::scan(table.clone(), rows, None)?;
        let mut made = Vec::with_capacity(columns.fields().len());
        for field in columns.fields() {
            let name = field.name();
            let ty = match may_hide_nulls(field) {
                true => nullable(field.data_type()),
                false => field.data_type().clone(),
            };
            let column = match group.schema.field_with_name(name) {
                Ok(known) => {
                    let column = Expr::Column((Some(&table), known).into());
                    let (column, known) = match may_hide_nulls(known) {
                        true => (with_nulls(column), nullable(known.data_type())),
                        false => (column, known.data_type().clone()),
                    };
                    match known == ty {
                        true => column,
                        false => cast(column, ty),
                    }
                }
                Err(_) => lit(ScalarValue::try_new_null(&ty)?),
            };
            made.push(match column {
                // With another name DataFusion takes it for a second column, where members of structs are read.
                Expr::Column(_) => column,
                computed => computed.alias(name),
            });
        }
        rows.project(made)?.build()
    }

    /// Files of the same columns as one table.
    fn arrow_files(&self, group: &Group) -> Result<Arc<dyn TableProvider>> {
        let urls = group.inputs.iter().map(url).collect::<Result<_>>()?;
        let context = &self.context;
        let options = ArrowReadOptions::default()
            .to_listing_options(&context.copied_config(), context.copied_table_options())
            // They are named one by one, also in capitals.
            .with_file_extension("");
        let config = ListingTableConfig::new_with_multi_paths(urls)
            .with_listing_options(options)
            .with_schema(Arc::clone(&group.schema));
        Ok(Arc::new(ListingTable::try_new(config)?))
    }
}

/// Files by their columns and their form.
fn grouped(inputs: Vec<Input>) -> anyhow::Result<Vec<Group>> {
    let mut groups: Vec<Group> = Vec::new();
    for input in inputs {
        let (has_footer, schema) = head(&input)?;
        let is_of = |group: &&mut Group| group.has_footer == has_footer && group.schema == schema;
        match groups.iter_mut().find(is_of) {
            Some(group) => group.inputs.push(input),
            None => groups.push(Group {
                has_footer,
                schema,
                inputs: vec![input],
            }),
        }
    }
    Ok(groups)
}

/// Whether a file has a footer, and its columns.
fn head(input: &Input) -> anyhow::Result<(bool, SchemaRef)> {
    let name = input.name();
    let bytes = input.beginning(HEAD_BYTES)?;
    let has_footer = bytes.starts_with(MARK);
    let schema = match has_footer {
        true => arrow_lengths::with_footer(input).map_err(|error| anyhow!("{name}: {error}"))?,
        false => Schema::clone(&*of_stream(input, &bytes)?),
    };
    if let Some(column) = named_twice(&schema) {
        bail!("{name}: it has more than one column `{column}`");
    }
    // Writers keep the number of rows beside the columns, which is another one in each file.
    let columns = Schema::new(schema.fields().clone());
    Ok((has_footer, Arc::new(columns)))
}

/// The columns of a stream, of which this is the beginning.
fn of_stream(input: &Input, bytes: &[u8]) -> anyhow::Result<SchemaRef> {
    let name = input.name();
    let schema = |bytes: &[u8]| {
        // Room would be made for what it says is its length, whatever follows.
        let head = bytes.strip_prefix(&arrow_lengths::MESSAGE).unwrap_or(bytes);
        let len = head.first_chunk().map(|len| u32::from_le_bytes(*len));
        if len.is_none_or(|len| len as usize > bytes.len()) {
            return None;
        }
        // It panics at some of what is damaged.
        let read = caught(|| StreamReader::try_new(bytes, None));
        Some(read.ok()?.ok()?.schema())
    };
    let schema = match schema(bytes) {
        None if bytes.len() as u64 == HEAD_BYTES => schema(&input.beginning(HEAD_BYTES_MAX)?),
        schema => schema,
    };
    let Some(schema) = schema else {
        bail!("{name}: it is not Arrow, damaged, or cut off: its columns cannot be read");
    };
    if let Some(path) = input.path() {
        arrow_lengths::of_stream(&path).map_err(|error| anyhow!("{name}: {error}"))?;
    }
    Ok(schema)
}
