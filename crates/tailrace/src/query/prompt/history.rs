//! The queries of earlier prompts, in a file that only its owner can read.

use std::fs::DirBuilder;
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustyline::Editor;
use rustyline::history::FileHistory;

use super::words::Words;
use crate::printed::{self, Printer};

/// Loads the history; gives where it is kept. `None`: it is not kept, and a note has said why.
pub(super) fn open(editor: &mut Editor<Words, FileHistory>) -> Option<PathBuf> {
    let env = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let path = path(&env)?;
    // Without the file the history is empty.
    let _ = editor.load_history(&path);
    let dir = path.parent().unwrap_or(Path::new("."));
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    match made {
        Ok(()) => Some(path),
        Err(error) => {
            note(&path, &error);
            None
        }
    }
}

/// Adds a query.
pub(super) fn add(editor: &mut Editor<Words, FileHistory>, path: Option<&Path>, text: &str) {
    let is_added = editor.add_history_entry(text).unwrap_or(false);
    if let Some(path) = path.filter(|_| is_added)
        && let Err(error) = editor.append_history(path)
    {
        note(path, &error);
    }
}

/// `$XDG_STATE_HOME/tailrace/history`, by default below `~/.local/state`.
fn path(env: &dyn Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    // A relative path is to be ignored, as the XDG specification says.
    let absolute = |name: &str| env(name).filter(|path| path.is_absolute());
    let home = || Some(absolute("HOME")?.join(".local/state"));
    let state = absolute("XDG_STATE_HOME").or_else(home)?;
    Some(state.join("tailrace/history"))
}

fn note(path: &Path, error: &dyn std::fmt::Display) {
    let error = printed::shown(&error.to_string());
    // Nothing can be said when stderr is gone.
    let _ = writeln!(
        Printer::stderr(),
        "note: {}: the history of queries cannot be kept: {error}",
        printed::path(path)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_is_state_of_the_user() {
        let of = |state: &str, home: &str| {
            path(&|name| match name {
                "XDG_STATE_HOME" => Some(state.into()),
                "HOME" => Some(home.into()),
                _ => None,
            })
        };
        let at = |path: &str| Some(PathBuf::from(path));
        assert_eq!(of("/s", "/h"), at("/s/tailrace/history"));
        assert_eq!(of("", "/h"), at("/h/.local/state/tailrace/history"));
        assert_eq!(of("s", "/h"), at("/h/.local/state/tailrace/history"));
        assert_eq!(of("", ""), None);
    }
}
