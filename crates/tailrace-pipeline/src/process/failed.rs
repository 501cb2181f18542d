//! Expressions of a query that fail for records: which values they leave empty, and the log of them.
//!
//! Takes what the evaluator says of a batch. A failure is logged when it first happens and then at most once a minute
//! for each expression, with how often since. Never logs a value: of a reason only what comes before one is logged.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tailrace_otlp::FailedValue;
use tailrace_sql::{Branch, FailedOutput, Failure, OutputValue, Rows};
use tracing::warn;

use crate::health::Stage;
use crate::plan::PipelinePlan;
use crate::process::minute::Minute;
use crate::process::transform::Columns;
use crate::reasons::{Met, ReasonKind};
use crate::shared::Shared;

/// The values of a batch that could not be computed, by branch.
pub(crate) struct FailedValues(Vec<Vec<FailedValue>>);

impl FailedValues {
    pub(crate) fn new(plan: &PipelinePlan, columns: &Columns) -> Self {
        let branches = columns.evaluated.branches.iter();
        if branches.clone().all(|selected| selected.failed.is_empty()) {
            return Self(Vec::new());
        }
        let of_branch = |(branch, selected): (&Branch, &tailrace_sql::Selected)| {
            let columns = computed_columns(branch);
            let failed = selected.failed.iter().map(|failed| FailedValue {
                row: failed.row,
                column: columns[failed.output],
            });
            failed.collect()
        };
        Self(
            plan.query
                .branches()
                .iter()
                .zip(branches)
                .map(of_branch)
                .collect(),
        )
    }

    pub(crate) fn of_branch(&self, branch: usize) -> &[FailedValue] {
        self.0.get(branch).map_or(&[], Vec::as_slice)
    }
}

/// The number in its batch of the first record for which an output failed; `None` for a condition, which does not say.
pub(crate) fn first_record(columns: &Columns, failure: &Failure) -> Option<u32> {
    let selected = columns.evaluated.branches.get(failure.branch)?;
    let is_it = |failed: &&FailedOutput| Some(failed.output) == failure.output;
    let row = selected.failed.iter().find(is_it)?.row;
    let row = match &selected.rows {
        Rows::All => row,
        Rows::Some(rows) => *rows.get(row as usize)?,
    };
    match &columns.survivors {
        Some(records) => records.get(row as usize).copied(),
        None => Some(row),
    }
}

/// Which of a branch's outputs are computed.
pub(crate) fn computed_columns(branch: &Branch) -> Vec<u32> {
    let outputs = (0_u32..).zip(&branch.outputs);
    let computed = outputs.filter(|(_, output)| matches!(output.value, OutputValue::Computed(_)));
    computed.map(|(at, _)| at).collect()
}

/// Arithmetic without a result is no failed expression: what is around it goes on with a NULL.
const ARITHMETIC: &str = "a division by zero or a result beyond 64 bits became NULL";

/// When each failing expression of a pipeline was last logged; arithmetic has a number that no branch has.
#[derive(Debug, Default)]
pub(crate) struct FailureLog(Mutex<HashMap<(usize, Option<usize>), Minute>>);

impl FailureLog {
    /// Notes what failed in a batch, and logs it if it is time to. `failed_rows` counts the records of the failures and
    /// arithmetic without a result, whose place in the query nobody knows. `example` gives a record for which an output
    /// failed.
    pub(crate) fn report(
        &self,
        pipeline: &Shared,
        (failures, failed_rows): (&[Failure], u64),
        observed_ns: i64,
        example: impl Fn(&Failure) -> Option<String>,
    ) {
        let plan = &pipeline.plan;
        for failure in failures {
            let branch = &plan.query.branches()[failure.branch];
            // Which may quote what `${...}` put into the query.
            let shown = |text: &str| plan.config.transform.redact(text).into_owned();
            let reason = shown(without_values(&failure.reason));
            let column = failure.output.map(|output| {
                let column = computed_columns(branch)[output];
                shown(&branch.outputs[column as usize].name)
            });
            let condition = || {
                let conditions = branch.predicate.iter().map(|part| part.text.as_str());
                shown(&conditions.collect::<Vec<_>>().join(" AND "))
            };
            let subject = column.clone().unwrap_or_else(condition);
            let met = Met {
                pipeline: &plan.name,
                stage: Stage::Transform,
                kind: ReasonKind::FailedExpression,
                subject: &subject,
                reason: &reason,
                count: failure.rows,
            };
            pipeline.reasons.note_with(met, || example(failure));
            if let Some(records) = self.due(failure, observed_ns) {
                log(&plan.name, column.as_deref(), &subject, &reason, records);
            }
        }
        let attributed: u64 = failures.iter().map(|failure| failure.rows).sum();
        let arithmetic = failed_rows.saturating_sub(attributed);
        if arithmetic > 0 {
            self.report_arithmetic(pipeline, arithmetic, observed_ns);
        }
    }

    fn report_arithmetic(&self, pipeline: &Shared, rows: u64, observed_ns: i64) {
        let plan = &pipeline.plan;
        pipeline.reasons.note(Met {
            pipeline: &plan.name,
            stage: Stage::Transform,
            kind: ReasonKind::FailedExpression,
            subject: "arithmetic",
            reason: ARITHMETIC,
            count: rows,
        });
        let due = {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let minute = all.entry((usize::MAX, None)).or_default();
            minute.due(rows, observed_ns)
        };
        if let Some(times) = due {
            warn!(
                pipeline = plan.name,
                reason = ARITHMETIC,
                times,
                "arithmetic of the query has no result"
            );
        }
    }

    /// How many records to log now.
    fn due(&self, failure: &Failure, observed_ns: i64) -> Option<u64> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let minute = all.entry((failure.branch, failure.output)).or_default();
        minute.due(failure.rows, observed_ns)
    }
}

fn log(pipeline: &str, column: Option<&str>, condition: &str, reason: &str, records: u64) {
    match column {
        Some(column) => warn!(
            pipeline,
            column,
            reason,
            records,
            "an expression failed: the column is empty in these records, which are marked tailrace.transform_failed"
        ),
        None => warn!(
            pipeline,
            condition,
            reason,
            records,
            "a condition failed: it counts as not met, so these records are filtered"
        ),
    }
}

/// What a reason says before anything that may be a record's value: quotes, a colon, a line feed, a digit. What kind of
/// error it is (`Execution error: `) stands before that.
fn without_values(reason: &str) -> &str {
    let mut text = reason;
    while let Some((kind, rest)) = text.split_once(": ")
        && kind.ends_with("error")
        && kind.chars().all(|ch| ch.is_alphabetic() || ch == ' ')
    {
        text = rest;
    }
    let may_be_value = |ch: char| !(ch.is_alphabetic() || matches!(ch, ' ' | '_' | '-' | ','));
    match text.split(may_be_value).next().unwrap_or_default().trim() {
        "" => "its value could not be computed",
        said => said,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_expression_is_logged_by_itself() {
        let log = FailureLog::default();
        let failure = |output| Failure {
            branch: 0,
            output,
            reason: String::new(),
            rows: 3,
        };
        assert_eq!(log.due(&failure(Some(1)), 0), Some(3));
        assert_eq!(log.due(&failure(Some(1)), 1), None);
        assert_eq!(log.due(&failure(None), 2), Some(3));
    }

    #[test]
    fn a_reason_holds_no_value() {
        let check = |reason, expect| assert_eq!(without_values(reason), expect);
        let cast =
            "Arrow error: Cast error: Cannot cast string 'it's hunter2' to value of Int64 type";
        check(cast, "Cannot cast string");
        let pattern =
            "External error: regex parse error:\n    (hunter2\n    ^\nerror: unclosed group";
        check(pattern, "regex parse error");
        let panic = "Execution error: lpad panicked: byte index 1 of `hunter2`";
        check(panic, "lpad panicked");
        check("Arrow error: Divide by zero error", "Divide by zero error");
        check("`hunter2` is too long", "its value could not be computed");
    }
}
