//! Expressions of a query that fail for records: which values they leave empty, and the log of them.
//!
//! Takes what the evaluator says of a batch. A failure is logged when it first happens and then at most once a minute
//! for each expression, with how often since. Never logs a value: of a reason only what comes before one is logged.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tailrace_otlp::FailedValue;
use tailrace_sql::{Branch, Failure, OutputValue};
use tracing::warn;

use crate::plan::PipelinePlan;
use crate::process::transform::Columns;

const LOG_INTERVAL_NS: i64 = 60_000_000_000;

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

/// Which of a branch's outputs are computed.
pub(crate) fn computed_columns(branch: &Branch) -> Vec<u32> {
    let outputs = (0_u32..).zip(&branch.outputs);
    let computed = outputs.filter(|(_, output)| matches!(output.value, OutputValue::Computed(_)));
    computed.map(|(at, _)| at).collect()
}

/// When each failing expression of a pipeline was last logged.
#[derive(Debug, Default)]
pub(crate) struct FailureLog(Mutex<HashMap<(usize, Option<usize>), Logged>>);

#[derive(Debug)]
struct Logged {
    at_ns: i64,
    /// Records since then.
    records: u64,
}

impl FailureLog {
    /// Logs what failed in a batch, if it is time to; `observed_ns` is when the batch was read.
    pub(crate) fn report(&self, plan: &PipelinePlan, failures: &[Failure], observed_ns: i64) {
        for failure in failures {
            let Some(records) = self.due(failure, observed_ns) else {
                continue;
            };
            let branch = &plan.query.branches()[failure.branch];
            let reason = without_values(&failure.reason);
            // Which may quote what `${...}` put into the query.
            let shown = |text: &str| plan.config.transform.redact(text).into_owned();
            let reason = shown(reason);
            let pipeline = plan.name.as_str();
            match failure
                .output
                .map(|output| computed_columns(branch)[output])
            {
                Some(column) => {
                    let column = shown(&branch.outputs[column as usize].name);
                    warn!(
                        pipeline,
                        column,
                        reason,
                        records,
                        "an expression failed: the column is empty in these records, which are marked \
                         tailrace.transform_failed"
                    );
                }
                None => {
                    let conditions = branch.predicate.iter().map(|part| part.text.as_str());
                    let condition = shown(&conditions.collect::<Vec<_>>().join(" AND "));
                    warn!(
                        pipeline,
                        condition,
                        reason,
                        records,
                        "a condition failed: it counts as not met, so these records are filtered"
                    );
                }
            }
        }
    }

    /// How many records to log now.
    fn due(&self, failure: &Failure, observed_ns: i64) -> Option<u64> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (failure.branch, failure.output);
        let Some(logged) = all.get_mut(&key) else {
            let logged = Logged {
                at_ns: observed_ns,
                records: 0,
            };
            all.insert(key, logged);
            return Some(failure.rows);
        };
        logged.records += failure.rows;
        // A clock that was set back must not end the log.
        if (0..LOG_INTERVAL_NS).contains(&observed_ns.saturating_sub(logged.at_ns)) {
            return None;
        }
        logged.at_ns = observed_ns;
        Some(std::mem::take(&mut logged.records))
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
    text.split(may_be_value).next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_logged_once_a_minute_with_how_often() {
        let log = FailureLog::default();
        let failure = |rows| Failure {
            branch: 0,
            output: Some(1),
            reason: String::new(),
            rows,
        };
        assert_eq!(log.due(&failure(3), 0), Some(3));
        assert_eq!(log.due(&failure(4), LOG_INTERVAL_NS - 1), None);
        assert_eq!(log.due(&failure(5), LOG_INTERVAL_NS), Some(9));
        assert_eq!(log.due(&failure(1), 5), Some(1), "the clock was set back");
        let other = Failure {
            output: None,
            ..failure(7)
        };
        assert_eq!(log.due(&other, 6), Some(7));
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
    }
}
