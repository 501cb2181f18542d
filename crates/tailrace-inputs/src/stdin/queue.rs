//! Standard input by way of the disk: what was read from the stream is in a file before it goes on, and stays there
//! until every output has acknowledged it.
//!
//! Takes a stream and a directory, gives the events of a file. A thread of its own takes the stream to *segments*
//! (`queue/writer.rs`): files of whole lines with a checksum (`queue/segment.rs`), written, synced and renamed, so that
//! one is there whole or not at all; reading of the stream pauses when their files would exceed the cap
//! (`queue/store.rs`). [`QueueReader`] reads them in order (`queue/sources.rs`). To the pipeline the stream of one run of the agent is one
//! file: segments are where it is kept, not how it is cut.
//!
//! *Why nothing in a segment is lost.* A segment is deleted only when its last byte lies below the watermark of every
//! output ([`QueueReader::acked`]). What a run leaves, the next one reads first, from the checkpoint's watermark, as
//! a stream that has ended; its last record may be cut unless its last segment says that the stream ended there. The checkpoint may be older than the segments: then reading begins with the first one that
//! is there. *Why nothing torn is delivered.* A segment that does not check gives no byte; it is renamed and counted.
//! The stream is taken as ended before it, and begins anew behind it, at a line's start.
//!
//! What is not safe: bytes that were read from the stream and not yet synced, at most 200 ms or one segment.

mod check;
mod segment;
mod sources;
mod store;
mod writer;

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::io::{self, Read};
use std::ops::Range;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use check::{CheckedSegment, SegmentState, check};

use crate::chunk::ChunkBuffer;
use crate::error::{Error, Kind};
use crate::event::{FileEvent, LossReason, SourceId};
use crate::file::follower::Denied;
use crate::file::watch::Waker;
use crate::identity::FileId;
use crate::input::Stored;
use crate::resume::Resume;
use segment::End;
use store::{Segment, Store};
use writer::{Held, Writer};

/// Where a queue is, and how large.
#[derive(Clone, Debug)]
pub struct QueueConfig {
    /// Its directory, for this stream alone.
    pub dir: PathBuf,
    /// Bytes of all its files, at most.
    pub bytes_max: u64,
    /// The longest record, in bytes: a longer line may be cut between two segments.
    pub record_bytes_max: u64,
}

/// Reads a stream by way of the disk.
#[derive(Debug)]
pub struct QueueReader {
    store: Arc<Store>,
    stop: Arc<AtomicBool>,
    writers_waker: Waker,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
    /// Where an earlier run left its streams.
    resume: HashMap<u64, Resume>,
    /// Checkpoint entries of streams that have no segment any more.
    gone: Vec<Resume>,
    open: Option<Open>,
    /// Segments that were read and are still there, in order.
    kept: VecDeque<Kept>,
    next_source: u32,
    is_paused: bool,
}

/// The source that is being read.
#[derive(Debug)]
struct Open {
    source: SourceId,
    stream: u64,
    /// Where the next byte stands in the stream.
    offset: u64,
    /// The rest of the segment, from `at`.
    bytes: Vec<u8>,
    at: usize,
    /// When that segment was written.
    since: Instant,
    /// How the stream goes on behind it.
    end: End,
}

#[derive(Debug)]
struct Kept {
    source: SourceId,
    segment: Segment,
    is_acked: bool,
}

impl QueueReader {
    /// Standard input. `resume` is what the checkpoint knows of the streams of earlier runs.
    ///
    /// # Errors
    /// Standard input is closed, the directory cannot be used, or no thread can be started.
    pub fn stdin(config: &QueueConfig, resume: Vec<Resume>) -> Result<Self, Error> {
        let fd = io::stdin()
            .as_fd()
            .try_clone_to_owned()
            .map_err(|source| Kind::Read {
                path: PathBuf::from("stdin"),
                source,
            })?;
        Self::new(config, resume, fs::File::from(fd))
    }

    /// Any stream, unbuffered.
    ///
    /// # Errors
    /// The directory cannot be used, or no thread can be started.
    pub fn new(
        config: &QueueConfig,
        resume: Vec<Resume>,
        reader: impl Read + AsFd + Send + 'static,
    ) -> Result<Self, Error> {
        let waker = || Waker::new().map_err(|source| Kind::Waker { source });
        let store = Arc::new(Store::open(&config.dir, config.bytes_max)?);
        let (stop, writers_waker, waker) = (Arc::new(AtomicBool::new(false)), waker()?, waker()?);
        let writer = Writer {
            reader,
            store: Arc::clone(&store),
            stop: Arc::clone(&stop),
            waker: writers_waker.clone(),
            readers_waker: waker.clone(),
            held: Held::new(store.new_stream(), config.record_bytes_max),
            reported_at: None,
        };
        let streams = store.streams();
        let (resume, gone) = resume
            .into_iter()
            .partition::<Vec<_>, _>(|entry| streams.contains(&entry.id.inode));
        let thread = std::thread::Builder::new()
            .name("tailrace-queue".to_owned())
            .spawn(move || writer.run())
            .map_err(|source| Kind::Queue {
                path: config.dir.clone(),
                source,
            })?;
        Ok(Self {
            store,
            stop,
            writers_waker,
            waker,
            thread: Some(thread),
            resume: resume.into_iter().map(|e| (e.id.inode, e)).collect(),
            gone,
            open: None,
            kept: VecDeque::new(),
            next_source: 0,
            is_paused: false,
        })
    }

    /// Whether a checkpoint entry is one of a queue's: those of files have a device.
    #[must_use]
    pub fn owns(id: &FileId) -> bool {
        id.device == 0 && id.inode != 0
    }

    /// Appends at most `bytes_max` bytes to `buffer`, without waiting. False if there is nothing now.
    pub fn read(
        &mut self,
        buffer: &mut ChunkBuffer,
        bytes_max: usize,
        events: &mut Vec<FileEvent>,
    ) -> bool {
        for entry in self.gone.drain(..) {
            events.push(forgotten(entry.id));
        }
        self.report_problems(events);
        if self.is_paused || bytes_max == 0 {
            return false;
        }
        while self
            .open
            .as_ref()
            .is_none_or(|open| open.at == open.bytes.len())
        {
            if !self.next_segment(events) {
                return false;
            }
        }
        let Some(open) = &mut self.open else {
            return false;
        };
        let bytes = bytes_max.min(open.bytes.len() - open.at);
        let start = buffer.len();
        buffer.extend_from_slice(&open.bytes[open.at..open.at + bytes]);
        events.push(FileEvent::Chunk {
            source: open.source,
            offset: open.offset,
            start,
            end: start + bytes,
            id: id_of(open.stream),
        });
        open.at += bytes;
        open.offset += bytes as u64;
        true
    }

    fn report_problems(&mut self, events: &mut Vec<FileEvent>) {
        let problem = |(kind, message)| FileEvent::Problem {
            kind,
            path: PathBuf::from("stdin"),
            message,
        };
        events.extend(self.store.take_problems().into_iter().map(problem));
    }

    /// All but the last `unacked_bytes` bytes that were read of a source are acked by every output: their segments
    /// are deleted, in order.
    pub fn acked(&mut self, source: SourceId, unacked_bytes: u64) {
        let read_to = match &self.open {
            Some(open) if open.source == source => open.offset,
            _ => u64::MAX,
        };
        let ends = self.kept.iter().filter(|kept| kept.source == source);
        let last = ends.map(|kept| kept.segment.end()).max().unwrap_or(0);
        let acked_to = read_to.min(last).saturating_sub(unacked_bytes);
        for kept in &mut self.kept {
            kept.is_acked |= kept.source == source && kept.segment.end() <= acked_to;
        }
        while self.kept.front().is_some_and(|kept| kept.is_acked) {
            let kept = self.kept.pop_front().expect("just seen");
            self.store.remove(&kept.segment);
        }
    }

    /// Stops giving bytes.
    pub fn pause(&mut self) {
        self.is_paused = true;
    }

    /// Gives bytes again.
    pub fn resume(&mut self) {
        self.is_paused = false;
    }

    /// Waits until a segment was written, the stream ended, the waker is used or `timeout` has passed.
    pub fn wait(&mut self, timeout: Duration) {
        self.waker.wait(None, Instant::now() + timeout);
    }

    /// A handle that ends [`Self::wait`] from another thread.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// The directory of the queue, while nothing can be written there: then the stream is not read.
    #[must_use]
    pub fn denied(&self) -> Vec<Denied> {
        let refusal = self.store.refusal().into_iter();
        let denied = refusal.map(|(path, message)| Denied {
            is_quiet: false,
            path,
            message,
        });
        denied.collect()
    }

    /// Bytes in the queue that were not read out of it.
    #[must_use]
    pub fn unread_bytes(&self) -> u64 {
        let rest = |open: &Open| (open.bytes.len() - open.at) as u64;
        self.store.unread_bytes() + self.open.as_ref().map_or(0, rest)
    }

    /// Since when the oldest of them are in the queue.
    #[must_use]
    pub fn oldest_unread(&self) -> Option<Instant> {
        let rest = |open: &&Open| open.at < open.bytes.len();
        let open = self.open.as_ref().filter(rest).map(|open| open.since);
        open.or_else(|| self.store.peek().map(|segment| segment.since))
    }

    /// Whether the stream has ended, and all of it, and of those before, was read and acked.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.open.is_none() && self.kept.is_empty() && self.store.has_ended()
    }

    /// Ends reading of the stream; what was read from it is written. What could not be is reported as lost.
    pub fn close(&mut self, events: &mut Vec<FileEvent>) {
        self.stop.store(true, Ordering::Release);
        self.writers_waker.wake();
        self.store.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.report_problems(events);
        let bytes = self.store.take_lost_bytes();
        if bytes > 0 {
            events.push(lost(bytes, LossReason::Unwritten));
        }
        let deleted = self.store.take_deleted().into_iter();
        let bytes = deleted.map(|segment| length(&self.owed(segment))).sum();
        if bytes > 0 {
            events.push(lost(bytes, LossReason::Vanished));
        }
    }

    /// The segments that are on the disk and not known to be acknowledged.
    #[must_use]
    pub fn stored(&self) -> Vec<Stored> {
        let kept = self.kept.iter().filter(|kept| !kept.is_acked);
        let kept = kept.map(|kept| kept.segment);
        let stored = |segment: Segment| {
            let bytes = self.owed(segment);
            (!bytes.is_empty() && self.store.is_there(&segment)).then(|| Stored {
                id: id_of(segment.id.stream),
                bytes,
            })
        };
        kept.chain(self.store.unread()).filter_map(stored).collect()
    }
}

impl Drop for QueueReader {
    fn drop(&mut self) {
        self.close(&mut Vec::new());
    }
}

/// What identifies the stream of one run.
fn id_of(stream: u64) -> FileId {
    FileId {
        inode: stream,
        ..FileId::NONE
    }
}

/// Bytes of a stream that nobody has read.
fn length(bytes: &Range<u64>) -> u64 {
    bytes.end - bytes.start
}

fn lost(bytes: u64, reason: LossReason) -> FileEvent {
    FileEvent::Lost {
        source: None,
        path: PathBuf::from("stdin"),
        bytes,
        reason,
    }
}

fn forgotten(id: FileId) -> FileEvent {
    FileEvent::Forgotten {
        id,
        generation: 0,
        path: PathBuf::from("stdin"),
    }
}

#[cfg(test)]
mod tests;
