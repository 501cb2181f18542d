//! What many idle files cost: the time from a start to the first new line, and resident memory.
//!
//! Takes a number of files; makes them, reads them in a first life, and starts again in a process of its own.
//! `cargo run --release -p tailrace-inputs --example many_files -- 100000`. Never measures the pipeline.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program to be looked at"
)]

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tailrace_inputs::checkpoint::{Checkpoint, Counts, Store, Watermark};
use tailrace_inputs::{ChunkBuffer, DataDir, FileConfig, FileEvent, Follower};

const FILES_PER_DIR: usize = 200;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match &arguments[1..] {
        [files] => {
            let dir = tempfile::tempdir().unwrap();
            make(dir.path(), files.parse().unwrap());
            for life in ["first", "again"] {
                let mut child = Command::new(&arguments[0]);
                child.arg(life).arg(dir.path()).status().unwrap();
            }
        }
        [life, dir] => live(Path::new(dir), life == "first"),
        _ => println!("usage: many_files FILES"),
    }
}

fn make(dir: &Path, files: usize) {
    for file in 0..files {
        let path = path(dir, file);
        if file % FILES_PER_DIR == 0 {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
        }
        fs::write(
            path,
            format!("{{\"message\":\"the first line of file {file}\"}}\n"),
        )
        .unwrap();
    }
}

fn path(dir: &Path, file: usize) -> PathBuf {
    let number = file / FILES_PER_DIR;
    dir.join(format!(
        "pods/shop_web-{number}_6ba7b810-9dad-11d1-80b4-00c04fd430c8/web/{file}.log"
    ))
}

fn live(dir: &Path, is_first: bool) {
    let start = Instant::now();
    let data = DataDir::open(&dir.join("data")).unwrap();
    let loaded = Checkpoint::load(&data).unwrap();
    let state = loaded.checkpoint.pipeline("p");
    let resume = state.map_or_else(Vec::new, |state| state.resume(&["o"]));
    let gone = state.map(|state| state.gone()).unwrap_or_default();
    report(start, "checkpoint loaded");
    let config = FileConfig {
        include: vec![format!("{}/pods/*/*/*.log", dir.display())],
        fingerprint_key: loaded.checkpoint.fingerprint_key(),
        idle_close: Duration::ZERO,
        gone,
        ..FileConfig::default()
    };
    let mut store = Store::go_on(data, loaded);
    let mut follower = Follower::new(config, resume, is_first).unwrap();
    report(start, "files found");
    let line = b"{\"message\":\"a new line\"}\n";
    if !is_first {
        let path = path(dir, FILES_PER_DIR / 2);
        let mut file = OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(line).unwrap();
    }
    let mut buffer = ChunkBuffer::with_capacity(1 << 20);
    let (mut events, mut read, mut known) = (Vec::new(), 0, HashMap::new());
    loop {
        buffer.clear();
        let more = follower.read(&mut buffer, 1 << 20, &mut events);
        read += buffer.len();
        for event in events.drain(..) {
            match event {
                FileEvent::Opened {
                    source,
                    generation,
                    path,
                    ..
                } if is_first => {
                    known.insert(source, (generation, path));
                }
                FileEvent::Chunk {
                    source,
                    id,
                    offset,
                    start,
                    end,
                } if is_first => {
                    let (generation, path) = &known[&source];
                    let offset = offset + (end - start) as u64;
                    let at = Watermark {
                        offset,
                        counts: Counts::default(),
                    };
                    let pipeline = store.checkpoint.pipeline_mut("p");
                    pipeline
                        .set("o", id, *generation, path.clone(), offset, at)
                        .unwrap();
                }
                _ => {}
            }
        }
        if !more && (is_first || read > 0) {
            break;
        }
        if !more {
            follower.wait(Duration::from_secs(1));
        }
    }
    store.save().unwrap();
    drop((known, buffer, events));
    report(start, "read");
    follower.rescan();
    report(start, "rescanned once more");
    println!("{} files, {} open", follower.files(), follower.open_files());
}

/// What this process took of it.
fn cpu() -> Duration {
    let stat = fs::read_to_string("/proc/self/schedstat").unwrap();
    Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
}

fn report(start: Instant, what: &str) {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_whitespace().nth(1))
            .unwrap_or("?")
            .to_owned()
    };
    println!(
        "{what:20} {:6} ms ({:4} on the CPU), resident {} KiB, at most {} KiB",
        start.elapsed().as_millis(),
        cpu().as_millis(),
        field("RssAnon"),
        field("VmHWM")
    );
}
