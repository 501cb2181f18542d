//! A batch of traced records: transforms and encodes it as a worker does, and says of each record what came of it.

use arrow::array::Array;
use bytes::Bytes;
use tailrace_frame::{Flags, SIDE};
use tailrace_otlp::{Encoder, Encoding, NdjsonEncoding, Request};
use tailrace_sql::Evaluator;

use super::failures::failures;
use super::reasons::Reasons;
use super::{
    FailedExpression, Row, TraceOptions, Traced, Unmet, Verdict, malformed, otlp_encoding,
};
use crate::input::input_queue::Framed;
use crate::plan::{PipelinePlan, offset_s};
use crate::process::encode::{Beside, parts};
use crate::process::failed::FailedValues;
use crate::process::transform::{Columns, Transform, Transformed};

/// What a tracer keeps between batches.
pub(super) struct Maker<'p> {
    plan: &'p PipelinePlan,
    transform: Transform,
    json: Box<dyn Encoder>,
    otlp: Option<Otlp>,
    reasons: Option<(Reasons, Evaluator)>,
}

struct Otlp {
    encoding: std::sync::Arc<dyn Encoding>,
    encoder: Box<dyn Encoder>,
}

/// What the rows of a batch may take, each encoding by itself; a single record may take more.
const ROWS_BYTES_MAX: usize = 16 * 1024 * 1024;

impl<'p> Maker<'p> {
    pub(super) fn new(plan: &'p PipelinePlan, input: usize, options: TraceOptions) -> Self {
        let offset_s = offset_s(&plan.config.inputs[input]);
        let otlp = options.otlp.then(|| {
            let (encoding, _) = otlp_encoding(plan);
            let encoder = encoding.encoder(offset_s);
            Otlp { encoding, encoder }
        });
        let reasons = || (Reasons::new(plan, offset_s), plan.query.evaluator());
        Self {
            plan,
            transform: Transform::new(plan, input),
            json: NdjsonEncoding::default().encoder(offset_s),
            otlp,
            reasons: options.reasons.then(reasons),
        }
    }

    /// Traces a batch; the numbers of lines are left to the caller. `None` if what its query makes of it is too large for
    /// one batch.
    pub(super) fn make(&mut self, framed: &Framed) -> Option<Vec<Traced>> {
        let records = framed.frames.records.len();
        let plan = self.plan;
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
        let rows = self.rows(framed, &columns)?;
        let filtered: Vec<u32> = (0..)
            .zip(&rows)
            .filter_map(|(at, rows)| rows.is_empty().then_some(at))
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
    fn rows(&mut self, framed: &Framed, columns: &Columns) -> Option<Vec<Vec<Row>>> {
        let count = framed.frames.records.len();
        let failed = FailedValues::new(self.plan, columns);
        let parts = parts(self.plan, columns, &failed);
        let Transform { times, streams, .. } = &self.transform;
        let beside = Beside {
            framed,
            columns,
            times,
            streams,
            uids: &[],
        };
        let runs = beside.runs(0);
        let envelope = beside.envelope(&runs);
        let mut rows: Vec<Vec<Row>> = vec![Vec::new(); count];
        let mut left = if count > 1 {
            ROWS_BYTES_MAX
        } else {
            usize::MAX
        };
        let mut fits = |request: &Request| {
            left = left.saturating_sub(request.bytes.len());
            left > 0
        };
        let mut all_fit = true;
        self.json.encode(&envelope, &parts, &mut |request| {
            all_fit = all_fit && fits(request);
            let mut start = 0;
            for (&end, &record) in request
                .ends
                .iter()
                .zip(&request.records)
                .filter(|_| all_fit)
            {
                let line = &request.bytes[start..end as usize];
                let json = String::from_utf8_lossy(line.trim_ascii_end()).into_owned();
                rows[record as usize].push(Row { json, otlp: None });
                start = end as usize;
            }
        });
        if let Some(Otlp { encoding, encoder }) = self.otlp.as_mut().filter(|_| all_fit) {
            let mut given = vec![0; count];
            encoder.encode(&envelope, &parts, &mut |request| {
                for (at, &record) in request.records.iter().enumerate() {
                    let cut = encoding.cut(&request.bytes, &request.ends, at..at + 1);
                    let row = &mut given[record as usize];
                    rows[record as usize][*row].otlp = Some(cut.bytes);
                    *row += 1;
                }
            });
        }
        all_fit.then_some(rows)
    }
}

/// Puts together what is known of each record. `unmet` has an entry for each record without a row, `failed` one for each
/// record or none.
fn traced(
    framed: &Framed,
    columns: &Columns,
    rows: Vec<Vec<Row>>,
    unmet: Vec<Vec<Unmet>>,
    failed: Vec<Vec<FailedExpression>>,
) -> Vec<Traced> {
    let mut unmet = unmet.into_iter();
    let mut failed = failed.into_iter();
    let malformed = columns.scanned.malformed.as_ref();
    let of_record = |(at, rows): (usize, Vec<Row>)| {
        let raw = raw(framed, at);
        let is_malformed = malformed.is_some_and(|it| it.is_valid(at) && it.value(at));
        let record = &framed.frames.records[at];
        Traced {
            malformed: is_malformed.then(|| malformed::reason(record, &raw)),
            failed: failed.next().unwrap_or_default(),
            verdict: match rows.is_empty() {
                true => Verdict::Filtered(unmet.next().unwrap_or_default()),
                false => Verdict::Kept(rows),
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
