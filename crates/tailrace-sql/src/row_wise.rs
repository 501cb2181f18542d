//! A condition and computed columns, evaluated straight on a batch.
//!
//! Returns the selection of a batch and the computed columns of the selected rows only; of the batch, only columns
//! that computed expressions read are copied, and none when all rows pass. An expression that fails on a batch is
//! tried on its halves, down to the one row that fails.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, UInt32Array, new_null_array};
use arrow::compute::{CastOptions, cast_with_options, concat, prep_null_mask_filter, take};
use arrow::datatypes::{DataType, Schema};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{ColumnarValue, Expr, Operator};
use datafusion::physical_expr::expressions::{BinaryExpr, NotExpr};
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};

use crate::branch::Prepared;
use crate::failures::Failures;
use crate::guard::{batch as limits, catching};
use crate::selected::{FailedOutput, Rows, Selected};
use crate::session::{Clock, with_clock};
use crate::value::{counts, with_nulls_inside};

/// The compiled expressions of a branch.
#[derive(Debug)]
pub(crate) struct RowWise {
    /// Reads the whole batch.
    predicate: Option<Arc<dyn PhysicalExpr>>,
    /// The batch's columns that computed expressions read.
    inputs: Vec<usize>,
    /// Read a batch of `inputs` only. With unnests left out.
    computed: Vec<(Arc<dyn PhysicalExpr>, DataType)>,
}

impl RowWise {
    /// # Errors
    /// When DataFusion has no physical form of an expression.
    pub(crate) fn new(prepared: &Prepared, clock: &Clock) -> Result<RowWise> {
        let expressions = &prepared.expressions;
        let schema = &expressions.schema;
        let compile = |expr: &Expr| {
            let expr = with_clock(expr.clone(), clock)?;
            create_physical_expr(
                &expr,
                schema,
                &ExecutionProps::new(),
                &PhysicalPlanningContext::default(),
            )
        };
        let predicate = expressions.predicate.as_ref().map(compile).transpose()?;
        // Without scalar outputs the plan has one of ours.
        let scalar = prepared
            .rewritten
            .computed
            .iter()
            .filter(|computed| !computed.unnests)
            .count();
        let compiled = expressions
            .computed
            .iter()
            .take(scalar)
            .map(compile)
            .collect::<Result<Vec<_>>>()?;
        let inputs: BTreeSet<usize> = compiled
            .iter()
            .flat_map(collect_columns)
            .map(|column| column.index())
            .collect();
        let inputs: Vec<usize> = inputs.into_iter().collect();
        let reduced = Schema::new(
            inputs
                .iter()
                .map(|&index| schema.field(index).clone())
                .collect::<Vec<_>>(),
        );
        let computed = compiled.into_iter().map(|expr| {
            let ty = expr.data_type(schema.as_arrow())?;
            Ok((reassign_expr_columns(expr, &reduced)?, ty))
        });
        let computed = computed.collect::<Result<Vec<_>>>()?;
        Ok(RowWise {
            predicate,
            inputs,
            computed,
        })
    }

    /// The rows of `batch` that meet the condition, and what is computed from them.
    pub(crate) fn select(&mut self, batch: &RecordBatch, failures: &mut Failures) -> Selected {
        let rows = self.rows(batch, failures);
        self.compute(batch, rows, failures)
    }

    /// The rows that meet the condition.
    pub(crate) fn rows(&self, batch: &RecordBatch, failures: &mut Failures) -> Rows {
        let Some(predicate) = &self.predicate else {
            return Rows::All;
        };
        rows_that_meet(predicate, batch, failures)
    }

    /// The condition, for batches of these columns, all that it reads among them.
    pub(crate) fn predicate_over(&self, columns: &Schema) -> Option<Result<Arc<dyn PhysicalExpr>>> {
        let predicate = Arc::clone(self.predicate.as_ref()?);
        Some(reassign_expr_columns(predicate, columns))
    }

    /// What is computed from the rows that were selected.
    pub(crate) fn compute(
        &self,
        batch: &RecordBatch,
        rows: Rows,
        failures: &mut Failures,
    ) -> Selected {
        let (mut computed, mut failed) = (Vec::new(), Vec::new());
        if !self.computed.is_empty() {
            let input = match &rows {
                Rows::All => batch
                    .project(&self.inputs)
                    .expect("inputs are columns of the batch"),
                Rows::Some(indices) => taken(batch, &self.inputs, indices),
            };
            debug_assert_eq!(input.num_rows(), rows.count(batch.num_rows()));
            for (output, (expr, ty)) in self.computed.iter().enumerate() {
                let mut fail = |row: u32, reason: &DataFusionError| {
                    let record = match &rows {
                        Rows::All => row,
                        Rows::Some(indices) => indices[row as usize],
                    };
                    failures.add(record, Some(output), reason);
                    failed.push(FailedOutput { row, output });
                };
                computed.push(with_nulls_inside(evaluate(expr, ty, &input, 0, &mut fail)));
            }
        }
        failed.sort_unstable();
        Selected {
            rows,
            computed,
            failed,
        }
    }
}

/// The rows that meet a condition.
pub(crate) fn rows_that_meet(
    predicate: &Arc<dyn PhysicalExpr>,
    batch: &RecordBatch,
    failures: &mut Failures,
) -> Rows {
    let mut fail = |row, reason: &DataFusionError| failures.add(row, None, reason);
    let met = evaluate(predicate, &DataType::Boolean, batch, 0, &mut fail);
    let Some(met) = met.as_boolean_opt() else {
        return Rows::Some(Vec::new());
    };
    let met = if met.null_count() > 0 {
        prep_null_mask_filter(met)
    } else {
        met.clone()
    };
    selection(&met)
}

/// The rows for which `met` is true.
fn selection(met: &BooleanArray) -> Rows {
    let count = met.values().count_set_bits();
    if count == met.len() {
        return Rows::All;
    }
    let mut rows = Vec::with_capacity(count);
    // A batch has fewer than 2^32 records: a record has an index of 32 bits everywhere.
    rows.extend(met.values().set_indices().map(|index| index as u32));
    Rows::Some(rows)
}

fn taken(batch: &RecordBatch, inputs: &[usize], indices: &[u32]) -> RecordBatch {
    let indices = UInt32Array::from(indices.to_vec());
    let schema = batch
        .schema()
        .project(inputs)
        .expect("inputs are columns of the batch");
    let columns = inputs
        .iter()
        .map(|&input| take(batch.column(input), &indices, None));
    let columns = columns
        .collect::<std::result::Result<Vec<_>, _>>()
        .expect("indices are rows of the batch");
    let options = RecordBatchOptions::new().with_row_count(Some(indices.len()));
    RecordBatch::try_new_with_options(Arc::new(schema), columns, &options)
        .expect("columns of one length")
}

/// The value of `expr` for each row; NULL for a row that fails, which is reported to `fail` with the reason. `first` is the index of the
/// batch's first row.
pub(crate) fn evaluate(
    expr: &Arc<dyn PhysicalExpr>,
    ty: &DataType,
    batch: &RecordBatch,
    first: u32,
    fail: &mut dyn FnMut(u32, &DataFusionError),
) -> ArrayRef {
    let count = batch.num_rows();
    if count == 0 {
        return new_null_array(ty, 0);
    }
    let counted = counts::now();
    let evaluated = catching("an expression", || {
        let made = expr.evaluate(batch)?;
        if let ColumnarValue::Scalar(value) = &made {
            // It is about to be repeated for every row.
            limits::spend(value.size().saturating_mul(count), count)?;
        }
        conform(made.into_array(count)?, ty)
    });
    let error = match evaluated {
        Ok(array) => return array,
        Err(error) => error,
    };
    counts::set_back(counted);
    if limits::is_over() {
        // The batch is evaluated again in pieces.
        return new_null_array(ty, count);
    }
    if count == 1 {
        fail(first, &error);
        return match ty {
            DataType::Boolean => Arc::new(BooleanArray::from(vec![of_parts(expr, batch)])),
            _ => new_null_array(ty, 1),
        };
    }
    let half = count / 2;
    let left = evaluate(expr, ty, &batch.slice(0, half), first, fail);
    let right = evaluate(
        expr,
        ty,
        &batch.slice(half, count - half),
        first + half as u32,
        fail,
    );
    concat(&[left.as_ref(), right.as_ref()]).expect("both halves have the expression's type")
}

/// What a condition that failed for the one row of a batch is, by what its parts are: one that fails is NULL, and
/// `NULL OR true` is true whichever comes first.
fn of_parts(expr: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Option<bool> {
    if let Some(not) = expr.downcast_ref::<NotExpr>() {
        return truth(not.arg(), batch).map(|is_met| !is_met);
    }
    let joined = expr.downcast_ref::<BinaryExpr>()?;
    let op = *joined.op();
    if matches!(op, Operator::IsDistinctFrom | Operator::IsNotDistinctFrom) {
        // `IS TRUE` and its like.
        let ty = joined.left().data_type(&batch.schema()).ok()?;
        let is_same = truth(joined.left(), batch) == truth(joined.right(), batch);
        return (ty == DataType::Boolean).then_some(is_same == (op == Operator::IsNotDistinctFrom));
    }
    // Of OR true decides, of AND false.
    let decides = match op {
        Operator::Or => true,
        Operator::And => false,
        _ => return None,
    };
    let mut has_null = false;
    for operand in operands(expr, op) {
        match truth(operand, batch) {
            Some(one) if one == decides => return Some(decides),
            Some(_) => {}
            None => has_null = true,
        }
    }
    (!has_null).then_some(!decides)
}

/// What is joined by the same operator, however it is nested.
fn operands(expr: &Arc<dyn PhysicalExpr>, op: Operator) -> Vec<&Arc<dyn PhysicalExpr>> {
    let (mut found, mut rest) = (Vec::new(), vec![expr]);
    while let Some(next) = rest.pop() {
        match next.downcast_ref::<BinaryExpr>() {
            Some(joined) if *joined.op() == op => rest.extend([joined.right(), joined.left()]),
            _ => found.push(next),
        }
    }
    found
}

/// What a condition is for the one row of a batch.
fn truth(expr: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Option<bool> {
    let counted = counts::now();
    let value = catching("an expression", || expr.evaluate(batch)?.into_array(1));
    let Ok(value) = value else {
        counts::set_back(counted);
        return of_parts(expr, batch);
    };
    let value = value.as_boolean_opt()?;
    value.is_valid(0).then(|| value.value(0))
}

/// The array with the type that the plan says it has.
fn conform(array: ArrayRef, ty: &DataType) -> Result<ArrayRef> {
    match (array.data_type(), ty) {
        (given, wanted) if given == wanted => Ok(array),
        _ => Ok(cast_with_options(
            &array,
            ty,
            &CastOptions {
                safe: false,
                ..CastOptions::default()
            },
        )?),
    }
}
