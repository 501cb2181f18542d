//! What a query read, and what of it could not be read as it should be. Counted by all partitions at once.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tailrace_scan::Stats;
use tokio::sync::Notify;

use crate::bounds::Bounded;
use crate::partition::Source;
use crate::reader::Chunk;
use crate::sample::Sample;

/// Late keys that are kept of each part of a scan.
pub const LATE_KEYS_MAX: usize = 64;

/// Counters of one query.
#[derive(Debug, Default)]
pub struct Notes {
    bytes: AtomicU64,
    file_bytes: AtomicU64,
    file_bytes_total: AtomicU64,
    has_unknown_size: AtomicBool,
    has_stream: AtomicBool,
    records: AtomicU64,
    kept: AtomicU64,
    prefiltered: AtomicU64,
    untimed: AtomicU64,
    unleveled: AtomicU64,
    files: AtomicU64,
    keyless: AtomicU64,
    pruned: AtomicU64,
    parquet_files: AtomicU64,
    parquet_pruned: AtomicU64,
    malformed: AtomicU64,
    repaired: AtomicU64,
    truncated: AtomicU64,
    unfit: AtomicU64,
    late_keys: Mutex<BTreeSet<String>>,
    problems: Mutex<Vec<String>>,
    has_problems: Notify,
}

/// The counters at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes read, after decompression.
    pub bytes: u64,
    /// Records found in them.
    pub records: u64,
    /// Records that met the conditions that were evaluated during the scan.
    pub kept: u64,
    /// Records that a search for texts left out, before anything of them was read.
    pub prefiltered: u64,
    /// Records without a time, left out by a bound on it.
    pub untimed: u64,
    /// Records without a severity, left out by a bound on it.
    pub unleveled: u64,
    /// Values in the beginning of the files whose keys are no columns, because there are too many keys.
    pub keyless: u64,
    /// Inputs of the log tables that are read.
    pub files: u64,
    /// Inputs that are not read, because they were last modified before what is asked for.
    pub pruned: u64,
    /// Parquet files that are read, or may be.
    pub parquet_files: u64,
    /// Parquet files that are not read, because the values of their directories meet no condition.
    pub parquet_pruned: u64,
    /// Records that should be JSON and are not, of those that were looked into.
    pub malformed: u64,
    /// Records in which invalid UTF-8 was replaced, of those that were looked into.
    pub repaired: u64,
    /// Records longer than the limit.
    pub truncated: u64,
    /// Values that do not fit the type of their column and are NULL.
    pub unfit: u64,
}

/// How far a query is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read of the files as they are stored: of a compressed file, before decompression.
    pub file_bytes: u64,
    /// How many of them there are to read. `None` if an input has no size, as a pipe has none, or if there is no input.
    pub file_bytes_total: Option<u64>,
    /// Records that met the conditions that were evaluated during the scan.
    pub kept: u64,
}

impl Notes {
    pub(crate) fn read(&self, chunk: &Chunk) {
        self.bytes.fetch_add(chunk.bytes, Ordering::Relaxed);
        self.file_bytes
            .fetch_add(chunk.file_bytes, Ordering::Relaxed);
        self.records
            .fetch_add(chunk.len() as u64, Ordering::Relaxed);
    }

    /// Adds what one scan of these inputs will read.
    pub(crate) fn will_read(&self, sources: &[Source]) {
        for source in sources {
            match source.file_bytes {
                Some(bytes) => _ = self.file_bytes_total.fetch_add(bytes, Ordering::Relaxed),
                None => self.has_unknown_size.store(true, Ordering::Relaxed),
            }
            if source.input.is_stream() {
                self.has_stream.store(true, Ordering::Relaxed);
            }
        }
    }

    /// A run begins again, with another plan: what it read is not counted twice. It is as far as it could be of what was to be read.
    pub(crate) fn restart(&self) {
        self.replan();
        let total = self.file_bytes_total.load(Ordering::Relaxed);
        self.file_bytes.store(total, Ordering::Relaxed);
        let of_records = [
            &self.bytes,
            &self.records,
            &self.kept,
            &self.prefiltered,
            &self.untimed,
            &self.unleveled,
            &self.malformed,
            &self.repaired,
            &self.truncated,
            &self.unfit,
        ];
        for counter in of_records {
            counter.store(0, Ordering::Relaxed);
        }
    }

    /// Whether an input can be read once.
    pub(crate) fn has_stream(&self) -> bool {
        self.has_stream.load(Ordering::Relaxed)
    }

    /// The query is planned again: which files of Parquet are read is counted again.
    pub(crate) fn replan(&self) {
        self.parquet_files.store(0, Ordering::Relaxed);
        self.parquet_pruned.store(0, Ordering::Relaxed);
    }

    /// How far the query is now.
    pub fn progress(&self) -> Progress {
        let total = self.file_bytes_total.load(Ordering::Relaxed);
        let is_known = !self.has_unknown_size.load(Ordering::Relaxed);
        Progress {
            file_bytes: self.file_bytes.load(Ordering::Relaxed),
            file_bytes_total: Some(total).filter(|&total| is_known && total > 0),
            kept: self.kept.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn scanned(&self, stats: &Stats) {
        self.malformed.fetch_add(stats.malformed, Ordering::Relaxed);
        self.repaired.fetch_add(stats.repaired, Ordering::Relaxed);
        self.truncated.fetch_add(stats.truncated, Ordering::Relaxed);
        self.unfit
            .fetch_add(stats.type_mismatches, Ordering::Relaxed);
    }

    /// Keeps keys that only records have which come after the beginning of the files. Gives how many there were.
    pub(crate) fn add_late_keys<'k>(&self, keys: impl Iterator<Item = &'k str>) -> usize {
        let mut keys = keys.peekable();
        if keys.peek().is_none() {
            return 0;
        }
        let mut known = self
            .late_keys
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        keys.map(|key| known.insert(key.to_owned())).count()
    }

    /// Keys for which `*` has no column, because the beginning of the files lacks them: at most [`LATE_KEYS_MAX`] of each scan.
    pub fn late_keys(&self) -> Vec<String> {
        let known = self
            .late_keys
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        known.iter().cloned().collect()
    }

    pub(crate) fn kept(&self, rows: u64) {
        self.kept.fetch_add(rows, Ordering::Relaxed);
    }

    pub(crate) fn prefiltered(&self, records: u64) {
        self.prefiltered.fetch_add(records, Ordering::Relaxed);
    }

    pub(crate) fn lacking(&self, bounded: Bounded, records: u64) {
        let counter = match bounded {
            Bounded::Time => &self.untimed,
            Bounded::Severity => &self.unleveled,
        };
        counter.fetch_add(records, Ordering::Relaxed);
    }

    pub(crate) fn planned(&self, sample: &Sample) {
        let add = |counter: &AtomicU64, count: usize| {
            counter.fetch_add(count as u64, Ordering::Relaxed);
        };
        add(&self.files, sample.sources.len());
        add(&self.pruned, sample.pruned);
        self.keyless.fetch_add(sample.left_out, Ordering::Relaxed);
    }

    /// A scan of a table of Parquet files keeps so many of them.
    pub(crate) fn parquet(&self, all: usize, kept: usize) {
        self.parquet_files.fetch_add(kept as u64, Ordering::Relaxed);
        let pruned = all.saturating_sub(kept) as u64;
        self.parquet_pruned.fetch_add(pruned, Ordering::Relaxed);
    }

    /// Keeps something that a person should know now, of a query that does not end.
    pub(crate) fn problem(&self, text: String) {
        let mut problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        problems.push(text);
        self.has_problems.notify_one();
    }

    /// Waits for problems with the files of a query that follows them, and takes them.
    pub async fn problems(&self) -> Vec<String> {
        loop {
            {
                let mut problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
                if !problems.is_empty() {
                    return std::mem::take(&mut *problems);
                }
            }
            self.has_problems.notified().await;
        }
    }

    /// The counters now.
    pub fn counts(&self) -> Counts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            bytes: of(&self.bytes),
            records: of(&self.records),
            kept: of(&self.kept),
            prefiltered: of(&self.prefiltered),
            untimed: of(&self.untimed),
            unleveled: of(&self.unleveled),
            files: of(&self.files),
            keyless: of(&self.keyless),
            pruned: of(&self.pruned),
            parquet_files: of(&self.parquet_files),
            parquet_pruned: of(&self.parquet_pruned),
            malformed: of(&self.malformed),
            repaired: of(&self.repaired),
            truncated: of(&self.truncated),
            unfit: of(&self.unfit),
        }
    }
}
