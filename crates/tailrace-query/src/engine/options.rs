//! How a query is run.

use tailrace_scan::Type;

use crate::archive::Archive;
use crate::bounds::Bounds;

/// How a query is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Types of columns by name, in the place of those of the sample; names that it lacks become columns.
    pub columns: Vec<(String, Type)>,
    /// Bounds of the records of every log table.
    pub bounds: Bounds,
    /// How much is read and computed at the same time.
    pub partitions: usize,
    /// Bytes read at once.
    pub chunk_bytes: usize,
    /// A file is not cut into smaller ranges.
    pub split_bytes_min: u64,
    /// At most so many rows are made: the first ones, where the query has no order.
    pub rows_max: Option<usize>,
    /// The files are followed: the query does not end. These are the words that name the files of `logs`.
    pub follow: Option<Vec<String>>,
    /// The rows become files of an archive.
    pub archive: Option<Archive>,
    /// What sorts, groups and joins may keep in memory; a query that needs more fails.
    pub memory_bytes: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            columns: Vec::new(),
            bounds: Bounds::default(),
            partitions: std::thread::available_parallelism().map_or(1, usize::from),
            chunk_bytes: 1 << 20,
            split_bytes_min: 4 << 20,
            rows_max: None,
            follow: None,
            archive: None,
            memory_bytes: 1 << 30,
        }
    }
}
