//! What the rest of the agent knows of an input: its options, and the running input that reads.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tailrace_schema::DynEq;
use tailrace_schema::section::Tag;

use crate::event::{FileEvent, SourceId};
use crate::file::config::FileConfig;
use crate::file::follower::Denied;
use crate::file::handed_over::HandedOver;
use crate::file::reread::Reread;
use crate::file::watch::Waker;
use crate::identity::{FileId, FingerprintKey};
use crate::options::Records;
use crate::resume::{Gone, Resume};
use crate::{ChunkBuffer, Error};

/// A type of input: its name in the configuration, its options, how they are read, and an example of its use. Every type
/// is one module and one line of [`INPUTS`](crate::INPUTS).
pub type InputType = Tag<Arc<dyn InputOptions>>;

/// The checked options of one input.
pub trait InputOptions: Any + DynEq + fmt::Debug + Send + Sync {
    /// The word after `type:`.
    fn type_name(&self) -> &'static str;

    /// How its bytes become records.
    fn records(&self) -> Records<'_>;

    /// The files that it follows; `None` where it reads no files.
    fn files(&self) -> Option<FileConfig> {
        None
    }

    /// Whether it leaves out what is there at the first start.
    fn skips_at_first(&self) -> bool {
        false
    }

    /// What only one input of a configuration can read, for people.
    fn exclusive(&self) -> Option<&'static str> {
        None
    }

    /// The bytes of its disk queue, at most, where it has one.
    fn disk_queue_bytes_max(&self) -> Option<u64> {
        None
    }

    /// The pods whose logs it reads, where it reads those of pods.
    fn pods(&self) -> Option<Pods> {
        None
    }

    /// What of that which an earlier run left was read by it, as far as names and identities show.
    ///
    /// # Errors
    ///
    /// A glob that cannot be read.
    fn claims(&self) -> Result<Claims, Error>;

    /// Opens it, and reads nothing yet.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    fn open(&self, context: OpenContext<'_>) -> Result<Box<dyn Input>, Error>;
}

impl PartialEq for dyn InputOptions {
    fn eq(&self, other: &dyn InputOptions) -> bool {
        self.is_equal(other as &dyn Any)
    }
}

/// Why something that an earlier run left belongs to an input; `None` where nothing says so.
pub type Claims = Box<dyn Fn(&Resume) -> Option<Claim>>;

/// Why something that an earlier run left belongs to an input; the better reason is the lesser one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Claim {
    /// The input finds it by its name, or it is its own by its identity.
    Found,
    /// The input found it by the name that it had before it was rotated away.
    WasFound,
    /// The input would find it by its name without the number or date of a rotation.
    Rotated,
    /// The input finds files in the same directory.
    Beside,
}

/// The pods of a node, and where their logs are.
#[derive(Clone, Debug)]
pub struct Pods {
    /// The directory of the logs.
    pub logs_dir: PathBuf,
    /// Where metadata comes from, and what is wanted of it.
    pub config: tailrace_kubernetes::Config,
}

/// What an input has to know when it is opened.
pub struct OpenContext<'a> {
    /// The name of its pipeline.
    pub pipeline: &'a str,
    /// The agent's directory.
    pub data_dir: &'a Path,
    /// What an earlier run left of its sources.
    pub resume: Vec<Resume>,
    /// Nothing was read by an earlier run.
    pub first_start: bool,
    /// The key of the fingerprints of files.
    pub fingerprint_key: FingerprintKey,
    /// What deleted files may keep on the disk until they are read.
    pub held_bytes_max: u64,
    /// What earlier runs read of files that are gone.
    pub gone: Gone,
    /// What the input before this one in the same process held open.
    pub handed_over: HandedOver,
}

/// An input that reads. It gives bytes and events about its sources, and is informed what became of them; it never looks into
/// a record, and it alone knows what a source is.
pub trait Input: Send {
    /// A handle that ends a wait.
    fn waker(&self) -> Waker;

    /// Appends at most about `room` bytes to the buffer, and what happened to sources to the events, in order. Whether
    /// there may be more at once.
    fn read(&mut self, buffer: &mut ChunkBuffer, room: usize, events: &mut Vec<FileEvent>) -> bool;

    /// Waits until there is something to read, or to do, or the handle ends it; no longer than this.
    fn wait(&mut self, timeout: Duration);

    /// Whether nothing will ever come again.
    fn has_ended(&self) -> bool {
        false
    }

    /// Whether its sources are known to the next run of the agent, so that their progress is kept.
    fn is_kept(&self) -> bool {
        true
    }

    /// Whether the identity of a source becomes known, or better known, as it is read.
    fn is_identified(&self) -> bool {
        false
    }

    /// Gives no more bytes of a source until it is resumed. False where it cannot be paused, as what comes cannot be
    /// read again.
    fn pause(&mut self, source: SourceId) -> bool;

    /// Goes on with a source.
    fn resume(&mut self, source: SourceId);

    /// Whether nothing of a source waits to be read, as far as is known.
    fn is_read_to_end(&self, source: SourceId) -> bool;

    /// Whether it wants to know what is acknowledged of sources that have not ended.
    fn wants_acknowledged(&self) -> bool {
        false
    }

    /// All but the last so many bytes that were read of a source are acknowledged by every output that may need them.
    fn acknowledge(&mut self, source: SourceId, unacked_bytes: u64) {
        let _ = (source, unacked_bytes);
    }

    /// All of a source that has ended at this offset is acknowledged: nothing will be asked of it again.
    fn finish(&mut self, source: SourceId, end: u64);

    /// A source that has ended is kept for nobody who is required: its room may be given up.
    fn let_go(&mut self, source: SourceId) {
        let _ = source;
    }

    /// Sources that are read to their end and idle, of so many that they should take no memory. Each of them is put to
    /// rest or stays.
    fn take_dormant(&mut self) -> Vec<SourceId> {
        Vec::new()
    }

    /// A dormant source is forgotten until it grows.
    fn put_to_rest(&mut self, source: SourceId) {
        let _ = source;
    }

    /// A dormant source is still in use.
    fn stays_dormant(&mut self, source: SourceId) {
        let _ = source;
    }

    /// Opens what appears, without reading it, so that it can be read later though it be deleted. The events are those of
    /// [`Self::read`], without chunks.
    fn hold(&mut self, events: &mut Vec<FileEvent>) {
        let _ = events;
    }

    /// Opens some of the sources whose beginning is left out at a first start, up to where they are read from. False if there
    /// are no more. The events are those of [`Self::read`], without chunks.
    fn open_skipped(&mut self, events: &mut Vec<FileEvent>) -> bool {
        let _ = events;
        false
    }

    /// A handle of its own to read a source again from here; `None` where it cannot be.
    fn reread(&mut self, source: SourceId, offset: u64) -> Option<Reread> {
        let _ = (source, offset);
        None
    }

    /// How many such handles there may be.
    fn rereads_max(&self) -> usize {
        0
    }

    /// How it stands now.
    fn gauges(&mut self, now: Instant) -> Gauges;

    /// Ends it: what it still has to say of sources.
    fn close(&mut self, events: &mut Vec<FileEvent>) {
        let _ = events;
    }

    /// After [`Self::close`]: what it stored of sources that cannot be read again, and does not know to be acknowledged.
    fn stored(&self) -> Vec<Stored> {
        Vec::new()
    }

    /// What it holds open, for the input that comes after it in the same process.
    fn hand_over(self: Box<Self>) -> HandedOver {
        HandedOver::default()
    }
}

/// A piece of a source that its input stored, and that the next run of the agent finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Which source.
    pub id: FileId,
    /// Which of its bytes.
    pub bytes: Range<u64>,
}

/// How an input stands; `None` where it cannot know.
#[derive(Clone, Debug, Default)]
pub struct Gauges {
    /// Open files.
    pub open_files: Option<u64>,
    /// What may not be read, and why.
    pub denied: Option<Vec<Denied>>,
    /// Bytes that wait to be read.
    pub unread_bytes: Option<u64>,
    /// How long the oldest of them has waited.
    pub oldest_unread: Option<Duration>,
}
