//! A batch of traced records: transforms and encodes it as a worker does, and says of each record what came of it.

use arrow::array::Array;
use bytes::Bytes;
use tailrace_frame::{Flags, SIDE};
use tailrace_sql::Evaluator;

use super::failures::failures;
use super::reasons::Reasons;
use super::rows::{Kept, RowEncoder};
use super::{FailedExpression, TraceOptions, Traced, Unmet, Verdict, malformed};
use crate::input::input_queue::Framed;
use crate::plan::{PipelinePlan, offset_s};
use crate::process::encode::{Beside, parts};
use crate::process::failed::FailedValues;
use crate::process::transform::{Columns, Transform, Transformed};

/// What a tracer keeps between batches.
pub(super) struct Maker {
    transform: Transform,
    rows: RowEncoder,
    reasons: Option<(Reasons, Evaluator)>,
}

impl Maker {
    pub(super) fn new(plan: &PipelinePlan, input: usize, options: TraceOptions) -> Self {
        let offset_s = offset_s(&plan.config.inputs[input]);
        let reasons = || (Reasons::new(plan, offset_s), plan.query.evaluator());
        Self {
            transform: Transform::new(plan, input),
            rows: RowEncoder::new(plan, offset_s, options),
            reasons: options.reasons.then(reasons),
        }
    }

    /// Traces a batch; the numbers of lines are left to the caller. `None` if what its query makes of it is too large for
    /// one batch. The plan is the one that this was made with.
    pub(super) fn make(&mut self, plan: &PipelinePlan, framed: &Framed) -> Option<Vec<Traced>> {
        let records = framed.frames.records.len();
        let transform = || self.transform.run(plan, framed, true);
        let transformed = tailrace_sql::bounded(records, transform);
        if tailrace_sql::is_exhausted() {
            return None;
        }
        let Transformed {
            failed_rows,
            columns,
            ..
        } = transformed;
        let columns = columns.expect("all columns are built for all records");
        let rows = self.rows(plan, framed, &columns)?;
        let filtered: Vec<u32> = (0..)
            .zip(&rows)
            .filter_map(|(at, kept)| kept.rows.is_empty().then_some(at))
            .collect();
        let mut unmet = vec![
            Vec::new();
            if self.reasons.is_some() {
                0
            } else {
                filtered.len()
            }
        ];
        let mut failed = Vec::new();
        if let Some((reasons, evaluator)) = &mut self.reasons {
            let Transform { times, streams, .. } = &self.transform;
            unmet = reasons.of(plan, framed, (&columns, times, streams), &filtered);
            if failed_rows > 0 {
                failed = failures(plan, evaluator, &columns.batch, framed.observed_ns);
            }
        }
        Some(traced(framed, &columns, rows, unmet, failed))
    }

    /// The rows of each record. `None` if they are too large together.
    fn rows(
        &mut self,
        plan: &PipelinePlan,
        framed: &Framed,
        columns: &Columns,
    ) -> Option<Vec<Kept>> {
        let failed = FailedValues::new(plan, columns);
        let parts = parts(plan, columns, &failed);
        let beside = Beside::of(&self.transform, (framed, columns, &[]));
        let runs = beside.runs(0);
        let envelope = beside.envelope(&runs);
        self.rows.rows(framed, &envelope, &parts)
    }
}

/// Puts together what is known of each record. `unmet` has an entry for each record without a row, `failed` one for each
/// record or none.
fn traced(
    framed: &Framed,
    columns: &Columns,
    rows: Vec<Kept>,
    unmet: Vec<Vec<Unmet>>,
    failed: Vec<Vec<FailedExpression>>,
) -> Vec<Traced> {
    let mut unmet = unmet.into_iter();
    let mut failed = failed.into_iter();
    let malformed = columns.scanned.malformed.as_ref();
    let of_record = |(at, kept): (usize, Kept)| {
        let raw = raw(framed, at);
        let is_malformed = malformed.is_some_and(|it| it.is_valid(at) && it.value(at));
        let record = &framed.frames.records[at];
        Traced {
            malformed: is_malformed.then(|| malformed::reason(record, &raw)),
            failed: failed.next().unwrap_or_default(),
            more_rows: kept.more,
            verdict: match kept.rows.is_empty() {
                true => Verdict::Filtered(unmet.next().unwrap_or_default()),
                false => Verdict::Kept(kept.rows),
            },
            ..of_framed(framed, at, raw)
        }
    };
    rows.into_iter().enumerate().map(of_record).collect()
}

/// A record that cannot be processed.
pub(super) fn crashed(framed: &Framed, record: usize, reason: String) -> Traced {
    Traced {
        verdict: Verdict::Crashed(reason),
        ..of_framed(framed, record, raw(framed, record))
    }
}

/// What framing says of a record.
fn of_framed(framed: &Framed, record: usize, raw: Bytes) -> Traced {
    let flags = framed.frames.records[record].flags;
    Traced {
        line: 0,
        lines: 0,
        is_repaired: std::str::from_utf8(&raw).is_err(),
        raw,
        verdict: Verdict::Filtered(Vec::new()),
        more_rows: 0,
        malformed: None,
        is_truncated: flags.contains(Flags::TRUNCATED),
        failed: Vec::new(),
    }
}

fn raw(framed: &Framed, record: usize) -> Bytes {
    let record = &framed.frames.records[record];
    let buffer = &framed.buffers[usize::from(record.buffer == SIDE)];
    buffer.slice(record.start as usize..record.end as usize)
}
