//! A fuzz target's corpus as an ordinary test.
//!
//! Takes the name of a target and its body, runs the body over every file of `corpus/<target>` in the order of their
//! names, fails with the names of all files that do not hold. Never passes over a corpus that is missing or empty.

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

pub(crate) fn replay(target: &str, run: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let entries = fs::read_dir(&corpus)
        .unwrap_or_else(|error| panic!("no corpus at {}: {error}", corpus.display()));
    let mut seeds: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    seeds.sort();
    assert!(!seeds.is_empty(), "{} is empty", corpus.display());
    let failed: Vec<&Path> = seeds
        .iter()
        .map(PathBuf::as_path)
        .filter(|seed| {
            let data = fs::read(seed).unwrap();
            catch_unwind(|| run(&data)).is_err()
        })
        .collect();
    assert!(
        failed.is_empty(),
        "of {} seeds these fail, in the order of the panics above: {failed:#?}",
        seeds.len()
    );
}
