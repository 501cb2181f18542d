//! A query over files, from its text to batches in the order of the files.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::common::{DataFusionError, TableReference};
use datafusion::datasource::file_format::options::ArrowReadOptions;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::{ExecutionPlan, displayable, execute_stream_partitioned};
use datafusion::prelude::{CsvReadOptions, SessionConfig, SessionContext};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;
use futures::StreamExt;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::bounds::Bounds;
use crate::error::Error;
use crate::first_rows::{check_offsets, takes_first_rows};
use crate::follow::Followed;
use crate::input::{Input, expand};
use crate::notes::Notes;
use crate::reader::Once;
use crate::row_wise::check_row_wise;
use crate::sample::{Column, key_column, reserved_column, sample};
use crate::table::Table;
use tailrace_scan::Type;

/// How a query is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Types of columns by name, in the place of those of the sample; names that it lacks become columns.
    pub columns: Vec<(String, Type)>,
    /// Bounds of the records of every log table.
    pub bounds: Bounds,
    /// How much is read and computed at the same time.
    pub partitions: usize,
    /// Bytes read at once.
    pub chunk_bytes: usize,
    /// A file is not cut into smaller ranges.
    pub split_bytes_min: u64,
    /// At most so many rows are made: the first ones, where the query has no order.
    pub rows_max: Option<usize>,
    /// The files are followed: the query does not end. These are the words that name the files of `logs`.
    pub follow: Option<Vec<String>>,
    /// What sorts, groups and joins may keep in memory; a query that needs more fails.
    pub memory_bytes: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            columns: Vec::new(),
            bounds: Bounds::default(),
            partitions: std::thread::available_parallelism().map_or(1, usize::from),
            chunk_bytes: 1 << 20,
            split_bytes_min: 4 << 20,
            rows_max: None,
            follow: None,
            memory_bytes: 1 << 30,
        }
    }
}

/// Runs one query.
pub struct Engine {
    context: SessionContext,
    options: Options,
    once: Once,
    /// Of the query that was planned last.
    notes: Mutex<Arc<Notes>>,
}

/// A query that is ready to run.
pub struct Plan {
    plan: Arc<dyn ExecutionPlan>,
    context: SessionContext,
    sql: String,
    notes: Arc<Notes>,
}

/// Batches of a partition that may wait for those before it.
const BATCHES_AHEAD: usize = 16;

impl Engine {
    /// An engine.
    ///
    /// # Errors
    ///
    /// DataFusion refuses a function, which it does not.
    pub fn new(options: Options) -> anyhow::Result<Engine> {
        // The first rows are those of the first file, and those of followed files come as they come.
        let is_single = options.rows_max.is_some() || options.follow.is_some();
        let partitions = if is_single {
            1
        } else {
            options.partitions.max(1)
        };
        let mut config = SessionConfig::new()
            .with_target_partitions(partitions)
            .with_information_schema(false);
        if options.follow.is_some() {
            // No row waits for others.
            config = config.with_batch_size(1);
        }
        let settings = config.options_mut();
        settings.sql_parser.enable_ident_normalization = false;
        settings.execution.time_zone = Some("UTC".to_owned());
        let runtime = RuntimeEnvBuilder::new().with_memory_limit(options.memory_bytes, 1.0);
        let runtime = runtime
            .build_arc()
            .context("no temporary files can be made")?;
        let mut context = SessionContext::new_with_config_rt(config, runtime);
        datafusion_functions_json::register_all(&mut context)
            .context("the JSON functions cannot be registered")?;
        Ok(Engine {
            context,
            options,
            once: Arc::default(),
            notes: Mutex::default(),
        })
    }

    /// What the query that was planned last has read so far.
    pub fn notes(&self) -> Arc<Notes> {
        Arc::clone(&self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The names of all functions that a query can call.
    pub fn functions(&self) -> Vec<String> {
        let state = self.context.state();
        let scalar = state.scalar_functions().keys();
        let aggregate = state.aggregate_functions().keys();
        let window = state.window_functions().keys();
        scalar.chain(aggregate).chain(window).cloned().collect()
    }

    /// Plans a query over `inputs`, the table `logs`, and over the files that it names itself.
    ///
    /// # Errors
    ///
    /// The query is not valid, or a file cannot be read.
    pub async fn plan(&self, sql: &str, inputs: &[Input]) -> Result<Plan, Error> {
        let refused = |error: &DataFusionError| Error::of(error, sql, true);
        *self.notes.lock().unwrap_or_else(PoisonError::into_inner) = Arc::default();
        let query = tailrace_sql::parse_query(sql).map_err(Error::of_text)?;
        let names = names(&query);
        let statement = ast::Statement::Query(Box::new(query));
        let statement = Statement::Statement(Box::new(statement));
        let state = self.context.state();
        let tables = state
            .resolve_table_references(&statement)
            .map_err(|error| refused(&error))?;
        let has_logs = tables
            .iter()
            .any(|table| !is_listed(Path::new(table.table())));
        if !self.options.bounds.is_empty() && !has_logs {
            return Err(Error {
                hint: Some("compare a column of the table in WHERE instead".to_owned()),
                ..Error::usage(
                    "`--since`, `--until` and `--level` are about log files, and the query reads none",
                )
            });
        }
        for table in tables {
            self.add_table(&table, inputs, &names).await?;
        }
        let state = self.context.state();
        let plan = state
            .statement_to_plan(statement)
            .await
            .and_then(|plan| match self.options.rows_max {
                Some(rows) => {
                    // DataFusion counts in i64.
                    let rows = rows.min(i64::MAX as usize);
                    LogicalPlanBuilder::from(plan).limit(0, Some(rows))?.build()
                }
                None => Ok(plan),
            })
            .map_err(|error| refused(&error))?;
        for field in plan.schema().fields() {
            if let DataType::Union(..) = field.data_type() {
                return Err(Error {
                    hint: Some("`->>`, json_get_str, json_get_int, json_get_float, json_get_bool or a cast give one kind".to_owned()),
                    ..Error::usage(format!("`{}` has values of several kinds", field.name()))
                });
            }
        }
        if self.options.follow.is_some() {
            check_row_wise(&plan, sql)?;
            check_has_columns(&plan)?;
        }
        check_offsets(&plan)?;
        let mut state = state;
        if takes_first_rows(&plan) {
            state.config_mut().options_mut().execution.target_partitions = 1;
        }
        let plan = state
            .create_physical_plan(&plan)
            .await
            .map_err(|error| refused(&error))?;
        Ok(Plan {
            plan,
            context: self.context.clone(),
            sql: sql.to_owned(),
            notes: self.notes(),
        })
    }

    /// Makes the table that a query names: `logs`, or a file.
    async fn add_table(
        &self,
        table: &TableReference,
        inputs: &[Input],
        names: &[String],
    ) -> Result<(), Error> {
        let failed = |error: anyhow::Error| Error {
            is_usage: false,
            ..Error::usage(format!("{error:#}"))
        };
        let name = table.to_string();
        let (inputs, words) = if name == "logs" {
            if inputs.is_empty() {
                return Err(Error {
                    hint: Some("name files behind the query, or `-` for standard input".to_owned()),
                    ..Error::usage("the table `logs` has no files")
                });
            }
            if let Some(input) = inputs
                .iter()
                .find(|input| matches!(input, Input::File(path) if is_listed(path)))
            {
                return Err(Error {
                    hint: Some(format!("FROM '{}' is a table of its own", input.name())),
                    ..Error::usage(format!("{} holds no lines of a log", input.name()))
                });
            }
            (inputs.to_vec(), self.options.follow.clone())
        } else {
            let path = table.table();
            if table.schema().is_some() || !(path.contains(['/', '.', '*']) || path == "-") {
                return Err(Error {
                    hint: Some(format!(
                        "the files behind the query are the table `logs`; a file of its own stands in quotes: FROM '{path}.log'"
                    )),
                    ..Error::usage(format!("there is no table `{name}`"))
                });
            }
            if is_listed(Path::new(path)) {
                return self.add_listed(path).await;
            }
            let words = vec![path.to_owned()];
            let inputs = expand(&words).map_err(failed)?;
            (inputs, self.options.follow.is_some().then_some(words))
        };
        if words.is_some()
            && let Some(stream) = inputs.iter().find(|input| input.is_stream())
        {
            return Err(Error {
                hint: Some(
                    "leave out `-f`: a query reads it to its end, and prints rows as they come"
                        .to_owned(),
                ),
                ..Error::usage(format!(
                    "{} is no file, and cannot be followed",
                    stream.name()
                ))
            });
        }
        let table = TableReference::bare(table.table().to_owned());
        let mut found = sample(&inputs, &self.options.bounds, &self.once).map_err(failed)?;
        self.notes().planned(&found);
        let followed = words.map(|words| Followed::new(&words, &found));
        let followed = followed.transpose()?;
        for (name, ty) in &self.options.columns {
            let reserved = reserved_column(name);
            if reserved.as_ref().is_some_and(|reserved| reserved.ty != *ty) {
                return Err(Error::usage(format!(
                    "`{name}` is a reserved column, which has a type of its own"
                )));
            }
            set_type(
                &mut found.columns,
                reserved.unwrap_or_else(|| key_column(name, *ty)),
            );
        }
        for name in names {
            if !found.columns.iter().any(|column| column.name == *name) {
                found.columns.extend(reserved_column(name));
            }
        }
        let table_of = Table::new(
            found,
            self.options.bounds,
            Arc::clone(&self.once),
            self.notes(),
            self.options.chunk_bytes,
            self.options.split_bytes_min,
        );
        let table_of = match followed {
            Some(followed) => table_of.following(followed),
            None => table_of,
        };
        // The files may be others than those of the query before.
        let known = self.context.deregister_table(table.clone());
        let added = known.and_then(|_| self.context.register_table(table, Arc::new(table_of)));
        added.map(drop).map_err(|error| failed(error.into()))
    }

    /// A file that DataFusion reads itself.
    async fn add_listed(&self, path: &str) -> Result<(), Error> {
        let name = TableReference::bare(path.to_owned());
        if !path.ends_with(".csv") && !path.ends_with(".arrow") {
            return Err(Error::usage(format!(
                "{path}: a compressed table cannot be read; decompress it first"
            )));
        }
        // An earlier query may have read it.
        let known = self.context.deregister_table(name.clone());
        known.map_err(|error| Error::of(&error, "", false))?;
        let added = if path.ends_with(".csv") {
            self.context
                .register_csv(name, path, CsvReadOptions::new())
                .await
        } else {
            self.context
                .register_arrow(name, path, ArrowReadOptions::default())
                .await
        };
        added.map_err(|error| Error {
            is_usage: false,
            ..Error::usage(format!("{path}: {}", Error::of(&error, "", false).message))
        })
    }
}

/// Checks that a query that follows files has columns: those of a file are known once it has a record.
fn check_has_columns(plan: &LogicalPlan) -> Result<(), Error> {
    if !plan.schema().fields().is_empty() {
        return Ok(());
    }
    Err(Error {
        hint: Some("`--columns level=text,status=int64` names them".to_owned()),
        ..Error::usage("the files hold no record yet, so that their columns are not known")
    })
}

/// Whether it is a table that DataFusion reads itself, perhaps compressed.
pub(crate) fn is_listed(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
    name.ends_with(".csv") || name.ends_with(".arrow")
}

/// A column of this type: one of the sample, or a key that the sample lacks.
fn set_type(columns: &mut Vec<Column>, made: Column) {
    match columns.iter_mut().find(|column| column.name == made.name) {
        Some(column) => *column = made,
        None => columns.push(made),
    }
}

/// The columns that a query names: of reserved columns only those become columns of the table that it speaks of.
fn names(query: &ast::Query) -> Vec<String> {
    let mut names = Vec::new();
    let _ = ast::visit_expressions(query, |expr| {
        match expr {
            ast::Expr::Identifier(name) => names.push(name.value.clone()),
            ast::Expr::CompoundIdentifier(path) => {
                names.extend(path.iter().map(|it| it.value.clone()))
            }
            _ => {}
        }
        ControlFlow::<()>::Continue(())
    });
    names.sort_unstable();
    names.dedup();
    names
}

impl Plan {
    /// The columns of the result.
    pub fn schema(&self) -> SchemaRef {
        self.plan.schema()
    }

    /// The plan as text, a step on each line.
    pub fn text(&self) -> String {
        displayable(self.plan.as_ref()).indent(false).to_string()
    }

    /// Runs the query, until it has ended or the future is dropped; `each` is called with every batch, in the order of the files where the query has no order, and
    /// ends the query by `false`.
    ///
    /// # Errors
    ///
    /// The data cannot be read, or a value cannot be computed.
    pub async fn run(self, mut each: impl FnMut(RecordBatch) -> bool) -> Result<(), Error> {
        let _running = Running(Arc::clone(&self.notes));
        let failed = |error: &DataFusionError| Error::of(error, &self.sql, false);
        let task = self.context.task_ctx();
        let streams = execute_stream_partitioned(Arc::clone(&self.plan), task);
        let streams = streams.map_err(|error| failed(&error))?;
        let mut partitions: Vec<_> = streams.into_iter().map(ahead).collect();
        for partition in &mut partitions {
            while let Some(batch) = partition.next().await {
                if !each(batch.map_err(|error| failed(&error))?) {
                    return Ok(());
                }
                // Whoever waits for something else as well has a turn.
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }
}

/// A query that runs. Its scans end when this is dropped.
struct Running(Arc<Notes>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A partition that runs ahead; it ends when this is dropped.
struct Ahead {
    batches: mpsc::Receiver<Result<RecordBatch, DataFusionError>>,
    /// The partition's end, until it is known.
    end: Option<JoinHandle<()>>,
}

impl Ahead {
    /// The next batch. A partition that panics is an error, and never a result that is too short.
    async fn next(&mut self) -> Option<Result<RecordBatch, DataFusionError>> {
        if let Some(batch) = self.batches.recv().await {
            return Some(batch);
        }
        let ended = self.end.take()?.await;
        ended
            .err()
            .map(|error| Err(DataFusionError::ExecutionJoin(Box::new(error))))
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        if let Some(end) = &self.end {
            end.abort();
        }
    }
}

fn ahead(mut stream: SendableRecordBatchStream) -> Ahead {
    let (sender, batches) = mpsc::channel(BATCHES_AHEAD);
    let end = tokio::spawn(async move {
        while let Some(batch) = stream.next().await {
            if sender.send(batch).await.is_err() {
                return;
            }
        }
    });
    Ahead {
        batches,
        end: Some(end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use arrow::datatypes::Schema;
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;

    #[tokio::test]
    async fn a_partition_that_panics_is_an_error() {
        let schema = Arc::new(Schema::empty());
        let batch = RecordBatch::new_empty(Arc::clone(&schema));
        let batches = (0..2).map(move |nth| match nth {
            0 => Ok(batch.clone()),
            _ => panic!("of the test"),
        });
        let stream = futures::stream::iter(batches);
        let mut partition = ahead(Box::pin(RecordBatchStreamAdapter::new(schema, stream)));
        assert!(partition.next().await.is_some_and(|batch| batch.is_ok()));
        assert!(partition.next().await.is_some_and(|batch| batch.is_err()));
        assert!(partition.next().await.is_none());
    }
}
