//! Runs a test: traces its lines through its pipeline and compares what leaves with what is expected.

use std::time::Instant;

use tailrace_config::{Config, Diagnostic, Sql, Test};
use tailrace_pipeline::{
    PipelinePlan, Row, RowBounds, TraceOptions, TraceSource, Traced, Verdict, trace,
};

use super::compare::{self, Line};
use super::otlp;
use crate::try_query::verdict;

/// What came of a test.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// What does not hold.
    pub(super) failures: Vec<Failure>,
    /// The rows that leave, if they are not those expected.
    pub(super) rows: Option<Vec<String>>,
    /// How long the test took.
    pub(super) seconds: f64,
}

/// What does not hold.
#[derive(Debug)]
pub(super) struct Failure {
    /// In one line.
    pub(super) what: String,
    /// In what it differs.
    pub(super) lines: Vec<Line>,
    /// Whether `--update` mends it.
    pub(super) is_of_rows: bool,
}

/// Records of which is said why they are filtered.
const REASONS_MAX: usize = 5;

impl Outcome {
    pub(super) fn is_passed(&self) -> bool {
        self.failures.is_empty()
    }

    fn fail(&mut self, what: String, lines: Vec<Line>) {
        self.failures.push(Failure {
            what,
            lines,
            is_of_rows: false,
        });
    }
}

/// The plan of a condition that every row must meet: a query over rows.
///
/// # Errors
///
/// What is wrong with it, at its place in the config.
pub(super) fn condition(sql: &Sql) -> Result<PipelinePlan, Vec<Diagnostic>> {
    // On lines of its own, so that places in it are known. Without parentheses first, since no message may be about those.
    planned(sql, &format!("SELECT * FROM logs WHERE\n{}", sql.text))?;
    let in_parentheses = format!("SELECT * FROM logs WHERE (\n{}\n)", sql.text);
    planned(sql, &in_parentheses).map_err(|mut wrong| {
        for diagnostic in &mut wrong {
            diagnostic.message =
                "this is more than a condition: only what may follow WHERE is expected".to_owned();
            diagnostic.hint = None;
        }
        wrong
    })
}

fn planned(sql: &Sql, query: &str) -> Result<PipelinePlan, Vec<Diagnostic>> {
    // What it says of an output does not matter.
    let text = "pipelines: {rows: {input: {type: stdin, format: json, max_record_bytes: 64MiB}, \
                output: {type: discard}, limits: {replay: 128MiB}}}";
    let mut config: Config = tailrace_config::load_text("rows", text, &|_| None)?;
    for pipeline in config.pipelines.values_mut() {
        pipeline.transform = Sql::plain("sql", query);
    }
    let at_its_place = |it: Diagnostic| {
        let line = it.line.saturating_sub(1).max(1);
        sql.diagnostic(line, it.column.max(1), it.length, it.message, it.hint)
    };
    match tailrace_pipeline::prepare(&config) {
        Ok(mut plans) => Ok(plans.remove(0)),
        Err(wrong) => Err(wrong.into_iter().map(at_its_place).collect()),
    }
}

/// Runs a test.
pub(super) fn run(test: &Test, plan: &PipelinePlan, condition: Option<&PipelinePlan>) -> Outcome {
    let started = Instant::now();
    let source = TraceSource {
        path: test.file.clone(),
        pod: test.pod.clone().into_iter().collect(),
    };
    let options = TraceOptions {
        otlp: test.expect.otlp.is_some(),
        reasons: true,
        rows: RowBounds::MOST,
    };
    let lines = test.lines.as_bytes();
    let traced = trace(plan, test.input - 1, lines, &source, test.now_ns, options).records;
    let mut outcome = Outcome::default();
    for record in &traced {
        if let Verdict::Crashed(reason) = &record.verdict {
            let what = format!(
                "the record in line {} cannot be processed: {reason}",
                record.line
            );
            outcome.fail(what, Vec::new());
        }
        if record.more_rows > 0 {
            let what = format!(
                "the record in line {} becomes so many rows that {} of them are not compared: use a smaller record",
                record.line, record.more_rows
            );
            outcome.fail(what, Vec::new());
        }
    }
    let rows: Vec<&Row> = traced.iter().flat_map(rows_of).collect();
    compare_rows(test, &rows, &mut outcome);
    let is_short = |expected: usize| expected > rows.len();
    if let Some(count) = test.expect.count.filter(|&count| count != rows.len()) {
        let expected = counted(count, "row", "rows");
        let what = format!("{expected} expected, and {} leave", rows.len());
        outcome.fail(what, Vec::new());
    }
    if let Some(expected) = &test.expect.otlp {
        compare_otlp(expected, &rows, &mut outcome);
    }
    if let Some(condition) = condition {
        check_condition(condition, &rows, test.now_ns, &mut outcome);
    }
    let expect = &test.expect;
    let expected = [
        expect.rows.as_ref().map(|it| it.rows.len()),
        expect.count,
        expect.otlp.as_ref().map(Vec::len),
    ];
    if expected.into_iter().flatten().any(is_short)
        && let Some(first) = outcome.failures.first_mut()
    {
        first.lines.extend(reasons(&traced, plan));
    }
    outcome.seconds = started.elapsed().as_secs_f64();
    outcome
}

fn rows_of(traced: &Traced) -> &[Row] {
    match &traced.verdict {
        Verdict::Kept(rows) => rows,
        Verdict::Filtered(_) | Verdict::Crashed(_) => &[],
    }
}

fn compare_rows(test: &Test, rows: &[&Row], outcome: &mut Outcome) {
    let Some(expected) = &test.expect.rows else {
        return;
    };
    let actual: Vec<String> = rows
        .iter()
        .map(|row| compare::readable(&row.json))
        .collect();
    let lines = compare::rows(&expected.rows, &actual);
    if lines.is_empty() {
        return;
    }
    outcome.failures.push(Failure {
        what: "the rows are not those expected".to_owned(),
        lines,
        is_of_rows: true,
    });
    outcome.rows = Some(actual);
}

fn counted(count: usize, one: &str, several: &str) -> String {
    match count {
        1 => format!("1 {one} is"),
        _ => format!("{count} {several} are"),
    }
}

fn compare_otlp(expected: &[String], rows: &[&Row], outcome: &mut Outcome) {
    if expected.len() != rows.len() {
        let expected = counted(expected.len(), "LogRecord", "LogRecords");
        let what = format!("{expected} expected, and {} leave", rows.len());
        outcome.fail(what, Vec::new());
    }
    let mut lines = Vec::new();
    for (number, (expected, row)) in (1..).zip(expected.iter().zip(rows)) {
        let record = otlp::record(row.otlp.as_deref().unwrap_or_default());
        match record {
            Ok(record) => {
                let differ = compare::fields(expected, &record.to_string());
                if !differ.is_empty() {
                    lines.push(Line::Text(format!("LogRecord {number}:")));
                    lines.extend(differ);
                }
            }
            Err(error) => lines.push(Line::Text(format!("LogRecord {number}: {error}"))),
        }
    }
    if !lines.is_empty() {
        outcome.fail("the OTLP fields are not those expected".to_owned(), lines);
    }
}

fn check_condition(condition: &PipelinePlan, rows: &[&Row], now_ns: i64, outcome: &mut Outcome) {
    let text: String = rows.iter().map(|row| format!("{}\n", row.json)).collect();
    let options = TraceOptions {
        otlp: false,
        reasons: true,
        rows: RowBounds::MOST,
    };
    let source = TraceSource::default();
    let traced = trace(condition, 0, text.as_bytes(), &source, now_ns, options).records;
    let mut lines = Vec::new();
    for record in &traced {
        let row = record.line;
        match &record.verdict {
            Verdict::Kept(_) => {}
            Verdict::Filtered(_) => {
                let reasons = verdict::reasons(record, condition).join("; ");
                lines.push(Line::Text(format!("row {row}: {reasons}")));
            }
            Verdict::Crashed(reason) => {
                lines.push(Line::Text(format!("row {row}: {reason}")));
            }
        }
    }
    if !lines.is_empty() {
        outcome.fail("the condition is not true for every row".to_owned(), lines);
    }
}

/// Why the first records that are filtered are.
fn reasons(traced: &[Traced], plan: &PipelinePlan) -> Vec<Line> {
    let is_filtered = |it: &&Traced| matches!(it.verdict, Verdict::Filtered(_));
    let filtered = traced.iter().filter(is_filtered);
    let more = filtered.clone().count().saturating_sub(REASONS_MAX);
    let line = |it: &Traced| {
        let reasons = verdict::reasons(it, plan).join("; ");
        Line::Text(format!("line {} is filtered: {reasons}", it.line))
    };
    let mut lines: Vec<Line> = filtered.take(REASONS_MAX).map(line).collect();
    if more > 0 {
        lines.push(Line::Text(format!("{more} more records are filtered")));
    }
    lines
}

#[cfg(test)]
mod condition_tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_wrong_with_a_condition_is_in_the_text_of_the_user() {
        assert!(condition(&Sql::plain("t", "a = 1 -- one")).is_ok());
        for (sql, line, column) in [
            ("status >=", 1, 10),
            ("status = 500)", 1, 13),
            ("(status = 500", 1, 14),
            ("status = 1\nORDER BY status", 2, 1),
        ] {
            let wrong = condition(&Sql::plain("t", sql)).err().unwrap();
            let Diagnostic { message, .. } = &wrong[0];
            assert_eq!(
                (wrong[0].line, wrong[0].column),
                (line, column),
                "{sql}: {message}"
            );
            // A parenthesis is missing only where the user has opened one.
            let is_missing = message.contains("expected: )");
            assert_eq!(is_missing, sql.starts_with('('), "{sql}: {message}");
        }
    }
}
