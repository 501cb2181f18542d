//! What the reader hands to a worker: one filled chunk buffer and what happened to which source,
//! in order. Holds no record: nothing is framed yet.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;

use crate::delivery::credit::{Credit, Reserved, Shares};
use crate::watermark::Slot;

/// Bytes of several sources and the events between them, in the order they were read.
#[derive(Debug)]
pub(crate) struct RawBatch {
    /// The chunk buffer.
    pub bytes: Bytes,
    /// What to do, in order.
    pub events: Vec<SourceEvent>,
    /// Credit for the bytes.
    pub credit: Option<Reserved>,
    /// Its room among the batches that wait for a worker.
    pub room: Option<Reserved>,
    /// When the reader had read them all, in nanoseconds since the Unix epoch.
    pub observed_ns: i64,
    /// The same on a clock that nobody sets.
    pub read_at: Instant,
    /// How often it was cut.
    pub cuts: u32,
}

impl RawBatch {
    /// Cuts the batch before this byte of its buffer: `events` are those that have not been dealt with. Gives the credit of
    /// what stands before it.
    pub(crate) fn cut(
        &mut self,
        at: usize,
        events: impl Iterator<Item = SourceEvent>,
    ) -> Option<Reserved> {
        self.cuts += 1;
        self.events = events.map(|event| event.moved(at)).collect();
        self.bytes = self.bytes.slice(at..);
        self.credit.as_mut().map(|credit| credit.split(at as u64))
    }
}

/// Something that happened to a source.
#[derive(Debug)]
pub(crate) enum SourceEvent {
    /// A source begins; its first bytes stand at `offset`.
    Opened {
        /// The source.
        slot: Slot,
        /// A source without bytes that this one stands for.
        replaces: Option<Slot>,
        /// Path at opening.
        path: std::sync::Arc<std::path::Path>,
        /// Offset of the first byte that will come.
        offset: u64,
        /// The byte before `offset` is not a line's end.
        mid_line: bool,
        /// Bytes below this offset were read by an earlier run.
        replay_to: u64,
    },
    /// The source goes on where another one ended: a log was rotated.
    Continues {
        /// The source.
        slot: Slot,
        /// What it follows.
        earlier: Slot,
        /// Bytes that stand before the first one that will come, from the start of the file.
        head: Vec<u8>,
    },
    /// Bytes `start..end` of the chunk buffer follow the source's earlier ones.
    Chunk {
        /// The source.
        slot: Slot,
        /// First byte in the chunk buffer.
        start: usize,
        /// Behind the last byte in the chunk buffer.
        end: usize,
    },
    /// The source is read to its end and had no more bytes for a while.
    Quiet {
        /// The source.
        slot: Slot,
    },
    /// The source will not grow again.
    Finished {
        /// The source.
        slot: Slot,
        /// What came next is lost.
        is_cut: bool,
    },
}

impl SourceEvent {
    /// The same event where so many bytes before its chunk are gone.
    fn moved(self, by: usize) -> Self {
        match self {
            Self::Chunk { slot, start, end } => Self::Chunk {
                slot,
                start: start.max(by) - by,
                end: end - by,
            },
            other => other,
        }
    }
}

/// Batches of one input between its reader and the workers, in order.
#[derive(Debug)]
pub(crate) struct BatchQueue {
    batches: Mutex<VecDeque<RawBatch>>,
    /// What bounds their bytes, to be reserved by the reader: more would lie in memory for nothing. Not shared with other
    /// inputs, whose small batches would keep a large one waiting.
    pub room: Arc<Credit>,
}

impl BatchQueue {
    /// A queue for so many bytes.
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self {
            batches: Mutex::default(),
            room: Credit::new(bytes_max, Shares::new(0)),
        }
    }

    /// Adds a batch behind the others.
    pub(crate) fn push(&self, batch: RawBatch) {
        self.batches
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_back(batch);
    }

    /// Puts back what is left of the oldest batch.
    pub(crate) fn put_back(&self, batch: RawBatch) {
        self.batches
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_front(batch);
    }

    /// Takes the oldest batch.
    pub(crate) fn pop(&self) -> Option<RawBatch> {
        self.batches
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    }

    /// Whether no batch waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.batches
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_empty()
    }
}
