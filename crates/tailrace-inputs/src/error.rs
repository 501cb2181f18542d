//! The one error of this crate: opaque outside, its kind inside.
//!
//! Takes an operation and its path, gives a message that says what to do next. Never carries log
//! bytes, and never stands for a bad log file: those are [`crate::FileEvent::Problem`]s.

use std::io;
use std::path::PathBuf;

/// Why an input or the data directory could not be set up. The cause is in `source()`.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] Kind);

impl Error {
    /// Whether the configuration has to change (a bad glob), as opposed to the machine.
    #[must_use]
    pub fn is_config(&self) -> bool {
        matches!(
            self.0,
            Kind::Glob { .. } | Kind::GlobShape { .. } | Kind::GlobsTogether | Kind::NoInclude
        )
    }

    /// Whether another agent holds the data directory.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        matches!(self.0, Kind::Locked { .. })
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Kind {
    #[error("glob `{glob}` is not valid: {reason}")]
    Glob { glob: String, reason: String },
    #[error("glob `{glob}` {why}")]
    GlobShape { glob: String, why: &'static str },
    #[error("the globs of `exclude` are too large together; leave some of them out")]
    GlobsTogether,
    #[error("a file input needs at least one include glob")]
    NoInclude,
    #[error("the current directory is unknown, so relative globs cannot be used")]
    CurrentDir {
        #[source]
        source: io::Error,
    },
    #[error("no eventfd could be made to wake the reader")]
    Waker {
        #[source]
        source: io::Error,
    },
    #[error(
        "data_dir {path} cannot be created; make it, or set `data_dir` to a writable directory"
    )]
    DataDirCreate {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "data_dir {path} is not writable; the agent keeps its checkpoint there, so set `data_dir` to one that is"
    )]
    DataDirWrite {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "everybody may write to data_dir {path}, and whoever replaces files there decides what is read and sent: \
         `chmod go-w {path}`, or set `data_dir` to a directory of its own"
    )]
    DataDirOpen { path: PathBuf },
    #[error("{path} cannot be used as a file of the agent")]
    StateFile {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "data_dir {path} is in use by another tailrace agent; give each agent its own `data_dir`"
    )]
    Locked { path: PathBuf },
    #[error("the queue {path} cannot be used; `data_dir` must be writable")]
    Queue {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{path} cannot be read")]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{path} cannot be written")]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{from} cannot be renamed to {to}")]
    Rename {
        from: PathBuf,
        to: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "{path} has checkpoint version {version}, this build knows 2; start the newer tailrace, or move the file away"
    )]
    NewerVersion { path: PathBuf, version: u32 },
}
