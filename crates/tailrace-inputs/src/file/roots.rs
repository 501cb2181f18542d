//! Where files may be opened: beneath the directories that the globs begin with, and `follow_roots`.
//!
//! Takes a path, gives an open file, or says that it lies elsewhere: the only way in which a log is opened, compressed or
//! not. A link in a log directory may be
//! anybody's, and the agent often reads with more rights than who made it; so what counts is where a path
//! leads to when it is opened, which the kernel checks (`openat2`) where it can. Never blocks on a pipe.

use std::cell::RefCell;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// The directories of one input.
#[derive(Debug)]
pub(crate) struct Roots {
    written: Vec<PathBuf>,
    /// The same without links, as last seen.
    resolved: RefCell<Vec<PathBuf>>,
}

/// What became of opening a path.
#[derive(Debug)]
pub(crate) enum Opened {
    /// It lies beneath a root.
    Beneath(fs::File),
    /// It leads to here, beneath no root.
    Outside(PathBuf),
}

impl Roots {
    pub(crate) fn new(written: Vec<PathBuf>) -> Self {
        let roots = Self {
            written,
            resolved: RefCell::default(),
        };
        roots.resolve();
        roots
    }

    /// Opens a regular file for reading. What is no regular file is an error.
    pub(crate) fn open(&self, path: &Path) -> io::Result<Opened> {
        let target = fs::canonicalize(path)?;
        if self.root_of(&target).is_none() {
            // A root may have come, or lead elsewhere now.
            self.resolve();
        }
        let Some(root) = self.root_of(&target) else {
            return Ok(Opened::Outside(target));
        };
        let dir = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::openat(CWD, &root, dir, Mode::empty())?;
        let inner = target.strip_prefix(&root).unwrap_or(&target);
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        match open_at(&dir, inner, resolve) {
            // A link that was put in its way since.
            Err(Errno::XDEV | Errno::LOOP) => Ok(Opened::Outside(target)),
            opened => Ok(Opened::Beneath(regular(opened?.into())?)),
        }
    }

    /// Opens a regular file that lies beneath a root; anything else is an error.
    pub(crate) fn open_beneath(&self, path: &Path) -> io::Result<fs::File> {
        match self.open(path)? {
            Opened::Beneath(file) => Ok(file),
            Opened::Outside(_) => Err(io::Error::other(
                "a link leads out of the directories to read",
            )),
        }
    }

    /// The same for a file that was read beneath a root, or is known to hold what was: it may have been moved
    /// elsewhere since, but no link leads there.
    pub(crate) fn open_moved(&self, path: &Path) -> io::Result<fs::File> {
        match self.open(path)? {
            Opened::Beneath(file) => Ok(file),
            Opened::Outside(_) => match open_at(CWD, path, ResolveFlags::NO_SYMLINKS) {
                Err(Errno::LOOP) => Err(io::Error::other(
                    "a link leads out of the directories to read",
                )),
                opened => regular(opened?.into()),
            },
        }
    }

    /// Whether a path leads beneath a root.
    pub(crate) fn lead_to(&self, path: &Path) -> bool {
        let Ok(target) = fs::canonicalize(path) else {
            return false;
        };
        if self.root_of(&target).is_none() {
            self.resolve();
        }
        self.root_of(&target).is_some()
    }

    fn root_of(&self, target: &Path) -> Option<PathBuf> {
        let roots = self.resolved.borrow();
        roots.iter().find(|root| target.starts_with(root)).cloned()
    }

    fn resolve(&self) {
        let resolved = self.written.iter().map(fs::canonicalize);
        self.resolved.replace(resolved.flatten().collect());
    }
}

/// Opens a path below a directory, which the kernel resolves as `resolve` says. Never waits for the other end of a pipe.
fn open_at(dir: impl AsFd, path: &Path, resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match rustix::fs::openat2(&dir, path, flags, Mode::empty(), resolve) {
        // Before Linux 5.6, or a filter that does not know it: each directory is opened by itself.
        Err(Errno::NOSYS | Errno::PERM) => open_step_by_step(&dir, path, flags | OFlags::NOFOLLOW),
        opened => opened,
    }
}

/// The same without `openat2`, following no link at all.
fn open_step_by_step(dir: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let start = if path.has_root() {
        rustix::fs::openat(CWD, "/", step, Mode::empty())?
    } else {
        rustix::fs::openat(dir, ".", step, Mode::empty())?
    };
    let name = path.file_name().ok_or(Errno::INVAL)?;
    let mut dir = start;
    for part in path.parent().into_iter().flat_map(Path::components) {
        dir = match part {
            Component::Normal(name) => rustix::fs::openat(&dir, name, step, Mode::empty())?,
            Component::RootDir | Component::CurDir => dir,
            Component::ParentDir | Component::Prefix(_) => return Err(Errno::XDEV),
        };
    }
    // With a link in place of a directory it is `ENOTDIR`; here `ELOOP`.
    rustix::fs::openat(&dir, name, flags, Mode::empty())
}

fn regular(file: fs::File) -> io::Result<fs::File> {
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is no regular file"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_what_lies_beneath_a_root_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for sub in ["logs/deep", "more", "elsewhere"] {
            fs::create_dir_all(at(sub)).unwrap();
            fs::write(at(sub).join("file"), "x").unwrap();
        }
        symlink(at("logs"), at("link-to-logs")).unwrap();
        symlink(at("logs/deep"), at("logs/inside")).unwrap();
        symlink(at("elsewhere"), at("logs/outside")).unwrap();
        symlink("../../elsewhere/file", at("logs/deep/relative")).unwrap();
        symlink(at("more/file"), at("logs/second")).unwrap();
        let roots = Roots::new(vec![at("link-to-logs"), at("more"), at("missing")]);
        for (name, expected) in [
            ("logs/deep/file", true),
            ("link-to-logs/deep/file", true),
            ("logs/inside/file", true),
            ("logs/second", true),
            ("logs/outside/file", false),
            ("logs/deep/relative", false),
            ("elsewhere/file", false),
        ] {
            let is_beneath = matches!(roots.open(&at(name)).unwrap(), Opened::Beneath(_));
            assert_eq!(is_beneath, expected, "{name}");
        }
        // A root that comes later.
        fs::create_dir(at("missing")).unwrap();
        fs::write(at("missing/file"), "x").unwrap();
        let late = roots.open(&at("missing/file")).unwrap();
        assert!(matches!(late, Opened::Beneath(_)));
    }

    #[test]
    fn only_a_regular_file_is_opened_and_outside_only_where_no_link_leads() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("logs/deep")).unwrap();
        fs::create_dir(at("elsewhere")).unwrap();
        for name in ["elsewhere/secret.gz", "logs/deep/own.gz"] {
            fs::write(at(name), "x").unwrap();
        }
        symlink(at("elsewhere/secret.gz"), at("logs/link.gz")).unwrap();
        symlink(at("elsewhere"), at("logs/dir")).unwrap();
        symlink("/dev/zero", at("logs/device.gz")).unwrap();
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(CWD, at("logs/pipe.gz"), fifo, 0o600.into(), 0).unwrap();
        let roots = Roots::new(vec![at("logs")]);
        for (name, beneath, moved) in [
            ("logs/deep/own.gz", true, true),
            ("elsewhere/secret.gz", false, true),
            ("logs/link.gz", false, false),
            ("logs/dir/secret.gz", false, false),
            ("logs/device.gz", false, false),
            ("logs/pipe.gz", false, false),
        ] {
            assert_eq!(roots.open_beneath(&at(name)).is_ok(), beneath, "{name}");
            assert_eq!(roots.open_moved(&at(name)).is_ok(), moved, "{name}");
            let inner = at(name);
            let opened = open_step_by_step(
                CWD,
                &inner,
                OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW,
            );
            let is_regular = opened.is_ok_and(|file| regular(file.into()).is_ok());
            assert_eq!(is_regular, moved, "{name}");
        }
        let up = open_step_by_step(CWD, &at("logs/../elsewhere/secret.gz"), OFlags::RDONLY);
        assert_eq!(up.unwrap_err(), Errno::XDEV);
    }
}
