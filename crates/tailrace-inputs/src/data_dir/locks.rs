//! The locks of a data directory: `flock` on the directory itself and on a file `lock` in it. Never waits for one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::{is_found, not_writable};
use crate::error::Kind;

/// The file in it that is locked.
const LOCK: &str = "lock";

/// What is open of a data directory. One of the two is locked at least: some network filesystems lock no directory, and a
/// full or read-only disk may not have the file.
#[derive(Debug)]
pub(super) struct Locks {
    /// The directory itself.
    dir: File,
    is_dir_locked: bool,
    /// The file `lock` in it.
    file: Option<File>,
}

impl Locks {
    /// Locks the directory and the file in it, which is made if it is not there.
    pub(super) fn take(path: &Path) -> Result<Self, Kind> {
        let dir = File::open(path).map_err(not_writable(path))?;
        let is_dir_locked = lock(&dir, path)?.is_ok();
        Ok(Self {
            file: lock_file(path, is_dir_locked)?,
            dir,
            is_dir_locked,
        })
    }

    /// The directory without a lock, for tests.
    #[cfg(test)]
    pub(super) fn none(path: &Path) -> Self {
        Self {
            dir: File::open(path).expect("it is there"),
            is_dir_locked: false,
            file: None,
        }
    }

    /// Whether the path still leads to this directory.
    pub(super) fn is_of(&self, path: &Path) -> bool {
        is_found(&self.dir, fs::metadata(path))
    }

    /// Makes and locks the file anew if it was removed or replaced. True if it was.
    pub(super) fn hold_file(&mut self, path: &Path) -> Result<bool, Kind> {
        let name = path.join(LOCK);
        let is_gone = |file: &File| !is_found(file, name.symlink_metadata());
        if !self.file.as_ref().is_some_and(is_gone) {
            return Ok(false);
        }
        self.file = lock_file(path, self.is_dir_locked)?;
        Ok(true)
    }
}

/// The locked file `lock` of a directory. `None`: the disk is full or read-only, and the directory itself is locked.
fn lock_file(path: &Path, is_dir_locked: bool) -> Result<Option<File>, Kind> {
    let name = path.join(LOCK);
    let mut written = OpenOptions::new();
    written.create(true).truncate(false).write(true);
    let file = tailrace_files::open(&name, &mut written).or_else(|error| match error.kind() {
        // A disk that is read-only is no reason not to deliver.
        io::ErrorKind::ReadOnlyFilesystem => {
            tailrace_files::open(&name, OpenOptions::new().read(true)).map_err(|_| error)
        }
        _ => Err(error),
    });
    match file {
        Ok(mut file) => {
            lock(&file, path)?.map_err(not_writable(path))?;
            // Who holds it is for people only.
            let holder = format!("{}\n", std::process::id());
            let _ = file
                .set_len(0)
                .and_then(|()| file.write_all(holder.as_bytes()));
            Ok(Some(file))
        }
        // What cannot be written now is reported when the checkpoint is, and tried again.
        Err(error) if is_full_or_read_only(&error) && is_dir_locked => Ok(None),
        Err(source) if source.kind() == io::ErrorKind::InvalidInput => {
            Err(Kind::StateFile { path: name, source })
        }
        Err(error) => Err(not_writable(path)(error)),
    }
}

/// Locks a file for this process alone; the inner error is that it cannot be locked at all.
fn lock(file: &File, path: &Path) -> Result<io::Result<()>, Kind> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Ok(())),
        Err(Errno::WOULDBLOCK) => Err(Kind::Locked {
            path: path.to_owned(),
        }),
        Err(errno) => Ok(Err(errno.into())),
    }
}

/// Whether a disk can be read and not be written, for now.
pub(super) fn is_full_or_read_only(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(
        error.kind(),
        ReadOnlyFilesystem | StorageFull | QuotaExceeded
    )
}
