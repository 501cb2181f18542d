//! CSV files as tables. The first rows tell types and what is wrong; DataFusion reads the rest.
//!
//! Files of one table may have other columns, or the same in another order, as exports of other days have: rows are put together
//! by the names of columns. One file is read by one thread, as only its beginning tells which line ends stand in quotes.

use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::TableProvider;
use datafusion::common::{Column, TableReference};
use datafusion::datasource::file_format::options::ReadOptions;
use datafusion::datasource::listing::{ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::logical_expr::{Expr, LogicalPlanBuilder};
use datafusion::prelude::CsvReadOptions;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use super::Engine;
use super::csv_dates::date_of;
use crate::csv_head::{Found, Head};
use crate::error::{Error, text_of};
use crate::input::Input;
use crate::table::data_type;

/// The column of texts of which dates are made. No column of a file begins so.
fn text_of_date(name: &str) -> String {
    format!("\0{name}")
}

/// What stands for itself in the path of a URL.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'.')
    .remove(b'-')
    .remove(b'_');

/// Files that have the same columns in the same order.
#[derive(Debug)]
struct Group {
    names: Vec<String>,
    delimiter: u8,
    inputs: Vec<Input>,
}

/// Objects whose beginning is asked for at a time.
const AT_ONCE: usize = 16;

type Columns = Vec<(String, DataType)>;

impl Engine {
    /// Registers the CSV files of a path as a table, and gives its columns.
    ///
    /// # Errors
    ///
    /// The beginning of a file cannot be read, or is no table.
    pub(super) fn add_csv(
        &self,
        name: TableReference,
        path: &str,
        inputs: Vec<Input>,
    ) -> Result<Vec<String>, Error> {
        let (groups, mut columns) = grouped(inputs)?;
        if columns.is_empty() {
            return Err(Error {
                hint: Some("the first line has the names of the columns".to_owned()),
                ..Error::failure(format!("{path}: there is no line"))
            });
        }
        for (name, ty) in &mut columns {
            let mut asked = self.options.columns.iter().rev();
            match asked.find(|(asked, _)| asked == name) {
                Some((_, asked)) => *ty = data_type(*asked),
                None if *ty == DataType::Null => *ty = DataType::Utf8View,
                None => {}
            }
        }
        let table = self.csv_table(&groups, &columns);
        let table = table.map_err(|error| Error::failure(format!("{path}: {}", text_of(&error))));
        self.add(name, table?)?;
        Ok(columns.into_iter().map(|(name, _)| name).collect())
    }

    fn csv_table(
        &self,
        groups: &[Group],
        columns: &Columns,
    ) -> datafusion::common::Result<Arc<dyn TableProvider>> {
        let [first, others @ ..] = groups else {
            return datafusion::common::internal_err!("a CSV table without files");
        };
        let has_dates = columns.iter().any(|(_, ty)| *ty == DataType::Date32);
        if others.is_empty() && !has_dates {
            return self.csv_files(first, columns);
        }
        let mut rows = self.csv_rows(first, columns)?;
        for group in others {
            rows = rows.union_by_name(self.csv_rows(group, columns)?.build()?)?;
        }
        Ok(Arc::new(ViewTable::new(rows.build()?, None)))
    }

    /// The rows of files of the same columns.
    fn csv_rows(
        &self,
        group: &Group,
        columns: &Columns,
    ) -> datafusion::common::Result<LogicalPlanBuilder> {
        // Errors of its rows name it so.
        let table = TableReference::bare(group.inputs.first().map(Input::name).unwrap_or_default());
        let files = provider_as_source(self.csv_files(group, columns)?);
        let rows = LogicalPlanBuilder::scan(table.clone(), files, None)?;
        let is_date = |name: &String| columns.contains(&(name.clone(), DataType::Date32));
        if !group.names.iter().any(is_date) {
            return Ok(rows);
        }
        // Under its full name: a step that DataFusion 55 moves below this one takes a column along under it, beside one without a table. The
        // texts have other names, for such a step would take them for the dates.
        let made = group.names.iter().map(|name| {
            let column = |name: &str| Expr::Column(Column::new(Some(table.clone()), name));
            match is_date(name) {
                true => date_of(column(&text_of_date(name)), name)
                    .alias_qualified(Some(table.clone()), name),
                false => column(name),
            }
        });
        rows.project(made.collect::<Vec<_>>())
    }

    /// Files of the same columns as one table, whose dates are texts.
    fn csv_files(
        &self,
        group: &Group,
        columns: &Columns,
    ) -> datafusion::common::Result<Arc<dyn TableProvider>> {
        let field = |name: &String| {
            let mut known = columns.iter().filter(|(known, _)| known == name);
            match known.next().map(|(_, ty)| ty.clone()) {
                Some(DataType::Date32) => Field::new(text_of_date(name), DataType::Utf8View, true),
                ty => Field::new(name, ty.unwrap_or(DataType::Utf8View), true),
            }
        };
        let fields: Vec<_> = group.names.iter().map(field).collect();
        let urls = group.inputs.iter().map(url);
        let urls = urls.collect::<datafusion::common::Result<_>>()?;
        let context = &self.context;
        let options = CsvReadOptions::new()
            .newlines_in_values(true)
            .delimiter(group.delimiter)
            .to_listing_options(&context.copied_config(), context.copied_table_options())
            // They are named one by one, also in capitals.
            .with_file_extension("");
        let config = ListingTableConfig::new_with_multi_paths(urls)
            .with_listing_options(options)
            .with_schema(Arc::new(Schema::new(fields)));
        Ok(Arc::new(ListingTable::try_new(config)?))
    }
}

/// Files by their columns, and all columns with a type that has the values of all files.
fn grouped(inputs: Vec<Input>) -> Result<(Vec<Group>, Columns), Error> {
    let is_many = inputs.len() > 1;
    let mut groups: Vec<Group> = Vec::new();
    let mut columns: Vec<(String, Found)> = Vec::new();
    for (input, head) in heads(inputs, is_many) {
        let Some(head) = head? else {
            // An empty file has no rows.
            continue;
        };
        for (name, found) in head.names.iter().zip(head.columns) {
            match columns.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) => *known = known.with(&found),
                None => columns.push((name.clone(), found)),
            }
        }
        let is_of =
            |group: &&mut Group| group.names == head.names && group.delimiter == head.delimiter;
        match groups.iter_mut().find(is_of) {
            Some(group) => group.inputs.push(input),
            None => groups.push(Group {
                names: head.names,
                delimiter: head.delimiter,
                inputs: vec![input],
            }),
        }
    }
    let columns = columns.into_iter();
    let columns = columns.map(|(name, found)| (name, found.exact())).collect();
    Ok((groups, columns))
}

/// The beginning of each file; several objects are asked for at a time.
fn heads(inputs: Vec<Input>, is_many: bool) -> Vec<(Input, Result<Option<Head>, Error>)> {
    let read = |input: &Input| Head::read(input, is_many);
    let mut heads = Vec::with_capacity(inputs.len());
    for inputs in inputs.chunks(AT_ONCE) {
        let is_far = |input: &Input| matches!(input, Input::Object(_));
        if !inputs.iter().any(is_far) {
            heads.extend(inputs.iter().map(|input| (input.clone(), read(input))));
            continue;
        }
        std::thread::scope(|scope| {
            let reading: Vec<_> = inputs.iter().map(|it| scope.spawn(|| read(it))).collect();
            for (input, head) in inputs.iter().zip(reading) {
                let failed = |_| Err(Error::failure(format!("{}: cannot be read", input.name())));
                heads.push((input.clone(), head.join().unwrap_or_else(failed)));
            }
        });
    }
    heads
}

/// A file by the URL that DataFusion opens it by. As a path it could be a pattern.
pub(super) fn url(input: &Input) -> datafusion::common::Result<ListingTableUrl> {
    match input {
        Input::Object(object) => {
            let location = object.meta.location.as_ref();
            let path = percent_encode(location.as_bytes(), ENCODED);
            ListingTableUrl::parse(format!("{}{path}", object.store.url.as_str()))
        }
        Input::File(path) => {
            let path = std::path::absolute(path)?;
            let path = percent_encode(path.as_os_str().as_bytes(), ENCODED);
            ListingTableUrl::parse(format!("file://{path}"))
        }
        Input::Stdin => datafusion::common::internal_err!("standard input is no table"),
    }
}
