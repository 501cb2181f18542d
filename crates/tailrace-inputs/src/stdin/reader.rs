//! Standard input, or any other stream, reported in the same events as a file.
//!
//! Takes a reader, gives one source: `Opened` at offset 0, chunks, `Finished` at the end of the
//! stream. There is no identity on disk and nothing to resume: what the stream gave is gone from it,
//! so bytes read and not yet delivered are lost with the process.

use std::fs;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::chunk::ChunkBuffer;
use crate::error::{Error, Kind};
use crate::event::{FileEvent, ProblemKind, SourceId};
use crate::file::watch::{Waker, Woken};
use crate::identity::FileId;

/// Reads one stream as source 0.
#[derive(Debug)]
pub struct StdinReader<R> {
    reader: R,
    waker: Waker,
    state: State,
    offset: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    New,
    Open,
    Finished,
}

impl StdinReader<fs::File> {
    /// Standard input, unbuffered.
    ///
    /// # Errors
    /// Standard input is closed.
    pub fn stdin() -> Result<Self, Error> {
        let fd = io::stdin()
            .as_fd()
            .try_clone_to_owned()
            .map_err(|source| Kind::Read {
                path: PathBuf::from("stdin"),
                source,
            })?;
        Self::new(fs::File::from(fd))
    }
}

impl<R: Read> StdinReader<R> {
    /// The one source of a stream.
    pub const SOURCE: SourceId = SourceId(0);

    /// Any stream. It should not buffer: [`Self::wait`] would not see what it holds.
    ///
    /// # Errors
    /// No descriptor is left for the waker.
    pub fn new(reader: R) -> Result<Self, Error> {
        Ok(Self {
            reader,
            waker: Waker::new().map_err(|source| Kind::Waker { source })?,
            state: State::New,
            offset: 0,
        })
    }

    /// Appends what one read gives, at most `bytes_max` bytes, to `buffer`. Blocks until there is
    /// something, unless the stream is non-blocking or [`Self::wait`] said that there is. False at
    /// the end of the stream, for ever, and where a non-blocking stream has nothing now.
    pub fn read(
        &mut self,
        buffer: &mut ChunkBuffer,
        bytes_max: usize,
        events: &mut Vec<FileEvent>,
    ) -> bool {
        match self.state {
            State::Finished => return false,
            State::Open => {}
            State::New => {
                self.state = State::Open;
                events.push(FileEvent::Opened {
                    source: Self::SOURCE,
                    id: FileId::NONE,
                    generation: 0,
                    path: Path::new("stdin").into(),
                    origin: None,
                    offset: 0,
                    mid_line: false,
                    size: 0,
                });
            }
        }
        let start = buffer.len();
        let result = loop {
            match self.reader.read(buffer.room(bytes_max)) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        let bytes = *result.as_ref().unwrap_or(&0);
        buffer.fill(bytes);
        match result {
            Ok(0) if bytes_max > 0 => self.finish(events),
            Ok(0) => {}
            Ok(_) => {
                events.push(FileEvent::Chunk {
                    source: Self::SOURCE,
                    offset: self.offset,
                    start,
                    end: start + bytes,
                    id: FileId::NONE,
                });
                self.offset += bytes as u64;
                return true;
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) => {
                events.push(FileEvent::Problem {
                    kind: ProblemKind::Broken,
                    path: PathBuf::from("stdin"),
                    message: format!("cannot be read: {e}; it is taken as ended"),
                });
                self.finish(events);
            }
        }
        false
    }

    /// Whether the stream has ended and said so.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.state == State::Finished
    }

    /// How many bytes were read.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// A handle that ends [`Self::wait`] from another thread.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn finish(&mut self, events: &mut Vec<FileEvent>) {
        self.state = State::Finished;
        events.push(FileEvent::Finished {
            source: Self::SOURCE,
            is_cut: false,
        });
    }
}

impl<R: Read + AsFd> StdinReader<R> {
    /// Waits until a read would not block, the waker is used or `timeout` has passed. True in the
    /// first case.
    pub fn wait(&mut self, timeout: Duration) -> bool {
        let woken = self
            .waker
            .wait(Some(&self.reader), Instant::now() + timeout);
        woken == Woken::Data
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write;

    #[test]
    fn a_stream_is_one_source_from_zero_to_its_end() {
        let mut stdin = StdinReader::new(&b"one\ntwo\nthr"[..]).unwrap();
        let (mut buffer, mut events) = (ChunkBuffer::default(), Vec::new());
        while stdin.read(&mut buffer, 4, &mut events) {}
        assert!(!stdin.read(&mut buffer, 4, &mut events));
        assert!(stdin.is_finished());
        assert_eq!(&buffer[..], b"one\ntwo\nthr");
        let source = SourceId(0);
        let chunk = |offset, start, end| FileEvent::Chunk {
            source,
            offset,
            start,
            end,
            id: FileId::NONE,
        };
        assert_eq!(
            events[1..],
            [
                chunk(0, 0, 4),
                chunk(4, 4, 8),
                chunk(8, 8, 11),
                FileEvent::Finished {
                    source,
                    is_cut: false
                }
            ]
        );
        assert!(matches!(
            events[0],
            FileEvent::Opened { offset: 0, id, .. } if id == FileId::NONE
        ));
    }

    #[test]
    fn an_error_ends_the_stream_with_a_problem() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("cable pulled"))
            }
        }
        let mut stdin = StdinReader::new(Broken).unwrap();
        let (mut buffer, mut events) = (ChunkBuffer::default(), Vec::new());
        assert!(!stdin.read(&mut buffer, 64, &mut events));
        assert!(buffer.is_empty());
        assert!(matches!(
            &events[1..],
            [FileEvent::Problem { message, .. }, FileEvent::Finished { .. }]
                if message.contains("cable pulled")
        ));
    }

    #[test]
    fn waiting_on_a_pipe_ends_by_data_or_by_the_waker() {
        let (read, mut write) = io::pipe().unwrap();
        let mut stdin = StdinReader::new(read).unwrap();
        let far = Duration::from_secs(20);
        stdin.waker().wake();
        assert!(!stdin.wait(far));
        write.write_all(b"x\n").unwrap();
        assert!(stdin.wait(far));
        let (mut buffer, mut events) = (ChunkBuffer::default(), Vec::new());
        assert!(stdin.read(&mut buffer, 64, &mut events));
        drop(write);
        assert!(stdin.wait(far));
        assert!(!stdin.read(&mut buffer, 64, &mut events));
        assert_eq!(
            events.last(),
            Some(&FileEvent::Finished {
                source: SourceId(0),
                is_cut: false
            })
        );
    }
}
