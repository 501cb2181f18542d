//! What a query read, and what of it could not be read as it should be. Counted by all partitions at once.

use std::sync::atomic::{AtomicU64, Ordering};

use tailrace_scan::Stats;

/// Counters of one query.
#[derive(Debug, Default)]
pub struct Notes {
    bytes: AtomicU64,
    records: AtomicU64,
    kept: AtomicU64,
    malformed: AtomicU64,
    repaired: AtomicU64,
    truncated: AtomicU64,
    unfit: AtomicU64,
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
    /// Records that should be JSON and are not, of those that were looked into.
    pub malformed: u64,
    /// Records in which invalid UTF-8 was replaced, of those that were looked into.
    pub repaired: u64,
    /// Records longer than the limit.
    pub truncated: u64,
    /// Values that do not fit the type of their column and are NULL.
    pub unfit: u64,
}

impl Notes {
    pub(crate) fn read(&self, bytes: u64, records: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.records.fetch_add(records, Ordering::Relaxed);
    }

    pub(crate) fn scanned(&self, stats: &Stats) {
        self.malformed.fetch_add(stats.malformed, Ordering::Relaxed);
        self.repaired.fetch_add(stats.repaired, Ordering::Relaxed);
        self.truncated.fetch_add(stats.truncated, Ordering::Relaxed);
        self.unfit
            .fetch_add(stats.type_mismatches, Ordering::Relaxed);
    }

    pub(crate) fn kept(&self, rows: u64) {
        self.kept.fetch_add(rows, Ordering::Relaxed);
    }

    /// The counters now.
    pub fn counts(&self) -> Counts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            bytes: of(&self.bytes),
            records: of(&self.records),
            kept: of(&self.kept),
            malformed: of(&self.malformed),
            repaired: of(&self.repaired),
            truncated: of(&self.truncated),
            unfit: of(&self.unfit),
        }
    }
}
