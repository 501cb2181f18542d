//! The logs of pods, as a container runtime writes them: CRI lines with JSON payloads, some of them in pieces. Takes
//! payloads from a file, in order.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::pods::{PODS, Pod};
use crate::data::DataFile;

/// Logs that are complete. Dropping them removes them.
pub(super) struct Logs {
    pub(super) dir: PathBuf,
    pub(super) records: u64,
    pub(super) bytes: u64,
}

impl Logs {
    /// Deals the payloads out to the pods, one after the other.
    pub(super) fn write(dir: &Path, pods: &[Pod], payloads: &DataFile) -> Result<Logs> {
        let mut logs = Logs {
            dir: dir.to_owned(),
            records: 0,
            bytes: 0,
        };
        let mut files: Vec<BufWriter<File>> =
            create(dir, pods)?.into_iter().map(BufWriter::new).collect();
        let file = File::open(&payloads.path).context("cannot read the payloads")?;
        let mut lines = Vec::new();
        for payload in BufReader::with_capacity(1 << 20, file).split(b'\n') {
            let payload = payload.context("cannot read the payloads")?;
            let (pod, number) = (logs.records % PODS, logs.records / PODS);
            lines.clear();
            append_record(&mut lines, number, &payload);
            files[pod as usize].write_all(&lines).context(WRITE)?;
            logs.records += 1;
            logs.bytes += lines.len() as u64;
        }
        for mut file in files {
            file.flush().context(WRITE)?;
        }
        Ok(logs)
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

const WRITE: &str = "cannot write the log of a pod";

/// Logs that grow by so many records a second each. Dropping them removes them.
pub(super) struct Steady {
    /// Their directory and how much there is; also what removes them.
    logs: Logs,
    files: Vec<File>,
    payloads: Vec<Vec<u8>>,
    per_second: u64,
}

/// So many payloads are kept, and written again and again.
const KEPT: usize = 10_000;

impl Steady {
    pub(super) fn open(
        dir: &Path,
        pods: &[Pod],
        payloads: &DataFile,
        per_second: u64,
    ) -> Result<Steady> {
        let file = File::open(&payloads.path).context("cannot read the payloads")?;
        let lines = BufReader::with_capacity(1 << 20, file)
            .split(b'\n')
            .take(KEPT);
        Ok(Steady {
            files: create(dir, pods)?,
            payloads: lines
                .collect::<Result<_, _>>()
                .context("cannot read the payloads")?,
            per_second,
            logs: Logs {
                dir: dir.to_owned(),
                records: 0,
                bytes: 0,
            },
        })
    }

    pub(super) fn dir(&self) -> &Path {
        &self.logs.dir
    }

    /// Writes for so long, the pods in turns at equal distances in time; late writes are made up for. Each record is
    /// written by itself, as a runtime does.
    pub(super) fn write(&mut self, time: Duration) -> Result<()> {
        let begin = Instant::now();
        let records = (time.as_secs_f64() * (self.per_second * PODS) as f64) as u64;
        let mut lines = Vec::new();
        let mut written = 0;
        while written < records {
            let due = begin.elapsed().as_secs_f64() * (self.per_second * PODS) as f64;
            while written < records.min(due as u64) {
                let (pod, number) = (self.logs.records % PODS, self.logs.records / PODS);
                let payload = &self.payloads[self.logs.records as usize % self.payloads.len()];
                lines.clear();
                append_record(&mut lines, number, payload);
                self.files[pod as usize].write_all(&lines).context(WRITE)?;
                self.logs.records += 1;
                written += 1;
            }
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(time.saturating_sub(begin.elapsed()));
        Ok(())
    }
}

/// An empty log for each pod.
fn create(dir: &Path, pods: &[Pod]) -> Result<Vec<File>> {
    if dir.exists() {
        fs::remove_dir_all(dir).context("cannot empty the directory of logs")?;
    }
    let create = |pod: &Pod| {
        let log = pod.log(dir);
        if let Some(dir) = log.parent() {
            fs::create_dir_all(dir)?;
        }
        File::create(log)
    };
    let files: std::io::Result<Vec<File>> = pods.iter().map(create).collect();
    files.context("cannot create the log of a pod")
}

/// One record in twenty is written in two pieces, every second one of these in three.
const PIECES: u64 = 20;
/// One record in five goes to standard error.
const STDERR: u64 = 5;

/// Appends the lines of a pod's record of this number, written 10 ms after the one before it.
fn append_record(lines: &mut Vec<u8>, number: u64, payload: &[u8]) {
    let stream = if number % STDERR == 4 {
        "stderr"
    } else {
        "stdout"
    };
    let pieces = match number % (2 * PIECES) {
        7 => 2,
        27 => 3,
        _ => 1,
    };
    let length = payload.len().div_ceil(pieces).max(1);
    for (piece, text) in payload.chunks(length).enumerate() {
        let tag = if (piece + 1) * length < payload.len() {
            'P'
        } else {
            'F'
        };
        let nanos = number * 10_000_000 + 123_457 + piece as u64;
        let seconds = nanos / 1_000_000_000;
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        let head = format!(
            "2026-01-02T{hour:02}:{minute:02}:{second:02}.{:09}Z {stream} {tag} ",
            nanos % 1_000_000_000
        );
        lines.extend_from_slice(head.as_bytes());
        lines.extend_from_slice(text);
        lines.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: u64, payload: &str) -> String {
        let mut lines = Vec::new();
        append_record(&mut lines, number, payload.as_bytes());
        String::from_utf8(lines).expect("the payload is text")
    }

    #[test]
    fn records_are_lines_as_a_runtime_writes_them() {
        assert_eq!(
            record(0, "{}"),
            "2026-01-02T00:00:00.000123457Z stdout F {}\n"
        );
        assert_eq!(
            record(6104, "{}"),
            "2026-01-02T00:01:01.040123457Z stderr F {}\n"
        );
        assert_eq!(
            record(7, "{abc}"),
            "2026-01-02T00:00:00.070123457Z stdout P {ab\n2026-01-02T00:00:00.070123458Z stdout F c}\n"
        );
    }

    #[test]
    fn the_pieces_of_a_record_make_its_payload() {
        let mut in_pieces = 0;
        for number in 0..1000 {
            let payload = format!("{{\"n\":{number}}}");
            let lines = record(number, &payload);
            let tags: String = lines.lines().map(|line| &line[38..39]).collect();
            let text: String = lines.lines().map(|line| &line[40..]).collect();
            assert_eq!(text, payload);
            assert!(["F", "PF", "PPF"].contains(&tags.as_str()), "{tags}");
            in_pieces += u32::from(tags != "F");
        }
        assert_eq!(in_pieces, 50);
    }
}
