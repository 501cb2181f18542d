//! How far a query is: bytes of files as they are stored, whatever their compression and partitions.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use tailrace_query::{Engine, Input, Options, Progress};

/// The progress after the plan, and at the end.
fn progress(sql: &str, files: &[PathBuf]) -> (Progress, Progress) {
    let inputs: Vec<_> = files.iter().cloned().map(Input::File).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    runtime.block_on(async {
        let engine = Engine::new(Options {
            partitions: 3,
            chunk_bytes: 1000,
            split_bytes_min: 1,
            ..Options::default()
        })
        .unwrap();
        // The counts of one query are not those of the next one.
        let earlier = engine.plan("SELECT * FROM logs", &inputs).await.unwrap();
        earlier.run(|_| true).await.unwrap();
        let plan = engine.plan(sql, &inputs).await.unwrap();
        let notes = engine.notes();
        let planned = notes.progress();
        plan.run(|_| true).await.unwrap();
        (planned, notes.progress())
    })
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len()
}

#[test]
fn all_bytes_of_the_files_are_read_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let lines: String = (0..2000).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    let [plain, gzip, zstd] = ["a", "b", "c"].map(|name| dir.path().join(name));
    fs::write(&plain, &lines).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(lines.as_bytes()).unwrap();
    fs::write(&gzip, encoder.finish().unwrap()).unwrap();
    fs::write(&zstd, zstd::encode_all(lines.as_bytes(), 1).unwrap()).unwrap();
    let files = [plain, gzip, zstd];
    let total = files.iter().map(|path| size(path)).sum();
    let (planned, ended) = progress("SELECT n FROM logs WHERE n < 10", &files);
    let at = |file_bytes, kept| Progress {
        file_bytes,
        file_bytes_total: Some(total),
        kept,
    };
    assert_eq!((planned, ended), (at(0, 0), at(total, 30)));
    // Each of two scans reads all of them.
    let twice = "SELECT a.n FROM logs a JOIN logs b ON a.n = b.n";
    let (planned, ended) = progress(twice, &files);
    assert_eq!(planned.file_bytes_total, Some(2 * total));
    assert_eq!(ended.file_bytes, 2 * total);
}

#[test]
fn a_file_of_the_kernel_has_no_size() {
    let (planned, ended) = progress("SELECT * FROM logs", &["/proc/meminfo".into()]);
    assert_eq!(planned.file_bytes_total, None);
    assert!(ended.file_bytes > 0);
}
