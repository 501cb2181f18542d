//! What is scanned: lines in chunks of about 1 MiB, framed, with the answers that every contender must give.
//!
//! Takes a generator or a file of real lines. Each chunk is memory of its own, as the agent's reader would hand it over.

use std::fs;
use std::path::{Path, PathBuf};

use arrow::array::Array as _;
use bytes::Bytes;
use tailrace_scan::{Record, Records, Scanned, Searched, StarColumn};

use crate::{Generator, Shape};

/// Bytes of a chunk, about.
pub const CHUNK_BYTES: usize = 1 << 20;
/// Bytes of a corpus: more than the caches hold, so that the lines come from memory as they do in an agent.
/// `TAILRACE_BENCH_MIB` says otherwise.
pub fn corpus_bytes() -> usize {
    let mib = std::env::var("TAILRACE_BENCH_MIB").ok();
    mib.and_then(|mib| mib.parse().ok()).unwrap_or(64) << 20
}
/// When the records were read, as far as the stages are told.
pub const OBSERVED_NS: i64 = 1_767_323_045_000_000_000;

/// Lines of one kind.
#[derive(Debug)]
pub struct Corpus {
    /// The shape's name.
    pub name: String,
    /// The lines, in chunks.
    pub chunks: Vec<Chunk>,
    /// All lines.
    pub lines: u64,
    /// All bytes, newlines included.
    pub bytes: u64,
}

/// About 1 MiB of whole lines.
#[derive(Debug)]
pub struct Chunk {
    /// The lines, each with its newline.
    pub buffers: [Bytes; 1],
    /// Where they are.
    pub records: Vec<Record>,
}

/// What is true of some lines. Contenders must agree on it before they are timed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Lines.
    pub rows: u64,
    /// Lines whose `level` is ERROR.
    pub errors: u64,
    /// Sum of `status` where a line has one at its top.
    pub status: u64,
}

impl Answer {
    /// Adds one line.
    pub fn add(&mut self, level: Option<&str>, status: Option<u64>) {
        self.rows += 1;
        self.errors += u64::from(level == Some("ERROR"));
        self.status += status.unwrap_or(0);
    }
}

impl std::ops::AddAssign for Answer {
    fn add_assign(&mut self, other: Answer) {
        self.rows += other.rows;
        self.errors += other.errors;
        self.status += other.status;
    }
}

impl Corpus {
    /// The usual lines of a shape.
    pub fn of(shape: Shape) -> Corpus {
        Corpus::generated(shape.name(), Generator::new(shape, 1), corpus_bytes())
    }

    /// So many bytes of a generator's lines.
    pub fn generated(name: &str, mut generator: Generator, bytes: usize) -> Corpus {
        let mut chunks = Vec::new();
        let mut total = 0;
        while total < bytes {
            let mut chunk = Vec::with_capacity(CHUNK_BYTES + 4096);
            while chunk.len() < CHUNK_BYTES.min(bytes - total) {
                generator.next_line(&mut chunk);
            }
            total += chunk.len();
            chunks.push(chunk);
        }
        Corpus::new(name, chunks)
    }

    /// Real NGINX Plus status documents, 5.5 KiB a line and deeply nested; `None`, and a word about it, where the file
    /// is not there.
    pub fn nginxplus() -> Option<Corpus> {
        let path = data_dir().join("nginxplus.ndjson");
        let Ok(text) = fs::read(&path) else {
            eprintln!("nginxplus is left out: there is no {}", path.display());
            return None;
        };
        let mut chunks = vec![Vec::new()];
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            let chunk = chunks.last_mut().expect("there is one from the start");
            chunk.extend_from_slice(line);
            if chunk.len() >= CHUNK_BYTES {
                chunks.push(Vec::new());
            }
        }
        chunks.retain(|chunk| !chunk.is_empty());
        Some(Corpus::new("nginxplus", chunks))
    }

    fn new(name: &str, chunks: Vec<Vec<u8>>) -> Corpus {
        let chunks: Vec<Chunk> = chunks.into_iter().map(Chunk::new).collect();
        Corpus {
            name: name.to_owned(),
            lines: chunks.iter().map(|chunk| chunk.records.len() as u64).sum(),
            bytes: chunks.iter().map(|chunk| chunk.bytes().len() as u64).sum(),
            chunks,
        }
    }

    /// The most lines of a chunk.
    pub fn chunk_lines_max(&self) -> usize {
        let lines = self.chunks.iter().map(|chunk| chunk.records.len());
        lines.max().unwrap_or(0)
    }

    /// What serde_json finds in the lines: slow, and trusted.
    pub fn answer(&self) -> Answer {
        let mut answer = Answer::default();
        for line in self.chunks.iter().flat_map(Chunk::lines) {
            let value: serde_json::Value =
                serde_json::from_slice(line).expect("every line is valid JSON");
            let status = value.get("status").and_then(serde_json::Value::as_u64);
            answer.add(
                value.get("level").and_then(serde_json::Value::as_str),
                status,
            );
        }
        answer
    }
}

impl Chunk {
    /// Frames whole lines.
    pub fn new(bytes: Vec<u8>) -> Chunk {
        let mut records = Vec::new();
        frame(memchr::memchr_iter(b'\n', &bytes), &mut records);
        Chunk {
            buffers: [Bytes::from(bytes)],
            records,
        }
    }

    /// All its bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.buffers[0]
    }

    /// Its lines without their newlines.
    pub fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let line = |record: &Record| &self.bytes()[record.start as usize..record.end as usize];
        self.records.iter().map(line)
    }

    /// Its records as the scanner takes them.
    pub fn records(&self) -> Records<'_> {
        self.framed(&self.records, None)
    }

    /// As [`Chunk::records`], framed by the caller, and searched.
    pub fn framed<'a>(
        &'a self,
        records: &'a [Record],
        searched: Option<&'a Searched>,
    ) -> Records<'a> {
        Records {
            buffers: &self.buffers,
            records,
            times: &[],
            streams: &[],
            observed_ns: OBSERVED_NS,
            searched,
        }
    }
}

/// What the columns of `SELECT *` say of some rows.
pub fn star_answer(scanned: &Scanned, rows: impl Iterator<Item = usize>) -> Answer {
    let column = |key: &str| scanned.star.iter().find(|column| &*column.key == key);
    let (levels, statuses) = (column("level"), column("status"));
    let text = |column: Option<&'_ StarColumn>, row: usize| {
        let values = &column?.values;
        values.is_valid(row).then(|| values.value(row).to_owned())
    };
    let mut answer = Answer::default();
    for row in rows {
        let status = text(statuses, row).and_then(|text| text.parse().ok());
        answer.add(text(levels, row).as_deref(), status);
    }
    answer
}

/// The records of buffer 0 that end at these places.
pub fn frame(newlines: impl Iterator<Item = usize>, records: &mut Vec<Record>) {
    records.clear();
    let mut start = 0;
    for newline in newlines {
        let end = newline as u32;
        records.push(Record {
            buffer: 0,
            start,
            end,
            flags: 0,
        });
        start = end + 1;
    }
}

/// Where real data is: `TAILRACE_BENCH_DATA`, or `shared/data` beside the checkout.
fn data_dir() -> PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    std::env::var_os("TAILRACE_BENCH_DATA").map_or(beside, PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_hold_whole_lines_and_the_answer_is_theirs() {
        let corpus = Corpus::generated("wide", Generator::new(Shape::Wide, 1), 2 << 20);
        assert_eq!(corpus.chunks.len(), 2);
        assert!(
            corpus
                .chunks
                .iter()
                .all(|chunk| chunk.bytes().ends_with(b"}\n"))
        );
        let answer = corpus.answer();
        assert_eq!(answer.rows, corpus.lines);
        assert!(answer.errors > 0 && answer.status > 200 * answer.rows);
    }
}
