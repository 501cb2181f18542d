//! A plan that needs little memory: one thread, sorted sides that are merged, and copies of texts wherever rows wait for others.
//!
//! No rows are dealt out by a hash: DataFusion 55 can wait for ever where such rows are kept on disk.

use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::keys_as_bytes::of_keys;
use crate::order::copied_before_waiting;

/// First rows of a sort that are kept in memory all the same.
const FIRST_ROWS_MAX: usize = 10_000;

/// Set where one thread reads all, whatever DataFusion plans for.
struct OneThread;

/// A rule, for one thread.
#[derive(Debug)]
struct ForOneThread(Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl PhysicalOptimizerRule for ForOneThread {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut config = config.clone();
        config.execution.target_partitions = 1;
        self.0.optimize(plan, &config)
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// How many threads read a table.
pub(crate) fn threads(session: &dyn Session) -> usize {
    match session.config().get_extension::<OneThread>() {
        Some(_) => 1,
        None => session.config().target_partitions().max(1),
    }
}

/// The steps of a query.
///
/// # Errors
///
/// DataFusion refuses what it took before, which it does not.
pub(super) async fn plan(
    state: &SessionState,
    logical: &LogicalPlan,
) -> Result<Arc<dyn ExecutionPlan>> {
    let rules = state.physical_optimizers().iter();
    let rules = rules.map(|rule| Arc::new(ForOneThread(Arc::clone(rule))) as Arc<_>);
    let mut planning = SessionStateBuilder::new_from_existing(state.clone())
        .with_physical_optimizer_rules(rules.collect())
        .build();
    let config = planning.config_mut();
    config.set_extension(Arc::new(OneThread));
    let settings = config.options_mut();
    // A hash join keeps all of one side; sorted sides are merged. DataFusion does so for several threads only, of which the
    // optimizer then makes one.
    settings.optimizer.prefer_hash_join = false;
    settings.execution.target_partitions = 2;
    // Once it is optimized it has a join for each subquery.
    let copying = copied_before_waiting(&planning.optimize(logical)?)?;
    let plan = planning.create_physical_plan(&copying).await?;
    Ok(plan.transform_up(of_one_thread)?.data)
}

/// A step as one thread goes on on disk with it. Nothing is dealt out to a single part. And a sort of which the first rows are wanted
/// keeps them in memory, where a sort of all rows does not.
fn of_one_thread(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    if let Some(dealing) = plan.downcast_ref::<RepartitionExec>()
        && dealing.partitioning().partition_count() == 1
    {
        let input = Arc::clone(dealing.input());
        if input.output_partitioning().partition_count() == 1 {
            return Ok(Transformed::yes(input));
        }
        if !dealing.preserve_order() {
            return Ok(Transformed::yes(Arc::new(CoalescePartitionsExec::new(
                input,
            ))));
        }
    }
    let sort = plan.downcast_ref::<SortExec>();
    let Some((sort, rows)) = sort.and_then(|sort| Some((sort, sort.fetch()?))) else {
        return Ok(Transformed::no(plan));
    };
    if rows <= FIRST_ROWS_MAX {
        return Ok(Transformed::no(plan));
    }
    let whole = SortExec::new(sort.expr().clone(), Arc::clone(sort.input()))
        .with_preserve_partitioning(sort.preserve_partitioning());
    let whole = of_keys(Arc::new(whole))?.data;
    // Of each part; whoever merges the parts takes the first of all.
    let first = LocalLimitExec::new(whole, rows);
    Ok(Transformed::yes(Arc::new(first)))
}
