//! Files as a table of DataFusion: which columns a scan reads, and which conditions it evaluates itself.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use tailrace_scan::{Config, Type, Unwanted};

use crate::bounds::{Bounds, Condition};
use crate::engine::threads;
use crate::follow::{Followed, Following};
use crate::needles::needles;
use crate::notes::{LATE_KEYS_MAX, Notes};
use crate::partition::{Part, partitions};
use crate::reader::Once;
use crate::sample::{Column, Sample};
use crate::scan::{Partition, Shared};

/// Some files.
#[derive(Debug)]
pub(crate) struct Table {
    sample: Sample,
    schema: SchemaRef,
    /// The columns of the schema, and behind them those that only the bounds read.
    all: SchemaRef,
    bounds: Bounds,
    /// The files, where they are followed.
    followed: Option<Followed>,
    /// The columns that `*` leaves out, where the query has one.
    star: Option<Vec<String>>,
    once: Once,
    notes: Arc<Notes>,
    chunk_bytes: usize,
    split_bytes_min: u64,
}

impl Table {
    pub(crate) fn new(
        mut sample: Sample,
        bounds: Bounds,
        once: Once,
        notes: Arc<Notes>,
        chunk_bytes: usize,
        split_bytes_min: u64,
    ) -> Table {
        let field = |column: &Column| Field::new(&column.name, data_type(column.ty), true);
        let schema_of = |columns: &[Column]| {
            let fields: Vec<_> = columns.iter().map(field).collect();
            Arc::new(Schema::new(fields))
        };
        let schema = schema_of(&sample.columns);
        for column in bounds.columns() {
            if !sample.columns.iter().any(|known| known.name == column.name) {
                sample.columns.push(column);
            }
        }
        Table {
            followed: None,
            star: None,
            schema,
            all: schema_of(&sample.columns),
            bounds,
            sample,
            once,
            notes,
            chunk_bytes,
            split_bytes_min,
        }
    }

    /// The same table, which does not end: its files and those that come later are followed.
    pub(crate) fn following(self, followed: Followed) -> Table {
        Table {
            followed: Some(followed),
            ..self
        }
    }

    /// The same table, for a query with a `*` that leaves out these columns: keys for which it has no column are noted.
    pub(crate) fn with_star(self, star: Option<Vec<String>>) -> Table {
        Table { star, ..self }
    }

    /// Which keys a scan of these columns notes, if it is one that `*` asks for. Where there are too many keys, that is said already.
    fn unwanted(&self, projected: &[usize]) -> Option<Unwanted> {
        let star = self.star.as_ref().filter(|_| self.sample.left_out == 0)?;
        let mut columns = self.schema.fields().iter().enumerate();
        let is_of_star = !projected.is_empty()
            && columns.all(|(at, field)| projected.contains(&at) || star.contains(field.name()));
        is_of_star.then(|| Unwanted {
            except: self
                .sample
                .columns
                .iter()
                .map(|it| it.name.clone())
                .collect(),
            keys_max: LATE_KEYS_MAX,
        })
    }

    /// The columns that an expression reads, by place.
    fn places(&self, expr: &Expr) -> Vec<usize> {
        let names = expr.column_refs();
        let named = |column: &Column| names.iter().any(|name| name.name == column.name);
        let all = self.sample.columns.iter().enumerate();
        all.filter(|(_, column)| named(column))
            .map(|(at, _)| at)
            .collect()
    }
}

/// The Arrow type of a column.
pub(crate) fn data_type(ty: Type) -> DataType {
    match ty {
        Type::Int64 => DataType::Int64,
        Type::Float64 => DataType::Float64,
        Type::Boolean => DataType::Boolean,
        Type::Timestamp => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        Type::Open | Type::Text | Type::Value => DataType::Utf8View,
    }
}

#[async_trait]
impl TableProvider for Table {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        // The scan evaluates DataFusion's own expression on the same columns.
        let support = |filter: &&Expr| {
            if self.places(filter).is_empty() || filter.is_volatile() {
                TableProviderFilterPushDown::Unsupported
            } else {
                TableProviderFilterPushDown::Exact
            }
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all = || (0..self.schema.fields().len()).collect();
        let projected: Vec<usize> = projection.cloned().unwrap_or_else(all);
        let of_query = conjunction(filters.to_vec());
        let of_bounds = self.bounds.conditions();
        let read_by = of_query
            .iter()
            .chain(of_bounds.iter().map(|(_, expr)| expr));
        let mut first: Vec<_> = read_by.flat_map(|expr| self.places(expr)).collect();
        first.sort_unstable();
        first.dedup();
        let has_condition = of_query.is_some() || !of_bounds.is_empty();
        if first.is_empty() && has_condition && !self.sample.columns.is_empty() {
            // What was pushed here has become a constant: it is met, or not, by the rows of any column.
            first.push(0);
        }
        let mut read = projected.clone();
        read.extend(&first);
        read.sort_unstable();
        read.dedup();
        let place = |at: &usize| read.binary_search(at).expect("every column wanted is read");
        let of_batch = DFSchema::try_from(Arc::new(self.all.project(&first)?))?;
        let physical = |expr: Expr| state.create_physical_expr(expr, &of_batch);
        let of_bounds = of_bounds.into_iter();
        let condition = Condition {
            of_query: of_query.map(physical).transpose()?,
            of_bounds: of_bounds
                .map(|(bounded, expr)| Ok((bounded, physical(expr)?)))
                .collect::<Result<_>>()?,
        };
        let columns = read.iter().map(|at| &self.sample.columns[*at]);
        let config = Config {
            columns: columns
                .map(|column| tailrace_scan::Column {
                    name: column.name.clone(),
                    source: column.source.clone(),
                    ty: column.ty,
                })
                .collect(),
            first: first.iter().map(place).collect(),
            prefilter: filters
                .iter()
                .filter_map(|filter| needles(filter, &self.sample.columns))
                .collect(),
            unwanted: self.unwanted(&projected),
            ..Config::default()
        };
        let schema = Arc::new(self.schema.project(&projected)?);
        let shared = Arc::new(Shared {
            config,
            condition,
            output: projected.iter().map(place).collect(),
            schema: Arc::clone(&schema),
            once: Arc::clone(&self.once),
            notes: Arc::clone(&self.notes),
            chunk_bytes: self.chunk_bytes,
        });
        if let Some(followed) = &self.followed {
            let following: Arc<dyn PartitionStream> = Arc::new(Following {
                files: followed.clone(),
                notes: Arc::clone(&self.notes),
                modified_since: self.bounds.modified_since(),
                shared,
            });
            let streams = vec![following];
            let plan = StreamingTableExec::try_new(schema, streams, None, [], true, limit)?;
            return Ok(Arc::new(plan));
        }
        self.notes.will_read(&self.sample.sources);
        let count = threads(state);
        let parts = partitions(&self.sample.sources, count, self.split_bytes_min);
        let stream = |parts: Vec<Part>| {
            let stream: Arc<dyn PartitionStream> = Arc::new(Partition {
                parts,
                shared: Arc::clone(&shared),
            });
            stream
        };
        let streams = parts.into_iter().map(stream).collect();
        let plan = StreamingTableExec::try_new(schema, streams, None, [], false, limit)?;
        Ok(Arc::new(plan))
    }
}
