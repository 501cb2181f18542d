//! The dead-letter file of one pipeline: where it is, and what happens when it is full. Knows no request.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tailrace_config::{self as config, OnFull};
use tailrace_outputs::delivery::{DeadLetterEntry, DeadLetterError, DeadLetterFile};

/// Stores records as dead-letter entries.
#[derive(Debug)]
pub(crate) struct DeadLetterQueue {
    file: DeadLetterFile,
    on_full: OnFull,
}

/// What became of a record that was to be stored.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// It is in the file, on disk.
    InFile,
    /// There is no space, and it is to be dropped.
    Dropped,
}

/// What became of several records that were to be stored, in order: some are in the file, then some are dropped, and
/// the rest has to wait.
#[derive(Debug)]
pub(crate) struct Added {
    /// How many are in the file, on disk.
    pub added: usize,
    /// For how many there is no space, and they are to be dropped.
    pub dropped: usize,
    /// Why the rest has to wait.
    pub error: Option<DeadLetterError>,
}

const FOLDER: &str = "dead-letter";
const EXTENSION: &str = "ndjson";

/// The dead-letter file of a pipeline.
pub(crate) fn dead_letter_path(data_dir: &Path, pipeline: &str) -> PathBuf {
    data_dir
        .join(FOLDER)
        .join(format!("{pipeline}.{EXTENSION}"))
}

/// The dead-letter files of pipelines that the config does not have, or has no more.
pub fn left_dead_letters(config: &config::Config) -> Vec<PathBuf> {
    let entries = fs::read_dir(config.data_dir.join(FOLDER));
    let paths = entries.into_iter().flatten().flatten().map(|it| it.path());
    let is_left = |path: &PathBuf| {
        let name = path.file_stem().and_then(|name| name.to_str());
        path.extension().is_some_and(|it| it == EXTENSION)
            && name.is_none_or(|name| !config.pipelines.contains_key(name))
    };
    let mut left: Vec<PathBuf> = paths.filter(is_left).collect();
    left.sort();
    left
}

impl DeadLetterQueue {
    pub(crate) fn new(data_dir: &Path, pipeline: &str, config: &config::DeadLetter) -> Self {
        let path = dead_letter_path(data_dir, pipeline);
        Self {
            file: DeadLetterFile::new(path, config.max_bytes),
            on_full: config.on_full,
        }
    }

    /// Stores a record; the time is filled in. It writes and syncs.
    ///
    /// # Errors
    ///
    /// Why it has to wait.
    pub(crate) fn add(&self, entry: DeadLetterEntry) -> Result<Stored, DeadLetterError> {
        let added = self.add_all(std::slice::from_ref(&entry));
        match added.error {
            Some(error) => Err(error),
            None if added.dropped > 0 => Ok(Stored::Dropped),
            None => Ok(Stored::InFile),
        }
    }

    /// Stores records; the time is filled in. It writes, and syncs once.
    pub(crate) fn add_all(&self, entries: &[DeadLetterEntry]) -> Added {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.map_or(0, |now| i64::try_from(now.as_nanos()).unwrap_or(i64::MAX));
        let time = rfc3339(now);
        let timed = |entry: &DeadLetterEntry| DeadLetterEntry {
            time: time.clone(),
            ..entry.clone()
        };
        let entries: Vec<DeadLetterEntry> = entries.iter().map(timed).collect();
        let (added, error) = match self.file.add_all(&entries) {
            Ok(()) => (entries.len(), None),
            Err((added, error)) => (added, Some(error)),
        };
        let is_full = matches!(error, Some(DeadLetterError::Full { .. }));
        let drops = is_full && self.on_full == OnFull::Drop;
        Added {
            added,
            dropped: if drops { entries.len() - added } else { 0 },
            error: error.filter(|_| !drops),
        }
    }
}

/// A time in nanoseconds since the Unix epoch, as text.
pub(crate) fn rfc3339(time_ns: i64) -> String {
    let mut text = Vec::new();
    tailrace_model::time::write_rfc3339(time_ns, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}
