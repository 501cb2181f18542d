//! What a follower reports to its caller: a closed set, so that one `match` covers the life of a file.
//!
//! Takes nothing, gives plain values. Never holds log bytes but the head of a file that is gone on with: a chunk is a
//! range of the caller's buffer.
//!
//! The life of a source: `Opened`, perhaps `Continues`, then any of `Chunk`, `Grown`, `Identified`, `Renamed`,
//! `Linked`, `Skipped`, then `Finished`. Its chunks are contiguous: each begins where the last one ended, the
//! first at the offset of `Opened`. For every source, at any moment,
//! `size = start offset + chunks + unread`, and what is unread when it ends is in `Lost`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::identity::FileId;

/// The slot a follower gives to one generation of one file. Never used again in the same follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(pub u32);

/// What happened to a file. Offsets and sizes are bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileEvent {
    /// Reading of a source begins at `offset`. Sent again for a source that has had no chunk yet if
    /// `mid_line` or `offset` turned out differently: the later one replaces the earlier one.
    Opened {
        /// The source from here on.
        source: SourceId,
        /// What identifies it on disk.
        id: FileId,
        /// How many earlier contents this device and inode had since it is known.
        generation: u32,
        /// The name it was found under.
        path: Arc<Path>,
        /// The path of the input that it had, if no glob names `path`: it was rotated away.
        origin: Option<Arc<Path>>,
        /// Where reading begins.
        offset: u64,
        /// Whether the byte before `offset` is something else than a newline.
        mid_line: bool,
        /// The size of the file now.
        size: u64,
    },
    /// The source is what its path leads to after a rotation: its first chunk follows the last one of `earlier`. A
    /// record that began there ends here. Sent right before the first chunk, where the earlier one was read too; and
    /// without a chunk, where an earlier run has read all of this one and not all of the earlier one.
    Continues {
        /// Which source.
        source: SourceId,
        /// What the path led to before.
        earlier: SourceId,
        /// Bytes that the file begins with, where its reading began behind them: all of those, or as many as may matter.
        head: Vec<u8>,
    },
    /// The fingerprint covers more bytes now, or the file was changed without growing. Device, inode and generation are unchanged: the
    /// checkpoint entry is replaced, not added.
    Identified {
        /// Which source.
        source: SourceId,
        /// Its identity with that.
        id: FileId,
    },
    /// The file has another name. Its content goes on where it was.
    Renamed {
        /// Which source.
        source: SourceId,
        /// Its name now.
        path: Arc<Path>,
        /// The path of the input that it had, if no glob names `path`.
        origin: Option<Arc<Path>>,
    },
    /// The path of the source is, or was, a link: this is the name of the file itself. It holds until the source is
    /// `Opened` again or `Renamed`.
    Linked {
        /// Which source.
        source: SourceId,
        /// Where the file itself is now.
        target: Arc<Path>,
    },
    /// The file was seen with another size.
    Grown {
        /// Which source.
        source: SourceId,
        /// Its size now.
        size: u64,
    },
    /// Bytes were read.
    Chunk {
        /// Which source.
        source: SourceId,
        /// Where in the file the first byte stood.
        offset: u64,
        /// Start of the bytes in the caller's buffer.
        start: usize,
        /// End of the bytes in the caller's buffer.
        end: usize,
        /// The identity with what these bytes add to it: the checkpoint entry is replaced, not added.
        id: FileId,
    },
    /// The true end of a source: it was deleted, truncated, or renamed out of the globs, and all
    /// that could be read has been read. An unterminated last line is complete now. Should a renamed
    /// file grow after all, it comes back as a new source of the same generation.
    Finished {
        /// Which source.
        source: SourceId,
        /// What came next is lost, as far as anybody knows: an unterminated last line is part of one.
        is_cut: bool,
    },
    /// Bytes of an opened source that are left out: the configuration says so, or there is nothing in them.
    Skipped {
        /// Which source.
        source: SourceId,
        /// How many bytes, from the start of the file.
        bytes: u64,
        /// Why.
        reason: SkipReason,
    },
    /// Bytes that existed and can no longer be read.
    Lost {
        /// The source, where it was ever opened by this follower.
        source: Option<SourceId>,
        /// The last known name.
        path: PathBuf,
        /// How many bytes; 0 where a file came and went unseen or is damaged, so that nobody knows.
        bytes: u64,
        /// Why.
        reason: LossReason,
    },
    /// A file was cut, or its content replaced: what was written to it after the last look and before that, nobody has seen.
    /// What was seen and not read is in `Lost`.
    Truncated {
        /// The last known name.
        path: PathBuf,
        /// How long before it was looked at last; `None` if no look of this follower has seen it as it was.
        unseen: Option<Duration>,
        /// How much was written in that time at most, if neither more nor faster than this follower ever saw it grow between
        /// two looks; `None` if it never did.
        bytes_max: Option<u64>,
    },
    /// The file behind this checkpoint entry is gone: drop the entry once its bytes are acked.
    Forgotten {
        /// The identity as last reported by `Opened` or `Identified`, or as given in the resume entry.
        id: FileId,
        /// The generation that is gone.
        generation: u32,
        /// The last known name.
        path: PathBuf,
    },
    /// The file of this checkpoint entry is gone, and was written to after it was closed: if it is not there again, or in a
    /// compressed file, it is counted as lost, by another run if this one ends before that is known. Or that was withdrawn.
    Unseen {
        /// Its identity.
        id: FileId,
        /// Its generation.
        generation: u32,
        /// Whether it is so.
        is_unseen: bool,
    },
    /// Something is wrong with a path or a glob. Said once until it is well again; other files go on.
    Problem {
        /// What kind of problem it is.
        kind: ProblemKind,
        /// The path or glob.
        path: PathBuf,
        /// What is wrong and what happens next: lowercase, no full stop.
        message: String,
    },
}

/// What kind of problem there is with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProblemKind {
    /// The agent may not read it.
    Permission,
    /// It cannot be read for another reason.
    Read,
    /// The input cannot be read any further: what follows is not seen, as if it had ended here.
    Broken,
    /// Something that whoever runs the agent should know.
    Notice,
}

/// Why bytes were left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SkipReason {
    /// `start_at: end` on the first start.
    StartAtEnd,
    /// `ignore_older` on the first start.
    IgnoreOlder,
    /// A hole that the file begins with.
    Nul,
}

impl SkipReason {
    /// Every reason.
    pub const ALL: [Self; 3] = [Self::StartAtEnd, Self::IgnoreOlder, Self::Nul];

    /// The label value in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StartAtEnd => "start_at_end",
            Self::IgnoreOlder => "ignore_older",
            Self::Nul => "nul",
        }
    }
}

/// Why bytes are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossReason {
    /// The file was deleted before it was read to its end.
    Vanished,
    /// The file was deleted before it was opened, or opened again after it had grown: nobody knows what it held.
    Missed,
    /// The file was cut, or its content replaced, before it was read to its end.
    Truncated,
    /// Deleted files held more than `held_bytes_max`, and this one's path held most.
    Held,
    /// The compressed file that holds the bytes cannot be decompressed, or a segment of the queue does not check.
    Corrupt,
    /// A compressed file expands to more than is decompressed.
    Expanded,
    /// It was read from a stream, and the queue could not be written until the agent ended.
    Unwritten,
}

impl LossReason {
    /// Every reason.
    pub const ALL: [Self; 7] = [
        Self::Vanished,
        Self::Missed,
        Self::Truncated,
        Self::Held,
        Self::Corrupt,
        Self::Expanded,
        Self::Unwritten,
    ];

    /// The label value in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Vanished => "vanished",
            Self::Missed => "missed_file",
            Self::Truncated => "truncated",
            Self::Held => "held",
            Self::Corrupt => "corrupt",
            Self::Expanded => "expanded",
            Self::Unwritten => "unwritten",
        }
    }

    /// What happened, for people.
    #[must_use]
    pub const fn explained(self) -> &'static str {
        match self {
            Self::Vanished => "deleted before it was read to its end",
            Self::Missed => "deleted or moved away before what was written to it could be seen",
            Self::Truncated => "truncated or replaced before it was read to its end",
            Self::Held => {
                "deleted files held more than limits.held_bytes, and this path held most of it"
            }
            Self::Corrupt => "it is damaged",
            Self::Expanded => "the compressed file expands to more than is decompressed",
            Self::Unwritten => "the queue could not be written until the agent ended",
        }
    }

    /// Why what a compressed file holds cannot be had.
    pub(crate) fn of_gzip(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::FileTooLarge => Self::Expanded,
            io::ErrorKind::NotFound => Self::Vanished,
            _ => Self::Corrupt,
        }
    }
}
