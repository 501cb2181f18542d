//! A query over files, from its text to batches in the order of the files.

mod csv;
mod memory;
mod on_disk;
mod partitions;
mod plan;
mod tables;
mod temporary;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use arrow::datatypes::DataType;
use datafusion::common::DataFusionError;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::SessionState;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;

pub(crate) use self::on_disk::threads;
pub(crate) use self::partitions::Ended;
pub use self::plan::Plan;
pub use self::temporary::Temporary;
use crate::archive::Archive;
use crate::bounds::Bounds;
use crate::error::{Error, check_operands, reads_lines};
use crate::first_rows::{check_offsets, is_of_rows, takes_first_rows};
use crate::footers;
use crate::input::Input;
use crate::joins::check_joins;
use crate::multiset::paired;
use crate::names::named;
use crate::notes::Notes;
use crate::order::copied_before_order;
use crate::reader::Once;
use crate::row_wise::check_row_wise;
use crate::set_comparison::told_apart;
use crate::star::left_out;
use crate::wildcard::{check_counts, constraint_of, without_added};
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
    /// The rows become files of an archive.
    pub archive: Option<Archive>,
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
            archive: None,
            memory_bytes: 1 << 30,
        }
    }
}

/// Runs one query.
pub struct Engine {
    context: SessionContext,
    /// Where nothing is kept on disk.
    in_memory: Arc<RuntimeEnv>,
    options: Options,
    once: Once,
    /// Of the query that was planned last.
    notes: Mutex<Arc<Notes>>,
}

/// What is granted for each row of a batch that is merged: a hundred batches of rows of a kilobyte.
const MERGED_ROW_BYTES: usize = 128 << 10;
/// Batches have at least so many rows.
const ROWS_MIN: usize = 256;
/// And at most so many.
const ROWS_MAX: usize = 8_192;

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
        let batch_rows = match options.follow {
            // No row waits for others.
            Some(_) => 1,
            // A sort on disk merges a batch or two of each of its files at a time.
            None => (options.memory_bytes / MERGED_ROW_BYTES).clamp(ROWS_MIN, ROWS_MAX),
        };
        let mut config = SessionConfig::new()
            .with_target_partitions(partitions)
            .with_batch_size(batch_rows)
            .with_information_schema(false);
        let settings = config.options_mut();
        settings.sql_parser.enable_ident_normalization = false;
        // Conditions are met while Parquet is decoded: of the other columns only those rows are.
        settings.execution.parquet.pushdown_filters = true;
        settings.execution.parquet.reorder_filters = true;
        footers::configure(&mut settings.execution.parquet);
        // What is kept for merging sorted rows from disk is a part of what is granted.
        let granted = options.memory_bytes / (16 * partitions);
        let reserved = &mut settings.execution.sort_spill_reservation_bytes;
        *reserved = (*reserved).min(granted);
        settings.execution.time_zone = Some("UTC".to_owned());
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(memory::fair(options.memory_bytes));
        let runtime = runtime
            .build_arc()
            .context("no temporary files can be made")?;
        let in_memory = RuntimeEnvBuilder::from_runtime_env(&runtime)
            .with_memory_pool(memory::in_memory(options.memory_bytes, partitions))
            .with_disk_manager_builder(
                DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled),
            );
        let in_memory = in_memory
            .build_arc()
            .context("the memory cannot be limited")?;
        let mut context = SessionContext::new_with_config_rt(config, runtime);
        datafusion_functions_json::register_all(&mut context)
            .context("the JSON functions cannot be registered")?;
        Ok(Engine {
            context,
            in_memory,
            options,
            once: Arc::default(),
            notes: Mutex::default(),
        })
    }

    /// What the query that was planned last has read so far.
    pub fn notes(&self) -> Arc<Notes> {
        Arc::clone(&self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What its queries have on disk.
    pub fn temporary(&self) -> Temporary {
        Temporary(Arc::clone(&self.context.runtime_env().disk_manager))
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
        *self.notes.lock().unwrap_or_else(PoisonError::into_inner) = Arc::default();
        let mut query = tailrace_sql::parse_query(sql).map_err(Error::of_text)?;
        check_counts(&query)?;
        check_operands(&query)?;
        check_joins(&query)?;
        let names = names(&query);
        let state = self.context.state();
        let tables = state
            .resolve_table_references(&statement(query.clone()))
            .map_err(|error| Error::of(&error, sql, false))?;
        let mut has_logs = false;
        let mut reads_stream = false;
        let star = left_out(&query);
        let mut columns_of_csv = None;
        let mut added = HashMap::new();
        for table in tables {
            let found = self
                .add_table(sql, &table, inputs, &names, star.as_ref())
                .await?;
            has_logs |= found.has_lines;
            if let Some(columns) = found.columns_of_csv {
                columns_of_csv.get_or_insert_with(Vec::new).extend(columns);
            }
            reads_stream |= found.reads_stream;
            added.insert(table.table().to_owned(), found.added);
        }
        if let Some(columns) = columns_of_csv.filter(|_| !has_logs) {
            self.check_columns(&columns)?;
        }
        without_added(&mut query, added)?;
        named(&mut query);
        let refused = |error: DataFusionError| Error::of(&error, sql, has_logs);
        if !self.options.bounds.is_empty() && !has_logs {
            return Err(Error {
                hint: Some("compare a column of the table in WHERE instead".to_owned()),
                ..Error::usage(
                    "`--since`, `--until` and `--level` are about log files, and the query reads none",
                )
            });
        }
        let state = self.context.state();
        let plan = state
            .statement_to_plan(statement(query))
            .await
            .and_then(|plan| match self.options.rows_max {
                Some(rows) => {
                    // DataFusion counts in i64.
                    let rows = rows.min(i64::MAX as usize);
                    LogicalPlanBuilder::from(plan).limit(0, Some(rows))?.build()
                }
                None => Ok(plan),
            })
            .map_err(refused)?;
        check_kinds(&plan)?;
        if self.options.follow.is_some() {
            check_row_wise(&plan, sql)?;
            check_has_columns(&plan)?;
        }
        check_offsets(&plan)?;
        let plan = paired(plan).and_then(told_apart).map_err(refused)?;
        self.arranged(sql, plan, state, reads_stream).await
    }

    /// Refuses a type for a column that the tables of a query do not have, where these are all that it has.
    fn check_columns(&self, known: &[String]) -> Result<(), Error> {
        let mut asked = self.options.columns.iter();
        let Some((name, _)) = asked.find(|(name, _)| !known.contains(name)) else {
            return Ok(());
        };
        Err(Error {
            hint: Some(format!("the columns are {}", known.join(", "))),
            ..Error::usage(format!("`--columns`: there is no column `{name}`"))
        })
    }

    /// A plan with its steps, which keep the order that its rows must have.
    async fn arranged(
        &self,
        sql: &str,
        plan: LogicalPlan,
        mut state: SessionState,
        reads_stream: bool,
    ) -> Result<Plan, Error> {
        let has_lines = reads_lines(&plan);
        let refused = |error: DataFusionError| Error::of(&error, sql, has_lines);
        let settings = state.config_mut().options_mut();
        // Its rows wait to be sorted in any case.
        let is_on_disk = self.options.archive.is_some() && !is_of_rows(&plan);
        let plan = match &self.options.archive {
            Some(archive) => archive.arranged(plan)?,
            None => copied_before_order(plan).map_err(refused)?,
        };
        if takes_first_rows(&plan) {
            settings.execution.target_partitions = 1;
        }
        if is_of_rows(&plan) || reads_stream {
            // Batches that are dealt out for computing come back in another order. And what is dealt out stays in memory, but
            // what is read once cannot begin again.
            settings.optimizer.enable_round_robin_repartition = false;
        }
        if has_percentiles(&plan) {
            // DataFusion 55 panics where it passes rows on that are no groups yet.
            let ratio = &mut settings
                .execution
                .skip_partial_aggregation_probe_ratio_threshold;
            *ratio = f64::INFINITY;
        }
        let physical = match is_on_disk {
            true => on_disk::plan(&state, &plan).await,
            false => state.create_physical_plan(&plan).await,
        };
        Ok(Plan {
            plan: physical.map_err(refused)?,
            in_memory: Arc::clone(&self.in_memory),
            memory_bytes: self.options.memory_bytes,
            logical: plan,
            state,
            sql: sql.to_owned(),
            notes: self.notes(),
        })
    }
}

/// Whether the query asks for exact percentiles of groups.
fn has_percentiles(plan: &LogicalPlan) -> bool {
    let mut found = false;
    // The closures give no error.
    let _ = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Aggregate(aggregate) = node {
            for expr in &aggregate.aggr_expr {
                let _ = expr.apply(|expr| {
                    let Expr::AggregateFunction(called) = expr else {
                        return Ok(TreeNodeRecursion::Continue);
                    };
                    found |= called.func.name() == "percentile_cont";
                    Ok(TreeNodeRecursion::Stop)
                });
            }
        }
        Ok(TreeNodeRecursion::Continue)
    });
    found
}

/// Checks that every column has values of one kind, as every form of a result wants them.
fn check_kinds(plan: &LogicalPlan) -> Result<(), Error> {
    for field in plan.schema().fields() {
        if let DataType::Union(..) = field.data_type() {
            return Err(Error {
                hint: Some("`->>`, json_get_str, json_get_int, json_get_float, json_get_bool or a cast give one kind".to_owned()),
                ..Error::usage(format!("`{}` has values of several kinds", field.name()))
            });
        }
    }
    Ok(())
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

fn statement(query: ast::Query) -> Statement {
    let query = ast::Statement::Query(Box::new(query));
    Statement::Statement(Box::new(query))
}

/// The columns that a query names: of reserved columns only those become columns of the table that it speaks of.
fn names(query: &ast::Query) -> Vec<String> {
    let mut names = Names::default();
    let _ = ast::Visit::visit(query, &mut names);
    let Names(mut names) = names;
    names.sort_unstable();
    names.dedup();
    names
}

#[derive(Default)]
struct Names(Vec<String>);

impl ast::Visitor for Names {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<()> {
        match expr {
            ast::Expr::Identifier(name) => self.0.push(name.value.clone()),
            ast::Expr::CompoundIdentifier(path) => {
                self.0.extend(path.iter().map(|it| it.value.clone()));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &ast::Select) -> ControlFlow<()> {
        for join in select.from.iter().flat_map(|it| &it.joins) {
            if let Some(ast::JoinConstraint::Using(columns)) = constraint_of(&join.join_operator) {
                let parts = columns.iter().flat_map(|name| &name.0);
                let idents = parts.filter_map(ast::ObjectNamePart::as_ident);
                self.0.extend(idents.map(|ident| ident.value.clone()));
            }
        }
        ControlFlow::Continue(())
    }
}
