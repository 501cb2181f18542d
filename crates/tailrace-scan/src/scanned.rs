//! What a scanner gives back.
//!
//! Plain structs: arrays of one length, one slot per record.

use std::sync::Arc;

use arrow::array::{BooleanArray, StringViewArray, UInt8Array};
use arrow::record_batch::RecordBatch;

use crate::records::{Record, Records};
use crate::text::Buffers;

/// One scanned batch.
#[derive(Clone, Debug)]
pub struct Scanned {
    /// Column `i` is `Config::columns[i]`. An absent key, a JSON null, a value that does not fit and a bad value are
    /// NULL.
    pub batch: RecordBatch,
    /// Parallel to the batch's columns, for [`Type::Open`](crate::Type::Open): the kind of each value, a
    /// [`Kind`](tailrace_model::json::Kind) as number. NULL is an absent key or a bad value; a JSON null is 0.
    pub kinds: Vec<Option<UInt8Array>>,
    /// `SELECT *`: the keys that have a value in this batch (a JSON null is one), in the order in which this scanner
    /// first met them.
    pub star: Vec<StarColumn>,
    /// Where a record has members whose keys found no column: JSON object text of them, first duplicate only, bad
    /// values left out. `None` if no record has.
    pub overflow: Option<StringViewArray>,
    /// The raw record where it is text or malformed, else NULL; of a malformed one those members that are JSON may stand
    /// in columns too. `None` if no record is.
    pub raw: Option<StringViewArray>,
    /// Which records are malformed. `None` if none is.
    pub malformed: Option<BooleanArray>,
    /// Which records were cut at the size limit. `None` if none was.
    pub truncated: Option<BooleanArray>,
    /// What was counted.
    pub stats: Stats,
}

/// What the first of two phases gives: only the columns that a condition reads.
#[derive(Debug)]
pub struct First {
    /// Which records the rows of `batch` are, ascending: those that passed the prefilter. `None` is all of them.
    pub rows: Option<Vec<u32>>,
    /// Column `i` is that of `Config::first[i]`.
    pub batch: RecordBatch,
    /// What was counted in the records of the batch.
    pub stats: Stats,
    /// The texts of the batch, and what stands beside those that passed, for the second phase.
    pub(crate) buffers: Buffers,
    pub(crate) candidates: Option<Candidates>,
}

/// The records that passed the prefilter.
#[derive(Debug)]
pub(crate) struct Candidates {
    pub(crate) records: Vec<Record>,
    pub(crate) times: Vec<i64>,
    pub(crate) streams: Vec<u8>,
}

impl Candidates {
    /// These records of a batch.
    pub(crate) fn new(records: &Records<'_>, rows: &[u32]) -> Candidates {
        fn pick<T: Copy>(all: &[T], rows: &[u32]) -> Vec<T> {
            rows.iter()
                .filter_map(|&row| all.get(row as usize).copied())
                .collect()
        }
        Candidates {
            records: pick(records.records, rows),
            times: pick(records.times, rows),
            streams: pick(records.streams, rows),
        }
    }

    /// They alone.
    pub(crate) fn of<'a>(&'a self, records: &Records<'a>) -> Records<'a> {
        Records {
            records: &self.records,
            times: &self.times,
            streams: &self.streams,
            ..*records
        }
    }
}

/// One key of `SELECT *`.
#[derive(Clone, Debug)]
pub struct StarColumn {
    /// The key, unescaped.
    pub key: Arc<str>,
    /// Its values' text.
    pub values: StringViewArray,
    /// Its values' kinds, as in [`Scanned::kinds`].
    pub kinds: UInt8Array,
}

/// Counts of one batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Records scanned.
    pub records: u64,
    /// Records that are plain text.
    pub text: u64,
    /// Records that should be JSON objects and are not, as far as they were read, or whose envelope was broken.
    pub malformed: u64,
    /// Records cut at the size limit.
    pub truncated: u64,
    /// Records in which invalid UTF-8 became U+FFFD.
    pub repaired: u64,
    /// Values read that are no JSON value, in malformed records: NULL.
    pub bad_values: u64,
    /// Members without a proper key or without a colon, in malformed records: left out.
    pub bad_members: u64,
    /// Values that do not fit the type of a column, counted per column: NULL there.
    pub type_mismatches: u64,
    /// Lone surrogates (`\ud83d` without its other half) that became U+FFFD in values read.
    pub replaced_surrogates: u64,
    /// Members put into [`Scanned::overflow`].
    pub overflow_members: u64,
}
