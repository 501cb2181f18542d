//! A scan that does not end: the files are followed as the agent follows them, through rotation, and rows are made of
//! lines as they are written.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, SystemTime};

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use bytes::Bytes;
use datafusion::common::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::Stream;
use tailrace_frame::{Config as FrameConfig, Framer, Frames};
use tailrace_inputs::{ChunkBuffer, FileConfig, FileEvent, Follower, SourceId, Waker};
use tokio::sync::mpsc::{self, error::TrySendError};

use crate::error::Error;
use crate::expand::globs;
use crate::input::Input;
use crate::notes::Notes;
use crate::partition::Source;
use crate::reader::chunk;
use crate::sample::Sample;
use crate::scan::{Rows, Shared};

/// Bytes read at once.
const READ_BYTES: usize = 1 << 20;
/// The longest wait: what has changed ends it earlier.
const WAIT: Duration = Duration::from_secs(60);
/// How often files are looked at while the rows are not taken.
const LOOK: Duration = Duration::from_millis(100);
/// Batches that wait to be taken.
const BATCHES_AHEAD: usize = 4;
/// Names of files that do not grow.
const COMPRESSED: [&str; 2] = ["*.gz", "*.zst"];

/// Which files are followed, by globs.
#[derive(Clone, Debug)]
pub(crate) struct Followed {
    /// The files, and those that come later.
    include: Vec<String>,
    /// Compressed files, which do not grow.
    exclude: Vec<String>,
}

impl Followed {
    /// The files that words of a command line name, of which there are these now.
    ///
    /// # Errors
    ///
    /// All of them are compressed.
    pub(crate) fn new(words: &[String], now: &Sample) -> Result<Followed, Error> {
        let compressed = || now.sources.iter().filter(|source| source.is_compressed);
        if let Some(source) = compressed().next()
            && compressed().count() == now.sources.len()
        {
            return Err(Error {
                hint: Some("leave out `-f`: a query reads it to its end".to_owned()),
                ..Error::usage(format!(
                    "{} is compressed and does not grow, and cannot be followed",
                    source.input.name()
                ))
            });
        }
        let escaped = |source: &Source| globset::escape(&source.input.name());
        let names = COMPRESSED.map(str::to_owned).into_iter();
        Ok(Followed {
            include: globs(words),
            exclude: names.chain(compressed().map(escaped)).collect(),
        })
    }
}

/// The one partition of a scan that follows files.
#[derive(Debug)]
pub(crate) struct Following {
    pub(crate) files: Followed,
    pub(crate) notes: Arc<Notes>,
    /// Files that were last modified before are passed over.
    pub(crate) modified_since: Option<SystemTime>,
    pub(crate) shared: Arc<Shared>,
}

impl PartitionStream for Following {
    fn schema(&self) -> &SchemaRef {
        &self.shared.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (sender, batches) = mpsc::channel(BATCHES_AHEAD);
        let started = self.start(sender.clone());
        let waker = match started {
            Ok(waker) => Some(waker),
            Err(error) => {
                // The channel is empty: there is room.
                let _ = sender.try_send(Err(DataFusionError::External(error.into())));
                None
            }
        };
        let schema = Arc::clone(&self.shared.schema);
        let batches = Batches { batches, waker };
        Box::pin(RecordBatchStreamAdapter::new(schema, batches))
    }
}

impl Following {
    fn start(
        &self,
        sender: mpsc::Sender<Result<RecordBatch, DataFusionError>>,
    ) -> anyhow::Result<Waker> {
        let age = |since: SystemTime| SystemTime::now().duration_since(since).ok();
        let config = FileConfig {
            include: self.files.include.clone(),
            exclude: self.files.exclude.clone(),
            // Whoever asks names the files; links lead where that person may read.
            follow_roots: vec![PathBuf::from("/")],
            ignore_older: self.modified_since.and_then(age),
            ..FileConfig::default()
        };
        let follower = Follower::new(config, Vec::new(), true)?;
        let (waker, failed) = (follower.waker(), sender.clone());
        let tail = Tail {
            follower,
            sources: HashMap::new(),
            rows: Rows::new(&self.shared),
            notes: Arc::clone(&self.notes),
            frames: Frames::default(),
            sender,
            meanwhile: Vec::new(),
        };
        let thread = thread::Builder::new().name("follow".to_owned());
        thread.spawn(move || {
            if catch_unwind(AssertUnwindSafe(|| tail.run())).is_err() {
                let error = "the files can no longer be followed: this is a fault of tailrace";
                // If nobody takes it the query has ended.
                let _ = failed.blocking_send(Err(DataFusionError::Execution(error.to_owned())));
            }
        })?;
        Ok(waker)
    }
}

/// The rows that were found; dropping it ends the thread that looks for them.
struct Batches {
    batches: mpsc::Receiver<Result<RecordBatch, DataFusionError>>,
    waker: Option<Waker>,
}

impl Stream for Batches {
    type Item = Result<RecordBatch, DataFusionError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.batches.poll_recv(context)
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        self.batches.close();
        if let Some(waker) = &self.waker {
            waker.wake();
        }
    }
}

/// Reads what is written, on a thread of its own.
struct Tail {
    follower: Follower,
    sources: HashMap<SourceId, Open>,
    rows: Rows,
    notes: Arc<Notes>,
    frames: Frames,
    sender: mpsc::Sender<Result<RecordBatch, DataFusionError>>,
    /// What happened to files while rows were not taken.
    meanwhile: Vec<FileEvent>,
}

/// A file that is open.
struct Open {
    framer: Framer,
    input: Input,
}

impl Tail {
    fn run(mut self) {
        let mut buffer = ChunkBuffer::with_capacity(READ_BYTES);
        while !self.sender.is_closed() {
            buffer.clear();
            let mut events = std::mem::take(&mut self.meanwhile);
            let has_more = self.follower.read(&mut buffer, READ_BYTES, &mut events);
            for event in events.drain(..) {
                if let Err(error) = self.take(event, &buffer) {
                    // If nobody takes it the query has ended.
                    let _ = self.sender.blocking_send(Err(error));
                    return;
                }
            }
            // It would keep a list of them.
            drop(self.follower.take_dormant());
            if !has_more && self.meanwhile.is_empty() {
                self.follower.wait(WAIT);
            }
        }
    }

    fn take(&mut self, event: FileEvent, buffer: &[u8]) -> Result<(), DataFusionError> {
        match event {
            FileEvent::Opened {
                source,
                path,
                offset,
                mid_line,
                ..
            } => {
                let opened = Open {
                    framer: Framer::new(&FrameConfig::default(), offset, mid_line)
                        .numbered(source.0),
                    input: Input::File(path.to_path_buf()),
                };
                self.sources.insert(source, opened);
            }
            FileEvent::Continues {
                source, earlier, ..
            } => {
                // Both are needed at once.
                if let Some(mut before) = self.sources.remove(&earlier) {
                    if let Some(source) = self.sources.get_mut(&source) {
                        source.framer.continue_from(&mut before.framer);
                    }
                    self.sources.insert(earlier, before);
                }
            }
            FileEvent::Renamed { source, path, .. } => {
                if let Some(source) = self.sources.get_mut(&source) {
                    source.input = Input::File(path.to_path_buf());
                }
            }
            FileEvent::Chunk {
                source, start, end, ..
            } => return self.push(source, buffer.get(start..end).unwrap_or_default()),
            FileEvent::Finished { source, is_cut } => {
                self.end(source, is_cut)?;
                self.sources.remove(&source);
                self.follower.acked(source, u64::MAX);
            }
            FileEvent::Truncated { path, .. } => self.notes.problem(format!(
                "{}: was truncated or replaced in place, and is read from its start; what was written to it right before that was not seen",
                path.display()
            )),
            FileEvent::Lost {
                path,
                bytes: 0,
                reason,
                ..
            } => self.notes.problem(format!(
                "{}: nobody knows how much of it was not read: {}",
                path.display(),
                reason.explained()
            )),
            FileEvent::Lost {
                path,
                bytes,
                reason,
                ..
            } => self.notes.problem(format!(
                "{}: {bytes} bytes were not read: {}",
                path.display(),
                reason.explained()
            )),
            // The glob of a directory names the files in it.
            FileEvent::Problem { path, .. } if path.is_dir() => {}
            FileEvent::Problem { path, message, .. } => {
                self.notes.problem(format!("{}: {message}", path.display()));
            }
            FileEvent::Identified { .. }
            | FileEvent::Grown { .. }
            | FileEvent::Linked { .. }
            | FileEvent::Unseen { .. }
            | FileEvent::Skipped { .. }
            | FileEvent::Forgotten { .. } => {}
        }
        Ok(())
    }

    /// Makes rows of the next bytes of a source.
    fn push(&mut self, source: SourceId, bytes: &[u8]) -> Result<(), DataFusionError> {
        let framed = |framer: &mut Framer, frames: &mut Frames| framer.push(bytes, 0, 0, frames);
        self.frame(source, bytes, framed)
    }

    /// Makes rows of what is held of a source that has ended.
    fn end(&mut self, source: SourceId, is_cut: bool) -> Result<(), DataFusionError> {
        let end = match is_cut {
            true => Framer::finish_cut,
            false => Framer::finish,
        };
        self.frame(source, &[], end)
    }

    fn frame(
        &mut self,
        source: SourceId,
        bytes: &[u8],
        frame: impl FnOnce(&mut Framer, &mut Frames),
    ) -> Result<(), DataFusionError> {
        let Some(source) = self.sources.get_mut(&source) else {
            return Ok(());
        };
        self.frames.clear();
        frame(&mut source.framer, &mut self.frames);
        let count = bytes.len() as u64;
        let records = chunk(&mut self.frames, Bytes::copy_from_slice(bytes), count);
        let input = source.input.clone();
        for records in records.split(self.rows.records_max()) {
            if let Some(batch) = self.rows.of_chunk(&records, &input)? {
                self.send(batch);
            }
        }
        Ok(())
    }

    /// Waits until the rows are taken. Meanwhile it looks at the files, so that one that is deleted is not missed.
    fn send(&mut self, batch: RecordBatch) {
        let mut rows = Ok(batch);
        // Whoever does not take them has ended the query.
        while let Err(TrySendError::Full(back)) = self.sender.try_send(rows) {
            rows = back;
            self.follower.hold(&mut self.meanwhile);
            thread::sleep(LOOK);
        }
    }
}
