//! `tailrace test --update`: writes the rows that leave into the tests that expect others. Everything else in the files stays
//! as it is.

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

use anyhow::{Context, anyhow};
use tailrace_config::{ExpectedRows, Test, with_rows};

use super::Tested;
use crate::printed::{self, Printer};

/// Writes the rows of all tests that have others.
///
/// # Errors
///
/// Rows that cannot be written, with the reason. Files are written one after the other: those before it are.
pub(super) fn update(tested: &[Tested<'_>], all: &[Test]) -> anyhow::Result<()> {
    let mut lists: Vec<(&Test, &ExpectedRows, &[String])> = Vec::new();
    for it in tested {
        let (Some(expected), Some(rows)) = (&it.test.expect.rows, &it.outcome.rows) else {
            continue;
        };
        check(it.test, expected, rows, all)?;
        lists.push((it.test, expected, rows));
    }
    while let Some((_, first, _)) = lists.first() {
        let path = first.position.file().to_owned();
        let (here, others): (Vec<_>, Vec<_>) = lists
            .into_iter()
            .partition(|(_, rows, _)| rows.position.file() == path);
        lists = others;
        let edits: Vec<(&ExpectedRows, &[String])> = here
            .iter()
            .map(|&(_, expected, rows)| (expected, rows))
            .collect();
        let text = with_rows(&edits).map_err(|(number, why)| refused(here[number].0, &why))?;
        let before = fs::read_to_string(&path).ok();
        if before.as_deref() != Some(edits[0].0.position.source().text()) {
            let why = "the file cannot be read again, or has changed meanwhile";
            return Err(refused(here[0].0, why));
        }
        let lost = write(&path, &text)
            .with_context(|| format!("{}: cannot be written", printed::path(&path)))?;
        if let Some(lost) = lost {
            note_lost(&path, &lost).context("stderr")?;
        }
    }
    Ok(())
}

/// Refuses rows that another test has, too, and those that quote a value from outside.
fn check(
    test: &Test,
    expected: &ExpectedRows,
    rows: &[String],
    all: &[Test],
) -> anyhow::Result<()> {
    let is_same = |other: &&Test| {
        let rows = other.expect.rows.as_ref();
        other.name != test.name && rows.is_some_and(|rows| rows.position == expected.position)
    };
    if let Some(other) = all.iter().find(is_same) {
        let why = format!("test `{}` has them from the same place", other.name);
        return Err(refused(test, &why));
    }
    if rows.iter().any(|row| printed::redacted(row) != *row) {
        let why = "a row has the value of a `${...}`, which must not stand in a file";
        return Err(refused(test, why));
    }
    Ok(())
}

fn refused(test: &Test, why: &str) -> anyhow::Error {
    let (name, position) = (&test.name, &test.position);
    anyhow!("{position}: the rows of test `{name}` are not updated: {why}")
}

/// Replaces a file as a whole; a link to it stays one. Returns what of its owner and group could not be kept.
fn write(path: &Path, text: &str) -> anyhow::Result<Option<String>> {
    let path = path.canonicalize()?;
    let before = path.metadata()?;
    let directory = path.parent().context("it is in no directory")?;
    let name = path
        .file_name()
        .context("it has no name")?
        .to_string_lossy();
    let temporary = directory.join(format!(".{name}.{}.tmp", std::process::id()));
    let written = || -> io::Result<Option<String>> {
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(text.as_bytes())?;
        let lost = keep_access(&file, &before)?;
        file.sync_all()?;
        fs::rename(&temporary, &path)?;
        Ok(lost)
    };
    let lost = written().inspect_err(|_| {
        // What is left of it is of no use; that it cannot be removed is the smaller problem.
        let _ = fs::remove_file(&temporary);
    })?;
    Ok(lost)
}

/// Gives a file the mode, owner and group of the one that it replaces. Returns which of them the system refuses to this
/// user. A group that was not meant gets no more than everybody.
fn keep_access(file: &File, before: &Metadata) -> io::Result<Option<String>> {
    let made = file.metadata()?;
    let mut mode = before.mode() & 0o7777;
    let mut lost = Vec::new();
    let (user, group) = (before.uid(), before.gid());
    if made.gid() != group && fchown(file, None, Some(group)).is_err() {
        lost.push(format!("its group {group}"));
        mode = (mode & !0o070) | ((mode & 0o007) << 3);
    }
    if made.uid() != user && fchown(file, Some(user), None).is_err() {
        lost.push(format!("its owner {user}"));
    }
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    Ok((!lost.is_empty()).then(|| lost.join(" and ")))
}

fn note_lost(path: &Path, lost: &str) -> io::Result<()> {
    let path = printed::path(path);
    writeln!(
        Printer::stderr(),
        "note: {path} is written, but {lost} could not be kept: see that the agent's user may still read it, with `chown` \
         as root"
    )
}
