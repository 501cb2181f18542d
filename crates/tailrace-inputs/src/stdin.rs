//! The `stdin` input: the standard input until it ends, from memory or by way of a disk queue.

pub(crate) mod queue;
pub(crate) mod reader;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tailrace_schema::kind::{GIB, KIB, MIB, Size};
use tailrace_schema::section::Section;

use crate::event::{FileEvent, SourceId};
use crate::file::watch::Waker;
use crate::input::{Claim, Claims, Gauges, Input, InputOptions, InputType, OpenContext, Stored};
use crate::options::{Format, Multiline, Records, Timezone};
use crate::stdin::queue::{QueueConfig, QueueReader};
use crate::stdin::reader::StdinReader;
use crate::{ChunkBuffer, Error};

pub(crate) const TYPE: InputType = InputType {
    name: "stdin",
    info: &<StdinInput as Section>::INFO,
    example: "type: stdin\nqueue: {type: disk, max_bytes: 1GiB}\n",
    read: |node, reader, common| {
        let input: StdinInput = reader.section(node, common)?;
        Some(Arc::new(input))
    },
};

section! {
    /// Reads the standard input until it ends. At most one pipeline can have it.
    pub struct StdinInput {
        /// How the bytes are cut into records.
        format: Format = Format, default("auto");
        /// Joins lines of plain text into one record, such as those of a stack trace.
        multiline: Option<Multiline> = Multiline, unset("each line is a record", "{preset: [java, python], timeout: 1s}");
        /// The longest record. A longer one is cut there and flagged `truncated`.
        max_record_bytes: u64 = Size<{ KIB }, { 64 * MIB }>, default("1MiB");
        /// The offset of timestamps that name no zone. Daylight saving is not followed.
        timezone: Timezone = Timezone, default("UTC", "+02:00");
        /// Where the bytes wait until every output has acknowledged them.
        queue: StdinQueue = StdinQueue, default("{type: memory}", "{type: disk, max_bytes: 1GiB}");
    }
}

section_defaults!(StdinInput);

section! {
    /// In the process. What is under way when it is killed, or not delivered when it is stopped, is gone.
    pub struct MemoryQueue {}
}

section! {
    /// In the directory `queue/PIPELINE` of the data directory: written and synced before anything else happens,
    /// deleted when every output has acknowledged it, read again at the next start if not.
    pub struct DiskQueue {
        /// Bytes of all files of the queue, at most. Beyond it, reading of standard input pauses. At least twice
        /// `limits.replay`.
        max_bytes: u64 = Size<{ 2 * MIB }, { 1024 * GIB }>, default("1GiB");
    }
}

tagged! {
    /// Where the bytes of standard input wait.
    pub enum StdinQueue {
        /// In the process: what is under way when it is killed is gone.
        Memory(MemoryQueue) = "memory",
        /// In files, which outlive it.
        Disk(DiskQueue) = "disk",
    }
}

impl InputOptions for StdinInput {
    fn type_name(&self) -> &'static str {
        TYPE.name
    }

    fn records(&self) -> Records<'_> {
        Records {
            framing: self.format.framing(),
            max_record_bytes: self.max_record_bytes,
            multiline: self.multiline.as_ref(),
            timezone: self.timezone,
        }
    }

    fn exclusive(&self) -> Option<&'static str> {
        Some("the standard input")
    }

    fn disk_queue_bytes_max(&self) -> Option<u64> {
        match &self.queue {
            StdinQueue::Disk(queue) => Some(queue.max_bytes),
            StdinQueue::Memory(_) => None,
        }
    }

    fn claims(&self) -> Result<Claims, Error> {
        let has_queue = self.disk_queue_bytes_max().is_some();
        Ok(Box::new(move |entry| {
            let is_stored = has_queue && QueueReader::owns(&entry.id);
            is_stored.then_some(Claim::Found)
        }))
    }

    fn open(&self, context: OpenContext<'_>) -> Result<Box<dyn Input>, Error> {
        let Some(bytes_max) = self.disk_queue_bytes_max() else {
            return Ok(Box::new(StdinReader::stdin()?));
        };
        let config = QueueConfig {
            dir: context.data_dir.join("queue").join(context.pipeline),
            bytes_max,
            record_bytes_max: self.max_record_bytes,
        };
        let mut resume = context.resume;
        resume.retain(|entry| QueueReader::owns(&entry.id));
        Ok(Box::new(QueueReader::stdin(&config, resume)?))
    }
}

impl Input for StdinReader<std::fs::File> {
    fn waker(&self) -> Waker {
        StdinReader::waker(self)
    }

    fn read(&mut self, buffer: &mut ChunkBuffer, room: usize, events: &mut Vec<FileEvent>) -> bool {
        StdinReader::wait(self, Duration::ZERO) && StdinReader::read(self, buffer, room, events)
    }

    fn wait(&mut self, timeout: Duration) {
        StdinReader::wait(self, timeout);
    }

    fn has_ended(&self) -> bool {
        self.is_finished()
    }

    fn is_kept(&self) -> bool {
        false
    }

    fn pause(&mut self, _source: SourceId) -> bool {
        false
    }

    fn resume(&mut self, _source: SourceId) {}

    fn is_read_to_end(&self, _source: SourceId) -> bool {
        true
    }

    fn finish(&mut self, _source: SourceId, _end: u64) {}

    fn gauges(&mut self, _now: Instant) -> Gauges {
        Gauges::default()
    }
}

impl Input for QueueReader {
    fn waker(&self) -> Waker {
        QueueReader::waker(self)
    }

    fn read(&mut self, buffer: &mut ChunkBuffer, room: usize, events: &mut Vec<FileEvent>) -> bool {
        QueueReader::read(self, buffer, room, events)
    }

    fn wait(&mut self, timeout: Duration) {
        QueueReader::wait(self, timeout);
    }

    fn has_ended(&self) -> bool {
        self.is_finished()
    }

    fn pause(&mut self, _source: SourceId) -> bool {
        QueueReader::pause(self);
        true
    }

    fn resume(&mut self, _source: SourceId) {
        QueueReader::resume(self);
    }

    fn is_read_to_end(&self, _source: SourceId) -> bool {
        self.unread_bytes() == 0
    }

    fn wants_acknowledged(&self) -> bool {
        true
    }

    fn acknowledge(&mut self, source: SourceId, unacked_bytes: u64) {
        self.acked(source, unacked_bytes);
    }

    fn finish(&mut self, source: SourceId, _end: u64) {
        self.acked(source, 0);
    }

    fn gauges(&mut self, now: Instant) -> Gauges {
        let oldest = self.oldest_unread();
        Gauges {
            denied: Some(self.denied()),
            unread_bytes: Some(self.unread_bytes()),
            oldest_unread: oldest.map(|since| now.saturating_duration_since(since)),
            ..Gauges::default()
        }
    }

    fn close(&mut self, events: &mut Vec<FileEvent>) {
        QueueReader::close(self, events);
    }

    fn stored(&self) -> Vec<Stored> {
        QueueReader::stored(self)
    }
}
