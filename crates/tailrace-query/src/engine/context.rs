//! What DataFusion runs a query with: its settings, its memory and its functions.

use std::sync::Arc;

use anyhow::Context;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::{FunctionRegistry, SessionStateBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};
use tailrace_sql::{mend_functions, mending_planner, mending_rules, sha256};

use super::compared_keys::ComparedKeys;
use super::rules::rules;
use super::{Options, checked, clock_times, memory, optimizer, zeros};
use crate::aggregates::mended;
use crate::footers;
use crate::one_nan;
use crate::recursive_types;
use crate::several_kinds::{Planner, as_texts};

/// What is granted for each row of a batch that is merged: a hundred batches of rows of a kilobyte.
const MERGED_ROW_BYTES: usize = 128 << 10;
/// Batches have at least so many rows.
const ROWS_MIN: usize = 256;
/// And at most so many.
const ROWS_MAX: usize = 8_192;

/// The context of an engine, and the environment of a query that keeps nothing on disk.
///
/// # Errors
///
/// DataFusion refuses a function, which it does not.
pub(super) fn contexts(options: &Options) -> anyhow::Result<(SessionContext, Arc<RuntimeEnv>)> {
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
    settings.execution.parquet.reorder_filters = true;
    // It panics at NaN, or gives it several times.
    settings.optimizer.enable_topk_aggregation = false;
    // An extreme of one column tells the files to leave out rows that another aggregate needs.
    settings.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
    // It takes `b IS TRUE` for one that may be NULL, where it planned one that cannot be.
    settings.execution.skip_physical_aggregate_schema_check = true;
    // Where almost every row is a group, that is known after so many rows of a part of a file; by default only after
    // 100,000 have been grouped in vain.
    settings
        .execution
        .skip_partial_aggregation_probe_rows_threshold = 20_000;
    settings
        .execution
        .skip_partial_aggregation_probe_ratio_threshold = 0.9;
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
    let mut state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_default_features()
        .with_optimizer_rules(optimizer::rules())
        .with_physical_optimizer_rules(rules())
        .with_analyzer_rule(Arc::new(as_texts()))
        .with_analyzer_rule(Arc::new(checked::rule()))
        .with_analyzer_rule(Arc::new(clock_times::rule()))
        .with_analyzer_rule(Arc::new(one_nan::rule()))
        .with_analyzer_rule(Arc::new(zeros::rule()));
    for rule in mending_rules() {
        state = state.with_analyzer_rule(rule);
    }
    state = state.with_analyzer_rule(Arc::new(ComparedKeys));
    let mut context = SessionContext::new_with_state(state.build());
    for planner in [
        mending_planner(),
        Arc::new(Planner),
        Arc::new(recursive_types::Planner),
    ] {
        context
            .register_expr_planner(planner)
            .context("a planner cannot be registered")?;
    }
    context.register_udf(sha256());
    for mended in mended() {
        context.register_udaf(mended);
    }
    datafusion_functions_json::register_all(&mut context)
        .context("the JSON functions cannot be registered")?;
    mend_functions(&mut context).context("functions cannot be mended")?;
    Ok((context, in_memory))
}
