//! How far every file is safely delivered, on disk: `checkpoint.json` in the data directory.
//!
//! Takes watermarks from the pipelines, gives resume entries at the next start. Never moves a
//! watermark by itself and never holds a log byte: files are known by device, inode and a keyed hash.
//!
//! Why a restart loses nothing. A watermark is the lowest byte of a file that some record not yet
//! settled stands in; the pipeline moves it only when everything below is delivered, rejected or
//! filtered. [`PipelineState::set`] refuses to move it back. [`Checkpoint::store`] writes the whole
//! state beside the old file, syncs it, renames it into place and syncs the directory, so that at any
//! instant the disk holds one whole state, old or new. Both are true: an older watermark means that
//! bytes are read again, never that they are left out. A file that does not match its checksum is
//! put aside and the previous state is used; if there is none, files are read from byte 0 and a
//! warning says so. So every failure ends in repeats, none in loss.
//!
//! Format, version 1: `{"version":1,"checksum":"<xxh3-64 of version and body>","body":{...}}`. Unknown
//! fields in the body are ignored, so that a later build can add some; the path is text in which `%`
//! and bytes that are not UTF-8 are `%XX`.

mod path_text;
mod wire;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::data_dir::{DataDir, rename};
use crate::error::{Error, Kind};
use crate::follower::Resume;
use crate::identity::{FileId, Fingerprint, FingerprintKey};

const NAME: &str = "checkpoint.json";
const PREVIOUS: &str = "checkpoint.json.prev";

/// The state of all pipelines of one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    key: FingerprintKey,
    pipelines: BTreeMap<String, PipelineState>,
}

/// The state of one pipeline: its files and what became of files that are gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PipelineState {
    files: BTreeMap<FileKey, FileState>,
    /// Counts of files that are no longer listed, by output.
    retired: BTreeMap<String, Counts>,
}

/// One watermark, in the words of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watermark {
    /// The lowest byte that is not settled.
    pub offset: u64,
    /// What became of the records below it, since the file was first read.
    pub counts: Counts,
}

/// Records by their final outcome, cumulative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Accepted by the output.
    pub delivered: u64,
    /// Removed by the query.
    pub filtered: u64,
    /// Refused by the output for good.
    pub rejected: u64,
    /// Set aside because the output will never accept them.
    pub dead_lettered: u64,
    /// Given up, for any reason.
    pub dropped: u64,
}

impl Counts {
    /// The sum of two, field by field.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            delivered: self.delivered + other.delivered,
            filtered: self.filtered + other.filtered,
            rejected: self.rejected + other.rejected,
            dead_lettered: self.dead_lettered + other.dead_lettered,
            dropped: self.dropped + other.dropped,
        }
    }
}

/// A file as the checkpoint knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileState {
    /// Of its first bytes; replaced as it grows.
    pub fingerprint: Fingerprint,
    /// Its last known name.
    pub path: PathBuf,
    /// Its last known size.
    pub size: u64,
    outputs: BTreeMap<String, Watermark>,
}

/// The part of a file's identity that never changes within a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FileKey {
    device: u64,
    inode: u64,
    generation: u32,
}

impl FileKey {
    fn new(id: FileId, generation: u32) -> Self {
        Self {
            device: id.device,
            inode: id.inode,
            generation,
        }
    }
}

/// What [`Checkpoint::load`] found.
#[derive(Debug)]
pub struct Loaded {
    /// The state to go on from.
    pub checkpoint: Checkpoint,
    /// Where it came from.
    pub origin: Origin,
    /// What to tell the user, if anything is wrong: lowercase, no full stop.
    pub warning: Option<String>,
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

/// Why a watermark was not taken: it lies below the one that is known, which stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("watermark {offset} is below {known}, which is already settled")]
pub struct Backwards {
    /// The refused offset.
    pub offset: u64,
    /// The offset that is kept.
    pub known: u64,
}

impl Default for Checkpoint {
    fn default() -> Self {
        Self::new()
    }
}

impl Checkpoint {
    /// An empty state with a new random fingerprint key.
    #[must_use]
    pub fn new() -> Self {
        Self {
            key: FingerprintKey::random(),
            pipelines: BTreeMap::new(),
        }
    }

    /// The key of all fingerprints in this state.
    #[must_use]
    pub fn fingerprint_key(&self) -> FingerprintKey {
        self.key
    }

    /// The state of one pipeline; `None` if it never ran.
    #[must_use]
    pub fn pipeline(&self, name: &str) -> Option<&PipelineState> {
        self.pipelines.get(name)
    }

    /// Puts the state of one pipeline in, in place of what was known of it. A pipeline that has run
    /// is put in even if it has no file, so that its next start is not a first one.
    pub fn merge(&mut self, pipeline: &str, state: PipelineState) {
        self.pipelines.insert(pipeline.to_owned(), state);
    }

    /// Reads the state of a data directory. A corrupt file is put aside, never read in part.
    ///
    /// # Errors
    /// The directory cannot be read or written, or a later version wrote the file.
    pub fn load(dir: &DataDir) -> Result<Loaded, Error> {
        let main = dir.path().join(NAME);
        let previous = dir.path().join(PREVIOUS);
        let mut quarantine = Vec::new();
        let mut warnings = Vec::new();
        let mut found = None;
        let mut present = false;
        for (path, is_main) in [(&main, true), (&previous, false)] {
            let bytes = match fs::read(path) {
                Ok(bytes) => bytes,
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(source) => {
                    let path = path.clone();
                    return Err(Kind::Read { path, source }.into());
                }
            };
            present = true;
            match wire::decode(&bytes) {
                Ok(checkpoint) => {
                    found = Some((checkpoint, is_main));
                    break;
                }
                Err(wire::Failure::Newer(version)) => {
                    let path = path.clone();
                    return Err(Kind::NewerVersion { path, version }.into());
                }
                Err(wire::Failure::Corrupt(why)) => {
                    let aside = put_aside(dir, path)?;
                    warnings.push(format!(
                        "{} is corrupt ({why}) and was moved to {}",
                        path.display(),
                        aside.display()
                    ));
                    quarantine.push(aside);
                }
            }
        }
        let (checkpoint, origin) = match found {
            Some((checkpoint, true)) => (checkpoint, Origin::Loaded),
            Some((checkpoint, false)) => {
                warnings.push(format!(
                    "the previous state in {} is used; the last records before the stop are sent again",
                    previous.display()
                ));
                let quarantine = quarantine.pop();
                (checkpoint, Origin::Previous { quarantine })
            }
            None if present => {
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
        })
    }

    /// Writes the state, whole or not at all, and keeps the one that was there as the previous one.
    ///
    /// # Errors
    /// The data directory cannot be written; the file on disk is as it was.
    pub fn store(&self, dir: &DataDir) -> Result<(), Error> {
        dir.replace(NAME, PREVIOUS, &wire::encode(self))?;
        Ok(())
    }
}

impl PipelineState {
    /// Notes how far an output has settled a file, with the identity, name and size it has now.
    ///
    /// # Errors
    /// The offset is below the known one. Nothing is changed then.
    pub fn set(
        &mut self,
        output: &str,
        id: FileId,
        generation: u32,
        path: &Path,
        size: u64,
        watermark: Watermark,
    ) -> Result<(), Backwards> {
        let key = FileKey::new(id, generation);
        let known = self
            .files
            .get(&key)
            .and_then(|file| file.outputs.get(output));
        if let Some(known) = known
            && watermark.offset < known.offset
        {
            return Err(Backwards {
                offset: watermark.offset,
                known: known.offset,
            });
        }
        let file = self.files.entry(key).or_insert_with(|| FileState {
            fingerprint: id.fingerprint,
            path: path.to_owned(),
            size,
            outputs: BTreeMap::new(),
        });
        file.fingerprint = id.fingerprint;
        file.size = size;
        if file.path != path {
            path.clone_into(&mut file.path);
        }
        match file.outputs.get_mut(output) {
            Some(known) => *known = watermark,
            None => {
                file.outputs.insert(output.to_owned(), watermark);
            }
        }
        Ok(())
    }

    /// The watermark of an output in a file.
    #[must_use]
    pub fn get(&self, output: &str, id: FileId, generation: u32) -> Option<Watermark> {
        let file = self.files.get(&FileKey::new(id, generation))?;
        file.outputs.get(output).copied()
    }

    /// Drops a file that is gone and settled, or lost. Its counts stay in the totals.
    pub fn remove(&mut self, id: FileId, generation: u32) {
        let Some(file) = self.files.remove(&FileKey::new(id, generation)) else {
            return;
        };
        for (output, watermark) in file.outputs {
            let total = self.retired.entry(output).or_default();
            *total = total.plus(watermark.counts);
        }
    }

    /// The records of an output over all files, those that are gone too.
    #[must_use]
    pub fn total(&self, output: &str) -> Counts {
        self.files
            .values()
            .filter_map(|file| file.outputs.get(output))
            .fold(
                self.retired.get(output).copied().unwrap_or_default(),
                |sum, watermark| sum.plus(watermark.counts),
            )
    }

    /// Every file with its identity and generation.
    pub fn files(&self) -> impl Iterator<Item = (FileId, u32, &FileState)> {
        self.files.iter().map(|(key, file)| {
            let id = FileId {
                device: key.device,
                inode: key.inode,
                fingerprint: file.fingerprint,
            };
            (id, key.generation, file)
        })
    }

    /// Where to read on so that each of `outputs` gets all it has not settled: per file, the lowest
    /// watermark. An output without a watermark in a file that others know is new: it begins with
    /// them.
    #[must_use]
    pub fn resume(&self, outputs: &[&str]) -> Vec<Resume> {
        self.files()
            .filter_map(|(id, generation, file)| {
                let offset = outputs
                    .iter()
                    .filter_map(|&output| file.outputs.get(output))
                    .map(|watermark| watermark.offset)
                    .min()?;
                Some(Resume {
                    id,
                    generation,
                    path: file.path.clone(),
                    offset,
                    size: file.size,
                })
            })
            .collect()
    }
}

impl FileState {
    /// The watermark of each output.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, Watermark)> {
        self.outputs
            .iter()
            .map(|(output, watermark)| (output.as_str(), *watermark))
    }
}

fn put_aside(dir: &DataDir, path: &Path) -> Result<PathBuf, Kind> {
    let mut number = 1;
    let aside = loop {
        let aside = dir.path().join(format!("{NAME}.corrupt-{number}"));
        if fs::symlink_metadata(&aside).is_err() {
            break aside;
        }
        number += 1;
    };
    rename(path, &aside)?;
    Ok(aside)
}

#[cfg(test)]
mod tests;
