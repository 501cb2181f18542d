//! A query over files, from its text to batches in the order of the files.

mod arrow_buffers;
mod arrow_files;
mod arrow_lengths;
mod checked;
mod clock_times;
mod compared_keys;
mod context;
mod csv;
mod csv_dates;
mod damaged;
mod distinct_texts;
mod few_groups;
mod filtered_aggregates;
mod given;
mod grouping_sets;
mod held_conditions;
mod hidden_nulls;
mod join_keys;
mod joins_by_chance;
mod kept_texts;
mod keys_as_bytes;
mod lone_unions;
mod memory;
mod nested_keys;
mod nullable_side;
mod on_disk;
mod optimizer;
mod options;
mod partitions;
mod passing;
mod plan;
mod repeated_orders;
mod replaced;
mod rules;
mod sorted_numbers;
mod tables;
mod temporary;
#[cfg(test)]
mod testing;
mod unions;
mod zeros;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, TableReference};
use datafusion::execution::SessionState;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;
use tailrace_sql::tree::{each_part, each_step};
use tailrace_sql::with_room;

use self::context::contexts;
pub(crate) use self::on_disk::threads;
pub use self::options::Options;
pub(crate) use self::partitions::Ended;
pub use self::plan::Plan;
pub use self::temporary::Temporary;
use crate::aggregate_orders::without_numbers;
use crate::casts_apart::apart;
use crate::error::{Error, check_operands, reads_lines};
use crate::first_rows::{check_offsets, is_of_rows, takes_first_rows};
use crate::frame_distances::with_distances;
use crate::group_keys::written_out;
use crate::in_subquery::answered;
use crate::input::Input;
use crate::lateral_unnest::unnested;
use crate::leads::as_nth_values;
use crate::like_escape::with_backslashes;
use crate::like_operators::as_like;
use crate::mentioned::mentioned;
use crate::multiset::paired;
use crate::names::named;
use crate::natural::as_using;
use crate::notes::Notes;
use crate::order::copied_before_order;
use crate::order_names;
use crate::reader::Once;
use crate::recursive_clauses;
use crate::recursive_types;
use crate::repeated_names::told_apart_by_name;
use crate::row_wise::check_row_wise;
use crate::semi_joins::of_left;
use crate::set_comparison::told_apart;
use crate::several_kinds::{check_kinds, compared};
use crate::star::left_out;
use crate::struct_names::bare;
use crate::table_functions::table_functions;
use crate::unsupported::{check_clauses, check_counts, check_joins, check_plan};
use crate::using::{qualify, written_stars};
use crate::values_queries::as_selects;
use crate::wide_literals::as_decimals;
use crate::wide_star::{Star, folded};
use crate::wildcard::without_added;
use crate::window_frames::by_groups;
use crate::windows::written_windows;

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

impl Engine {
    /// An engine.
    ///
    /// # Errors
    ///
    /// DataFusion refuses a function, which it does not.
    pub fn new(options: Options) -> anyhow::Result<Engine> {
        let (context, in_memory) = contexts(&options)?;
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
        as_selects(&mut query);
        check_counts(&query)?;
        check_operands(&query)?;
        check_joins(&query)?;
        check_clauses(&query, &self.context.state(), sql)?;
        let functions = table_functions(&mut query, &self.context.state())?;
        let found = self.add_tables(sql, &query, inputs, &functions).await?;
        let (has_logs, reads_stream) = (found.has_lines, found.reads_stream);
        let star = rewritten(&mut query, found)?;
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
            .and_then(unnested)
            .and_then(bare)
            .and_then(|plan| match star {
                Some(star) => star.unfolded(plan),
                None => Ok(plan),
            })
            .and_then(|plan| match self.options.rows_max {
                Some(rows) => {
                    // DataFusion counts in i64.
                    let rows = rows.min(i64::MAX as usize);
                    LogicalPlanBuilder::from(plan).limit(0, Some(rows))?.build()
                }
                None => Ok(plan),
            })
            .map_err(refused)?;
        let plan = recursive_types::checked(plan)?;
        check_kinds(&plan)?;
        if self.options.follow.is_some() {
            check_row_wise(&plan, sql)?;
            check_has_columns(&plan)?;
        }
        check_offsets(&plan)?;
        check_plan(&plan, sql)?;
        let plan = paired(plan).and_then(told_apart).and_then(answered);
        let plan = plan
            .and_then(compared)
            .and_then(with_room)
            .and_then(by_groups)
            .and_then(with_distances)
            .map_err(refused)?;
        self.arranged(sql, plan, state, reads_stream).await
    }

    /// Registers the tables that a query names, but for those that are functions.
    async fn add_tables(
        &self,
        sql: &str,
        query: &ast::Query,
        inputs: &[Input],
        functions: &[String],
    ) -> Result<Tables, Error> {
        let names = mentioned(query);
        let state = self.context.state_ref();
        let tables = state
            .read()
            .resolve_table_references(&statement(query.clone()))
            .map_err(|error| Error::of(&error, sql, false))?;
        let star = left_out(query);
        let mut columns_of_csv = None;
        let mut all = Tables::default();
        let is_function = |table: &TableReference| functions.iter().any(|it| it == table.table());
        for table in tables.into_iter().filter(|it| !is_function(it)) {
            let found = self
                .add_table(sql, &table, inputs, &names, star.as_ref())
                .await?;
            all.has_lines |= found.has_lines;
            all.reads_stream |= found.reads_stream;
            if let Some(columns) = found.columns_of_csv {
                columns_of_csv.get_or_insert_with(Vec::new).extend(columns);
            }
            let name = table.table().to_owned();
            let added = TableReference::bare(name.clone());
            if let Ok(added) = self.context.table_provider(added).await {
                let schema = added.schema();
                let columns = schema.fields().iter().map(|field| field.name().clone());
                all.columns.insert(name.clone(), columns.collect());
            }
            all.added.insert(name, found.added);
        }
        // Those of `logs` may be meant, though this query does not read it.
        if !all.has_lines && (columns_of_csv.is_some() || inputs.is_empty()) {
            self.check_columns(columns_of_csv.as_deref())?;
        }
        Ok(all)
    }

    /// Refuses a type for a column that the CSV files of a query without lines do not have, and any if there are none.
    fn check_columns(&self, known: Option<&[String]>) -> Result<(), Error> {
        let mut asked = self.options.columns.iter();
        let is_unknown = |name: &String| known.is_none_or(|known| !known.contains(name));
        let Some((name, _)) = asked.find(|(name, _)| is_unknown(name)) else {
            return Ok(());
        };
        let Some(known) = known else {
            return Err(Error {
                hint: Some(format!(
                    "write CAST(\"{name}\" AS ...) in the query instead"
                )),
                ..Error::usage(
                    "`--columns` is about lines and CSV, and the query reads none: other files have types of their own",
                )
            });
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
        // It loses the table of a member that a key of a join is computed from, and mixes up the columns of unions.
        settings.optimizer.enable_leaf_expression_pushdown = reads_one_table(&plan);
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
        let mut physical = steps(&state, &plan, is_on_disk).await;
        if let Err(error) = &physical
            && matches!(error.find_root(), DataFusionError::Internal(_))
        {
            // DataFusion 55 fails at some conditions where it knows the least and the greatest values of their columns: differences of dates,
            // and times beside their own dates.
            let mut knowing_less = state.clone();
            let settings = knowing_less.config_mut().options_mut();
            settings.execution.collect_statistics = false;
            if let Ok(planned) = steps(&knowing_less, &plan, is_on_disk).await {
                state = knowing_less;
                physical = Ok(planned);
            }
        }
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

/// The steps of a plan.
async fn steps(
    state: &SessionState,
    plan: &LogicalPlan,
    is_on_disk: bool,
) -> datafusion::common::Result<Arc<dyn ExecutionPlan>> {
    match is_on_disk {
        true => on_disk::plan(state, plan).await,
        false => state.create_physical_plan(plan).await,
    }
}

/// The tables of a query.
#[derive(Default)]
struct Tables {
    has_lines: bool,
    reads_stream: bool,
    /// The columns of each.
    columns: HashMap<String, Vec<String>>,
    /// Those that each has because the query names them.
    added: HashMap<String, Vec<String>>,
}

/// Writes a query in words that DataFusion understands as they are meant, and with one column in the place of very many.
fn rewritten(query: &mut ast::Query, tables: Tables) -> Result<Option<Star>, Error> {
    recursive_clauses::kept(query)?;
    as_using(query, &tables.columns, &tables.added);
    written_stars(query, &tables.columns, &tables.added)?;
    without_added(query, tables.added)?;
    of_left(query);
    with_backslashes(query)?;
    written_out(query)?;
    order_names::of_the_result(query, &tables.columns)?;
    named(query);
    as_like(query);
    written_windows(query)?;
    qualify(query);
    as_nth_values(query)?;
    without_numbers(query);
    recursive_types::marked(query);
    as_decimals(query);
    let star = folded(query, &tables.columns);
    told_apart_by_name(query, tables.columns);
    apart(query);
    Ok(star)
}

/// Whether the query asks for exact percentiles of groups.
fn has_percentiles(plan: &LogicalPlan) -> bool {
    let mut found = false;
    // The closures give no error.
    let _ = each_step(plan, &mut |node| {
        if let LogicalPlan::Aggregate(aggregate) = node {
            for expr in &aggregate.aggr_expr {
                let _ = each_part(expr, &mut |expr| {
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

/// Whether nothing is joined, united or looked up.
fn reads_one_table(plan: &LogicalPlan) -> bool {
    let mut tables = 0;
    let _ = each_step(plan, &mut |step| {
        tables += usize::from(step.inputs().is_empty());
        Ok(TreeNodeRecursion::Continue)
    });
    tables < 2
}
