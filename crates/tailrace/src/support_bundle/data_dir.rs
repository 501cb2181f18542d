//! The files below the data directory: kind, mode, owner, size, age and name. Their contents are not read, and links are not
//! followed.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::archive::Bundle;
use crate::printed;

/// More entries of one listing are not named.
const ENTRIES_MAX: usize = 10_000;
/// Directories further down are not listed.
const DEPTH_MAX: usize = 8;

/// Adds the listing.
pub(super) fn add(dir: &Path, bundle: &mut Bundle) {
    let text = listing(dir).map_err(|error| format!("{}: {error}", printed::path(dir)));
    let what = "names and sizes of the files in the data directory";
    bundle.add("data_dir.txt", what, text);
}

fn listing(root: &Path) -> io::Result<String> {
    let mut text = format!("{}\n", printed::path(root));
    text.push_str(&line(&fs::symlink_metadata(root)?, Path::new(".")));
    let mut waiting = vec![(root.to_owned(), 1)];
    let mut count = 0;
    while let Some((dir, depth)) = waiting.pop() {
        let below = |name: &Path| dir.strip_prefix(root).unwrap_or(&dir).join(name);
        let (entries, is_cut) = match names(&dir, ENTRIES_MAX - count) {
            Ok(entries) => entries,
            Err(error) if dir == root => return Err(error),
            Err(error) => {
                text.push_str(&format!(
                    "{}: {error}\n",
                    printed::path(&below(Path::new("")))
                ));
                continue;
            }
        };
        count += entries.len();
        let mut dirs = Vec::new();
        for name in entries {
            let path = dir.join(&name);
            // It may be gone by now.
            let Ok(metadata) = fs::symlink_metadata(&path) else {
                continue;
            };
            text.push_str(&line(&metadata, &below(&name)));
            if metadata.is_dir() && depth < DEPTH_MAX {
                dirs.push((path, depth + 1));
            }
        }
        waiting.extend(dirs.into_iter().rev());
        if is_cut {
            text.push_str(&format!(
                "more than {ENTRIES_MAX} entries: the rest is not listed\n"
            ));
            break;
        }
    }
    Ok(text)
}

/// The names in a directory, sorted, and whether there are more than `max`.
fn names(dir: &Path, max: usize) -> io::Result<(Vec<PathBuf>, bool)> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        if names.len() == max {
            names.sort();
            return Ok((names, true));
        }
        names.push(PathBuf::from(entry?.file_name()));
    }
    names.sort();
    Ok((names, false))
}

fn line(metadata: &Metadata, path: &Path) -> String {
    let kind = metadata.file_type();
    let kind = match kind {
        _ if kind.is_dir() => "dir",
        _ if kind.is_file() => "file",
        _ if kind.is_symlink() => "link",
        _ if kind.is_fifo() => "pipe",
        _ if kind.is_socket() => "socket",
        _ => "device",
    };
    format!(
        "{kind:<6} {:04o} {}:{} {:>12} bytes, changed at {} s: {}\n",
        metadata.mode() & 0o7777,
        metadata.uid(),
        metadata.gid(),
        metadata.len(),
        metadata.mtime(),
        printed::path(path)
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_file_is_named_and_none_is_read() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("queue/a")).unwrap();
        fs::write(root.path().join("queue/a/1.seg"), "planted record").unwrap();
        fs::write(root.path().join("lock\u{1b}\nforged"), "").unwrap();
        std::os::unix::fs::symlink("/", root.path().join("link")).unwrap();
        let text = listing(root.path()).unwrap();
        let ends: Vec<&str> = text
            .lines()
            .skip(1)
            .map(|line| line.rsplit(": ").next().unwrap())
            .collect();
        let expected = [
            ".",
            "link",
            "lock\\u{1b}\\nforged",
            "queue",
            "queue/a",
            "queue/a/1.seg",
        ];
        assert_eq!(ends, expected, "{text}");
        assert!(
            text.contains("14 bytes") && !text.contains("planted"),
            "{text}"
        );
        assert!(listing(&root.path().join("none")).is_err());
        assert!(names(root.path(), 2).unwrap().1);
    }
}
