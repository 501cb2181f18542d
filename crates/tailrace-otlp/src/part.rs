//! The input of encoders: columns of output rows, and the data beside them. These are plain structs that borrow.

use std::ops::Range;

use arrow::array::{Array, BooleanArray, StringViewArray, UInt8Array};
use tailrace_zstd::Marks;

use crate::value::SourceFacts;

/// What a column's values are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// One value per record of the envelope (a column passed through from the scan).
    Record,
    /// One value per output row of the part (a computed column).
    Row,
}

/// One output column.
#[derive(Clone, Copy, Debug)]
pub struct Column<'a> {
    /// Name in the query's output.
    pub name: &'a str,
    /// The values, of any Arrow type.
    pub values: &'a dyn Array,
    /// Of an open column (`values` is a StringViewArray): each value's own kind, a
    /// [`Kind`](tailrace_model::json::Kind) as a number; Arrow null where the key is absent.
    pub kinds: Option<&'a UInt8Array>,
    /// What the values are counted by.
    pub index: Index,
}

/// The output rows of one branch of the query.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    /// The record of each output row, ascending, perhaps repeated; `None` is every record once.
    pub rows: Option<&'a [u32]>,
    /// The columns in output order. Where two have one name, the first that is present in a row
    /// counts there.
    pub columns: Vec<Column<'a>>,
    /// By record: further members, as the text of a JSON object; null where there are none.
    pub overflow: Option<&'a StringViewArray>,
    /// Of these, the names that are not written: the query leaves them out, or gives their names to columns of its own.
    pub overflow_except: Vec<&'a str>,
    /// Computed values that could not be computed, ascending: they are present and empty, so that nothing else takes
    /// their place, and their rows are marked.
    pub failed: &'a [FailedValue],
}

/// A computed value that could not be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FailedValue {
    /// Its row in the part.
    pub row: u32,
    /// Its column in the part.
    pub column: u32,
}

impl Part<'_> {
    /// Whether a value of this row could not be computed.
    #[inline]
    pub(crate) fn has_failed(&self, row: usize) -> bool {
        let of_row = |failed: &FailedValue| (failed.row as usize).cmp(&row);
        !self.failed.is_empty() && self.failed.binary_search_by(of_row).is_ok()
    }
}

/// Consecutive records of one source.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// Which records.
    pub records: Range<u32>,
    /// What is known of their source.
    pub source: &'a SourceFacts,
}

/// The data beside the columns, by record.
#[derive(Clone, Debug)]
pub struct Envelope<'a> {
    /// When the records were read, in nanoseconds since the Unix epoch.
    pub observed_ns: i64,
    /// Number of records.
    pub records: u32,
    /// The raw record where it is text or malformed, else null. It is the body of rows that have no
    /// other; of a malformed record with a body of its own it is an attribute.
    pub raw: Option<&'a StringViewArray>,
    /// Which records were expected to be JSON and are not.
    pub malformed: Option<&'a BooleanArray>,
    /// Which records were longer than the limit.
    pub truncated: Option<&'a BooleanArray>,
    /// The container runtime's time in nanoseconds, 0 for none; empty, or one per record.
    pub times: &'a [i64],
    /// 1 stdout, 2 stderr, 0 neither; empty, or one per record.
    pub streams: &'a [u8],
    /// What identifies a record for ever, 0 where nothing does; empty, or one per record.
    pub uids: &'a [u128],
    /// The sources, ascending; together they cover every record. A record outside all runs has no
    /// facts.
    pub runs: &'a [Run<'a>],
}

impl<'a> Envelope<'a> {
    /// The container runtime's time of a record, 0 for none.
    pub(crate) fn time(&self, record: usize) -> i64 {
        self.times.get(record).copied().unwrap_or(0)
    }

    /// What identifies a record for ever.
    pub(crate) fn uid(&self, record: usize) -> Option<u128> {
        self.uids.get(record).copied().filter(|&uid| uid != 0)
    }

    /// The raw text of a record that is text or malformed.
    pub(crate) fn raw(&self, record: usize) -> Option<&'a str> {
        self.raw
            .filter(|raw| raw.is_valid(record))
            .map(|raw| raw.value(record))
    }

    pub(crate) fn is_malformed(&self, record: usize) -> bool {
        is_true(self.malformed, record)
    }

    pub(crate) fn is_truncated(&self, record: usize) -> bool {
        is_true(self.truncated, record)
    }
}

fn is_true(flags: Option<&BooleanArray>, record: usize) -> bool {
    flags.is_some_and(|flags| flags.is_valid(record) && flags.value(record))
}

/// Bytes for an output, and where each row ends in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// An uncompressed ExportLogsServiceRequest, or lines of text.
    pub bytes: Vec<u8>,
    /// Where each LogRecord (or line) ends in `bytes`.
    pub ends: Vec<u32>,
    /// The record that each LogRecord (or line) comes from, ascending, repeated where one record
    /// gave several rows.
    pub records: Vec<u32>,
    /// Where values are in `bytes`, for the compressor; none if the encoder makes none.
    pub marks: Marks,
}

impl Request {
    /// Keeps at most so many bytes of memory in each buffer.
    pub fn release(&mut self, bytes: usize) {
        self.bytes.shrink_to(bytes);
        self.ends.shrink_to(bytes / size_of::<u32>());
        self.records.shrink_to(bytes / size_of::<u32>());
        self.marks.release(bytes);
    }
}

/// What an encoder did in one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// LogRecords (or lines) written.
    pub log_records: u64,
    /// Requests emitted.
    pub requests: u64,
    /// Their bytes, uncompressed.
    pub bytes: u64,
    /// Time columns that held a value which is no time after the epoch: the value stayed an
    /// attribute.
    pub unparsable_timestamps: u64,
    /// Trace ids, span ids, trace flags and severity numbers that are none: the value stayed an
    /// attribute.
    pub unparsable_fields: u64,
    /// Nested values that are not JSON: sent as text.
    pub invalid_json: u64,
    /// Nested values deeper than [`NESTING_MAX`](crate::NESTING_MAX): sent as JSON text.
    pub too_deep: u64,
    /// Members left out because their key was there already.
    pub duplicate_keys: u64,
}

impl std::ops::AddAssign for Stats {
    fn add_assign(&mut self, other: Stats) {
        self.log_records += other.log_records;
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.unparsable_timestamps += other.unparsable_timestamps;
        self.unparsable_fields += other.unparsable_fields;
        self.invalid_json += other.invalid_json;
        self.too_deep += other.too_deep;
        self.duplicate_keys += other.duplicate_keys;
    }
}

/// Calls `each(part, row of the part, record)` for every row of every part, such that the rows of
/// one record stay together: by record, then by part, then by row.
pub(crate) fn merge_rows(
    parts: &[Part<'_>],
    records: u32,
    mut each: impl FnMut(usize, usize, usize),
) {
    if let [part] = parts {
        match part.rows {
            None => (0..records as usize).for_each(|record| each(0, record, record)),
            Some(rows) => rows
                .iter()
                .enumerate()
                .for_each(|(row, record)| each(0, row, *record as usize)),
        }
        return;
    }
    let mut next = vec![0; parts.len()];
    let record_of = |part: &Part<'_>, row: usize| match part.rows {
        None => u32::try_from(row).ok().filter(|record| *record < records),
        Some(rows) => rows.get(row).copied(),
    };
    loop {
        let heads = parts
            .iter()
            .zip(&next)
            .filter_map(|(part, row)| record_of(part, *row));
        let Some(record) = heads.min() else {
            return;
        };
        for (at, part) in parts.iter().enumerate() {
            while record_of(part, next[at]) == Some(record) {
                each(at, next[at], record as usize);
                next[at] += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(parts: &[Option<&[u32]>], records: u32) -> Vec<(usize, usize, usize)> {
        let parts: Vec<_> = parts
            .iter()
            .map(|rows| Part {
                rows: *rows,
                columns: Vec::new(),
                overflow: None,
                overflow_except: Vec::new(),
                failed: &[],
            })
            .collect();
        let mut rows = Vec::new();
        merge_rows(&parts, records, |part, row, record| {
            rows.push((part, row, record))
        });
        rows
    }

    #[test]
    fn rows_of_one_record_stay_together() {
        assert_eq!(merged(&[], 3), []);
        assert_eq!(merged(&[None], 2), [(0, 0, 0), (0, 1, 1)]);
        assert_eq!(
            merged(&[Some(&[1, 1, 4])], 9),
            [(0, 0, 1), (0, 1, 1), (0, 2, 4)]
        );
        assert_eq!(
            merged(&[Some(&[0, 2, 2]), None, Some(&[]), Some(&[2])], 3),
            [
                (0, 0, 0),
                (1, 0, 0),
                (1, 1, 1),
                (0, 1, 2),
                (0, 2, 2),
                (1, 2, 2),
                (3, 0, 2)
            ]
        );
    }
}
