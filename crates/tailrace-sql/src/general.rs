//! A branch that makes several rows of one: through DataFusion's operators.
//!
//! The plan is made once, over a source whose one batch is put into it, and reset for each batch; a hidden column
//! numbers the rows, so that output rows know their record. It runs on a runtime of its own on the calling thread,
//! with one partition: nothing is spawned that outlives the batch. A failing batch is tried in halves like the
//! row-wise path's expressions; a failing record keeps what its other expressions give.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{ArrayRef, AsArray, UInt32Array, new_null_array};
use arrow::compute::{concat, take};
use arrow::datatypes::{DataType, SchemaRef, UInt32Type};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::physical_plan::{ExecutionPlan, collect};
use tokio::runtime::{Builder, Runtime};

use crate::branch::Prepared;
use crate::failures::Failures;
use crate::guard::{batch as limits, catching};
use crate::plan::{Outputs, plan, table_schema};
use crate::row_wise::RowWise;
use crate::selected::{FailedOutput, Rows, Selected};
use crate::session::{Clock, Session};
use crate::value::{counts, with_nulls_inside};

/// A branch's plan and what it needs to run.
#[derive(Debug)]
pub(crate) struct General {
    source: Arc<BatchStream>,
    whole: Plan,
    /// The unnests alone, for a record that fails; `None` if there are none.
    unnests: Option<Plan>,
    task: Arc<TaskContext>,
    /// `None` only while dropped.
    runtime: Option<Runtime>,
    /// The condition and the outputs without unnest, for a record that fails.
    row_wise: RowWise,
}

/// A physical plan, made once.
#[derive(Debug)]
struct Plan {
    plan: Arc<dyn ExecutionPlan>,
    /// For each output after the row's number: its type, and whether it has an unnest.
    outputs: Vec<(DataType, bool)>,
}

/// The source of the plan: gives the batch that lies in it.
#[derive(Debug)]
struct BatchStream {
    schema: SchemaRef,
    batch: Mutex<Option<RecordBatch>>,
}

impl BatchStream {
    fn put(&self, batch: Option<RecordBatch>) {
        *self.batch.lock().unwrap_or_else(PoisonError::into_inner) = batch;
    }
}

impl PartitionStream for BatchStream {
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
    failed: Vec<FailedOutput>,
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
        let session = Session::new(clock);
        let source = Arc::new(BatchStream {
            schema: table_schema(physical),
            batch: Mutex::new(None),
        });
        let runtime = Builder::new_current_thread().build()?;
        let computed = prepared
            .types
            .iter()
            .cloned()
            .zip(&prepared.rewritten.computed);
        let all: Vec<_> = computed
            .map(|(ty, computed)| (ty, computed.unnests))
            .collect();
        let physical_plan = |outputs: Outputs| {
            let source = Arc::clone(&source) as Arc<dyn PartitionStream>;
            let logical = plan(&session, prepared.rewritten.query(outputs), source)?;
            runtime.block_on(session.state()?.create_physical_plan(&logical))
        };
        let whole = Plan {
            plan: physical_plan(Outputs::Numbered)?,
            outputs: all.clone(),
        };
        let outputs: Vec<_> = all.into_iter().filter(|(_, unnests)| *unnests).collect();
        let unnests = if outputs.is_empty() {
            None
        } else {
            Some(Plan {
                plan: physical_plan(Outputs::NumberedUnnests)?,
                outputs,
            })
        };
        let task = session.context()?.task_ctx();
        Ok(General {
            source,
            whole,
            unnests,
            task,
            runtime: Some(runtime),
            row_wise,
        })
    }

    /// The rows that the branch makes of `batch`.
    pub(crate) fn select(&mut self, batch: &RecordBatch, failures: &mut Failures) -> Selected {
        let made = self.make(batch, 0, failures);
        Selected {
            rows: Rows::Some(made.records),
            computed: made.computed.into_iter().map(with_nulls_inside).collect(),
            failed: made.failed,
        }
    }

    /// What no record gives.
    fn nothing(&self) -> Made {
        let outputs = self.whole.outputs.iter();
        Made {
            records: Vec::new(),
            computed: outputs.map(|(ty, _)| new_null_array(ty, 0)).collect(),
            failed: Vec::new(),
        }
    }

    fn make(&mut self, batch: &RecordBatch, first: u32, failures: &mut Failures) -> Made {
        let count = batch.num_rows();
        if count == 0 {
            return self.nothing();
        }
        let counted = counts::now();
        let error = match self.run(&self.whole, batch, first) {
            Ok(made) => return made,
            Err(error) => error,
        };
        counts::set_back(counted);
        if limits::is_over() {
            // The batch is evaluated again in pieces.
            return self.nothing();
        }
        if count == 1 {
            return self.failed(batch, first, &error, failures);
        }
        let half = count / 2;
        let mut made = self.make(&batch.slice(0, half), first, failures);
        let rest = self.make(
            &batch.slice(half, count - half),
            first + half as u32,
            failures,
        );
        let shift = made.records.len() as u32;
        made.failed
            .extend(rest.failed.iter().map(|failed| FailedOutput {
                row: failed.row + shift,
                ..*failed
            }));
        made.records.extend(rest.records);
        let both = made.computed.iter().zip(&rest.computed);
        let joined = both.map(|(left, right)| concat(&[left.as_ref(), right.as_ref()]));
        made.computed = joined
            .map(|array| array.expect("both halves have the output's type"))
            .collect();
        made
    }

    // One record that fails: its unnests are tried alone, its other outputs each alone.
    fn failed(
        &mut self,
        batch: &RecordBatch,
        first: u32,
        error: &DataFusionError,
        failures: &mut Failures,
    ) -> Made {
        let mut of_record = Failures::default();
        let scalar = self.row_wise.select(batch, &mut of_record);
        let met = scalar.rows.count(1) == 1;
        let unnested = match &self.unnests {
            Some(plan) if met => self.run(plan, batch, first).ok(),
            _ => None,
        };
        let unnests_failed = met && self.unnests.is_some() && unnested.is_none();
        let count = unnested
            .as_ref()
            .map_or(usize::from(met), |made| made.records.len());
        let mut unnested = unnested
            .map(|made| made.computed)
            .unwrap_or_default()
            .into_iter();
        let mut computed = scalar.computed.into_iter().enumerate();
        let repeat = UInt32Array::from(vec![0; count]);
        let (mut outputs, mut failed) = (Vec::new(), Vec::new());
        for (output, (ty, unnests)) in self.whole.outputs.iter().enumerate() {
            let mut has_failed = *unnests && unnests_failed;
            let value = if *unnests {
                unnested.next()
            } else {
                computed.next().map(|(at, one)| {
                    has_failed = scalar.failed.iter().any(|failed| failed.output == at);
                    take(&one, &repeat, None).expect("there is one row")
                })
            };
            if has_failed {
                failures.add(first, Some(output), error);
                let row = |row| FailedOutput { row, output };
                failed.extend((0..count as u32).map(row));
            }
            outputs.push(value.unwrap_or_else(|| new_null_array(ty, count)));
        }
        if failed.is_empty() {
            // Then it is the condition, or an unnest without a row.
            failures.add(first, None, error);
        }
        failed.sort_unstable();
        Made {
            records: vec![first; count],
            computed: outputs,
            failed,
        }
    }

    fn run(&self, plan: &Plan, batch: &RecordBatch, first: u32) -> Result<Made> {
        let count = batch.num_rows() as u32;
        let numbers = Arc::new(UInt32Array::from_iter_values(first..first + count)) as ArrayRef;
        let columns = batch.columns().iter().cloned().chain([numbers]).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let schema = Arc::clone(&self.source.schema);
        let numbered = RecordBatch::try_new_with_options(schema, columns, &options)?;
        // Without this, counters of every run would pile up in the plan.
        let reset = reset_plan_states(Arc::clone(&plan.plan))?;
        self.source.put(Some(numbered));
        let runtime = self
            .runtime
            .as_ref()
            .expect("it is there until it is dropped");
        let result = catching("the query", || {
            runtime.block_on(collect(reset, Arc::clone(&self.task)))
        });
        self.source.put(None);
        let batches = result?;
        let mut records = Vec::with_capacity(batches.iter().map(RecordBatch::num_rows).sum());
        for batch in &batches {
            records.extend_from_slice(batch.column(0).as_primitive::<UInt32Type>().values());
        }
        let column = |(index, (ty, _)): (usize, &(DataType, bool))| {
            let parts: Vec<_> = batches
                .iter()
                .map(|batch| batch.column(index + 1).as_ref())
                .collect();
            match parts.as_slice() {
                [] => Ok(new_null_array(ty, 0)),
                parts => concat(parts),
            }
        };
        let computed = plan.outputs.iter().enumerate().map(column);
        let computed = computed.collect::<std::result::Result<_, _>>()?;
        Ok(Made {
            records,
            computed,
            failed: Vec::new(),
        })
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
