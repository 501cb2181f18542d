//! The directory an agent keeps its state in, locked against a second agent.
//!
//! Takes a path, gives a directory that exists and is held by this process alone; it need not be writable now. Never
//! waits for the lock: two agents on one checkpoint would each undo what the other wrote, so the
//! second one must not start. The lock is `flock` on the directory and on a file of its own: it goes with the
//! process, however that ends. A directory to which everybody may write is refused: whoever may replace its files
//! decides what is read and what is not. Its files are opened by `tailrace-files`, which follows no link and waits for no
//! pipe.

mod locks;

use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tailrace_files::{Access, DIR_MODE};

use crate::error::{Error, Kind};
use locks::Locks;

/// A locked data directory. Dropping it releases the lock.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    locks: Locks,
    warning: Option<String>,
    /// Directories that stood in place of files and were moved aside, and are not reported yet.
    aside: Mutex<Vec<String>>,
}

impl DataDir {
    /// Makes the directory if it is not there (mode 0700) and locks it.
    ///
    /// # Errors
    /// It cannot be made or written, everybody may write to it, or another agent holds it ([`Error::is_locked`]).
    pub fn open(path: &Path) -> Result<Self, Error> {
        let warning = make(path)?;
        let locks = Locks::take(path)?;
        Ok(Self {
            path: path.to_owned(),
            locks,
            warning,
            aside: Mutex::default(),
        })
    }

    /// Sees to it that this directory is still what the path names, and its lock file in it: it may have been removed or
    /// renamed. If not, makes and locks what is missing. True if anything was.
    ///
    /// # Errors
    /// As of [`Self::open`].
    pub(crate) fn hold(&mut self) -> Result<bool, Error> {
        if !self.locks.is_of(&self.path) {
            make(&self.path)?;
            self.locks = Locks::take(&self.path)?;
            return Ok(true);
        }
        Ok(self.locks.hold_file(&self.path)?)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What to report to the user, if anything is wrong with it: lowercase, no full stop.
    #[must_use]
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// The same directory as somebody else would hold it, for tests.
    #[cfg(test)]
    pub(crate) fn again(&self) -> Self {
        Self::unlocked(&self.path)
    }

    /// A directory that is held by somebody, for tests.
    #[cfg(test)]
    pub(crate) fn unlocked(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            locks: Locks::none(path),
            warning: None,
            aside: Mutex::default(),
        }
    }

    /// Puts what `content` writes in place of the file `name`, whole or not at all, also across a power cut:
    /// write, fsync, rename, fsync of the directory. The file that was there is kept as `previous`.
    /// `before` is done when the new file is whole and not yet in place.
    pub(crate) fn replace(
        &self,
        name: &str,
        previous: &str,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
        before: impl FnOnce(&Self) -> Result<(), Kind>,
    ) -> Result<(), Kind> {
        let target = self.path.join(name);
        let temporary = self.path.join(format!("{name}.tmp"));
        let write = |source| Kind::Write {
            path: temporary.clone(),
            source,
        };
        self.make_way(&temporary)?;
        let mut file = tailrace_files::create(&temporary).map_err(write)?;
        content(&mut file).map_err(write)?;
        file.sync_all().map_err(write)?;
        drop(file);
        self.keep_previous(&target, &self.path.join(previous))?;
        before(self)?;
        rename(&temporary, &target)?;
        self.sync().map_err(|source| Kind::Write {
            path: self.path.clone(),
            source,
        })
    }

    /// Sees to it that names given in the directory outlive a power cut.
    pub(crate) fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    /// A file is to be put at this path: a directory that is there is moved aside.
    pub(crate) fn make_way(&self, path: &Path) -> Result<(), Kind> {
        let moved = tailrace_files::move_dir_aside(path).map_err(|source| Kind::Write {
            path: path.to_owned(),
            source,
        })?;
        if let Some(aside) = moved {
            let text = format!(
                "{} was a directory, and is needed for a file of the agent: it was moved to {}",
                path.display(),
                aside.display()
            );
            let mut texts = self.aside.lock().unwrap_or_else(PoisonError::into_inner);
            texts.push(text);
        }
        Ok(())
    }

    /// What was moved aside since the last call, to be reported to the user: lowercase, no full stop.
    pub(crate) fn take_aside(&self) -> Vec<String> {
        std::mem::take(&mut *self.aside.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A second link, renamed into place, so that at no moment either name is missing. Filesystems
    /// without links get a rename: then only the previous file is there for a moment.
    fn keep_previous(&self, target: &Path, previous: &Path) -> Result<(), Kind> {
        let link = self.path.join("previous.tmp");
        for path in [target, &link, previous] {
            self.make_way(path)?;
        }
        let _ = fs::remove_file(&link);
        match fs::hard_link(target, &link) {
            Ok(()) => {
                rename(&link, previous)?;
                // Two links to one file rename to nothing: the leftover goes.
                let _ = fs::remove_file(&link);
                Ok(())
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(_) => rename(target, previous),
        }
    }
}

/// Makes the directory if it is not there. Gives a warning as [`check_access`].
fn make(path: &Path) -> Result<Option<String>, Kind> {
    DirBuilder::new()
        .recursive(true)
        .mode(DIR_MODE)
        .create(path)
        .map_err(|source| Kind::DataDirCreate {
            path: path.to_owned(),
            source,
        })?;
    check_access(path)
}

fn not_writable(path: &Path) -> impl Fn(io::Error) -> Kind {
    let path = path.to_owned();
    move |source| Kind::DataDirWrite {
        path: path.clone(),
        source,
    }
}

/// Whether what is open is what was found at a path.
pub(crate) fn is_found(open: &File, found: io::Result<Metadata>) -> bool {
    let (Ok(open), Ok(found)) = (open.metadata(), found) else {
        return false;
    };
    (open.dev(), open.ino()) == (found.dev(), found.ino())
}

/// Refuses a directory to which everybody may write. Gives a warning where that is not its user's choice.
fn check_access(path: &Path) -> Result<Option<String>, Kind> {
    let access = tailrace_files::access(path).map_err(|source| Kind::DataDirWrite {
        path: path.to_owned(),
        source,
    })?;
    match access {
        Access::Limited => Ok(None),
        Access::Everybody => Err(Kind::DataDirOpen {
            path: path.to_owned(),
        }),
        Access::EverybodyByMount => Ok(Some(format!(
            "data_dir {} is the root of a mount to which everybody who can reach it may write: whoever replaces files \
             there decides what is read and sent; mount it with mode 0700",
            path.display()
        ))),
    }
}

pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), Kind> {
    fs::rename(from, to).map_err(|source| Kind::Rename {
        from: from.to_owned(),
        to: to.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests;
