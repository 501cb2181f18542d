//! The rows of a query as an archive: Parquet files in Hive's layout, which Spark, DuckDB and Polars read.

mod files;

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::common::Column;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use tailrace_model::reserved::TIMESTAMP;

pub(crate) use self::files::Files;
use crate::error::Error;
use crate::hive::is_partition_type;
use crate::order::copied;

/// Where the rows of a query are kept, and how.
#[derive(Clone, Debug, Default)]
pub struct Archive {
    /// A directory, or the URL of one in an object store.
    pub to: String,
    /// Columns whose values become directories.
    pub partition_by: Vec<String>,
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// What the names of all files begin with.
    pub run: String,
    /// Complete files.
    pub files: u64,
    /// Their rows.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Times that were cut to microseconds.
    pub cut: u64,
    /// Rows whose value for a directory is an empty text, which is no value there.
    pub empty: u64,
}

impl Archive {
    /// The rows of a plan in the order in which files take them: by directory, then by time.
    pub(crate) fn arranged(&self, plan: LogicalPlan) -> Result<LogicalPlan, Error> {
        let schema = Arc::clone(plan.schema());
        for (at, field) in schema.fields().iter().enumerate() {
            if schema.fields()[..at]
                .iter()
                .any(|before| before.name() == field.name())
            {
                return Err(Error::usage(format!(
                    "the result has two columns `{}`: name one of them otherwise, by AS",
                    field.name()
                )));
            }
        }
        for (at, name) in self.partition_by.iter().enumerate() {
            if self.partition_by[..at].contains(name) {
                return Err(Error::usage(format!(
                    "`--partition-by` names `{name}` twice"
                )));
            }
            let Some(field) = schema.fields().iter().find(|field| field.name() == name) else {
                let columns: Vec<_> = schema
                    .fields()
                    .iter()
                    .map(|field| field.name().as_str())
                    .collect();
                return Err(Error::usage(format!(
                    "`--partition-by {name}` is no column of the result, which has {}",
                    columns.join(", ")
                )));
            };
            if name.is_empty() || name.starts_with('.') {
                let why = match name.is_empty() {
                    true => "would have no name",
                    false => "would be hidden from all readers",
                };
                return Err(Error::usage(format!(
                    "directories of `{name}` {why}: name the column otherwise, by AS"
                )));
            }
            if !is_partition_type(field.data_type()) {
                return Err(Error {
                    hint: Some(format!(
                        "texts, whole numbers, booleans and dates do: SELECT *, CAST(\"{name}\" AS DATE) AS dt"
                    )),
                    ..Error::usage(format!("values of `{name}` name no directories"))
                });
            }
        }
        let by = |name: &str| Expr::Column(Column::from_name(name)).sort(true, false);
        let mut order: Vec<_> = self.partition_by.iter().map(|name| by(name)).collect();
        order.extend(time_column(schema.as_arrow()).map(|at| by(schema.field(at).name())));
        let made = copied(plan).and_then(|plan| {
            let plan = LogicalPlanBuilder::from(plan);
            let plan = if order.is_empty() {
                plan
            } else {
                plan.sort(order)?
            };
            plan.build()
        });
        made.map_err(|error| Error::failed(&error.into()))
    }
}

/// The column by which the rows of a file are in order: the time of the record, or the first time.
fn time_column(schema: &Schema) -> Option<usize> {
    let is_time = |at: &usize| matches!(schema.field(*at).data_type(), DataType::Timestamp(..));
    let named = schema.index_of(TIMESTAMP).ok().filter(is_time);
    named.or_else(|| (0..schema.fields().len()).find(is_time))
}
