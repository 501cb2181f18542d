//! The rows of traced records, encoded as far as they are kept: a single record may become hundreds of thousands, each as
//! large as the record.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, UInt8Array};
use tailrace_otlp::{
    Column, Encoder, Encoding, Envelope, FailedValue, Index, NdjsonEncoding, Part, Request,
};

use super::{Row, RowBounds, TraceOptions, otlp_encoding};
use crate::input::input_queue::Framed;
use crate::plan::PipelinePlan;

/// What the rows of several records may take, each encoding by itself.
const ROWS_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Rows of several records that are encoded together, and the bytes of the records that each of them may repeat.
const ROWS_MAX: usize = 64 * 1024;
const REPEATED_BYTES_MAX: usize = 4 * ROWS_BYTES_MAX;
/// Rows of one record that are encoded together: the first, and at most.
const FIRST_ROWS: usize = 16;
const WINDOW_ROWS_MAX: usize = 1024;

/// Encodes rows; keeps its memory between batches.
pub(super) struct RowEncoder {
    bounds: RowBounds,
    json: Box<dyn Encoder>,
    otlp: Option<(Arc<dyn Encoding>, Box<dyn Encoder>)>,
}

/// The rows of a record.
#[derive(Debug, Clone, Default)]
pub(super) struct Kept {
    pub(super) rows: Vec<Row>,
    /// How many are left out.
    pub(super) more: u64,
    bytes: usize,
}

impl Kept {
    fn is_full(&self, bounds: RowBounds) -> bool {
        self.rows.len() >= bounds.rows.max(1)
            || (self.bytes >= bounds.bytes && !self.rows.is_empty())
    }

    fn push(&mut self, json: &[u8]) {
        let json = String::from_utf8_lossy(json.trim_ascii_end()).into_owned();
        self.bytes += json.len() + size_of::<Row>();
        self.rows.push(Row { json, otlp: None });
    }

    /// How many rows to encode next: about as many as are still kept.
    fn window(&self, bounds: RowBounds) -> usize {
        if self.rows.is_empty() {
            return FIRST_ROWS.min(bounds.rows.max(1));
        }
        let row_bytes = (self.bytes / self.rows.len()).max(1);
        let fit = bounds.bytes.saturating_sub(self.bytes) / row_bytes + 1;
        let left = bounds.rows.saturating_sub(self.rows.len());
        fit.min(left).clamp(1, WINDOW_ROWS_MAX)
    }
}

impl RowEncoder {
    pub(super) fn new(plan: &PipelinePlan, offset_s: i32, options: TraceOptions) -> Self {
        let otlp = options.otlp.then(|| {
            let (encoding, _) = otlp_encoding(plan);
            let encoder = encoding.encoder(offset_s);
            (encoding, encoder)
        });
        Self {
            bounds: options.rows,
            json: NdjsonEncoding::default().encoder(offset_s),
            otlp,
        }
    }

    /// The rows of each record. `None` if those of several records are too large together.
    pub(super) fn rows(
        &mut self,
        framed: &Framed,
        envelope: &Envelope<'_>,
        parts: &[Part<'_>],
    ) -> Option<Vec<Kept>> {
        let count = framed.frames.records.len();
        let mut kept = vec![Kept::default(); count];
        if let [kept] = &mut kept[..] {
            self.of_one(envelope, parts, kept);
        } else if repeat_too_much(framed, parts)
            || !self.encode(envelope, parts, ROWS_BYTES_MAX, &mut kept)
        {
            return None;
        }
        Some(kept)
    }

    /// Encodes the rows of the only record, some at a time, as long as they are kept.
    fn of_one(&mut self, envelope: &Envelope<'_>, parts: &[Part<'_>], kept: &mut Kept) {
        for part in parts {
            let count = part.rows.map_or(1, <[u32]>::len);
            let mut at = 0;
            while at < count && !kept.is_full(self.bounds) {
                let end = count.min(at + kept.window(self.bounds));
                let of_window = Window::of(part, at..end, count);
                let part = of_window.part(part, at..end);
                self.encode(envelope, &[part], usize::MAX, std::slice::from_mut(kept));
                at = end;
            }
            kept.more += (count - at) as u64;
        }
    }

    /// Encodes rows, and adds to `kept`, by record, those that have room there. False if all requests are larger than
    /// `bytes_max` together.
    fn encode(
        &mut self,
        envelope: &Envelope<'_>,
        parts: &[Part<'_>],
        bytes_max: usize,
        kept: &mut [Kept],
    ) -> bool {
        let mut next: Vec<usize> = kept.iter().map(|it| it.rows.len()).collect();
        let bounds = self.bounds;
        let mut left = bytes_max;
        self.json.encode(envelope, parts, &mut |request| {
            left = left.saturating_sub(request.bytes.len());
            let mut start = 0;
            let ends = request.ends.iter().zip(&request.records);
            for (&end, &record) in ends.filter(|_| left > 0) {
                let kept = &mut kept[record as usize];
                if kept.is_full(bounds) {
                    kept.more += 1;
                } else {
                    kept.push(&request.bytes[start..end as usize]);
                }
                start = end as usize;
            }
        });
        if left == 0 {
            return false;
        }
        if let Some((encoding, encoder)) = &mut self.otlp {
            encoder.encode(envelope, parts, &mut |request| {
                let numbered = request.records.iter().map(|&record| {
                    let number = &mut next[record as usize];
                    *number += 1;
                    (record as usize, *number - 1)
                });
                let numbered: Vec<(usize, usize)> = numbered.collect();
                let is_kept = |&(record, row): &(usize, usize)| row < kept[record].rows.len();
                let wanted: Vec<bool> = numbered.iter().map(is_kept).collect();
                cut(encoding.as_ref(), request, &wanted, &mut |at, bytes| {
                    let (record, row) = numbered[at];
                    kept[record].bytes += bytes.len();
                    kept[record].rows[row].otlp = Some(bytes);
                });
            });
        }
        true
    }
}

/// Whether rows of several records are so many, or repeat so much of them, that few records are to be encoded at once.
fn repeat_too_much(framed: &Framed, parts: &[Part<'_>]) -> bool {
    let records = &framed.frames.records;
    let several = || parts.iter().filter_map(|part| part.rows);
    let rows: usize = several().map(<[u32]>::len).sum();
    let bytes_of = |&record: &u32| {
        let record = &records[record as usize];
        record.end.saturating_sub(record.start) as usize
    };
    let all: usize = (0..records.len() as u32).map(|it| bytes_of(&it)).sum();
    let repeated: usize = several().flatten().map(bytes_of).sum();
    rows > ROWS_MAX.max(parts.len() * records.len())
        || repeated > REPEATED_BYTES_MAX.max(parts.len() * all)
}

/// Cuts the rows that are wanted out of a request, each into a request of its own. It is cut in halves, so that each byte is
/// walked over a few times only.
fn cut(
    encoding: &dyn Encoding,
    request: &Request,
    wanted: &[bool],
    each: &mut dyn FnMut(usize, Vec<u8>),
) {
    let first = wanted.iter().position(|it| *it);
    let last = wanted.iter().rposition(|it| *it);
    let (Some(first), Some(last)) = (first, last) else {
        return;
    };
    let mut left = vec![(
        first..last + 1,
        encoding.cut(&request.bytes, &request.ends, first..last + 1),
    )];
    while let Some((rows, cut)) = left.pop() {
        if rows.len() == 1 {
            each(rows.start, cut.bytes);
            continue;
        }
        let half = rows.len() / 2;
        for part in [0..half, half..rows.len()] {
            let of_request = rows.start + part.start..rows.start + part.end;
            if wanted[of_request.clone()].contains(&true) {
                let half = encoding.cut(&cut.bytes, &cut.ends, part);
                left.push((of_request, half));
            }
        }
    }
}

/// Some rows of a part of which one record is the only one.
struct Window {
    /// The values of each column that has one for each row.
    values: Vec<Option<(ArrayRef, Option<UInt8Array>)>>,
    failed: Vec<FailedValue>,
}

impl Window {
    fn of(part: &Part<'_>, rows: Range<usize>, count: usize) -> Self {
        let of_column = |column: &Column<'_>| {
            let is_cut = column.index == Index::Row && rows.len() < count;
            is_cut.then(|| {
                let kinds = column.kinds.map(|it| it.slice(rows.start, rows.len()));
                (column.values.slice(rows.start, rows.len()), kinds)
            })
        };
        let failed = part.failed.iter();
        let failed = failed.filter(|it| rows.contains(&(it.row as usize)));
        Self {
            values: part.columns.iter().map(of_column).collect(),
            failed: failed
                .map(|it| FailedValue {
                    // It is within the rows of a part, which `u32` numbers.
                    row: it.row - rows.start as u32,
                    ..*it
                })
                .collect(),
        }
    }

    fn part<'w>(&'w self, part: &'w Part<'_>, rows: Range<usize>) -> Part<'w> {
        let columns = part.columns.iter().zip(&self.values);
        let columns = columns.map(|(column, cut)| match cut {
            Some((values, kinds)) => Column {
                name: column.name,
                values: values.as_ref(),
                kinds: kinds.as_ref(),
                index: Index::Row,
            },
            None => *column,
        });
        Part {
            rows: part.rows.map(|all| &all[rows]),
            columns: columns.collect(),
            overflow: part.overflow,
            overflow_except: part.overflow_except.clone(),
            failed: &self.failed,
        }
    }
}
