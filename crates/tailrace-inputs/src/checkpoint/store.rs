//! Keeps a checkpoint on disk, at a cost in proportion to what changed.
//!
//! Takes a state that is changed in memory, appends the changes to the journal, and from time to time writes
//! the whole state anew. Never leaves the disk without a state that can be read.

use std::fs::{File, OpenOptions};
use std::time::SystemTime;

use super::load::Loaded;
use super::state::{Checkpoint, JOURNAL, JOURNAL_PREVIOUS, NAME, PREVIOUS, PipelineState};
use super::wire;
use crate::data_dir::{DataDir, is_found, rename};
use crate::error::{Error, Kind};

/// A journal up to this size is never worth a whole state.
const JOURNAL_BYTES_MIN: u64 = 64 * 1024;

/// A checkpoint and the directory it is kept in.
#[derive(Debug)]
pub struct Store {
    dir: DataDir,
    /// The state as it is to be written.
    pub checkpoint: Checkpoint,
    /// The journal that belongs to the whole state on disk; `None` where only a whole state will do.
    pub(super) journal: Option<Journal>,
    /// The directory or what is in it was not there any more, and nobody has asked yet.
    was_removed: bool,
}

#[derive(Debug)]
pub(super) struct Journal {
    pub(super) file: File,
    /// The whole state that it belongs to.
    whole: File,
    bytes: u64,
    base: String,
    base_bytes: u64,
    /// How many pipelines the whole state has: a new one is no change of a file.
    pipelines: usize,
}

impl Store {
    /// Nothing is written yet.
    #[must_use]
    pub fn new(dir: DataDir, checkpoint: Checkpoint) -> Self {
        Self {
            dir,
            checkpoint,
            journal: None,
            was_removed: false,
        }
    }

    /// Goes on with what was loaded: where nothing was wrong with it, nothing is written until something
    /// changes.
    #[must_use]
    pub fn go_on(dir: DataDir, loaded: Loaded) -> Self {
        let journal = loaded.written.and_then(|written| {
            let path = dir.path().join(JOURNAL);
            let file = tailrace_files::open(&path, OpenOptions::new().append(true)).ok()?;
            Some(Journal {
                file,
                whole: File::open(dir.path().join(NAME)).ok()?,
                bytes: written.journal_bytes,
                base: written.base,
                base_bytes: written.base_bytes,
                pipelines: loaded.checkpoint.pipelines.len(),
            })
        });
        Self {
            dir,
            checkpoint: loaded.checkpoint,
            journal,
            was_removed: false,
        }
    }

    /// Whether, since the last call, something of the checkpoint or its directory was found removed or replaced.
    pub fn take_removed(&mut self) -> bool {
        std::mem::take(&mut self.was_removed)
    }

    /// Writes what changed since the last time. False if nothing did.
    ///
    /// # Errors
    /// The data directory cannot be written; what is on disk can be read as before, and the next call
    /// tries to write all that is missing.
    pub fn save(&mut self) -> Result<bool, Error> {
        if self.is_removed()? {
            self.journal = None;
            self.was_removed = true;
        }
        self.save_changes()
    }

    /// Writes all of it anew, whether anything changed or not: where this succeeds, the directory can be written.
    ///
    /// # Errors
    /// As at [`Self::save`].
    pub fn save_whole(&mut self) -> Result<(), Error> {
        self.was_removed |= self.is_removed()?;
        self.journal = None;
        self.save_changes().map(|_| ())
    }

    /// Whether somebody removed, renamed or replaced the directory or the checkpoint in it: what is written to a file that is
    /// open would be lost. The directory is held again then.
    fn is_removed(&mut self) -> Result<bool, Error> {
        let is_taken_again = self.dir.hold()?;
        let Some(journal) = &self.journal else {
            return Ok(is_taken_again);
        };
        let is_there =
            |file: &File, name: &str| is_found(file, self.dir.path().join(name).symlink_metadata());
        let is_there = is_there(&journal.file, JOURNAL) && is_there(&journal.whole, NAME);
        Ok(is_taken_again || !is_there)
    }

    fn save_changes(&mut self) -> Result<bool, Error> {
        for state in self.checkpoint.pipelines.values_mut() {
            state.gone.stamp(SystemTime::now());
        }
        let changed = |checkpoint: &Checkpoint| {
            let mut states = checkpoint.pipelines.values();
            states.any(PipelineState::is_changed)
        };
        match self.journal.take() {
            Some(journal) if journal.pipelines == self.checkpoint.pipelines.len() => {
                if !changed(&self.checkpoint) {
                    self.journal = Some(journal);
                    return Ok(false);
                }
                if journal.bytes < JOURNAL_BYTES_MIN.max(journal.base_bytes) {
                    // Taken back only if the line is whole: nothing is ever appended to half a line.
                    self.journal = Some(self.append(journal)?);
                } else {
                    self.write_whole()?;
                }
            }
            _ => self.write_whole()?,
        }
        let states = self.checkpoint.pipelines.values_mut();
        states.for_each(PipelineState::written);
        Ok(true)
    }

    /// What [`Self::save`] found in its way and moved aside, to be reported to the user: lowercase, no full stop.
    pub fn take_warnings(&mut self) -> Vec<String> {
        self.dir.take_aside()
    }

    fn append(&self, mut journal: Journal) -> Result<Journal, Error> {
        let addition = wire::Addition::of(&self.checkpoint, &journal.base);
        let written = addition.write(&mut journal.file).and_then(|bytes| {
            journal.file.sync_data()?;
            Ok(bytes)
        });
        journal.bytes += written.map_err(|source| Kind::Write {
            path: self.dir.path().join(JOURNAL),
            source,
        })?;
        Ok(journal)
    }

    fn write_whole(&mut self) -> Result<(), Error> {
        let whole = wire::Whole::of(&self.checkpoint);
        self.dir.replace(
            NAME,
            PREVIOUS,
            |out| whole.write(out),
            |dir| {
                let [journal, previous] =
                    [JOURNAL, JOURNAL_PREVIOUS].map(|name| dir.path().join(name));
                dir.make_way(&journal)?;
                dir.make_way(&previous)?;
                let open =
                    || tailrace_files::open(&journal, OpenOptions::new().create(true).append(true));
                // An empty one was begun for a state that could not be put in place: the one before holds more.
                let is_there = journal.symlink_metadata().is_ok();
                let is_empty = |file: File| file.metadata().is_ok_and(|meta| meta.len() == 0);
                if is_there && !open().is_ok_and(is_empty) {
                    // Whatever it is: a link that leads nowhere, too.
                    rename(&journal, &previous)?;
                }
                // Before the state that it belongs to: where the state is and no journal, the journal was removed.
                let begun = open().map(drop);
                begun.map_err(|source| Kind::Write {
                    path: journal,
                    source,
                })
            },
        )?;
        let path = self.dir.path().join(JOURNAL);
        let (file, whole_file) =
            tailrace_files::open(&path, OpenOptions::new().create(true).append(true))
                .and_then(|file| self.dir.sync().map(|()| file))
                .and_then(|file| Ok((file, File::open(self.dir.path().join(NAME))?)))
                .map_err(|source| Kind::Write { path, source })?;
        self.journal = Some(Journal {
            file,
            whole: whole_file,
            bytes: 0,
            base_bytes: whole.bytes,
            base: whole.checksum,
            pipelines: self.checkpoint.pipelines.len(),
        });
        Ok(())
    }
}
