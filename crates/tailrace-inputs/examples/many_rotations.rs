//! What many rotations of one path at once cost: time on the CPU, and the longest time that one read takes.
//!
//! Takes a number of files; makes each under one path and renames it, while a follower reads: at once, or no more than a few bytes
//! until all are made. `cargo run --release -p tailrace-inputs --example many_rotations -- 60000`. Never measures the pipeline.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program to be looked at"
)]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use tailrace_inputs::{ChunkBuffer, FileConfig, Follower};

/// Fewer than fill the kernel's queue.
const FILES_PER_READ: usize = 1000;

fn main() {
    let files = std::env::args().nth(1).and_then(|files| files.parse().ok());
    let Some(files) = files else {
        println!("usage: many_rotations FILES");
        return;
    };
    for is_held_up in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        live(dir.path(), files, is_held_up);
    }
}

fn live(dir: &Path, files: usize, is_held_up: bool) {
    let config = FileConfig {
        include: vec![format!("{}/*.log", dir.display())],
        coalesce: Duration::ZERO,
        ..FileConfig::default()
    };
    let mut follower = Follower::new(config, Vec::new(), true).unwrap();
    let (mut bytes, mut longest, mut spent) = (0, Duration::ZERO, Duration::ZERO);
    let mut read = |follower: &mut Follower, bytes_max: usize| {
        let mut buffer = ChunkBuffer::with_capacity(1 << 20);
        let begin = (Instant::now(), cpu());
        let more = follower.read(&mut buffer, bytes_max, &mut Vec::new());
        longest = longest.max(begin.0.elapsed());
        spent += cpu().saturating_sub(begin.1);
        bytes += buffer.len();
        (more, bytes, longest, spent)
    };
    let mut expected = 0;
    for number in 0..files {
        let text = format!("t {number}\n");
        expected += text.len();
        fs::write(dir.join("a.log"), text).unwrap();
        fs::rename(dir.join("a.log"), dir.join(format!("a.log.{number}"))).unwrap();
        if number % FILES_PER_READ == 0 {
            let bytes_max = if is_held_up { 16 } else { 1 << 20 };
            while read(&mut follower, bytes_max).0 && !is_held_up {}
        }
    }
    loop {
        let (more, bytes, longest, spent) = read(&mut follower, 1 << 20);
        if !more && bytes >= expected {
            assert_eq!(bytes, expected);
            println!(
                "{files} files, {}: {} ms on the CPU, the longest read {} ms",
                if is_held_up {
                    "held up"
                } else {
                    "read at once"
                },
                spent.as_millis(),
                longest.as_millis()
            );
            return;
        }
        if !more {
            follower.wait(Duration::from_millis(10));
        }
    }
}

/// What this process took of it.
fn cpu() -> Duration {
    let stat = fs::read_to_string("/proc/self/schedstat").unwrap();
    Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
}
