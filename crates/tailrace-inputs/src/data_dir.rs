//! The directory an agent keeps its state in, locked against a second agent.
//!
//! Takes a path, gives a directory that exists and is held by this process alone; it need not be writable now. Never
//! waits for the lock: two agents on one checkpoint would each undo what the other wrote, so the
//! second one must not start. The lock is `flock` on the directory and on a file of its own: it goes with the
//! process, however that ends. A directory to which everybody may write is refused: whoever may replace its files
//! decides what is read and what is not. Its files are opened by `tailrace-files`, which follows no link and waits for no
//! pipe.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use tailrace_files::{Access, DIR_MODE};

use crate::error::{Error, Kind};

/// The file in it that is locked.
const LOCK: &str = "lock";

/// A locked data directory. Dropping it releases the lock.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    locks: Locks,
    warning: Option<String>,
    /// Directories that stood in place of files and were moved aside, and are not reported yet.
    aside: Mutex<Vec<String>>,
}

/// What is open of a data directory. One of the two is locked at least: some network filesystems lock no directory, and a
/// full or read-only disk may not have the file.
#[derive(Debug)]
struct Locks {
    /// The directory itself.
    dir: File,
    is_dir_locked: bool,
    /// The file `lock` in it.
    file: Option<File>,
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
        if !is_found(&self.locks.dir, fs::metadata(&self.path)) {
            make(&self.path)?;
            self.locks = Locks::take(&self.path)?;
            return Ok(true);
        }
        let name = self.path.join(LOCK);
        let is_gone = |file: &File| !is_found(file, name.symlink_metadata());
        if !self.locks.file.as_ref().is_some_and(is_gone) {
            return Ok(false);
        }
        self.locks.file = lock_file(&self.path, self.locks.is_dir_locked)?;
        Ok(true)
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
            locks: Locks {
                dir: File::open(path).expect("it is there"),
                is_dir_locked: false,
                file: None,
            },
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

impl Locks {
    fn take(path: &Path) -> Result<Self, Kind> {
        let dir = File::open(path).map_err(not_writable(path))?;
        let is_dir_locked = lock(&dir, path)?.is_ok();
        Ok(Self {
            file: lock_file(path, is_dir_locked)?,
            dir,
            is_dir_locked,
        })
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
fn is_full_or_read_only(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(
        error.kind(),
        ReadOnlyFilesystem | StorageFull | QuotaExceeded
    )
}

pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), Kind> {
    fs::rename(from, to).map_err(|source| Kind::Rename {
        from: from.to_owned(),
        to: to.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_second_agent_is_refused_until_the_first_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/er");
        let first = DataDir::open(&path).unwrap();
        let error = DataDir::open(&path).unwrap_err();
        assert!(error.is_locked() && !error.is_config(), "{error}");
        assert!(error.to_string().contains("another tailrace agent"));
        drop(first);
        DataDir::open(&path).unwrap();
    }

    #[test]
    fn a_directory_without_its_lock_file_is_held_all_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let first = DataDir::open(dir.path()).unwrap();
        fs::remove_file(dir.path().join("lock")).unwrap();
        assert!(DataDir::open(dir.path()).unwrap_err().is_locked());
        drop(first);
        let full = io::Error::from(Errno::NOSPC);
        assert!(is_full_or_read_only(&full) && is_full_or_read_only(&Errno::DQUOT.into()));
        assert!(is_full_or_read_only(&Errno::ROFS.into()));
        assert!(!is_full_or_read_only(&Errno::ACCESS.into()));
    }

    #[test]
    fn a_directory_that_was_replaced_is_taken_again() {
        let dir = tempfile::tempdir().unwrap();
        let (path, moved) = (dir.path().join("data"), dir.path().join("moved"));
        let mut data = DataDir::open(&path).unwrap();
        let is_held = || DataDir::open(&path).unwrap_err().is_locked();
        assert!(!data.hold().unwrap());
        fs::remove_file(path.join("lock")).unwrap();
        assert!(data.hold().unwrap() && !data.hold().unwrap());
        fs::rename(&path, &moved).unwrap();
        assert!(data.hold().unwrap() && !data.hold().unwrap() && is_held());
        drop(DataDir::open(&moved).unwrap());
        fs::remove_dir_all(&path).unwrap();
        assert!(data.hold().unwrap() && is_held());
        // Another agent was faster.
        fs::remove_dir_all(&path).unwrap();
        let other = DataDir::open(&path).unwrap();
        assert!(data.hold().unwrap_err().is_locked());
        drop(other);
        assert!(data.hold().unwrap() && is_held());
        fs::remove_dir_all(&path).unwrap();
        fs::write(&path, "in the way").unwrap();
        let text = data.hold().unwrap_err().to_string();
        assert!(text.contains("cannot be created"), "{text}");
    }

    #[test]
    fn an_unusable_data_dir_is_a_clear_error() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "x").unwrap();
        for path in [file.join("below"), file.clone(), "/proc/tailrace".into()] {
            let error = DataDir::open(&path).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(path.to_str().unwrap()), "{text}");
            assert!(text.contains("data_dir"), "{text}");
            assert!(std::error::Error::source(&error).is_some(), "{text}");
        }
        let lock_is_a_directory = dir.path().join("d");
        fs::create_dir_all(lock_is_a_directory.join("lock")).unwrap();
        let error = DataDir::open(&lock_is_a_directory).unwrap_err();
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains("a directory"), "{error}: {cause}");
    }

    #[test]
    fn what_others_put_into_the_directory_is_neither_written_to_nor_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let victim = dir.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        let fifo = |path: &Path| {
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap();
        };
        let link = |path: &Path| std::os::unix::fs::symlink(&victim, path).unwrap();
        for what in ["link", "named pipe"] {
            let make = |path: &Path| match what {
                "link" => link(path),
                _ => fifo(path),
            };
            let data = tempfile::tempdir().unwrap();
            make(&data.path().join("lock"));
            let error = DataDir::open(data.path()).unwrap_err();
            let cause = std::error::Error::source(&error).unwrap().to_string();
            assert!(cause.contains(what), "{error}: {cause}");
            fs::remove_file(data.path().join("lock")).unwrap();
            for name in ["f.tmp", "previous.tmp", "f.prev", "f"] {
                let data = DataDir::open(data.path()).unwrap();
                let _ = fs::remove_file(data.path().join(name));
                make(&data.path().join(name));
                data.replace("f", "f.prev", |out| out.write_all(b"mine"), |_| Ok(()))
                    .unwrap();
                let meta = fs::symlink_metadata(data.path().join("f")).unwrap();
                assert!(meta.is_file(), "{what} {name}");
            }
        }
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
    }

    #[test]
    fn a_directory_to_which_everybody_may_write_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        for (mode, is_refused) in [
            (0o777, true),
            (0o1777, true),
            (0o775, false),
            (0o700, false),
        ] {
            fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
            match DataDir::open(dir.path()) {
                Ok(data) => assert!(!is_refused && data.warning().is_none(), "{mode:o}"),
                Err(error) => {
                    let text = error.to_string();
                    assert!(
                        is_refused && text.contains("chmod go-w"),
                        "{mode:o}: {text}"
                    );
                }
            }
        }
    }

    #[test]
    fn replacing_keeps_the_previous_file() {
        let dir = tempfile::tempdir().unwrap();
        let data = DataDir::open(dir.path()).unwrap();
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).ok();
        for (bytes, previous) in [("1", None), ("2", Some("1")), ("3", Some("2"))] {
            let content = |out: &mut dyn Write| out.write_all(bytes.as_bytes());
            data.replace("f", "f.prev", content, |_| Ok(())).unwrap();
            assert_eq!(read("f").as_deref(), Some(bytes));
            assert_eq!(read("f.prev").as_deref(), previous);
            assert_eq!(read("f.tmp"), None);
        }
    }
}
