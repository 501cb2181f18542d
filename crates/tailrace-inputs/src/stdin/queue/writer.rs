//! The thread that takes the stream to the disk.
//!
//! Takes a reader, gives segments of whole lines: one is written when it holds [`SEGMENT_BYTES`] or is
//! [`SEGMENT_AGE_MAX`] old. It asks the store for room before it reads, so that what it holds always fits, and
//! stops reading the stream while there is none. A line is cut only if it is longer than a record can be, or than
//! the whole queue. Never looks at anything but line ends.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::segment::{Around, End, SegmentId};
use super::store::Store;
use crate::event::ProblemKind;
use crate::file::watch::{Waker, Woken};
use crate::identity::ends_in_line;

/// A segment with so many bytes of whole lines is written.
const SEGMENT_BYTES: usize = 1 << 20;
/// A segment whose first byte is as old is written.
const SEGMENT_AGE_MAX: Duration = Duration::from_millis(200);
/// At most so many bytes are read at once.
const READ_BYTES: usize = 64 << 10;
/// How long to wait when there is nothing to do, or the disk refuses.
const IDLE_WAIT: Duration = Duration::from_secs(1);
/// How often it is said that the disk refuses.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// What the thread works on.
pub(crate) struct Writer<R> {
    pub(crate) reader: R,
    pub(crate) store: Arc<Store>,
    pub(crate) stop: Arc<AtomicBool>,
    /// Ends its own wait.
    pub(crate) waker: Waker,
    /// Ends the wait of who reads the segments.
    pub(crate) readers_waker: Waker,
    pub(crate) held: Held,
    /// When it was last said that the disk refuses.
    pub(crate) reported_at: Option<Instant>,
}

/// Bytes that were read and are in no segment yet.
#[derive(Debug)]
pub(crate) struct Held {
    bytes: Vec<u8>,
    /// How many of them are whole lines.
    lines: usize,
    /// When the first of them was read.
    since: Instant,
    /// Where the first of them stands.
    id: SegmentId,
    /// The byte before the first one is not a newline.
    mid_line: bool,
    bytes_max: usize,
}

/// What came of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Read {
    /// Bytes, or none for now.
    Some,
    /// The stream has ended.
    End,
    /// It cannot be read any more.
    Broken,
}

impl Held {
    /// Nothing yet, at the start of a stream; at most so many bytes of one line.
    pub(crate) fn new(stream: u64, record_bytes_max: u64) -> Self {
        let record = usize::try_from(record_bytes_max).unwrap_or(usize::MAX);
        Self {
            bytes: Vec::new(),
            lines: 0,
            since: Instant::now(),
            id: SegmentId { stream, offset: 0 },
            mid_line: false,
            bytes_max: SEGMENT_BYTES.max(record.saturating_add(READ_BYTES)),
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        if self.bytes.is_empty() {
            self.since = Instant::now();
        }
        if let Some(end) = bytes.iter().rposition(|&byte| byte == b'\n') {
            self.lines = self.bytes.len() + end + 1;
        }
        self.bytes.extend_from_slice(bytes);
    }

    fn written(&mut self, bytes: usize) {
        self.mid_line = ends_in_line(&self.bytes[..bytes], self.mid_line);
        self.bytes.drain(..bytes);
        self.lines = self.lines.saturating_sub(bytes);
        self.id.offset += bytes as u64;
        self.since = Instant::now();
    }
}

impl<R: io::Read + AsFd> Writer<R> {
    /// Writes until the stream ends or the thread is asked to stop; what it holds then is written, too. Of a stream that ended there
    /// is a last segment, if need be without bytes: of others the next run knows that their last record may be cut.
    pub(crate) fn run(mut self) {
        let mut buffer = vec![0; READ_BYTES];
        let mut read = Read::Some;
        while read == Read::Some && !self.stop.load(Ordering::Acquire) {
            let room = self.store.room(self.held.bytes.len());
            let room = room.min(self.held.bytes_max - self.held.bytes.len());
            let due = self.held.since + SEGMENT_AGE_MAX;
            let now = Instant::now();
            let lines = self.held.lines;
            if lines > 0 && (room == 0 || lines >= SEGMENT_BYTES || now >= due) {
                self.write(lines);
            } else if room > 0 {
                let until = if lines > 0 { due } else { now + IDLE_WAIT };
                let woken = self.waker.wait(Some(&self.reader), until);
                if woken == Woken::Data {
                    read = self.read(&mut buffer[..room.min(READ_BYTES)]);
                }
            } else if self.held.bytes.len() >= self.held.bytes_max
                || (self.store.is_empty() && !self.held.bytes.is_empty())
            {
                // One line that no record, or no queue, can hold.
                self.write(self.held.bytes.len());
            } else {
                self.store.wait_for_room(self.held.bytes.len(), IDLE_WAIT);
            }
        }
        let rest = self.held.bytes.len();
        let is_last = read == Read::End && self.held.id.offset + rest as u64 > 0;
        let is_written = (rest == 0 && !is_last) || self.try_write(rest, is_last).is_ok();
        self.store.end(if is_written { 0 } else { rest as u64 });
        self.readers_waker.wake();
    }

    /// Reads once.
    fn read(&mut self, buffer: &mut [u8]) -> Read {
        match self.reader.read(buffer) {
            Ok(0) => Read::End,
            Ok(bytes) => {
                self.held.add(&buffer[..bytes]);
                Read::Some
            }
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
                ) =>
            {
                Read::Some
            }
            Err(error) => {
                let message = format!("cannot be read: {error}; it is taken as ended");
                self.store.problem(ProblemKind::Broken, message);
                Read::Broken
            }
        }
    }

    /// Writes the first bytes that are held; on a disk that refuses they stay, and it waits a while.
    fn write(&mut self, bytes: usize) {
        let Err(error) = self.try_write(bytes, false) else {
            return;
        };
        let message = format!(
            "the queue cannot be written: {error}; standard input waits until it can: make room in data_dir, or make it \
             writable"
        );
        self.store.set_refusal(Some(message.clone()));
        let is_due = |reported_at: Instant| reported_at.elapsed() >= TELL_EVERY;
        if self.reported_at.is_none_or(is_due) {
            self.reported_at = Some(Instant::now());
            self.store.problem(ProblemKind::Notice, message);
            self.readers_waker.wake();
        }
        self.waker.wait(None, Instant::now() + IDLE_WAIT);
    }

    fn try_write(&mut self, bytes: usize, is_last: bool) -> io::Result<()> {
        let held = &mut self.held;
        let around = Around {
            mid_line: held.mid_line,
            end: match is_last {
                true => End::Last,
                false => End::GoesOn,
            },
        };
        self.store.push(held.id, around, &held.bytes[..bytes])?;
        held.written(bytes);
        self.reported_at = None;
        self.store.set_refusal(None);
        self.readers_waker.wake();
        Ok(())
    }
}
