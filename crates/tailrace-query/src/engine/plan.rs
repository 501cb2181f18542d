//! A query that is ready to run: its batches, or the files that its rows become.

use std::pin::pin;
use std::sync::Arc;

use anyhow::anyhow;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::catalog::Session;
use datafusion::common::DataFusionError;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::{
    SendableRecordBatchStream, SessionState, SessionStateBuilder, TaskContext,
};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, displayable, execute_stream_partitioned};
use futures::StreamExt;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::pool;
use crate::archive::{Archive, Files, Written};
use crate::error::Error;
use crate::notes::Notes;
use crate::order::copied_before_waiting;
use crate::pruning::Pruning;

/// Batches of a partition that may wait for those before it.
const BATCHES_AHEAD: usize = 16;

/// Set where one thread reads all, whatever DataFusion plans for.
struct OneThread;

/// How many threads read a table.
pub(crate) fn threads(session: &dyn Session) -> usize {
    match session.config().get_extension::<OneThread>() {
        Some(_) => 1,
        None => session.config().target_partitions().max(1),
    }
}

/// First rows of a sort that are kept in memory where a query goes on on disk.
const FIRST_ROWS_MAX: usize = 10_000;

/// A query that is ready to run.
pub struct Plan {
    pub(super) plan: Arc<dyn ExecutionPlan>,
    pub(super) in_memory: Arc<RuntimeEnv>,
    /// What is granted to it.
    pub(super) memory_bytes: usize,
    /// What the plan was made of, and with.
    pub(super) logical: LogicalPlan,
    pub(super) state: SessionState,
    pub(super) sql: String,
    pub(super) notes: Arc<Notes>,
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

    /// The same query, to run it once more: the files, as long as they were, and the columns stay what they are. Standard
    /// input and pipes can be read once all the same.
    ///
    /// # Errors
    ///
    /// DataFusion refuses what it took before, which it does not.
    pub async fn again(&self) -> Result<Plan, Error> {
        // A physical plan keeps what its operators share while they run.
        let plan = self.state.create_physical_plan(&self.logical).await;
        Ok(self.with(plan.map_err(|error| Error::of(&error, &self.sql, true))?))
    }

    /// Runs the query, until it has ended or the future is dropped; `each` is called with every batch, in the order of the files
    /// where the query has no order, and ends the query by `false`. One that turns out to need more memory than is granted
    /// before it has a row runs once more, by one thread that goes on on disk.
    ///
    /// # Errors
    ///
    /// The data cannot be read, or a value cannot be computed.
    pub async fn run(&self, mut each: impl FnMut(RecordBatch) -> bool) -> Result<(), Error> {
        let _running = Running::new(&self.notes);
        let mut is_given = false;
        let first = |batch| {
            is_given = true;
            each(batch)
        };
        let ended = self.give(first).await;
        match ended {
            Err(error) if error.is_memory && !self.notes.can_reread() => {
                let hint = "standard input and pipes cannot be read again: over a file the query would go on on disk";
                Err(Error {
                    hint: Some(hint.to_owned()),
                    ..error
                })
            }
            Err(error) if error.is_memory && !is_given => {
                let Ok(plan) = self.on_disk().await else {
                    return Err(error);
                };
                self.notes.restart();
                plan.give(each).await
            }
            ended => ended,
        }
    }

    /// The same query, by one thread, so that no rows are dealt out and what does not fit into memory waits on disk.
    async fn on_disk(&self) -> Result<Plan, Error> {
        let refused = |error: DataFusionError| Error::of(&error, &self.sql, true);
        let mut state = SessionStateBuilder::new_from_existing(self.state.clone())
            .with_physical_optimizer_rules(Vec::new())
            .build();
        let config = state.config_mut();
        config.set_extension(Arc::new(OneThread));
        let settings = config.options_mut();
        // A hash join keeps all of one side; sorted sides are merged. DataFusion does so for several threads only, of which the
        // optimizer then makes one.
        settings.optimizer.prefer_hash_join = false;
        settings.execution.target_partitions = 2;
        // Once it is optimized it has a join for each subquery.
        let optimized = state.optimize(&self.logical).map_err(refused)?;
        let copying = copied_before_waiting(&optimized).map_err(refused)?;
        let mut plan = state
            .create_physical_plan(&copying)
            .await
            .map_err(refused)?;
        let mut options = state.config_options().as_ref().clone();
        options.execution.target_partitions = 1;
        for rule in self.state.physical_optimizers() {
            plan = rule.optimize(plan, &options).map_err(refused)?;
        }
        let plan = plan.transform_up(of_one_thread).map_err(refused)?;
        // What is left of the run that needed more gives its memory back in its own time.
        let runtime = RuntimeEnvBuilder::from_runtime_env(self.state.runtime_env())
            .with_memory_pool(pool(self.memory_bytes));
        let state = SessionStateBuilder::new_from_existing(self.state.clone())
            .with_runtime_env(runtime.build_arc().map_err(refused)?);
        Ok(Plan {
            state: state.build(),
            ..self.with(plan.data)
        })
    }

    fn with(&self, plan: Arc<dyn ExecutionPlan>) -> Plan {
        Plan {
            plan,
            in_memory: Arc::clone(&self.in_memory),
            memory_bytes: self.memory_bytes,
            logical: self.logical.clone(),
            state: self.state.clone(),
            sql: self.sql.clone(),
            notes: Arc::clone(&self.notes),
        }
    }

    async fn give(&self, mut each: impl FnMut(RecordBatch) -> bool) -> Result<(), Error> {
        let failed = |error: &DataFusionError| Error::of(error, &self.sql, false);
        let mut partitions = self.partitions()?;
        if deals_out(self.plan.as_ref()) {
            // By then every part has its groups or the rows that it puts in order: there is memory for all of them, or an error
            // before a row is given.
            for partition in &mut partitions {
                partition.begin().await.map_err(|error| failed(&error))?;
            }
        }
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

    /// Runs the query, until it has ended or is `stopped`; its rows become the files of an archive, for which it was planned.
    ///
    /// # Errors
    ///
    /// As [`Self::run`], and the files cannot be written. What was complete by then stays, and is returned beside.
    pub async fn write(
        &self,
        archive: &Archive,
        stopped: impl Future<Output = ()>,
    ) -> (Written, Result<(), Error>) {
        let _running = Running::new(&self.notes);
        let mut files = match Files::new(archive, &self.schema()) {
            Ok(files) => files,
            Err(error) => return (Written::default(), Err(Error::failed(&error))),
        };
        let ended = self.write_to(&mut files, stopped).await;
        if ended.is_err() {
            files.abandon().await;
        }
        (files.written().clone(), ended)
    }

    async fn write_to(
        &self,
        files: &mut Files,
        stopped: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        let failed = |error: anyhow::Error| Error::failed(&error);
        let mut stopped = pin!(stopped);
        for partition in &mut self.partitions()? {
            // What is being written is not given up in between: it counts or is not there.
            while let Some(batch) = tokio::select! {
                batch = partition.next() => batch,
                () = &mut stopped => return Err(failed(anyhow!("interrupted: the rows are not all there"))),
            } {
                let batch = batch.map_err(|error| Error::of(&error, &self.sql, false))?;
                files.add(&batch).await.map_err(failed)?;
            }
        }
        files.finish().await.map_err(failed)
    }

    /// What statistics saved the query, once it has run.
    pub fn pruning(&self) -> Pruning {
        Pruning::of(self.plan.as_ref())
    }

    /// The partitions of the result, each of which begins.
    fn partitions(&self) -> Result<Vec<Ahead>, Error> {
        let mut task = TaskContext::from(&self.state);
        if deals_out(self.plan.as_ref()) {
            task = task.with_runtime(Arc::clone(&self.in_memory));
        }
        let streams = execute_stream_partitioned(Arc::clone(&self.plan), Arc::new(task));
        let streams = streams.map_err(|error| Error::of(&error, &self.sql, false))?;
        Ok(streams.into_iter().map(ahead).collect())
    }
}

/// A query that runs. Its scans end when this is dropped.
struct Running(Arc<Notes>);

impl Running {
    fn new(notes: &Arc<Notes>) -> Running {
        notes.begin();
        Running(Arc::clone(notes))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A partition that runs ahead; it ends when this is dropped.
struct Ahead {
    first: Option<RecordBatch>,
    batches: mpsc::Receiver<Result<RecordBatch, DataFusionError>>,
    /// The partition's end, until it is known.
    end: Option<JoinHandle<()>>,
}

impl Ahead {
    /// Waits for the first batch, or the end.
    async fn begin(&mut self) -> Result<(), DataFusionError> {
        self.first = self.next().await.transpose()?;
        Ok(())
    }

    /// The next batch. A partition that panics is an error, and never a result that is too short.
    async fn next(&mut self) -> Option<Result<RecordBatch, DataFusionError>> {
        if let Some(batch) = self.first.take() {
            return Some(Ok(batch));
        }
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
        first: None,
        batches,
        end: Some(end),
    }
}

/// A step as one thread goes on on disk with it. Parts, as those of UNION, follow each other. And a sort of which the first rows are
/// wanted keeps them in memory: a sort of all rows does not.
fn of_one_thread(
    plan: Arc<dyn ExecutionPlan>,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>, DataFusionError> {
    if let Some(dealing) = plan.downcast_ref::<RepartitionExec>()
        && dealing.partitioning().partition_count() == 1
        && !dealing.preserve_order()
    {
        let parts = CoalescePartitionsExec::new(Arc::clone(dealing.input()));
        return Ok(Transformed::yes(Arc::new(parts)));
    }
    let sort = plan.downcast_ref::<SortExec>();
    let Some((sort, rows)) = sort.and_then(|sort| Some((sort, sort.fetch()?))) else {
        return Ok(Transformed::no(plan));
    };
    if rows <= FIRST_ROWS_MAX {
        return Ok(Transformed::no(plan));
    }
    let whole = SortExec::new(sort.expr().clone(), Arc::clone(sort.input()));
    let first = GlobalLimitExec::new(Arc::new(whole), 0, Some(rows));
    Ok(Transformed::yes(Arc::new(first)))
}

/// Whether a step deals out rows to several threads. DataFusion 55 can wait for ever where such rows are kept on disk.
fn deals_out(plan: &dyn ExecutionPlan) -> bool {
    plan.is::<RepartitionExec>()
        || plan
            .children()
            .into_iter()
            .any(|child| deals_out(child.as_ref()))
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
