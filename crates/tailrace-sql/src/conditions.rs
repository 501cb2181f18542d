//! Why records do not pass: the conditions of each SELECT, evaluated one by one.
//!
//! The parts of a WHERE that are joined by AND, each compiled alone, over the query's columns. Given a batch, it says for
//! every record which of them is the first that is not true. For people who ask what became of a record; workers evaluate
//! a condition as a whole. Never decides which records pass.

use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};
use datafusion::sql::sqlparser::ast;

use crate::branch::{Prepared, pairs};
use crate::evaluate::conform;
use crate::failures::{NOT_EXACT, REASON_CHARS_MAX};
use crate::guard::batch::{bounded, is_exhausted};
use crate::guard::catching;
use crate::plan::{NoRows, Outputs, Rewritten, on_planning_stack, plan, row_wise, table_schema};
use crate::query::Query;
use crate::row_wise::evaluate;
use crate::session::{Clock, Session, with_clock};
use crate::value::counts;

/// The conditions of a query, ready to be evaluated one by one.
#[derive(Debug)]
pub struct Conditions {
    schema: SchemaRef,
    /// By branch, as in [`Branch::predicate`](crate::Branch::predicate). `None` for what has no meaning alone.
    branches: Vec<Vec<Option<Arc<dyn PhysicalExpr>>>>,
    clock: Clock,
}

/// A condition that a record does not meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// Its place in [`Branch::predicate`](crate::Branch::predicate).
    pub condition: usize,
    /// What it is instead of true.
    pub outcome: Outcome,
}

/// What a condition is that is not true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// False.
    False,
    /// Neither true nor false: something that it reads is NULL.
    Null,
    /// It could not be evaluated, for this reason.
    Failed(String),
}

impl Query {
    /// The query's conditions, to be evaluated one by one.
    pub fn conditions(&self) -> Conditions {
        let clock = Clock::default();
        let schema = self.schema();
        let branches = on_planning_stack(|| {
            let session = Session::new(&clock);
            let branches = self.prepared().iter();
            let compiled =
                branches.map(|prepared| compile_all(&session, prepared, &schema, &clock));
            compiled.collect()
        });
        Conditions {
            schema,
            branches,
            clock,
        }
    }
}

/// The conditions of one branch.
fn compile_all(
    session: &Session,
    prepared: &Prepared,
    schema: &Schema,
    clock: &Clock,
) -> Vec<Option<Arc<dyn PhysicalExpr>>> {
    let mut compiled = Vec::new();
    if let Some((original, rewritten)) = prepared.rewritten.conditions() {
        pairs(original, rewritten, &mut |_, condition| {
            let compile = || compile(session, prepared, condition, schema, clock);
            compiled.push(catching("planning", compile).ok().flatten());
        });
    }
    compiled
}

/// One condition over the columns of the query.
fn compile(
    session: &Session,
    prepared: &Prepared,
    condition: &ast::Expr,
    schema: &Schema,
    clock: &Clock,
) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    let alone = Rewritten {
        select: prepared.rewritten.select.clone(),
        computed: Vec::new(),
        condition: Some(condition.clone()),
    };
    let source = Arc::new(NoRows(table_schema(schema)));
    let planned = plan(session, alone.query(Outputs::Scalar), source)?;
    let Some(expressions) = row_wise(session, planned)? else {
        return Ok(None);
    };
    let compile = |expr| {
        create_physical_expr(
            &with_clock(expr, clock)?,
            &expressions.schema,
            &ExecutionProps::new(),
            &PhysicalPlanningContext::default(),
        )
    };
    expressions.predicate.clone().map(compile).transpose()
}

impl Conditions {
    /// For each record of `batch`, the first condition of a branch that is not true. `None` where each one is true, or none
    /// can be evaluated alone. The batch has the query's columns; `observed_ns` is what `now()` gives, in nanoseconds since
    /// the Unix epoch.
    ///
    /// # Panics
    /// When the batch has other columns than the query, or the query no such branch.
    pub fn first_unmet(
        &self,
        branch: usize,
        batch: &RecordBatch,
        observed_ns: i64,
    ) -> Vec<Option<Unmet>> {
        self.clock.set(observed_ns);
        let batch = conform(&self.schema, batch);
        let mut unmet = Vec::with_capacity(batch.num_rows());
        // What is left to do, the next one last.
        let mut left = vec![batch];
        while let Some(batch) = left.pop() {
            let count = batch.num_rows();
            let of_batch = bounded(count, || self.unmet(branch, &batch));
            if is_exhausted() && count > 1 {
                let half = count / 2;
                left.extend([batch.slice(half, count - half), batch.slice(0, half)]);
            } else {
                unmet.extend(of_batch);
            }
        }
        unmet
    }

    fn unmet(&self, branch: usize, batch: &RecordBatch) -> Vec<Option<Unmet>> {
        let mut unmet: Vec<Option<Unmet>> = vec![None; batch.num_rows()];
        for (condition, expr) in self.branches[branch].iter().enumerate() {
            let Some(expr) = expr.as_ref().filter(|_| unmet.contains(&None)) else {
                continue;
            };
            for (unmet, outcome) in unmet.iter_mut().zip(outcomes(expr, batch)) {
                if let (None, Some(outcome)) = (&unmet, outcome) {
                    *unmet = Some(Unmet { condition, outcome });
                }
            }
        }
        unmet
    }
}

/// What a condition is for each record; `None` is true.
fn outcomes(expr: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Vec<Option<Outcome>> {
    let counted = counts::now();
    let mut failed: Vec<(u32, String)> = Vec::new();
    let mut fail = |row: u32, reason: &DataFusionError| {
        let reason = reason.to_string().chars().take(REASON_CHARS_MAX).collect();
        failed.push((row, reason));
    };
    let met = evaluate(expr, &DataType::Boolean, batch, 0, &mut fail);
    let Some(met) = met.as_boolean_opt() else {
        return vec![Some(Outcome::Null); batch.num_rows()];
    };
    let has_inexact = (counts::now() - counted).failed > 0;
    let mut failed = failed.into_iter().peekable();
    let rows = 0..batch.num_rows();
    rows.map(|row| {
        let reason = failed.next_if(|(failed, _)| *failed as usize == row);
        if met.is_valid(row) {
            // Perhaps a part of it failed, and another one decided.
            return (!met.value(row)).then_some(Outcome::False);
        }
        if let Some((_, reason)) = reason {
            return Some(Outcome::Failed(reason));
        }
        let is_inexact = has_inexact && is_inexact(expr, &batch.slice(row, 1));
        Some(if is_inexact {
            Outcome::Failed(NOT_EXACT.to_owned())
        } else {
            Outcome::Null
        })
    })
    .collect()
}

/// Whether arithmetic has no exact result for this one record.
fn is_inexact(expr: &Arc<dyn PhysicalExpr>, record: &RecordBatch) -> bool {
    let counted = counts::now();
    evaluate(expr, &DataType::Boolean, record, 0, &mut |_, _| {});
    (counts::now() - counted).failed > 0
}
