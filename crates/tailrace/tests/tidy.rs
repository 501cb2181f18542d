//! The rules of this project that no compiler checks: which crate may depend on
//! which, module docs, the size of files, and words that must not appear.
//!
//! Each rule prints every place that breaks it, as `path:line: what`.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What each crate may depend on, of ours. A crate that is not listed fails the
/// test: who adds one says here what it may use.
const EDGES: [(&str, &[&str]); 21] = [
    ("tailrace-model", &[]),
    ("tailrace-files", &[]),
    ("tailrace-schema", &[]),
    ("tailrace-zstd", &[]),
    (
        "tailrace-config",
        &[
            "tailrace-inputs",
            // The time of a test.
            "tailrace-model",
            "tailrace-outputs",
            "tailrace-schema",
        ],
    ),
    (
        "tailrace-inputs",
        &["tailrace-files", "tailrace-kubernetes", "tailrace-schema"],
    ),
    ("tailrace-frame", &["tailrace-model"]),
    ("tailrace-scan", &["tailrace-model"]),
    ("tailrace-sql", &["tailrace-model"]),
    // The encoder marks where values are, for the compressor.
    ("tailrace-otlp", &["tailrace-model", "tailrace-zstd"]),
    (
        "tailrace-outputs",
        &[
            "tailrace-files",
            "tailrace-model",
            "tailrace-otlp",
            "tailrace-schema",
        ],
    ),
    ("tailrace-kubernetes", &["tailrace-model"]),
    (
        "tailrace-query",
        &[
            "tailrace-frame",
            "tailrace-inputs",
            "tailrace-model",
            "tailrace-scan",
            // How durations are written.
            "tailrace-schema",
            "tailrace-sql",
        ],
    ),
    (
        "tailrace-python",
        // How sizes are written.
        &["tailrace-query", "tailrace-schema"],
    ),
    (
        "tailrace-pipeline",
        &[
            "tailrace-config",
            "tailrace-files",
            "tailrace-frame",
            "tailrace-inputs",
            "tailrace-kubernetes",
            "tailrace-model",
            "tailrace-otlp",
            "tailrace-outputs",
            "tailrace-scan",
            "tailrace-sql",
        ],
    ),
    (
        "tailrace",
        &[
            "tailrace-config",
            "tailrace-files",
            "tailrace-inputs",
            "tailrace-kubernetes",
            "tailrace-model",
            "tailrace-otlp",
            "tailrace-outputs",
            "tailrace-pipeline",
            "tailrace-query",
            "tailrace-sql",
        ],
    ),
    ("tailrace-testkit", &[]),
    // Drives the agent as a process: nothing of the agent is linked.
    ("tailrace-torture", &["tailrace-testkit"]),
    // The benchmarks reach every stage; nothing reaches them.
    (
        "tailrace-benches",
        &[
            "tailrace-frame",
            "tailrace-model",
            "tailrace-otlp",
            "tailrace-pipeline",
            "tailrace-scan",
            "tailrace-sql",
        ],
    ),
    ("xtask", &[]),
    ("tailrace-bench-runner", &["xtask"]),
];

/// The only crate that may hold `unsafe`.
const UNSAFE_CRATE: &str = "tailrace-scan";

/// A file longer than this is two files.
const LINES_MAX: usize = 800;

/// Words that must not appear anywhere, written in two halves so that this file
/// does not hold them, and why.
const FORBIDDEN: [(&str, &str, &str); 3] = [
    ("/wo", "rk/", "a path of one machine"),
    ("/ro", "ot/", "a path of one machine"),
    ("/home/", "runner", "a path of one machine"),
];

#[test]
fn crates_depend_only_on_what_they_may() {
    let allowed: BTreeMap<&str, &[&str]> = EDGES.into_iter().collect();
    let mut faults = Vec::new();
    for manifest in manifests() {
        let text = fs::read_to_string(root().join(&manifest)).unwrap();
        let name = package_name(&text).unwrap();
        let Some(allowed) = allowed.get(name.as_str()) else {
            faults.push(format!(
                "{}: {name} is not listed in tidy.rs",
                manifest.display()
            ));
            continue;
        };
        for (line, dependency) in own_dependencies(&text, &["dependencies", "build-dependencies"]) {
            if !allowed.contains(&dependency.as_str()) {
                let place = format!("{}:{line}", manifest.display());
                faults.push(format!("{place}: {name} must not depend on {dependency}"));
            }
        }
        // Tests may use the kit and what the crate itself may use, those of the agent also the torture harness.
        for (line, dependency) in own_dependencies(&text, &["dev-dependencies"]) {
            let is_for_tests = dependency == "tailrace-testkit"
                || (name == "tailrace" && dependency == "tailrace-torture");
            if !is_for_tests && !allowed.contains(&dependency.as_str()) {
                let place = format!("{}:{line}", manifest.display());
                faults.push(format!(
                    "{place}: the tests of {name} must not use {dependency}"
                ));
            }
        }
    }
    assert_none(&faults);
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    let mut faults = Vec::new();
    for manifest in manifests() {
        let text = fs::read_to_string(root().join(&manifest)).unwrap();
        let name = package_name(&text).unwrap();
        if name != UNSAFE_CRATE && !text.contains("[lints]\nworkspace = true") {
            faults.push(format!(
                "{}: `[lints] workspace = true` is missing",
                manifest.display()
            ));
        }
    }
    assert_none(&faults);
}

/// The floors of the house. A crate depends on crates of lower floors only, so that data flows one way and no two stages
/// know each other.
const LAYERS: [&[&str]; 8] = [
    &[
        "tailrace-model",
        "tailrace-files",
        "tailrace-schema",
        "tailrace-testkit",
        "tailrace-zstd",
    ],
    &["tailrace-kubernetes", "tailrace-otlp"],
    &[
        "tailrace-frame",
        "tailrace-inputs",
        "tailrace-outputs",
        "tailrace-scan",
        "tailrace-sql",
    ],
    &["tailrace-config", "tailrace-query"],
    &["tailrace-pipeline"],
    &["tailrace", "tailrace-python"],
    &["tailrace-benches", "tailrace-torture", "xtask"],
    &["tailrace-bench-runner"],
];

#[test]
fn crates_depend_on_lower_floors_only() {
    // The table above could be edited by mistake; this is its meaning.
    let floor = |name: &str| LAYERS.iter().position(|crates| crates.contains(&name));
    let mut faults = Vec::new();
    for (name, allowed) in EDGES {
        let own = floor(name);
        if own.is_none() {
            faults.push(format!("{name} has no floor"));
        }
        for dependency in allowed.iter().filter(|name| floor(name) >= own) {
            faults.push(format!(
                "{name} depends on {dependency}, which is not below it"
            ));
        }
    }
    assert_none(&faults);
}

#[test]
fn every_module_says_what_it_is() {
    let mut faults = Vec::new();
    for (path, text) in rust_files() {
        let first = text
            .lines()
            .find(|line| !line.trim().is_empty())
            .unwrap_or_default();
        if !first.starts_with("//! ") {
            faults.push(format!(
                "{}:1: opens without `//! ` and what it is",
                path.display()
            ));
        }
    }
    assert_none(&faults);
}

#[test]
fn no_file_is_too_long() {
    let too_long = rust_files().into_iter().filter_map(|(path, text)| {
        let lines = text.lines().count();
        (lines > LINES_MAX)
            .then(|| format!("{}: {lines} lines, at most {LINES_MAX}", path.display()))
    });
    assert_none(&too_long.collect::<Vec<_>>());
}

#[test]
fn modules_are_files_beside_their_directory() {
    let faults: Vec<String> = rust_files()
        .into_iter()
        .filter(|(path, _)| path.file_name().unwrap() == "mod.rs")
        .filter(|(path, _)| !path.components().any(|part| part.as_os_str() == "tests"))
        .map(|(path, _)| format!("{}: name it after its directory", path.display()))
        .collect();
    assert_none(&faults);
}

#[test]
fn no_test_is_ignored_and_none_sleeps() {
    let mut faults = Vec::new();
    for (path, text) in rust_files() {
        if path.ends_with("tests/tidy.rs") {
            continue; // It speaks of sleeping without doing it.
        }
        let in_tests =
            path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests");
        let mut above = "";
        for (index, line) in text.lines().enumerate() {
            let place = format!("{}:{}", path.display(), index + 1);
            if line.trim_start().starts_with(concat!("#[", "ignore")) {
                faults.push(format!("{place}: an ignored test is no test"));
            }
            // A sleep that no event can replace says why: `// tidy: reason`.
            let reason = line.contains("// tidy:") || above.contains("// tidy:");
            if in_tests && calls_sleep(line) && !reason {
                faults.push(format!(
                    "{place}: wait for an event, or say `// tidy: why not`"
                ));
            }
            above = line;
        }
    }
    assert_none(&faults);
}

#[test]
fn unsafe_stands_in_one_crate_only() {
    let mut faults = Vec::new();
    for (path, text) in rust_files() {
        if path.starts_with(format!("crates/{UNSAFE_CRATE}")) {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if [" {", " fn ", " impl ", " extern "]
                .iter()
                .any(|next| code.contains(&format!("{}{next}", concat!("un", "safe"))))
            {
                faults.push(format!(
                    "{}:{}: only {UNSAFE_CRATE} may",
                    path.display(),
                    index + 1
                ));
            }
        }
    }
    assert_none(&faults);
}

/// Words that the project once used for what the field has a term for, and that term. They are refused in identifiers.
const OLD_WORDS: [(&str, &str); 17] = [
    ("fate", "outcome"),
    ("homeless", "no column"),
    ("lane", "input queue"),
    ("lanes", "input queues"),
    ("lineage", "rotation chain"),
    ("lot", "record group"),
    ("lots", "record groups"),
    ("overtook", "read ahead of its predecessor"),
    ("patience", "retry policy, timeout"),
    ("reborn", "inode reused"),
    ("settle", "ack"),
    ("settled", "acked"),
    ("surroundings", "build context"),
    ("sweep", "newline search, rescan"),
    ("sweeper", "newline searcher"),
    ("twin", "compressed copy"),
    ("unsettled", "unacked"),
];

#[test]
fn old_words_are_gone() {
    let mut faults = Vec::new();
    for (path, text) in rust_files() {
        for (number, line) in text.lines().enumerate() {
            // A name of the compiler.
            let line = line.replace("vgetq_lane_u64", "");
            for word in identifier_words(&line) {
                if let Some((_, term)) = OLD_WORDS.iter().find(|(old, _)| *old == word) {
                    let place = format!("{}:{}", path.display(), number + 1);
                    faults.push(format!("{place}: `{word}` is called {term}"));
                }
            }
        }
    }
    assert_none(&faults);
}

#[test]
fn words_of_identifiers_are_told_apart() {
    let line = "let is_old = HttpWord::of(x, \"some text\"); // a comment";
    let expect = ["let", "is", "old", "http", "word", "of", "x"];
    assert_eq!(identifier_words(line), expect);
}

/// The words that the identifiers of a line consist of, in lower case. Comments and texts do not count.
fn identifier_words(line: &str) -> Vec<String> {
    let code = line.split("//").next().unwrap_or_default();
    // Every second piece between quotes is a text.
    let code = code.split('"').step_by(2);
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in code.flat_map(|code| code.chars().chain([' '])) {
        let begins = !c.is_ascii_alphanumeric() || (c.is_ascii_uppercase() && was_lower);
        if begins {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_ascii_alphanumeric()) {
            word.push(c.to_ascii_lowercase());
        }
        was_lower = c.is_ascii_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn forbidden_words_do_not_appear() {
    let mut faults = Vec::new();
    for path in files() {
        // Files that are not text are data.
        let Ok(text) = fs::read_to_string(root().join(&path)) else {
            continue;
        };
        for (index, line) in text.lines().enumerate() {
            for (first, second, why) in FORBIDDEN {
                if line.contains(&format!("{first}{second}")) {
                    let place = format!("{}:{}", path.display(), index + 1);
                    faults.push(format!("{place}: `{first}{second}` is {why}"));
                }
            }
        }
    }
    assert_none(&faults);
}

fn calls_sleep(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    code.match_indices("sleep(").any(|(at, _)| {
        let before = code[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
            && !code[..at].trim_end().ends_with("fn")
    })
}

#[track_caller]
fn assert_none(faults: &[String]) {
    assert!(
        faults.is_empty(),
        "{} places:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
        .to_owned()
}

/// Every file of the project, relative to the root: what git would take. Walks
/// the tree itself, so that it needs no git.
fn files() -> BTreeSet<PathBuf> {
    let root = root();
    let mut found = BTreeSet::new();
    let mut dirs = vec![root.clone()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name();
            let kind = entry.file_type().unwrap();
            // Of a linked worktree `.git` is a file.
            if name == ".git" {
                continue;
            }
            if kind.is_dir() && name != "target" {
                dirs.push(entry.path());
            } else if kind.is_file() {
                found.insert(entry.path().strip_prefix(&root).unwrap().to_owned());
            }
        }
    }
    assert!(
        found.contains(Path::new("Cargo.toml")),
        "{} holds no workspace",
        root.display()
    );
    found
}

fn rust_files() -> Vec<(PathBuf, String)> {
    files()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| {
            let text = fs::read_to_string(root().join(&path)).unwrap();
            (path, text)
        })
        .collect()
}

fn manifests() -> Vec<PathBuf> {
    let manifests: Vec<PathBuf> = files()
        .into_iter()
        .filter(|path| path.file_name().unwrap() == "Cargo.toml" && path != Path::new("Cargo.toml"))
        // Fuzz targets are workspaces of their own, built by hand.
        .filter(|path| !path.components().any(|part| part.as_os_str() == "fuzz"))
        .collect();
    assert!(manifests.len() >= 12, "{manifests:?}");
    manifests
}

fn package_name(manifest: &str) -> Option<String> {
    let line = manifest
        .lines()
        .find_map(|line| line.strip_prefix("name = "))?;
    Some(line.trim_matches('"').to_owned())
}

/// Our crates in these tables of a manifest, with their line numbers.
fn own_dependencies(manifest: &str, tables: &[&str]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut inside = false;
    for (index, line) in manifest.lines().enumerate() {
        if let Some(table) = line.strip_prefix('[') {
            let table = table.trim_end_matches(']');
            // `[dependencies]`, `[target.'cfg(unix)'.dependencies]`, `[dependencies.x]`.
            let (parent, child) = table.rsplit_once('.').unwrap_or(("", table));
            inside = tables.contains(&child);
            if tables.contains(&parent) && child.starts_with("tailrace") {
                found.push((index + 1, child.to_owned()));
            }
        } else if inside && line.starts_with("tailrace") {
            let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
            found.push((index + 1, name.to_owned()));
        }
    }
    found
}

#[test]
fn dependencies_are_read_in_every_notation() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\ntailrace-a.workspace = true\n\
                    tailrace-b = { path = \"b\" }\nserde = \"1\"\n[dependencies.tailrace-c]\n\
                    path = \"c\"\n[dev-dependencies]\ntailrace-d.workspace = true\n\
                    [target.'cfg(unix)'.dependencies]\ntailrace-e = \"1\"\n";
    let names = |tables: &[&str]| -> Vec<String> {
        own_dependencies(manifest, tables)
            .into_iter()
            .map(|(_, name)| name)
            .collect()
    };
    assert_eq!(
        names(&["dependencies"]),
        ["tailrace-a", "tailrace-b", "tailrace-c", "tailrace-e"]
    );
    assert_eq!(names(&["dev-dependencies"]), ["tailrace-d"]);
    assert_eq!(package_name(manifest).as_deref(), Some("x"));
}

#[test]
fn sleeping_is_recognised() {
    assert!(calls_sleep("    std::thread::sleep(Duration::ZERO);"));
    assert!(calls_sleep("tokio::time::sleep(x).await"));
    assert!(!calls_sleep("fn sleep(x: u8) {}"));
    assert!(!calls_sleep("oversleep(1); // sleep(2)"));
}
