//! What an earlier run left of the sources of an input: where it stopped in each, and what it read of those that are gone.

use std::path::Path;
use std::sync::Arc;

use crate::identity::FileId;

/// Where an earlier run stopped with one generation of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    /// Its identity then.
    pub id: FileId,
    /// Its generation then.
    pub generation: u32,
    /// Its last known name.
    pub path: Arc<Path>,
    /// The path of its input that it had, if no glob named `path`: it had been rotated away.
    pub origin: Option<Arc<Path>>,
    /// Where the file itself was last, if `path` is a link.
    pub target: Option<Arc<Path>>,
    /// The first byte to read.
    pub offset: u64,
    /// What lies from here to the end is lost if the file is gone. Below it, only outputs that are not required have
    /// something to read.
    pub owed_from: u64,
    /// Its last known size.
    pub size: u64,
    /// It was gone then, and had been written to since it was looked at.
    pub is_unseen: bool,
}

impl Resume {
    /// The last name that the globs of its input named, as far as that is known.
    #[must_use]
    pub fn origin(&self) -> &Arc<Path> {
        self.origin.as_ref().unwrap_or(&self.path)
    }
}

/// Files that earlier runs read and that are gone. By them a compressed file that was read is distinguished from one
/// that nobody saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gone {
    /// From when on every file that went is listed, in nanoseconds since the Unix epoch. 0: it is not known,
    /// and no compressed file is read for itself.
    pub since: u64,
    /// Their identities, as last read.
    pub files: Vec<FileId>,
}
