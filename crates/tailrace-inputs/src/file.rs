//! The `file` input: files that match globs, through rotation and truncation. Also what every input that follows files has
//! in common.

mod closed;
mod compressed_copy;
mod compressed_file;
pub(crate) mod config;
mod discover;
pub(crate) mod follower;
mod growth;
mod gzip;
pub(crate) mod handed_over;
mod lag;
mod pace;
mod pattern;
pub(crate) mod reread;
mod roots;
mod tracked;
pub(crate) mod watch;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tailrace_schema::kind::{DAY, FilePath, Glob, HOUR, KIB, List, MIB, SECOND, Size, Time};
use tailrace_schema::section::Section;

use crate::event::{FileEvent, SourceId};
use crate::file::config::{FileConfig, check_globs};
use crate::file::follower::Follower;
use crate::file::handed_over::HandedOver;
use crate::file::lag::OldestUnread;
use crate::file::reread::Reread;
use crate::file::watch::Waker;
use crate::input::{Claims, Gauges, Input, InputOptions, InputType, OpenContext};
use crate::options::{Format, Multiline, Records, StartAt, Timezone};
use crate::stdin::queue::QueueReader;
use crate::{ChunkBuffer, Error};

pub(crate) const TYPE: InputType = InputType {
    name: "file",
    info: &<FileInput as Section>::INFO,
    example: include_str!("file/example.yaml"),
    read: |node, reader, common| {
        let input: FileInput = reader.section(node, common)?;
        let files = input.files().unwrap_or_default();
        check_globs(&files, node, reader).then(|| Arc::new(input) as Arc<dyn InputOptions>)
    },
};

section! {
    /// Follows files that match globs, through rotation and truncation.
    pub struct FileInput {
        /// Files to read: paths or globs (`*`, `?`, `[a-z]`, `{a,b}`, and `**` for any directories). Relative
        /// ones begin at the working directory.
        include: Vec<String> = List<Glob, 1>, required("[/var/log/app/*.log]");
        /// Files to leave out although `include` names them.
        exclude: Vec<String> = List<Glob, 0>, default("[]", "[/var/log/app/*.gz, /var/log/app/debug-*.log]");
        /// Directories that links may lead into, besides those that `include` begins with. A link to a place
        /// outside all of them is not followed, so that nobody can have the agent read a file by linking to it.
        follow_roots: Vec<PathBuf> = List<FilePath, 0>, default("[]", "[/var/log/pods]");
        /// How the bytes of a file are cut into records.
        format: Format = Format, default("auto");
        /// Joins lines of plain text into one record, such as those of a stack trace.
        multiline: Option<Multiline> = Multiline, unset("each line is a record", "{preset: [java, python], timeout: 1s}");
        /// Where to begin in files that are there when the pipeline first starts. A pipeline that has
        /// a checkpoint goes on from there, and files that appear later are read from their first byte.
        start_at: StartAt = StartAt, default("beginning");
        /// At the first start, skip files that were not written to for this long. The bytes skipped are counted.
        ignore_older: Option<Duration> = Time<{ SECOND }, { 3650 * DAY }>, unset("read them all", "1d");
        /// The longest record. A longer one is cut there and flagged `truncated`; the file goes on.
        max_record_bytes: u64 = Size<{ KIB }, { 64 * MIB }>, default("1MiB");
        /// The offset of timestamps that name no zone. Daylight saving is not followed.
        timezone: Timezone = Timezone, default("UTC", "+02:00");
        /// How often the directories are searched for files that no notification announced; without inotify, up to four times a second.
        discover_interval: Duration = Time<100, { HOUR }>, default("5s");
    }
}

impl InputOptions for FileInput {
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

    fn files(&self) -> Option<FileConfig> {
        Some(FileConfig {
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            follow_roots: self.follow_roots.clone(),
            start_at: self.start_at,
            ignore_older: self.ignore_older,
            scan_interval: self.discover_interval,
            ..FileConfig::default()
        })
    }

    fn skips_at_first(&self) -> bool {
        self.start_at == StartAt::End || self.ignore_older.is_some()
    }

    fn claims(&self) -> Result<Claims, Error> {
        claims(self)
    }

    fn open(&self, context: OpenContext<'_>) -> Result<Box<dyn Input>, Error> {
        open(self, context)
    }
}

/// What its globs name, or named, was read by an input of files.
pub(crate) fn claims(input: &impl InputOptions) -> Result<Claims, Error> {
    let globs = input.files().unwrap_or_default().globs()?;
    Ok(Box::new(move |entry| {
        let is_file = !QueueReader::owns(&entry.id);
        is_file.then(|| globs.claim(entry)).flatten()
    }))
}

/// Opens an input that follows files.
pub(crate) fn open(
    input: &impl InputOptions,
    context: OpenContext<'_>,
) -> Result<Box<dyn Input>, Error> {
    let config = FileConfig {
        fingerprint_key: context.fingerprint_key,
        held_bytes_max: context.held_bytes_max,
        gone: context.gone,
        handed_over: context.handed_over,
        ..input.files().unwrap_or_default()
    };
    let mut resume = context.resume;
    resume.retain(|entry| !QueueReader::owns(&entry.id));
    let follower = Follower::new(config, resume, context.first_start)?;
    Ok(Box::new(Files {
        follower,
        oldest_unread: OldestUnread::default(),
    }))
}

/// Files that are followed.
struct Files {
    follower: Follower,
    oldest_unread: OldestUnread,
}

impl Input for Files {
    fn waker(&self) -> Waker {
        self.follower.waker()
    }

    fn read(&mut self, buffer: &mut ChunkBuffer, room: usize, events: &mut Vec<FileEvent>) -> bool {
        self.follower.read(buffer, room, events)
    }

    fn wait(&mut self, timeout: Duration) {
        self.follower.wait(timeout);
    }

    fn is_identified(&self) -> bool {
        true
    }

    fn pause(&mut self, source: SourceId) -> bool {
        self.follower.pause(source);
        true
    }

    fn resume(&mut self, source: SourceId) {
        self.follower.resume(source);
    }

    fn is_read_to_end(&self, source: SourceId) -> bool {
        self.follower.is_read_to_end(source)
    }

    fn finish(&mut self, source: SourceId, end: u64) {
        self.follower.acked(source, end);
    }

    fn let_go(&mut self, source: SourceId) {
        self.follower.let_go(source);
    }

    fn take_dormant(&mut self) -> Vec<SourceId> {
        self.follower.take_dormant()
    }

    fn put_to_rest(&mut self, source: SourceId) {
        self.follower.put_to_rest(source);
    }

    fn stays_dormant(&mut self, source: SourceId) {
        self.follower.stays_dormant(source);
    }

    fn hold(&mut self, events: &mut Vec<FileEvent>) {
        self.follower.hold(events);
    }

    fn open_skipped(&mut self, events: &mut Vec<FileEvent>) -> bool {
        self.follower.open_skipped(events)
    }

    fn reread(&mut self, source: SourceId, offset: u64) -> Option<Reread> {
        self.follower.reread(source, offset)
    }

    fn rereads_max(&self) -> usize {
        self.follower.open_files_max()
    }

    fn gauges(&mut self, now: Instant) -> Gauges {
        let sources = self.follower.sources();
        let sources = sources.map(|status| (status.source, status.offset, status.size));
        Gauges {
            open_files: Some(self.follower.open_files() as u64),
            denied: Some(self.follower.denied()),
            unread_bytes: Some(self.follower.unread_bytes()),
            oldest_unread: self.oldest_unread.look(now, sources),
        }
    }

    fn hand_over(self: Box<Self>) -> HandedOver {
        self.follower.into_open_files()
    }
}
