//! One log file under torture: a thread that writes records, rotates, and deletes what has arrived.
//! It reports what it wrote and what it destroyed, and never reads what the agent does.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::record;
use super::rng::Rng;
use super::rotated::Rotated;
use super::sink::Sink;
use tailrace_testkit::{Stream, Writer};

/// What happens to a log file while it is written, and how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// One file for ever.
    Steady,
    /// Renamed as the kubelet does; deleted once all of it has arrived.
    Rename,
    /// The same, but all rotated files except the newest are gzipped at once.
    Gzip,
    /// Milliseconds after it was made a file is renamed to `.1` and gzipped; `.1.gz` becomes `.2.gz` before, and so on.
    GzipChainFast,
    /// Copied and cut to nothing.
    CopyTruncate,
    /// Deleted while it is written, and begun anew.
    Delete,
    /// Renamed; container lines in the kubelet's directories, long records in pieces, both streams mixed.
    Cri,
    /// The same, and the rotation may fall between the pieces of a record.
    CriSplit,
}

impl Rotation {
    /// All, in the order of the matrix.
    pub const ALL: [Rotation; 8] = [
        Rotation::Steady,
        Rotation::Rename,
        Rotation::Gzip,
        Rotation::GzipChainFast,
        Rotation::CopyTruncate,
        Rotation::Delete,
        Rotation::Cri,
        Rotation::CriSplit,
    ];

    /// Its name in tables, and of its directory and pipeline.
    pub fn name(self) -> &'static str {
        match self {
            Rotation::Steady => "none",
            Rotation::Rename => "rename",
            Rotation::Gzip => "rename-gzip",
            Rotation::GzipChainFast => "gzip-chain-fast",
            Rotation::CopyTruncate => "copytruncate",
            Rotation::Delete => "delete",
            Rotation::Cri => "cri",
            Rotation::CriSplit => "cri-split",
        }
    }

    /// True when bytes may vanish before anybody could read them.
    pub fn destroys(self) -> bool {
        matches!(self, Rotation::CopyTruncate | Rotation::Delete)
    }

    pub(crate) fn is_cri(self) -> bool {
        matches!(self, Rotation::Cri | Rotation::CriSplit)
    }

    /// How many streams one file has.
    pub(crate) fn streams(self) -> u32 {
        if self.is_cri() { 2 } else { 1 }
    }
}

/// How fast, and how often.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    pub(crate) lines_per_second: u64,
    /// The time between two rotations is drawn from this, in milliseconds.
    pub(crate) rotate_ms: Range<u64>,
    /// A writer rests while so many of its records have not arrived.
    pub(crate) backlog_max: u64,
    /// Stop writing by itself after so many records a stream.
    pub(crate) records_max: u64,
    /// Make all records first, write them at once, rotate at once.
    pub(crate) at_once: bool,
}

/// What one file's writer has done.
pub(crate) struct Truth {
    pub(crate) rotation: Rotation,
    /// The first of its streams.
    pub(crate) stream: u32,
    /// Records written whole, by stream.
    pub(crate) written: Vec<AtomicU64>,
    /// Records in bytes that were destroyed, by stream, whether they had arrived or not.
    pub(crate) destroyed: Mutex<Vec<Vec<Range<u64>>>>,
    pub(crate) rotations: AtomicU64,
    pub(crate) done: AtomicBool,
}

/// Rotated files of a container that the kubelet leaves, read or not: the default of `containerLogMaxFiles` is 5.
const KUBELET_KEEPS: usize = 4;

/// A file that ends within a record stays for at least so long, so that a checkpoint knows that the next file begins within one:
/// on a busy machine the newest checkpoint was 21 seconds old. The kubelet keeps several rotated files of a container.
const SPLIT_AGE_MIN: Duration = Duration::from_secs(60);

/// A chain with so many files waits until some of them have arrived: each rotation renames all of them.
const CHAIN_FILES_MAX: usize = 300;

pub(crate) struct FileWriter {
    writer: Writer,
    truth: Arc<Truth>,
    sink: Arc<Sink>,
    rng: Rng,
    pace: Pace,
    next: Vec<u64>,
    /// The first record of each stream in the live file.
    first: Vec<u64>,
    rotated: Rotated,
    /// Of each rotated file the record that goes on in the next one, where there is one in all of them.
    split: VecDeque<(u32, u64)>,
    due: Instant,
    time: u64,
}

impl FileWriter {
    /// Writes below `dir` as `number` of its group, from stream `stream` on.
    pub(crate) fn new(
        dir: &Path,
        (rotation, number, stream): (Rotation, usize, u32),
        seed: u64,
        pace: Pace,
        sink: Arc<Sink>,
    ) -> (FileWriter, Arc<Truth>) {
        let path = if rotation.is_cri() {
            dir.join(format!(
                "shop_web-{number}_6ba7b810-9dad-11d1-80b4-00c04fd430c{number}/web/0.log"
            ))
        } else {
            dir.join(format!("app-{number}.log"))
        };
        let streams = rotation.streams() as usize;
        let truth = Arc::new(Truth {
            rotation,
            stream,
            written: (0..streams).map(|_| AtomicU64::new(0)).collect(),
            destroyed: Mutex::new(vec![Vec::new(); streams]),
            rotations: AtomicU64::new(0),
            done: AtomicBool::new(false),
        });
        let writer = FileWriter {
            rotated: Rotated::new(path.clone()),
            split: VecDeque::new(),
            writer: Writer::open(path),
            truth: Arc::clone(&truth),
            sink,
            rng: Rng::fork(seed, 100 + u64::from(stream)),
            pace,
            next: vec![0; streams],
            first: vec![0; streams],
            due: Instant::now(),
            time: 0,
        };
        (writer, truth)
    }

    /// Until `stop`, or until all is written.
    pub(crate) fn run(mut self, stop: &AtomicBool) {
        if self.pace.at_once {
            self.all_at_once();
        }
        let started = Instant::now();
        let mut written = 0;
        while !stop.load(Ordering::Relaxed) && self.next[0] < self.pace.records_max {
            let burst = self
                .rng
                .between(1, 100)
                .min(self.pace.records_max - self.next[0]);
            // On time on the average, in bursts.
            let due =
                started + Duration::from_micros(written * 1_000_000 / self.pace.lines_per_second);
            if let wait = due.saturating_duration_since(Instant::now())
                && !wait.is_zero()
            {
                std::thread::sleep(wait.min(Duration::from_millis(50)));
                continue;
            }
            let is_full = self.truth.rotation == Rotation::GzipChainFast
                && self.rotated.len() >= CHAIN_FILES_MAX;
            if is_full {
                self.clean();
            }
            if is_full || self.backlog() > self.pace.backlog_max {
                std::thread::sleep(Duration::from_millis(20));
                continue;
            }
            let is_due = match self.truth.rotation {
                Rotation::Steady => false,
                Rotation::GzipChainFast => self.rng.chance(80),
                _ => Instant::now() >= self.due,
            };
            // What is destroyed had some time to be read, mostly.
            let is_race = !self.truth.rotation.destroys() || self.rng.chance(10);
            if is_due && !is_race {
                self.rotate();
            }
            self.burst(burst);
            written += burst;
            if is_due && is_race {
                self.rotate();
            }
            if is_due {
                let wait = self
                    .rng
                    .millis(self.pace.rotate_ms.start, self.pace.rotate_ms.end);
                self.due = Instant::now() + wait;
            }
            self.clean();
        }
        self.truth.done.store(true, Ordering::Relaxed);
    }

    fn all_at_once(&mut self) {
        let mut bytes = Vec::new();
        for sequence in 0..self.pace.records_max {
            bytes.extend_from_slice(&record::line(self.truth.stream, sequence));
            bytes.push(b'\n');
        }
        self.next[0] = self.pace.records_max;
        for part in bytes.chunks(1 << 20) {
            self.writer.bytes(part);
        }
        self.rotate();
        self.publish();
    }

    /// Records that were written and not resolved. What was destroyed never is: those who destroy
    /// do not wait.
    fn backlog(&self) -> u64 {
        if self.truth.rotation.destroys() {
            return 0;
        }
        let resolved = self.sink.lock().streams[self.truth.stream as usize].resolved;
        self.next[0].saturating_sub(resolved)
    }

    fn burst(&mut self, records: u64) {
        if self.truth.rotation == Rotation::GzipChainFast {
            self.writer.reopen();
        }
        let mut bytes = Vec::new();
        for _ in 0..records {
            if self.truth.rotation.is_cri() {
                self.container_record(&mut bytes);
            } else {
                bytes.extend_from_slice(&record::line(self.truth.stream, self.next[0]));
                bytes.push(b'\n');
                self.next[0] += 1;
            }
        }
        // Somebody may read in between.
        let cut = usize::try_from(self.rng.next() % (bytes.len() as u64 + 1)).unwrap_or(0);
        self.writer.bytes(&bytes[..cut]);
        std::thread::yield_now();
        self.writer.bytes(&bytes[cut..]);
        self.publish();
    }

    fn publish(&self) {
        for (written, next) in self.truth.written.iter().zip(&self.next) {
            written.store(*next, Ordering::Release);
        }
    }

    /// One record in pieces, and perhaps one of the other stream in its midst.
    fn container_record(&mut self, out: &mut Vec<u8>) {
        let which = usize::from(self.rng.chance(40));
        let line = self.take(which);
        let mut rest = line.as_slice();
        while rest.len() > 16_384 || (rest.len() > 1 && self.rng.chance(20)) {
            let most = rest.len().min(16_384) as u64;
            let cut = usize::try_from(self.rng.between(1, most)).unwrap_or(1);
            self.container_line(out, which, 'P', &rest[..cut]);
            rest = &rest[cut..];
            if self.rng.chance(30) {
                let other = self.take(1 - which);
                self.container_line(out, 1 - which, 'F', &other);
            }
        }
        self.container_line(out, which, 'F', rest);
    }

    fn take(&mut self, which: usize) -> Vec<u8> {
        let stream = self.truth.stream + u32::try_from(which).expect("two streams");
        self.next[which] += 1;
        record::line(stream, self.next[which] - 1)
    }

    fn container_line(&mut self, out: &mut Vec<u8>, which: usize, tag: char, text: &[u8]) {
        self.time += 1;
        let (second, nano) = (self.time / 1_000_000 % 60, self.time % 1_000_000);
        let stream = match which {
            0 => Stream::Stdout,
            _ => Stream::Stderr,
        };
        let stream = format!("{stream:?}").to_lowercase();
        let head = format!("2026-01-02T03:04:{second:02}.{nano:09}Z {stream} {tag} ");
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(text);
        out.push(b'\n');
    }

    fn rotate(&mut self) {
        self.truth.rotations.fetch_add(1, Ordering::Relaxed);
        match self.truth.rotation {
            Rotation::Steady => {}
            Rotation::Rename | Rotation::Gzip | Rotation::Cri => {
                let path = self.writer.rename();
                // The runtime goes on writing to the old file for a moment.
                if self.rng.chance(50) {
                    self.burst(3);
                }
                self.writer.reopen();
                self.put_aside(path);
            }
            Rotation::CriSplit => self.rotate_in_a_record(),
            Rotation::GzipChainFast => {
                self.rotated.shift();
                let path = self.writer.rename_to(self.rotated.first());
                // As with `nocreate`: the live file may be made again only when there is something to write.
                if self.rng.chance(50) {
                    self.writer.reopen();
                }
                self.put_aside(path);
            }
            Rotation::CopyTruncate => {
                let copy = self.writer.copytruncate();
                self.destroyed();
                std::fs::remove_file(copy).unwrap();
            }
            Rotation::Delete => {
                self.writer.delete();
                if self.rng.chance(50) {
                    self.burst(3);
                }
                self.writer.reopen();
                self.destroyed();
            }
        }
    }

    /// A rotation between the first piece of a record and its last one; there may be a third one, and records of the
    /// other stream before the rest.
    fn rotate_in_a_record(&mut self) {
        let which = usize::from(self.rng.chance(30));
        let line = self.take(which);
        self.split
            .push_back((self.truth.stream + which as u32, self.next[which] - 1));
        let cut = usize::try_from(self.rng.between(1, line.len() as u64)).unwrap_or(1);
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let (first, mut rest) = line.split_at(cut);
        self.container_line(&mut before, which, 'P', first);
        if self.rng.chance(30) {
            let (middle, last) = rest.split_at(rest.len() / 2);
            self.container_line(&mut after, which, 'P', middle);
            rest = last;
        }
        for _ in 0..self.rng.between(0, 4) {
            let other = self.take(1 - which);
            self.container_line(&mut after, 1 - which, 'F', &other);
        }
        self.container_line(&mut after, which, 'F', rest);
        self.writer.bytes(&before);
        let path = self.writer.rotate();
        self.writer.bytes(&after);
        self.publish();
        self.put_aside(path);
    }

    fn put_aside(&mut self, path: PathBuf) {
        self.rotated.push(path, self.next.clone());
        match self.truth.rotation {
            Rotation::Gzip => self.rotated.compress_older(),
            Rotation::GzipChainFast => self.rotated.compress_youngest(),
            _ => {}
        }
        self.first.clone_from(&self.next);
    }

    fn destroyed(&mut self) {
        let mut destroyed = self.truth.destroyed.lock().unwrap();
        for (which, ranges) in destroyed.iter_mut().enumerate() {
            ranges.push(self.first[which]..self.next[which]);
        }
        drop(destroyed);
        self.first.clone_from(&self.next);
    }

    /// Deletes rotated files of which everything has arrived.
    fn clean(&mut self) {
        let kept = match self.truth.rotation {
            Rotation::Cri | Rotation::CriSplit => KUBELET_KEEPS,
            _ => 0,
        };
        let age = match self.truth.rotation {
            Rotation::CriSplit => SPLIT_AGE_MIN,
            _ => Duration::ZERO,
        };
        let state = self.sink.lock();
        let low: Vec<u64> = (0..self.next.len())
            .map(|which| state.streams[self.truth.stream as usize + which].low)
            .collect();
        drop(state);
        let is_read = |end: &[u64]| low.iter().zip(end).all(|(low, end)| low >= end);
        let done = self.rotated.done(kept, age, is_read);
        // Their ends may come again, marked: if the answer was lost, they are read again without their beginning.
        let beheaded = self.split.drain(..done.min(self.split.len()));
        self.sink.lock().beheaded.extend(beheaded);
        self.rotated.delete(done);
    }
}
