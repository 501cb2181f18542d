//! The records of a part of an input, a chunk at a time: bytes, framed.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, anyhow, bail};
use bytes::Bytes;
use memchr::memchr;
use tailrace_frame::{Config, Format, Framer, Frames, SIDE};
use tailrace_scan::{NewlineSearcher, Record, Records, Searched};

use crate::input::{Input, Lines};
use crate::partition::Part;

/// Of the inputs that can be read once what was read for the sample, and the rest; nothing once a scan has taken it.
pub(crate) type Once = Arc<Mutex<HashMap<Input, Option<(Vec<u8>, Lines)>>>>;

/// Why an input is not read again.
pub(crate) fn read_before(input: &Input) -> anyhow::Error {
    let name = input.name();
    anyhow!("{name} can be read once: name it once, or write it to a file")
}

/// Reads a part.
pub(crate) struct Reader {
    source: Source,
    framer: Framer,
    frames: Frames,
    chunk_bytes: usize,
    is_over: bool,
}

enum Source {
    /// Whatever must be read from its start.
    Whole { head: Vec<u8>, lines: Lines },
    /// Lines of a plain file.
    Range {
        file: File,
        name: String,
        at: u64,
        end: u64,
        /// Where the range ended when it was planned.
        planned: u64,
    },
}

/// The records of one chunk, as the scanner wants them.
#[derive(Default)]
pub(crate) struct Chunk {
    buffers: Vec<Bytes>,
    records: Vec<Record>,
    times: Vec<i64>,
    streams: Vec<u8>,
    /// What the search for lines found in the first buffer, if there was one.
    searched: Option<Searched>,
    /// Bytes, after decompression.
    pub(crate) bytes: u64,
    /// Bytes of the file as it is stored that were read for it.
    pub(crate) file_bytes: u64,
}

impl Chunk {
    pub(crate) fn records(&self, observed_ns: i64) -> Records<'_> {
        Records {
            buffers: &self.buffers,
            records: &self.records,
            times: &self.times,
            streams: &self.streams,
            observed_ns,
            searched: self.searched.as_ref(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// The same in chunks of at most so many records, which share the bytes. What was read counts with the first.
    pub(crate) fn split(self, records_max: usize) -> Vec<Chunk> {
        if self.len() <= records_max {
            return vec![self];
        }
        let starts = (0..self.len()).step_by(records_max);
        let mut chunks: Vec<_> = starts
            .map(|start| self.part(start..self.len().min(start + records_max)))
            .collect();
        (chunks[0].bytes, chunks[0].file_bytes) = (self.bytes, self.file_bytes);
        chunks
    }

    /// Some of the records, with as much of the buffers as they stand in.
    fn part(&self, range: Range<usize>) -> Chunk {
        let mut records = self.records[range.clone()].to_vec();
        let buffers = self.buffers.iter().zip(0_u32..).map(|(buffer, at)| {
            let of_buffer = || records.iter().filter(|record| record.buffer == at);
            let start = of_buffer().map(|record| record.start).min().unwrap_or(0);
            let end = of_buffer().map(|record| record.end).max().unwrap_or(0);
            for record in records.iter_mut().filter(|record| record.buffer == at) {
                (record.start, record.end) = (record.start - start, record.end - start);
            }
            buffer.slice(start as usize..end as usize)
        });
        let buffers = buffers.collect();
        Chunk {
            buffers,
            records,
            times: self.times.get(range.clone()).unwrap_or_default().to_vec(),
            streams: self.streams.get(range).unwrap_or_default().to_vec(),
            ..Chunk::default()
        }
    }
}

impl Reader {
    /// A reader of a part.
    ///
    /// # Errors
    ///
    /// The input cannot be opened, or is standard input and was read before.
    pub(crate) fn new(part: &Part, once: &Once, chunk_bytes: usize) -> anyhow::Result<Reader> {
        let mut framer = Framer::new(&Config::default(), part.range.start, false);
        let source = match &part.input {
            stream if stream.is_stream() => {
                let mut once = once.lock().unwrap_or_else(PoisonError::into_inner);
                let kept = once.get_mut(stream).and_then(Option::take);
                let (head, lines) = kept.ok_or_else(|| read_before(stream))?;
                Source::Whole { head, lines }
            }
            Input::File(path) if part.is_bounded => {
                let name = part.input.name();
                let mut file =
                    File::open(path).with_context(|| format!("{name}: cannot be read"))?;
                let (start, end) = (part.range.start, part.range.end);
                let at = line_start(&mut file, start)
                    .with_context(|| format!("{name}: cannot be read"))?;
                if start > 0 {
                    // The format of the file was decided at its start: lines.
                    framer = Framer::new(&Config::default(), at, false);
                    framer.push(b"{}\n", 0, 0, &mut Frames::default());
                    debug_assert!(!matches!(framer.format(), Format::Auto));
                }
                Source::Range {
                    file,
                    name,
                    at,
                    end,
                    planned: end,
                }
            }
            _ => Source::Whole {
                head: Vec::new(),
                lines: part.input.open()?,
            },
        };
        Ok(Reader {
            source,
            framer,
            frames: Frames::default(),
            chunk_bytes: chunk_bytes.max(1),
            is_over: false,
        })
    }

    /// The next records; `None` at the end. A chunk may have none. `searcher` finds the lines.
    ///
    /// # Errors
    ///
    /// The input cannot be read, or is damaged.
    pub(crate) fn next(&mut self, searcher: NewlineSearcher<'_>) -> anyhow::Result<Option<Chunk>> {
        if self.is_over {
            return Ok(None);
        }
        let bytes = Bytes::from(self.source.read(self.chunk_bytes)?);
        let file_bytes = self.source.take_file_bytes();
        self.frames.clear();
        let count = bytes.len() as u64;
        let searched = if bytes.is_empty() {
            self.is_over = true;
            self.framer.finish(&mut self.frames);
            None
        } else {
            let mut search = searcher.over(&bytes);
            let newlines = std::iter::from_fn(|| search.next_before(bytes.len()));
            let (framer, frames) = (&mut self.framer, &mut self.frames);
            framer.push_lines(&bytes, newlines, 0, 0, usize::MAX, frames);
            Some(search.finish())
        };
        Ok(Some(Chunk {
            file_bytes: file_bytes.unwrap_or(count),
            searched,
            ..chunk(&mut self.frames, bytes, count)
        }))
    }
}

/// The frames of `bytes` as the scanner wants them.
pub(crate) fn chunk(frames: &mut Frames, bytes: Bytes, count: u64) -> Chunk {
    let mut has_envelope = false;
    let record = |record: &tailrace_frame::Record| {
        has_envelope |= record.time_ns != 0 || record.stream as u8 != 0;
        Record {
            buffer: u32::from(record.buffer == SIDE),
            start: record.start,
            end: record.end,
            flags: record.flags.0,
        }
    };
    let records = frames.records.iter().map(record).collect();
    let enveloped = if has_envelope {
        frames.records.as_slice()
    } else {
        &[]
    };
    Chunk {
        records,
        times: enveloped.iter().map(|it| it.time_ns).collect(),
        streams: enveloped.iter().map(|it| it.stream as u8).collect(),
        buffers: vec![bytes, std::mem::take(&mut frames.side).into()],
        searched: None,
        bytes: count,
        file_bytes: count,
    }
}

/// Where the first line begins that begins at `start` or after it.
fn line_start(file: &mut File, start: u64) -> std::io::Result<u64> {
    if start == 0 {
        return Ok(0);
    }
    let mut at = start - 1;
    file.seek(SeekFrom::Start(at))?;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = file.read(&mut buffer)?;
        if let Some(newline) = memchr(b'\n', &buffer[..count]) {
            at += newline as u64 + 1;
            file.seek(SeekFrom::Start(at))?;
            return Ok(at);
        }
        at += count as u64;
        if count == 0 {
            return Ok(at);
        }
    }
}

impl Source {
    /// The bytes read of an input as it is stored since the last call. `None`: as many as were given.
    fn take_file_bytes(&mut self) -> Option<u64> {
        match self {
            Source::Whole { lines, .. } => Some(lines.take_file_bytes()),
            Source::Range { .. } => None,
        }
    }

    /// The next bytes; none at the end.
    fn read(&mut self, len: usize) -> anyhow::Result<Vec<u8>> {
        match self {
            Source::Whole { head, lines } => {
                if !head.is_empty() {
                    return Ok(std::mem::take(head));
                }
                let mut bytes = vec![0; len];
                let count = lines.fill(&mut bytes)?;
                bytes.truncate(count);
                Ok(bytes)
            }
            Source::Range {
                file,
                name,
                at,
                end,
                planned,
            } => {
                if *at >= *end {
                    return Ok(Vec::new());
                }
                let mut bytes = Vec::with_capacity(len);
                let read = file.take(len as u64).read_to_end(&mut bytes);
                read.with_context(|| format!("{name}: cannot be read"))?;
                if bytes.is_empty() && *at < *planned {
                    bail!("{name}: became shorter while it was read");
                }
                // The line that the range ends in is read to its end.
                let last = (*end - 1).saturating_sub(*at) as usize;
                if last < bytes.len() {
                    match memchr(b'\n', &bytes[last..]) {
                        Some(newline) => {
                            bytes.truncate(last + newline + 1);
                            *at = *end;
                        }
                        None => {
                            *at += bytes.len() as u64;
                            *end = *at + 1;
                        }
                    }
                } else {
                    *at += bytes.len() as u64;
                }
                Ok(bytes)
            }
        }
    }
}
