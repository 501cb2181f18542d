//! cargo-deny: licences, bans and sources of all dependencies, and known advisories about them. Never uses the network:
//! advisories are checked where a database was fetched before, and named as skipped where none was.

use std::path::{Path, PathBuf};

use crate::steps::Steps;
use crate::workspace::{Workspace, on_path, run as execute};

const STEP: &str = "deny";
const ADVISORIES: &str = "deny: advisories";

pub(crate) fn run(workspace: &Workspace, steps: &mut Steps) {
    let check = |what: &[&str]| {
        let arguments = [&["deny", "--offline", "check"], what].concat();
        execute(&mut workspace.cargo(&arguments))
    };
    if !on_path("cargo-deny") {
        let reason = "cargo-deny is not on the PATH: `cargo install --locked cargo-deny`";
        steps.skip(STEP, reason);
        steps.skip(ADVISORIES, reason);
        return;
    }
    steps.run(STEP, || check(&["licenses", "bans", "sources"]));
    match databases() {
        Some(dir) if has_database(&dir) => {
            steps.run(ADVISORIES, || check(&["advisories"]));
        }
        _ => steps.skip(
            ADVISORIES,
            "there is no advisory database: `cargo deny fetch` brings it, with the network",
        ),
    }
}

/// Where cargo-deny keeps what it fetched.
fn databases() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    Some(home?.join("advisory-dbs"))
}

/// Whether one of the directories holds advisories about crates.
fn has_database(dir: &Path) -> bool {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .any(|database| database.join("crates").is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_a_directory_of_advisories() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!has_database(dir.path()) && !has_database(&dir.path().join("none")));
        std::fs::create_dir(dir.path().join("empty")).unwrap();
        std::fs::write(dir.path().join("db.lock"), "").unwrap();
        assert!(!has_database(dir.path()));
        std::fs::create_dir_all(dir.path().join("advisory-db-1/crates")).unwrap();
        assert!(has_database(dir.path()));
    }
}
