//! Batches through a compiled query.
//!
//! For each record batch of the query's physical columns and each branch: which records are in its output, and the
//! computed columns. Passed-through columns are never touched: whoever has the batch has them. No failing record
//! fails its neighbours: its value (or condition) is NULL and it is counted. Never plans after it was made.

mod phases;

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, SchemaRef, TimeUnit, TimestampNanosecondType};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};

pub use self::phases::Selection;
use self::phases::{Conditions, positions, union};
use crate::failures::{Failure, Failures};
use crate::general::General;
use crate::plan::on_planning_stack;
use crate::query::Query;
use crate::row_wise::{RowWise, rows_that_meet};
use crate::selected::{Rows, Selected};
use crate::session::Clock;
use crate::value::counts;

/// A query, ready to run on one worker.
#[derive(Debug)]
pub struct Evaluator {
    schema: SchemaRef,
    branches: Vec<Runner>,
    /// For a query in two phases.
    conditions: Option<Conditions>,
    clock: Clock,
    failures: Failures,
}

/// How a branch runs.
#[derive(Debug)]
enum Runner {
    RowWise(RowWise),
    General(Box<General>),
}

/// What came of one batch.
#[derive(Clone, Debug)]
pub struct Evaluated {
    /// One for each branch of the query, in order.
    pub branches: Vec<Selected>,
    /// Records for which an expression failed somewhere, and arithmetic without an exact result: it was NULL there.
    pub failed_rows: u64,
    /// The expressions that failed.
    pub failures: Vec<Failure>,
    /// Values that did not fit what an expression wanted: NULL there.
    pub type_mismatches: u64,
}

impl Evaluator {
    pub(crate) fn new(query: &Query) -> Evaluator {
        let clock = Clock::default();
        let planned = on_planning_stack(|| {
            let runner = |prepared| {
                let row_wise = RowWise::new(prepared, &clock)?;
                Ok(if prepared.row_wise {
                    Runner::RowWise(row_wise)
                } else {
                    Runner::General(Box::new(General::new(
                        prepared,
                        &query.schema(),
                        row_wise,
                        &clock,
                    )?))
                })
            };
            let runners = query.prepared().iter().map(runner);
            let branches = runners.collect::<datafusion::error::Result<Vec<_>>>()?;
            let conditions = Conditions::new(query, branches.iter().filter_map(Runner::row_wise))?;
            Ok::<_, datafusion::error::DataFusionError>((branches, conditions))
        });
        let (branches, conditions) =
            planned.expect("the same query was planned when it was compiled");
        Evaluator {
            schema: query.schema(),
            branches,
            conditions,
            clock,
            failures: Failures::default(),
        }
    }

    #[cfg(test)]
    pub(crate) fn all_general(query: &Query) -> Evaluator {
        let mut evaluator = Evaluator::new(query);
        evaluator.branches = on_planning_stack(|| {
            let runner = |prepared| {
                let row_wise = RowWise::new(prepared, &evaluator.clock)?;
                General::new(prepared, &query.schema(), row_wise, &evaluator.clock)
                    .map(Box::new)
                    .map(Runner::General)
            };
            let runners: datafusion::error::Result<Vec<_>> =
                query.prepared().iter().map(runner).collect();
            runners.expect("planned before")
        });
        evaluator
    }

    /// Evaluates one batch, whose columns are [`Query::columns`] in order; `observed_ns` is what `now()` gives, in
    /// nanoseconds since the Unix epoch.
    ///
    /// # Panics
    /// When the batch has other columns than the query.
    pub fn evaluate(&mut self, batch: &RecordBatch, observed_ns: i64) -> Evaluated {
        self.clock.set(observed_ns);
        self.failures.clear();
        let batch = conform(&self.schema, batch);
        let failures = &mut self.failures;
        let counted = counts::now();
        let select = |(branch, runner): (usize, &mut Runner)| {
            let failures = failures.of_branch(branch);
            match runner {
                Runner::RowWise(row_wise) => row_wise.select(&batch, failures),
                Runner::General(general) => general.select(&batch, failures),
            }
        };
        let branches = self.branches.iter_mut().enumerate().map(select).collect();
        let (failed_rows, failures) = self.failures.take();
        let counts = counts::now() - counted;
        Evaluated {
            branches,
            failed_rows: failed_rows + counts.failed,
            failures,
            type_mismatches: counts.mismatches,
        }
    }

    /// The first phase: the rows to keep of a batch whose columns are those of [`Pushdown`](crate::Pushdown) in order;
    /// `observed_ns` is as in [`Evaluator::evaluate`].
    ///
    /// # Panics
    /// When the query has no pushdown, or the batch other columns.
    pub fn select(&mut self, batch: &RecordBatch, observed_ns: i64) -> Selection {
        let conditions = self.conditions.as_ref();
        let conditions = conditions.expect("the query has a pushdown");
        self.clock.set(observed_ns);
        let batch = conform(&conditions.schema, batch);
        let mut failures = Failures::default();
        let counted = counts::now();
        let predicates = conditions.predicates.iter();
        let branches: Vec<Rows> = predicates
            .enumerate()
            .map(|(branch, predicate)| {
                rows_that_meet(predicate, &batch, failures.of_branch(branch))
            })
            .collect();
        let rows = union(&branches, batch.num_rows());
        let branches = branches
            .into_iter()
            .map(|branch| positions(branch, &rows))
            .collect();
        Selection {
            rows,
            branches,
            failures,
            counts: counts::now() - counted,
        }
    }

    /// The second phase: what is computed for the selected rows. `batch` has the query's columns, and row `i` of it is
    /// the `i`-th row of the selection; the rows that are given count in this batch. Failures of both phases are
    /// counted.
    ///
    /// # Panics
    /// When the batch has other columns than the query, or another number of rows than the selection.
    pub fn compute(
        &mut self,
        batch: &RecordBatch,
        selection: Selection,
        observed_ns: i64,
    ) -> Evaluated {
        self.clock.set(observed_ns);
        let batch = conform(&self.schema, batch);
        if let Rows::Some(rows) = &selection.rows {
            assert_eq!(rows.len(), batch.num_rows(), "one row for each selected");
        }
        let Selection {
            rows: selected,
            branches,
            mut failures,
            counts: of_conditions,
        } = selection;
        let counted = counts::now();
        let mut failed = Failures::default();
        let row_wise = self.branches.iter().filter_map(Runner::row_wise);
        let branches = row_wise
            .zip(branches)
            .enumerate()
            .map(|(branch, (row_wise, rows))| {
                row_wise.compute(&batch, rows, failed.of_branch(branch))
            })
            .collect();
        failures.add_selected(failed, &selected);
        let (failed_rows, failures) = failures.take();
        let counts = counts::now() - counted;
        Evaluated {
            branches,
            failed_rows: failed_rows + counts.failed + of_conditions.failed,
            failures,
            type_mismatches: counts.mismatches + of_conditions.mismatches,
        }
    }
}

impl Query {
    /// A new evaluator, one for each worker.
    pub fn evaluator(&self) -> Evaluator {
        Evaluator::new(self)
    }
}

impl Runner {
    fn row_wise(&self) -> Option<&RowWise> {
        match self {
            Runner::RowWise(row_wise) => Some(row_wise),
            Runner::General(_) => None,
        }
    }
}

// The fields' names and nullability are ours; a time zone is a name for UTC.
pub(crate) fn conform(schema: &SchemaRef, batch: &RecordBatch) -> RecordBatch {
    assert_eq!(
        batch.num_columns(),
        schema.fields().len(),
        "a batch has the query's columns"
    );
    let columns = batch.columns().iter().zip(schema.fields());
    let given = columns.map(
        |(column, field)| match (column.data_type(), field.data_type()) {
            (DataType::Timestamp(TimeUnit::Nanosecond, zone), DataType::Timestamp(_, wanted))
                if zone != wanted =>
            {
                let column = column.as_primitive::<TimestampNanosecondType>().clone();
                Arc::new(column.with_timezone_opt(wanted.clone())) as ArrayRef
            }
            _ => Arc::clone(column),
        },
    );
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let conformed =
        RecordBatch::try_new_with_options(Arc::clone(schema), given.collect(), &options);
    conformed.expect("a batch has the query's columns and their types")
}
