//! Reads a checkpoint, whatever state its files are in.
//!
//! Takes a data directory, gives the newest whole state and what the journal adds to it. Never gives up:
//! what cannot be read is put aside, and reported.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::state::{Checkpoint, JOURNAL, JOURNAL_PREVIOUS, NAME, PREVIOUS, PipelineState};
use super::wire;
use crate::data_dir::{DataDir, rename};
use crate::error::{Error, Kind};

/// What [`Checkpoint::load`] found.
#[derive(Debug)]
pub struct Loaded {
    /// The state to go on from.
    pub checkpoint: Checkpoint,
    /// Where it came from.
    pub origin: Origin,
    /// What to report to the user, if anything is wrong: lowercase, no full stop.
    pub warning: Option<String>,
    /// What is on the disk, if it is all of the state and can be appended to.
    pub(super) written: Option<Written>,
}

/// A whole state and its journal, of which every line was taken.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) base: String,
    pub(super) base_bytes: u64,
    pub(super) journal_bytes: u64,
}

/// Where a loaded state came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// There was none: the first start in this data directory.
    Fresh,
    /// From `checkpoint.json`.
    Loaded,
    /// From the previous copy, because `checkpoint.json` was missing or is now in quarantine.
    Previous {
        /// Where the corrupt file was put.
        quarantine: Option<PathBuf>,
    },
    /// Both copies were unreadable: everything is read again.
    Lost {
        /// Where the corrupt files were put.
        quarantine: Vec<PathBuf>,
    },
}

impl Loaded {
    /// Whether a pipeline starts for the first time, so that `start_at` and `ignore_older` apply. A
    /// state that was damaged is never a first start: what it knew would be skipped.
    #[must_use]
    pub fn is_first_start(&self, pipeline: &str) -> bool {
        match self.origin {
            Origin::Fresh => true,
            Origin::Loaded => !self.checkpoint.pipelines.contains_key(pipeline),
            Origin::Previous { .. } | Origin::Lost { .. } => false,
        }
    }
}

/// One file of a state.
enum StateFile {
    Whole(wire::Base),
    Absent,
    Damaged(String),
}

impl Checkpoint {
    /// Reads the state of a data directory. A corrupt file is put aside, never read in part.
    ///
    /// # Errors
    /// A later version wrote the file.
    pub fn load(dir: &DataDir) -> Result<Loaded, Error> {
        let previous = dir.path().join(PREVIOUS);
        let mut quarantine = Vec::new();
        let mut warnings = Vec::new();
        let mut found = None;
        let mut present = false;
        for (path, is_main) in [(&dir.path().join(NAME), true), (&previous, false)] {
            match read(path)? {
                StateFile::Absent => continue,
                StateFile::Whole(base) => {
                    found = Some((base, is_main));
                    break;
                }
                StateFile::Damaged(why) => {
                    present = true;
                    let what = put_aside(dir, path, &mut quarantine);
                    warnings.push(format!("{} is corrupt ({why}) and {what}", path.display()));
                }
            }
        }
        let mut written = None;
        let (checkpoint, origin) = match found {
            Some((base, is_main)) => {
                let name = base.checksum.clone();
                let is_current = base.is_current;
                let (checkpoint, journal) = with_journal(dir, base, is_main, &mut warnings);
                written = journal.filter(|_| is_main && is_current).and_then(|bytes| {
                    let meta = fs::metadata(dir.path().join(NAME)).ok()?;
                    Some(Written {
                        base: name,
                        base_bytes: meta.len(),
                        journal_bytes: bytes,
                    })
                });
                let origin = if is_main {
                    Origin::Loaded
                } else {
                    warnings.push(format!(
                        "the previous state in {} is used; the last records before the stop are sent again",
                        previous.display()
                    ));
                    let quarantine = quarantine.pop();
                    Origin::Previous { quarantine }
                };
                (checkpoint, origin)
            }
            None if present || has_journal(dir, &mut warnings) => {
                warnings.push(
                    "no earlier state is left: every file is read again from its first byte"
                        .to_owned(),
                );
                (Self::new(), Origin::Lost { quarantine })
            }
            None => (Self::new(), Origin::Fresh),
        };
        Ok(Loaded {
            checkpoint,
            origin,
            warning: (!warnings.is_empty()).then(|| warnings.join("; ")),
            written,
        })
    }
}

/// Whether there is a journal though no state is left that it could belong to.
fn has_journal(dir: &DataDir, warnings: &mut Vec<String>) -> bool {
    let journals = [JOURNAL, JOURNAL_PREVIOUS].map(|name| dir.path().join(name));
    // An empty one is begun before its state is put in place.
    let has_lines = |path: &&PathBuf| {
        fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() > 0)
    };
    let Some(journal) = journals.iter().find(has_lines) else {
        return false;
    };
    warnings.push(format!(
        "{} is missing, and {} is of no use without it",
        dir.path().join(NAME).display(),
        journal.display()
    ));
    true
}

fn read(path: &Path) -> Result<StateFile, Error> {
    let bytes = match tailrace_files::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(StateFile::Absent),
        Err(error) => return Ok(StateFile::Damaged(format!("it cannot be read: {error}"))),
    };
    match wire::decode(&bytes) {
        Ok(base) => Ok(StateFile::Whole(base)),
        Err(wire::Failure::Corrupt(why)) => Ok(StateFile::Damaged(why)),
        Err(wire::Failure::Newer(version)) => {
            let path = path.to_owned();
            Err(Kind::NewerVersion { path, version }.into())
        }
    }
}

/// Adds what changed since a whole state was written, as far as it can be read: a last line that is cut
/// off is what a crash leaves, and not reported. Gives the size of the journal if all of it belongs to the state and nothing else does.
fn with_journal(
    dir: &DataDir,
    base: wire::Base,
    is_main: bool,
    warnings: &mut Vec<String>,
) -> (Checkpoint, Option<u64>) {
    let mut checkpoint = base.checkpoint;
    let (mut whole, mut elsewhere) = (None, false);
    // What may stand in place of the journal: the one before it, if the state was about to be written anew.
    let mut is_expected = is_main && base.is_current;
    for name in [JOURNAL_PREVIOUS, JOURNAL] {
        let path = dir.path().join(name);
        let bytes = match tailrace_files::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if name == JOURNAL && is_expected {
                    warnings.push(format!(
                        "{} is missing; the last records before the stop are sent again",
                        path.display()
                    ));
                }
                continue;
            }
            Err(error) => {
                warnings.push(format!(
                    "{} cannot be read ({error}); the last records before the stop are sent again",
                    path.display()
                ));
                continue;
            }
        };
        let mut applied = 0;
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            match wire::apply(line, &base.checksum, &mut checkpoint) {
                Ok(true) if line.ends_with(b"\n") => applied += line.len(),
                Ok(true) => {}
                // It belongs to another whole state.
                Ok(false) => {
                    if name == JOURNAL && is_main {
                        warnings.push(format!(
                            "{} belongs to another state than {NAME}; the last records before the stop are sent again",
                            path.display()
                        ));
                    }
                    break;
                }
                Err(_) if is_torn(line) => break,
                Err(why) => {
                    let why = match line.contains(&0) {
                        true => "zeros where a record should be".to_owned(),
                        false => why,
                    };
                    warnings.push(format!(
                        "{} is corrupt ({why}); the last records before the stop are sent again",
                        path.display()
                    ));
                    break;
                }
            }
        }
        elsewhere |= name != JOURNAL && applied > 0;
        is_expected &= applied == 0 && !bytes.is_empty();
        whole = (name == JOURNAL && applied == bytes.len()).then_some(bytes.len() as u64);
    }
    let states = checkpoint.pipelines.values_mut();
    states.for_each(PipelineState::written);
    let is_dated = |checkpoint: &Checkpoint| {
        let mut states = checkpoint.pipelines.values();
        states.all(|state| state.gone.since > 0)
    };
    let whole = whole.filter(|_| !elsewhere && is_dated(&checkpoint));
    (checkpoint, whole)
}

/// Whether these bytes, in place of a line, are what a process leaves that was killed while it wrote one: its beginning.
fn is_torn(line: &[u8]) -> bool {
    line.first() == Some(&b'{') && !line.ends_with(b"\n") && !line.contains(&0)
}

/// Moves a file out of the way, so that somebody can look at it. Says what became of it.
fn put_aside(dir: &DataDir, path: &Path, quarantine: &mut Vec<PathBuf>) -> String {
    // A directory is nobody's damaged file: it gets the name that it would get if it were found when writing.
    match tailrace_files::move_dir_aside(path) {
        Ok(None) => {}
        Ok(Some(aside)) => {
            let text = format!("was moved to {}", aside.display());
            quarantine.push(aside);
            return text;
        }
        Err(error) => return format!("could not be moved away ({error})"),
    }
    let mut number = 1;
    let aside = loop {
        let aside = dir.path().join(format!("{NAME}.corrupt-{number}"));
        if fs::symlink_metadata(&aside).is_err() {
            break aside;
        }
        number += 1;
    };
    if let Err(error) = rename(path, &aside) {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        return format!("could not be moved away ({})", cause.unwrap_or_default());
    }
    let text = format!("was moved to {}", aside.display());
    quarantine.push(aside);
    text
}
