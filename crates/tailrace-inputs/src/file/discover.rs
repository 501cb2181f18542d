//! The walk over the directories that can hold a match.
//!
//! Takes [`Patterns`], gives candidate paths, and keeps a watch on every directory in which
//! something that matters could appear: those it listed, and the parents of directories that do not
//! exist yet. Never opens a log file and never walks a directory that no glob leads into: literal
//! parts of a glob are looked up, not listed.
//!
//! Without inotify (none to be had, or its limits reached) everything still works by walking again;
//! that is reported once.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::io::Errno;

use crate::file::pattern::{Patterns, State};
use crate::file::watch::Watcher;

/// The directories of one input.
pub(crate) struct Discovery {
    pub(crate) patterns: Patterns,
    pub(crate) watcher: Watcher,
    /// The states each walked directory was entered with.
    dirs: HashMap<PathBuf, Vec<State>>,
    /// A walk ends here, where it has an end.
    deadline: Option<Instant>,
}

/// What a walk found.
#[derive(Default)]
pub(crate) struct Found {
    /// Paths whose name matches, and the pattern that says so.
    pub(crate) files: Vec<(PathBuf, u16)>,
    /// Paths that could not be walked or that match but are directories.
    pub(crate) problems: Vec<(PathBuf, String)>,
    /// Directories that may not be looked into.
    pub(crate) denied: Vec<(PathBuf, io::Error)>,
    /// The time was over before everything was walked.
    pub(crate) is_cut_short: bool,
}

impl Discovery {
    pub(crate) fn new(patterns: Patterns, watcher: Watcher) -> Self {
        Self {
            patterns,
            watcher,
            dirs: HashMap::new(),
            deadline: None,
        }
    }

    /// Walks until then only.
    pub(crate) fn until(self, deadline: Instant) -> Self {
        Self {
            deadline: Some(deadline),
            ..self
        }
    }

    /// Walks everything again, from the root of each glob.
    pub(crate) fn walk_all(&mut self, found: &mut Found) {
        self.dirs.clear();
        self.walk(PathBuf::from("/"), self.patterns.start(), found);
    }

    /// A directory appeared: walks it if a glob leads into it.
    pub(crate) fn dir_appeared(&mut self, parent: &Path, path: &Path, found: &mut Found) {
        let Some(states) = self.dirs.get(parent) else {
            return;
        };
        let Some(name) = path.file_name() else {
            return;
        };
        if self.patterns.excluded(path) {
            return;
        }
        if let Some(state) = self.patterns.file(states, name)
            && !self.patterns.is_any(state)
        {
            found.problems.push(is_directory(path));
        }
        let inner = self.patterns.enter(states, name, false);
        self.walk(path.to_owned(), inner, found);
    }

    /// A walked directory is gone. True if only a new walk finds its return, because its parent is
    /// not watched.
    pub(crate) fn dir_gone(&mut self, path: &Path) -> bool {
        self.dirs.remove(path).is_some()
            && !path
                .parent()
                .is_some_and(|parent| self.watcher.watches(parent))
    }

    /// Whether a file of this name, in a directory that was walked, belongs to the input.
    pub(crate) fn wants(&self, path: &Path) -> bool {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return false;
        };
        self.dirs
            .get(parent)
            .is_some_and(|states| self.patterns.file(states, name).is_some())
            && !self.patterns.excluded(path)
    }

    /// The directories in which a file of the input can be.
    pub(crate) fn homes(&self) -> impl Iterator<Item = &Path> {
        let is_home = |states: &Vec<State>| {
            let mut states = states.iter();
            states.any(|&state| {
                self.patterns
                    .literal(state)
                    .is_none_or(|(_, is_file)| is_file)
            })
        };
        let dirs = self.dirs.iter();
        dirs.filter(move |(_, states)| is_home(states))
            .map(|(dir, _)| dir.as_path())
    }

    /// Whether a file of this absolute path belongs to the input, in whatever directory.
    pub(crate) fn matches(&self, path: &Path) -> bool {
        // What the walk came upon needs no second one.
        self.wants(path) || self.patterns.matches(path)
    }

    /// Watches a directory outside the walk: the home of a link's target or of a renamed file.
    pub(crate) fn watch_extra(&mut self, dir: &Path, found: &mut Found) {
        if !self.watcher.watches(dir) {
            self.watch(dir, found);
        }
    }

    fn walk(&mut self, dir: PathBuf, states: Vec<State>, found: &mut Found) {
        let mut stack = vec![(dir, states)];
        while let Some((dir, states)) = stack.pop() {
            if states.is_empty() {
                continue;
            }
            if self.deadline.is_some_and(|end| Instant::now() >= end) {
                found.is_cut_short = true;
                return;
            }
            let literal_only = states
                .iter()
                .all(|&state| self.patterns.literal(state).is_some());
            if literal_only {
                self.look_up(&dir, &states, &mut stack, found);
            } else {
                // The watch comes first: what appears during the listing is then seen twice, not never.
                self.watch(&dir, found);
                self.list(&dir, &states, &mut stack, found);
            }
            let known = self.dirs.entry(dir).or_default();
            for state in states {
                if !known.contains(&state) {
                    known.push(state);
                }
            }
        }
    }

    /// A directory in which only certain names matter: each is looked up. The directory is watched
    /// if one of them is a file or is not there.
    fn look_up(
        &mut self,
        dir: &Path,
        states: &[State],
        stack: &mut Vec<(PathBuf, Vec<State>)>,
        found: &mut Found,
    ) {
        let missing = |path: &Path| !fs::metadata(path).is_ok_and(|meta| meta.is_dir());
        let mut names: Vec<(PathBuf, Option<State>)> = Vec::new();
        for &state in states {
            let Some((name, is_file)) = self.patterns.literal(state) else {
                continue;
            };
            let path = dir.join(name);
            let file = is_file.then_some(state);
            match names.iter_mut().find(|(known, _)| *known == path) {
                Some((_, known)) => *known = known.or(file),
                None => names.push((path, file)),
            }
        }
        if names
            .iter()
            .any(|(path, file)| file.is_some() || missing(path))
        {
            self.watch(dir, found);
        }
        for (path, file) in names {
            if self.patterns.excluded(&path) {
                continue;
            }
            let meta = match fs::symlink_metadata(&path) {
                Ok(meta) => meta,
                Err(error) => {
                    if error.kind() == io::ErrorKind::PermissionDenied {
                        found.denied.push((dir.to_owned(), error));
                    }
                    continue;
                }
            };
            if meta.is_dir() || !missing(&path) {
                let name = path.file_name().unwrap_or_default();
                let inner = self.patterns.enter(states, name, meta.is_symlink());
                if file.is_some() {
                    found.problems.push(is_directory(&path));
                }
                stack.push((path, inner));
            } else if let Some(state) = file {
                found.files.push((path, state.pattern));
            }
        }
    }

    fn list(
        &mut self,
        dir: &Path,
        states: &[State],
        stack: &mut Vec<(PathBuf, Vec<State>)>,
        found: &mut Found,
    ) {
        let entries = match fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return,
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                found.denied.push((dir.to_owned(), e));
                return;
            }
            Err(e) => {
                let message = format!("directory cannot be listed: {e}");
                found.problems.push((dir.to_owned(), message));
                return;
            }
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let file = self.patterns.file(states, &name);
            let path = dir.join(&name);
            if kind.is_dir() || kind.is_symlink() {
                let inner = self.patterns.enter(states, &name, kind.is_symlink());
                let is_dir =
                    kind.is_dir() || fs::metadata(&path).is_ok_and(|target| target.is_dir());
                if is_dir {
                    if self.patterns.excluded(&path) {
                        continue;
                    }
                    if file.is_some_and(|state| !self.patterns.is_any(state)) {
                        found.problems.push(is_directory(&path));
                    }
                    stack.push((path, inner));
                    continue;
                }
            }
            if let Some(state) = file
                && !self.patterns.excluded(&path)
            {
                found.files.push((path, state.pattern));
            }
        }
    }

    fn watch(&mut self, dir: &Path, found: &mut Found) {
        let Err(error) = self.watcher.add(dir) else {
            return;
        };
        match Errno::from_io_error(&error) {
            // What may not be read is reported where it is listed or looked into.
            Some(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => {}
            Some(Errno::NOSPC | Errno::NOMEM) => {
                self.watcher.blindfold();
                found.problems.push((
                    dir.to_owned(),
                    format!(
                        "inotify has no watch left ({error}); files are polled instead, \
                         raise fs.inotify.max_user_watches and restart"
                    ),
                ));
            }
            _ => found.problems.push((
                dir.to_owned(),
                format!("directory cannot be watched: {error}; it is polled at longer intervals"),
            )),
        }
    }
}

fn is_directory(path: &Path) -> (PathBuf, String) {
    (
        path.to_owned(),
        "is a directory and is left out; write a glob for the files in it".to_owned(),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn discovery(globs: &[String]) -> Discovery {
        Discovery::new(
            Patterns::new(globs, &[], Path::new("/")).unwrap(),
            Watcher::new().unwrap(),
        )
    }

    #[test]
    fn only_directories_that_matter_are_watched() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for sub in ["pods/a/c", "pods/b/c", "other/deep"] {
            fs::create_dir_all(root.join(sub)).unwrap();
            fs::write(root.join(sub).join("0.log"), "x").unwrap();
        }
        let mut walk = discovery(&[format!("{}/pods/*/c/*.log", root.display())]);
        let mut found = Found::default();
        walk.walk_all(&mut found);
        let mut files: Vec<_> = found.files.iter().map(|(path, _)| path.clone()).collect();
        files.sort();
        assert_eq!(
            files,
            [root.join("pods/a/c/0.log"), root.join("pods/b/c/0.log")]
        );
        assert!(walk.watcher.watches(&root.join("pods")));
        assert!(walk.watcher.watches(&root.join("pods/a/c")));
        assert!(!walk.watcher.watches(root));
        assert!(!walk.watcher.watches(Path::new("/")));
        assert!(!walk.watcher.watches(&root.join("other")));
    }

    #[test]
    fn the_parent_of_a_missing_directory_is_watched() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let mut walk = discovery(&[format!("{}/x/y/*.log", root.display())]);
        let mut found = Found::default();
        walk.walk_all(&mut found);
        assert!(walk.watcher.watches(root));
        fs::create_dir_all(root.join("x/y")).unwrap();
        fs::write(root.join("x/y/1.log"), "x").unwrap();
        walk.dir_appeared(root, &root.join("x"), &mut found);
        assert_eq!(found.files, [(root.join("x/y/1.log"), 0)]);
        assert!(walk.watcher.watches(&root.join("x/y")));
    }

    #[test]
    fn a_loop_of_links_ends() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir(root.join("a")).unwrap();
        fs::write(root.join("a/1.log"), "x").unwrap();
        std::os::unix::fs::symlink(root, root.join("a/loop")).unwrap();
        let mut walk = discovery(&[format!("{}/**/*.log", root.display())]);
        let mut found = Found::default();
        walk.walk_all(&mut found);
        assert_eq!(found.files, [(root.join("a/1.log"), 0)]);
    }
}
