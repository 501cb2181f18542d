//! The messages that docs/troubleshooting.md explains exist in the sources, word for word.
//!
//! A message is a heading in backticks. `...` in it stands for what differs: a path, a name, a number.

use std::fs;
use std::path::{Path, PathBuf};

use super::blocks::prose;

/// How far apart the parts of one message are in the sources.
const BYTES_MAX: usize = 300;

#[test]
fn each_message_that_is_explained_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = fs::read_to_string(root.join("docs/troubleshooting.md")).unwrap();
    let messages = messages(&page);
    assert!(
        messages.len() > 20,
        "only {} messages were found",
        messages.len()
    );
    let sources: Vec<String> = sources(&root.join("crates"))
        .iter()
        .map(|path| joined(path))
        .collect();
    let missing: Vec<&String> = messages
        .iter()
        .filter(|message| !sources.iter().any(|source| has(source, message)))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/troubleshooting.md quotes what no source says: {missing:#?}"
    );
}

/// The headings in backticks.
fn messages(page: &str) -> Vec<String> {
    let text = prose(page);
    let heading = |line: &str| {
        Some(
            line.strip_prefix('#')?
                .trim_start_matches('#')
                .trim()
                .to_owned(),
        )
    };
    text.lines()
        .filter_map(heading)
        .filter_map(|title| Some(title.strip_prefix('`')?.strip_suffix('`')?.to_owned()))
        .collect()
}

/// The sources that ship: no tests.
fn sources(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let is_test = path.file_stem().is_some_and(|stem| stem == "tests");
            if path.is_dir() && !is_test {
                dirs.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") && !is_test {
                found.push(path);
            }
        }
    }
    found
}

/// A source in which texts over several lines are one.
fn joined(path: &Path) -> String {
    let mut text = String::new();
    let mut continues = false;
    for line in fs::read_to_string(path).unwrap().lines() {
        let part = if continues { line.trim_start() } else { line };
        continues = part.ends_with('\\');
        text.push_str(part.strip_suffix('\\').unwrap_or(part));
        if !continues {
            text.push('\n');
        }
    }
    text.replace("\\\"", "\"")
}

/// Whether a source has all parts of a message, in order and near each other.
fn has(source: &str, message: &str) -> bool {
    let mut parts = message
        .split("...")
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let Some(first) = parts.next() else {
        return false;
    };
    let rest: Vec<&str> = parts.collect();
    source.match_indices(first).any(|(start, _)| {
        let mut at = start + first.len();
        rest.iter().all(|part| {
            let mut end = (at + BYTES_MAX).min(source.len());
            while !source.is_char_boundary(end) {
                end -= 1;
            }
            let found = source[at..end].find(part);
            at += found.unwrap_or_default() + part.len();
            found.is_some()
        })
    })
}

#[test]
fn parts_are_found_in_order() {
    let source = "bail!(\"cannot read {path}: it is a {kind}, not a file\")";
    assert!(has(source, "cannot read ...: it is a ..., not a file"));
    assert!(!has(source, "it is a ... cannot read"));
    assert!(!has(source, "cannot write ..."));
    assert!(!has(source, "..."));
    assert_eq!(
        messages("## `a b`\n## c\n### `d`\n```\n# `e`\n```\n"),
        ["a b", "d"]
    );
}
