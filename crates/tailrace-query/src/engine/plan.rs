//! A query that is ready to run: its batches, or the files that its rows become.

use std::pin::pin;
use std::sync::Arc;

use anyhow::anyhow;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::{SessionState, SessionStateBuilder, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, displayable, execute_stream_partitioned,
};
use futures::StreamExt;

use super::partitions::{Ahead, Running, as_they_come, in_turn};
use super::replaced::ReplacedExec;
use super::{memory, on_disk};
use crate::archive::{Archive, Files, Written};
use crate::error::{Error, Ran, reads_lines};
use crate::notes::Notes;
use crate::pruning::Pruning;

/// As many bytes of numbers are put in order at once; more, batch by batch, which are then merged. A million rows of two columns take
/// two thirds of the time at once; texts take a fifth more.
const SORTED_AT_ONCE_BYTES: usize = 64 << 20;

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
        self.notes.replan();
        // A physical plan keeps what its operators share while they run.
        let plan = self.state.create_physical_plan(&self.logical).await;
        Ok(self.with(plan.map_err(|error| self.refused(&error))?))
    }

    /// Runs the query, until it has ended or the future is dropped; `each` is called with every batch, in the order of the files
    /// where the query has no order, and ends the query by `false`. One that turns out to need more memory than is granted
    /// before it has a row runs once more, by one thread that goes on on disk.
    ///
    /// # Errors
    ///
    /// The data cannot be read, or a value cannot be computed.
    pub async fn run(&self, mut each: impl FnMut(RecordBatch) -> bool) -> Result<(), Error> {
        let mut is_given = false;
        let first = |batch| {
            is_given = true;
            each(batch)
        };
        match self.give(first).await {
            Err(error) if error.is_memory && self.notes.has_stream() => {
                let hint = "standard input and pipes cannot be read again: over a file a query may go on on disk";
                Err(Error {
                    hint: Some(hint.to_owned()),
                    ..error
                })
            }
            Err(error) if error.is_memory && !is_given => {
                self.notes.restart();
                match self.on_disk().await {
                    Ok(plan) => plan.give(each).await,
                    // Then the limit is what the person has to know of.
                    Err(_) => Err(error),
                }
            }
            ended => ended,
        }
    }

    /// The same query, by one thread that goes on on disk.
    async fn on_disk(&self) -> Result<Plan, Error> {
        let refused = |error: DataFusionError| self.refused(&error);
        let plan = on_disk::plan(&self.state, &self.logical).await;
        // What is left of the run that needed more gives its memory back in its own time.
        let runtime = RuntimeEnvBuilder::from_runtime_env(self.state.runtime_env())
            .with_memory_pool(memory::fair(self.memory_bytes));
        let state = SessionStateBuilder::new_from_existing(self.state.clone())
            .with_runtime_env(runtime.build_arc().map_err(refused)?);
        Ok(Plan {
            state: state.build(),
            ..self.with(plan.map_err(refused)?)
        })
    }

    /// What DataFusion says while it plans.
    fn refused(&self, error: &DataFusionError) -> Error {
        Error::of(error, &self.sql, reads_lines(&self.logical))
    }

    /// What it says while the query runs.
    fn failed(&self, error: &DataFusionError) -> Error {
        let ran = Ran {
            sql: &self.sql,
            plan: &self.logical,
            state: &self.state,
        };
        Error::of_run(error, &ran, self.memory_bytes)
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
        let failed = |error: DataFusionError| self.failed(&error);
        let (mut partitions, _running) = self.partitions()?;
        let is_final = self.plan.pipeline_behavior() == EmissionType::Final;
        let is_dealt = deals_out(self.plan.as_ref());
        if is_dealt && is_final {
            // By then every part has its groups or the rows that it puts in order: there is memory for all of them, or an error
            // before a row is given.
            for partition in &mut partitions {
                partition.begin().await.map_err(failed)?;
            }
        }
        let mut batches = match is_dealt && !is_final {
            // Rows of a part that nobody takes would pile up.
            true => as_they_come(partitions),
            false => in_turn(partitions),
        };
        while let Some(batch) = batches.next().await {
            if !each(batch.map_err(failed)?) {
                break;
            }
            // Whoever waits for something else as well has a turn.
            tokio::task::yield_now().await;
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
        let (partitions, _running) = self.partitions()?;
        let mut batches = in_turn(partitions);
        // What is being written is not given up in between: it counts or is not there.
        while let Some(batch) = tokio::select! {
            batch = batches.next() => batch,
            () = &mut stopped => return Err(failed(anyhow!("interrupted: the rows are not all there"))),
        } {
            let batch = batch.map_err(|error| self.failed(&error))?;
            files.add(&batch).await.map_err(failed)?;
        }
        files.finish().await.map_err(failed)
    }

    /// What statistics saved the query, once it has run.
    pub fn pruning(&self) -> Pruning {
        Pruning::of(self.plan.as_ref())
    }

    /// The partitions of the result, each of which begins, and what ends all of them.
    fn partitions(&self) -> Result<(Vec<Ahead>, Running), Error> {
        let running = Running(Arc::default());
        let mut task = TaskContext::from(&self.state);
        let mut config = task.session_config().clone();
        config.set_extension(Arc::clone(&running.0));
        if sorts_numbers(self.plan.as_ref()) {
            let settings = config.options_mut();
            settings.execution.sort_in_place_threshold_bytes =
                SORTED_AT_ONCE_BYTES.min(self.memory_bytes / 8);
        }
        task = task.with_session_config(config);
        if deals_out(self.plan.as_ref()) {
            task = task.with_runtime(Arc::clone(&self.in_memory));
        }
        let streams = execute_stream_partitioned(Arc::clone(&self.plan), Arc::new(task));
        let streams = streams.map_err(|error| self.failed(&error))?;
        Ok((streams.into_iter().map(Ahead::new).collect(), running))
    }
}

/// Whether a step deals out rows to several threads. DataFusion 55 can wait for ever where such rows are kept on disk.
fn deals_out(plan: &dyn ExecutionPlan) -> bool {
    plan.is::<RepartitionExec>()
        || plan
            .children()
            .into_iter()
            .any(|child| deals_out(child.as_ref()))
}

/// Whether all rows that are put in order have nothing but numbers and times.
fn sorts_numbers(plan: &dyn ExecutionPlan) -> bool {
    let is_of_numbers = |plan: &dyn ExecutionPlan| {
        let schema = plan.schema();
        let mut fields = schema.fields().iter();
        fields.all(|field| field.data_type().primitive_width().is_some())
    };
    let is_sort = plan.is::<SortExec>() || plan.is::<ReplacedExec<SortExec>>();
    (!is_sort || is_of_numbers(plan))
        && plan
            .children()
            .into_iter()
            .all(|child| sorts_numbers(child.as_ref()))
}
