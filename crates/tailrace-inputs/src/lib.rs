//! Finds, identifies and follows log files; reads standard input the same way.
//!
//! Takes globs and the places where an earlier run stopped, gives bytes in the caller's buffer and
//! [`FileEvent`]s that say which bytes belong to which file. Never looks inside a record, never
//! sends anything, never decides when a byte is safe: it reports, the pipeline acknowledges.
//!
//! In the order of the data: [`FileConfig`] names the files, [`Follower`] discovers and reads them,
//! [`StdinReader`] is the other way in, [`QueueReader`] the same by way of the disk, [`checkpoint`] is what survives a restart and [`DataDir`]
//! the locked directory that holds it.
//!
//! Linux only: directories are watched by inotify, with polling where it is not available.

#[macro_use]
extern crate tailrace_schema;

mod input;
pub mod options;

mod file;
mod kubernetes;
mod stdin;

mod chunk;
mod contents;
mod data_dir;
mod error;
mod event;
mod gzip_members;
mod identity;
mod meta;
mod resume;

pub mod checkpoint;

pub use chunk::ChunkBuffer;
pub use contents::Contents;
pub use data_dir::DataDir;
pub use error::Error;
pub use event::{FileEvent, LossReason, ProblemKind, SkipReason, SourceId};
pub use file::FileInput;
pub use file::config::{FileConfig, Globs, WatchMode};
pub use file::follower::{Denied, Follower, SourceStatus, Unreadable, matching, unreadable};
pub use file::handed_over::HandedOver;
pub use file::reread::Reread;
pub use file::watch::Waker;
pub use identity::{FileId, FileKey, Fingerprint, FingerprintKey, Tail};
pub use input::{Claim, Claims, Gauges, Input, InputOptions, InputType, OpenContext, Pods, Stored};
pub use kubernetes::{ContainerFormat, ContainerNames, KubernetesInput, Metadata};
pub use resume::{Gone, Resume};
pub use stdin::queue::{
    CheckedSegment, QueueConfig, QueueReader, SegmentState, check as check_queue,
};
pub use stdin::reader::StdinReader;
pub use stdin::{DiskQueue, MemoryQueue, StdinInput, StdinQueue};

/// Every type of input there is, in the order of the documentation.
pub const INPUTS: &[InputType] = &[file::TYPE, kubernetes::TYPE, stdin::TYPE];
