//! Files and directories that the agent may not read.
//!
//! Takes the config of an input, gives what of it is denied, and says how to mend it. Looks as a follower does at its
//! start, and reads no log; never changes a permission.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD};

use crate::error::Error;
use crate::file::config::FileConfig;
use crate::file::discover::{Discovery, Found};
use crate::file::pattern::Patterns;
use crate::file::watch::Watcher;

/// A path that may not be read, and what to do about it.
pub type Denied = (PathBuf, String);

/// As many are named, at most.
const DENIED_MAX: usize = 20;

/// What an input with this config may not read, as far as can be seen now: at most 20 paths.
///
/// # Errors
/// A glob that cannot be read.
pub fn denied(config: &FileConfig) -> Result<Vec<Denied>, Error> {
    let found = walk(&config.include, &config.exclude)?;
    let mut denied: Vec<Denied> = found
        .denied
        .iter()
        .map(|(path, error)| (path.clone(), what_to_do(path, error)))
        .collect();
    for (path, _) in found.files {
        if denied.len() >= DENIED_MAX {
            break;
        }
        let access = rustix::fs::accessat(CWD, &path, Access::READ_OK, AtFlags::EACCESS);
        if let Err(error) = access.map_err(io::Error::from)
            && error.kind() == io::ErrorKind::PermissionDenied
        {
            denied.push((path.clone(), what_to_do(&path, &error)));
        }
    }
    denied.sort();
    denied.dedup();
    denied.truncate(DENIED_MAX);
    Ok(denied)
}

/// The files that a glob names now, sorted.
///
/// # Errors
/// A glob that cannot be read, or a directory that may hold such files and cannot be listed.
pub fn matching(glob: &str) -> Result<Vec<PathBuf>, String> {
    let found = walk(&[glob.to_owned()], &[]).map_err(|error| error.to_string())?;
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
fn walk(include: &[String], exclude: &[String]) -> Result<Found, Error> {
    let base = std::env::current_dir().unwrap_or_default();
    let patterns = Patterns::new(include, exclude, &base)?;
    let mut found = Found::default();
    Discovery::new(patterns, Watcher::blind()).walk_all(&mut found);
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
