//! Finds real log files for tests. If a file is missing, it says that the test is skipped; it never fetches anything.

use std::path::{Path, PathBuf};

/// The path of a file of real test data: `$TAILRACE_TEST_DATA/name`, or `../shared/data/name` beside
/// the repository. `None`, with a line on stderr, when it is not on this machine: the caller returns.
pub fn data(name: &str) -> Option<PathBuf> {
    let folder = match std::env::var_os("TAILRACE_TEST_DATA") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
    };
    let path = folder.join(name);
    if path.is_file() {
        return Some(path);
    }
    eprintln!(
        "skipped: no test data at {}; set TAILRACE_TEST_DATA to the folder that holds {name}",
        path.display()
    );
    None
}

#[cfg(test)]
mod tests {
    use super::data;

    #[test]
    fn a_missing_file_is_none() {
        assert_eq!(data("no-such-file.ndjson"), None);
    }
}
