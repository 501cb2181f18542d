//! Files and directories that the agent may not read.
//!
//! Takes the config of an input, gives what of it is denied, and says how to mend it. Looks as a follower does at its
//! start, and reads no log; never changes a permission.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Access, AtFlags, CWD};

use crate::error::Error;
use crate::file::config::FileConfig;
use crate::file::discover::{Discovery, Found};
use crate::file::pattern::Patterns;
use crate::file::watch::Watcher;

/// A path that may not be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Denied {
    /// It is a file to which nobody has written for a while, as one that was rotated.
    pub is_quiet: bool,
    /// The path.
    pub path: PathBuf,
    /// What is wrong, and how to mend it.
    pub message: String,
}

/// A file is quiet after this time.
const QUIET_AFTER: Duration = Duration::from_secs(10 * 60);

impl Denied {
    pub(super) fn new(path: &Path, message: String) -> Self {
        let modified = std::fs::metadata(path)
            .ok()
            .filter(Metadata::is_file)
            .and_then(|meta| meta.modified().ok());
        let age = modified.and_then(|modified| modified.elapsed().ok());
        Self {
            is_quiet: age.is_some_and(|age| age >= QUIET_AFTER),
            path: path.to_owned(),
            message,
        }
    }
}

/// As many are named, at most.
const DENIED_MAX: usize = 20;

/// What an input may not read, as far as it was looked for.
#[derive(Debug)]
pub struct Unreadable {
    /// At most 20 paths.
    pub denied: Vec<Denied>,
    /// Everything that the globs lead to was looked at.
    pub is_complete: bool,
}

/// Looks for what an input with this config may not read now, for about this time at most.
///
/// # Errors
/// A glob that cannot be read.
pub fn unreadable(config: &FileConfig, time_max: Duration) -> Result<Unreadable, Error> {
    let end = Instant::now().checked_add(time_max);
    let mut found = walk(&config.include, &config.exclude, end)?;
    let mut denied: Vec<Denied> = found
        .denied
        .iter()
        .map(|(path, error)| Denied::new(path, what_to_do(path, error)))
        .collect();
    for (path, _) in std::mem::take(&mut found.files) {
        if end.is_some_and(|end| Instant::now() >= end) {
            found.is_cut_short = true;
            break;
        }
        let access = rustix::fs::accessat(CWD, &path, Access::READ_OK, AtFlags::EACCESS);
        if let Err(error) = access.map_err(io::Error::from)
            && error.kind() == io::ErrorKind::PermissionDenied
        {
            denied.push(Denied::new(&path, what_to_do(&path, &error)));
        }
    }
    denied.sort();
    denied.dedup();
    denied.truncate(DENIED_MAX);
    Ok(Unreadable {
        denied,
        is_complete: !found.is_cut_short,
    })
}

/// The files that a glob names now, sorted.
///
/// # Errors
/// A glob that cannot be read, or a directory that may hold such files and cannot be listed.
pub fn matching(glob: &str) -> Result<Vec<PathBuf>, String> {
    let found = walk(&[glob.to_owned()], &[], None).map_err(|error| error.to_string())?;
    let denied = found
        .denied
        .iter()
        .map(|(path, error)| (path, error.to_string()));
    let problems = found
        .problems
        .iter()
        .map(|(path, problem)| (path, problem.clone()));
    // A directory of a name that a glob for files matches is none of them.
    let mut unlisted = denied.chain(problems.filter(|(path, _)| std::fs::read_dir(path).is_err()));
    if let Some((path, problem)) = unlisted.next() {
        return Err(format!("{}: {problem}", path.display()));
    }
    let files = found.files.into_iter().map(|(path, _)| path);
    let mut files: Vec<_> = files.filter(|path| path.is_file()).collect();
    files.sort_unstable();
    files.dedup();
    Ok(files)
}

/// What the globs lead to. Nothing is watched for: it does not matter whether inotify is to be had.
fn walk(include: &[String], exclude: &[String], end: Option<Instant>) -> Result<Found, Error> {
    let base = std::env::current_dir().unwrap_or_default();
    let patterns = Patterns::new(include, exclude, &base)?;
    let mut found = Found::default();
    let mut discovery = Discovery::new(patterns, Watcher::blind());
    if let Some(end) = end {
        discovery = discovery.until(end);
    }
    discovery.walk_all(&mut found);
    Ok(found)
}

/// What is wrong with a path that may not be read, and how to mend it.
pub(super) fn what_to_do(path: &Path, error: &io::Error) -> String {
    let (what, mode) = if path.is_dir() {
        ("listed", "r and x")
    } else {
        ("read", "r")
    };
    format!(
        "cannot be {what}: {error}; run the agent as a user or group that has {mode} there, or give it the capability \
         CAP_DAC_READ_SEARCH; it is tried again"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_ends_with_its_time_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
        std::fs::write(dir.path().join("a/b/c.log"), "").unwrap();
        let config = FileConfig {
            include: vec![format!("{}/**", dir.path().display())],
            ..FileConfig::default()
        };
        let look = |time_max| unreadable(&config, time_max).unwrap().is_complete;
        assert!(look(Duration::MAX));
        assert!(look(Duration::from_secs(60)));
        assert!(!look(Duration::ZERO));
    }
}
