//! Which expressions fail for which records. A worker counts them by batch; here a batch in which some fail is evaluated
//! again in halves, down to single records.

use arrow::array::RecordBatch;
use tailrace_sql::{Evaluator, NOT_EXACT};

use super::FailedExpression;
use crate::plan::PipelinePlan;
use crate::process::failed::computed_columns;

/// The expressions that fail for each record of a batch in which some do.
pub(super) fn failures(
    plan: &PipelinePlan,
    evaluator: &mut Evaluator,
    batch: &RecordBatch,
    observed_ns: i64,
) -> Vec<Vec<FailedExpression>> {
    let mut failures = Vec::with_capacity(batch.num_rows());
    // The next one last.
    let mut left = vec![batch.clone()];
    while let Some(batch) = left.pop() {
        let count = batch.num_rows();
        let evaluated = tailrace_sql::bounded(count, || evaluator.evaluate(&batch, observed_ns));
        if evaluated.failed_rows == 0 && !tailrace_sql::is_exhausted() {
            failures.extend(std::iter::repeat_n(Vec::new(), count));
        } else if count > 1 {
            let half = count / 2;
            left.extend([batch.slice(half, count - half), batch.slice(0, half)]);
        } else {
            let mut failed: Vec<FailedExpression> = evaluated
                .failures
                .iter()
                .map(|failure| expression(plan, failure))
                .collect();
            if failed.is_empty() {
                failed.push(FailedExpression {
                    branch: 0,
                    column: None,
                    reason: NOT_EXACT.to_owned(),
                });
            }
            failures.push(failed);
        }
    }
    failures
}

fn expression(plan: &PipelinePlan, failure: &tailrace_sql::Failure) -> FailedExpression {
    let branch = &plan.query.branches()[failure.branch];
    let column = failure.output.map(|output| {
        let column = computed_columns(branch)[output] as usize;
        branch.outputs[column].name.clone()
    });
    FailedExpression {
        branch: failure.branch,
        column,
        reason: failure.reason.clone(),
    }
}
