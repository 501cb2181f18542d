//! Real log files, where they are at hand: `TAILRACE_TEST_DATA`, or `shared/data` beside the repository.

use std::path::PathBuf;

use super::{Batch, check_scan, key, rich_config, star_config};
use crate::{Config, Type};

#[test]
fn nginxplus_equals_the_reference() {
    let Some(lines) = lines("nginxplus.ndjson") else {
        return;
    };
    let keys = [
        "version",
        "nginx_version",
        "timestamp",
        "pid",
        "ssl",
        "caches",
        "absent",
    ];
    let batch = Batch::of_lines(&lines, 0);
    let expect = check_scan(
        &Config {
            star: star_config(512).star,
            ..rich_config(&keys)
        },
        &batch,
    );
    assert_eq!(expect.stats.malformed, 0);
    assert!(expect.star.len() > 5, "{} keys", expect.star.len());
    check_scan(&star_config(3), &batch);
    check_scan(
        &Config {
            columns: vec![key("pid", Type::Int64)],
            ..Config::default()
        },
        &batch,
    );
}

#[test]
fn lines_that_are_arrays_are_all_malformed() {
    let Some(lines) = lines("amazon_cellphones.ndjson") else {
        return;
    };
    let expect = check_scan(&rich_config(&["asin"]), &Batch::of_lines(&lines, 0));
    assert_eq!(expect.stats.malformed, lines.len() as u64);
    assert!(
        expect
            .raw
            .iter()
            .zip(&lines)
            .all(|(raw, line)| raw.as_ref().map(String::as_bytes) == Some(line))
    );
}

/// The lines of a file, or `None`, said aloud, if the data is not there.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn lines(name: &str) -> Option<Vec<Vec<u8>>> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let directory = std::env::var_os("TAILRACE_TEST_DATA").map_or(beside, PathBuf::from);
    let Ok(text) = std::fs::read(directory.join(name)) else {
        eprintln!(
            "skipped: no {name} in {}, see TAILRACE_TEST_DATA",
            directory.display()
        );
        return None;
    };
    Some(
        text.split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(<[u8]>::to_vec)
            .collect(),
    )
}
