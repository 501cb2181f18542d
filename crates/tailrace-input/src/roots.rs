//! Where files may be opened: beneath the directories that the globs begin with, and `follow_roots`.
//!
//! Takes a path, gives an open file, or says that it lies elsewhere. A link in a log directory may be
//! anybody's, and the agent often reads with more rights than who made it; so what counts is where a path
//! leads to when it is opened, which the kernel checks (`openat2`) where it can. Never blocks on a pipe.

use std::cell::RefCell;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

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
    Beneath(OwnedFd),
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

    /// Opens a path for reading.
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
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let opened = match rustix::fs::openat2(&dir, inner, flags, Mode::empty(), resolve) {
            // Before Linux 5.6, or a filter that does not know it. The path was resolved just now.
            Err(Errno::NOSYS | Errno::PERM) => {
                rustix::fs::openat(&dir, inner, flags | OFlags::NOFOLLOW, Mode::empty())
            }
            // A link that was put in its way since.
            Err(Errno::XDEV | Errno::LOOP) => return Ok(Opened::Outside(target)),
            other => other,
        };
        Ok(Opened::Beneath(opened?))
    }

    /// Opens a regular file that lies beneath a root, or whose path has no link in it: a followed file may have
    /// been moved out of the roots, and what was made of it lies beside it. Anything else is an error.
    pub(crate) fn open_file(&self, path: &Path) -> io::Result<fs::File> {
        let refused = |reason: &str| io::Error::other(reason);
        let file = match self.open(path)? {
            Opened::Beneath(file) => fs::File::from(file),
            Opened::Outside(target) if target == path => open_without_links(path)?.into(),
            Opened::Outside(_) => {
                return Err(refused("a link leads out of the directories to read"));
            }
        };
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(refused("it is no regular file")),
        }
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

fn open_without_links(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Err(Errno::NOSYS | Errno::PERM) => Ok(rustix::fs::openat(
            CWD,
            path,
            flags | OFlags::NOFOLLOW,
            Mode::empty(),
        )?),
        opened => Ok(opened?),
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
}
