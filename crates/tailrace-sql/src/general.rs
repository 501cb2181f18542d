//! A branch that makes several rows of one: through DataFusion's operators.
//!
//! The plan is made once, over a source whose one batch is put into a slot, and reset for each batch; a hidden column
//! numbers the rows, so that output rows know their record. It runs on a runtime of its own on the calling thread,
//! with one partition: nothing is spawned that outlives the batch. A failing batch is tried in halves like the
//! row-wise path's expressions; a failing record keeps what its other expressions give.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{ArrayRef, AsArray, UInt32Array, new_null_array};
use arrow::compute::concat;
use arrow::datatypes::{DataType, SchemaRef, UInt32Type};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::physical_plan::{ExecutionPlan, collect};
use tokio::runtime::{Builder, Runtime};

use crate::evaluate::{Rows, Selected};
use crate::plan::{Outputs, plan, table_schema};
use crate::query::Prepared;
use crate::row_wise::{Failures, RowWise};
use crate::session::{Clock, Session};

/// A branch's plan and what it needs to run.
#[derive(Debug)]
pub(crate) struct General {
    slot: Arc<Slot>,
    plan: Arc<dyn ExecutionPlan>,
    task: Arc<TaskContext>,
    /// `None` only while dropped.
    runtime: Option<Runtime>,
    /// The condition and the outputs without unnest, for a record that fails.
    row_wise: RowWise,
    types: Vec<DataType>,
    /// Which computed outputs have an unnest.
    unnests: Vec<bool>,
}

/// The source of the plan: gives the batch that lies in it.
#[derive(Debug)]
struct Slot {
    schema: SchemaRef,
    batch: Mutex<Option<RecordBatch>>,
}

impl Slot {
    fn put(&self, batch: Option<RecordBatch>) {
        *self.batch.lock().unwrap_or_else(PoisonError::into_inner) = batch;
    }
}

impl PartitionStream for Slot {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batch = self
            .batch
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let stream = futures::stream::iter(batch.map(Ok));
        Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            stream,
        ))
    }
}

/// Output rows: for each the record it comes from, and the computed columns.
struct Made {
    records: Vec<u32>,
    computed: Vec<ArrayRef>,
}

impl General {
    /// # Errors
    /// When DataFusion refuses the plan, which compiling the query excludes.
    pub(crate) fn new(
        prepared: &Prepared,
        physical: &SchemaRef,
        row_wise: RowWise,
        clock: &Clock,
    ) -> Result<General> {
        let session = Session::new(clock)?;
        let slot = Arc::new(Slot {
            schema: table_schema(physical),
            batch: Mutex::new(None),
        });
        let source = Arc::clone(&slot) as Arc<dyn PartitionStream>;
        let logical = plan(
            &session,
            prepared.rewritten.query(Outputs::Numbered),
            source,
        )?;
        let runtime = Builder::new_current_thread().build()?;
        let plan = runtime.block_on(session.state().create_physical_plan(&logical))?;
        let unnests = prepared
            .rewritten
            .computed
            .iter()
            .map(|computed| computed.unnests)
            .collect();
        let task = session.context().task_ctx();
        Ok(General {
            slot,
            plan,
            task,
            runtime: Some(runtime),
            row_wise,
            types: prepared.types.clone(),
            unnests,
        })
    }

    /// The rows that the branch makes of `batch`.
    pub(crate) fn select(&mut self, batch: &RecordBatch, failures: &mut Failures) -> Selected {
        let made = self.make(batch, 0, failures);
        Selected {
            rows: Rows::Some(made.records),
            computed: made.computed,
        }
    }

    fn make(&mut self, batch: &RecordBatch, first: u32, failures: &mut Failures) -> Made {
        let count = batch.num_rows();
        if count == 0 {
            return Made {
                records: Vec::new(),
                computed: self.types.iter().map(|ty| new_null_array(ty, 0)).collect(),
            };
        }
        if let Ok(made) = self.run(batch, first) {
            return made;
        }
        if count == 1 {
            return self.failed(batch, first, failures);
        }
        let half = count / 2;
        let mut made = self.make(&batch.slice(0, half), first, failures);
        let rest = self.make(
            &batch.slice(half, count - half),
            first + half as u32,
            failures,
        );
        made.records.extend(rest.records);
        let both = made.computed.iter().zip(&rest.computed);
        let joined = both.map(|(left, right)| concat(&[left.as_ref(), right.as_ref()]));
        made.computed = joined
            .map(|array| array.expect("both halves have the output's type"))
            .collect();
        made
    }

    fn run(&mut self, batch: &RecordBatch, first: u32) -> Result<Made> {
        let count = batch.num_rows() as u32;
        let numbers = Arc::new(UInt32Array::from_iter_values(first..first + count)) as ArrayRef;
        let columns = batch.columns().iter().cloned().chain([numbers]).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let numbered =
            RecordBatch::try_new_with_options(Arc::clone(&self.slot.schema), columns, &options)?;
        // Without this, counters of every run would pile up in the plan.
        let plan = reset_plan_states(Arc::clone(&self.plan))?;
        self.slot.put(Some(numbered));
        let runtime = self
            .runtime
            .as_ref()
            .expect("it is there until it is dropped");
        let result = runtime.block_on(collect(plan, Arc::clone(&self.task)));
        self.slot.put(None);
        let batches = result?;
        let mut records = Vec::with_capacity(batches.iter().map(RecordBatch::num_rows).sum());
        for batch in &batches {
            records.extend_from_slice(batch.column(0).as_primitive::<UInt32Type>().values());
        }
        let column = |(index, ty): (usize, &DataType)| {
            let parts: Vec<_> = batches
                .iter()
                .map(|batch| batch.column(index + 1).as_ref())
                .collect();
            match parts.as_slice() {
                [] => Ok(new_null_array(ty, 0)),
                parts => concat(parts),
            }
        };
        let computed = self
            .types
            .iter()
            .enumerate()
            .map(column)
            .collect::<std::result::Result<_, _>>()?;
        Ok(Made { records, computed })
    }

    // One record that fails: one row of what can be computed, unless its condition is not met.
    fn failed(&mut self, batch: &RecordBatch, first: u32, failures: &mut Failures) -> Made {
        failures.add(first);
        let mut ignored = Failures::default();
        let selected = self.row_wise.select(batch, &mut ignored);
        let count = selected.rows.count(1);
        let mut scalar = selected.computed.into_iter();
        let outputs = self.types.iter().zip(&self.unnests);
        let computed = outputs.map(|(ty, unnests)| {
            let value = if *unnests { None } else { scalar.next() };
            value.unwrap_or_else(|| new_null_array(ty, count))
        });
        Made {
            records: vec![first; count],
            computed: computed.collect(),
        }
    }
}

impl Drop for General {
    // An evaluator may be dropped inside another runtime, which must not wait for this one.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
