//! The dead-letter file of one pipeline: where it is, and what happens when it is full. Knows no request.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tailrace_config::{self as config, OnFull};
use tailrace_output::{DeadLetter, DeadLetterError, DeadLetters};

/// Sets records aside.
#[derive(Debug)]
pub(crate) struct SetAside {
    file: DeadLetters,
    on_full: OnFull,
}

/// What became of a record that was to be set aside.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is in the file, on disk.
    File,
    /// There is no space, and it is to be dropped.
    Nowhere,
}

/// The dead-letter file of a pipeline.
pub(crate) fn dead_letter_path(data_dir: &Path, pipeline: &str) -> PathBuf {
    data_dir
        .join("dead-letter")
        .join(format!("{pipeline}.ndjson"))
}

impl SetAside {
    pub(crate) fn new(data_dir: &Path, pipeline: &str, config: &config::DeadLetter) -> Self {
        let path = dead_letter_path(data_dir, pipeline);
        Self {
            file: DeadLetters::new(path, config.max_bytes),
            on_full: config.on_full,
        }
    }

    /// Sets a record aside; the time is filled in. It writes and syncs.
    ///
    /// # Errors
    ///
    /// Why it has to wait.
    pub(crate) fn add(&self, mut letter: DeadLetter) -> Result<Place, DeadLetterError> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.map_or(0, |now| i64::try_from(now.as_nanos()).unwrap_or(i64::MAX));
        let mut time = Vec::new();
        tailrace_model::time::write_rfc3339(now, &mut time);
        letter.time = String::from_utf8_lossy(&time).into_owned();
        match self.file.add(&letter) {
            Ok(()) => Ok(Place::File),
            Err(DeadLetterError::Full { .. }) if self.on_full == OnFull::Drop => Ok(Place::Nowhere),
            Err(error) => Err(error),
        }
    }
}
