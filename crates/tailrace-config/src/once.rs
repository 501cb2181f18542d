//! Configuration texts that can be read only once: standard input, pipes, and texts that are made without a file. Each is
//! read into memory at the start, within the bound of a file, so that loading may read it several times.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::load::FILE_BYTES_MAX;

/// What standard input is called on the command line.
const STDIN: &str = "-";
/// What it is called in messages.
const STDIN_NAME: &str = "<stdin>";

/// Texts in memory, by the path that stands for each.
#[derive(Clone, Debug, Default)]
pub struct ReadOnce(BTreeMap<PathBuf, Result<Vec<u8>, String>>);

impl ReadOnce {
    /// Reads those of the paths that can be read only once: `-` is standard input. Waits for their end, or for more bytes
    /// than a configuration file may have.
    pub fn read(paths: &[PathBuf]) -> ReadOnce {
        let mut read = ReadOnce::default();
        for path in paths {
            let name = name_of(path);
            if read.0.contains_key(&name) {
                continue;
            }
            if path == Path::new(STDIN) {
                read.0.insert(name, take(std::io::stdin().lock()));
            } else if is_pipe(path) {
                let text = fs::File::open(path).map_err(|error| plain(&error));
                read.0.insert(name, text.and_then(take));
            }
        }
        read
    }

    /// Adds a text that is in no file.
    #[must_use]
    pub fn with(mut self, name: impl Into<PathBuf>, text: String) -> ReadOnce {
        self.0.insert(name.into(), Ok(text.into_bytes()));
        self
    }

    /// The bytes of a text, or why it could not be read; `None` if the path is an ordinary one.
    pub fn get(&self, path: &Path) -> Option<Result<&[u8], &str>> {
        let found = self.0.get(&name_of(path))?;
        Some(found.as_deref().map_err(String::as_str))
    }

    /// What the texts are called.
    pub fn names(&self) -> impl Iterator<Item = &Path> {
        self.0.keys().map(PathBuf::as_path)
    }
}

/// What a path of the command line is called in messages.
pub(crate) fn name_of(path: &Path) -> PathBuf {
    if path == Path::new(STDIN) {
        PathBuf::from(STDIN_NAME)
    } else {
        path.to_owned()
    }
}

fn is_pipe(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.file_type().is_fifo())
}

fn take(from: impl Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = from.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| plain(&error))?;
    Ok(bytes)
}

fn plain(error: &std::io::Error) -> String {
    tailrace_schema::interpolate::plain_error(error)
}
