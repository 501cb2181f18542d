//! Where an earlier run left a pipeline: the checkpoint's entries by file, for the reader, which
//! reads each file from the lowest watermark of the outputs.

use std::collections::HashMap;

use tailrace_input::{FileId, Resume};

use crate::watermark::Resumed;

/// What the checkpoint knows of each file of one pipeline.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResumeTable {
    files: HashMap<(u64, u64, u32), ResumedFile>,
}

/// What the checkpoint knows of one file generation.
#[derive(Debug, Clone)]
pub(crate) struct ResumedFile {
    /// Where each output stood.
    pub(crate) outputs: Vec<Resumed>,
    /// Bytes below this may have been read by the earlier run.
    pub(crate) read_to: u64,
    entry: Resume,
}

impl ResumeTable {
    /// Adds a file and where each output stood in it.
    pub(crate) fn add(&mut self, entry: Resume, outputs: Vec<Resumed>) {
        let read_to = entry.size;
        self.files.insert(
            key(entry.id, entry.generation),
            ResumedFile {
                outputs,
                read_to,
                entry,
            },
        );
    }

    /// What is known of a file that is read from `offset`; given once, since an inode may be used
    /// again by another file later.
    pub(crate) fn take(&mut self, id: FileId, generation: u32, offset: u64) -> Option<ResumedFile> {
        let file = self.files.remove(&key(id, generation))?;
        (file.entry.offset == offset).then_some(file)
    }

    /// The file is gone.
    pub(crate) fn forget(&mut self, id: FileId, generation: u32) {
        self.files.remove(&key(id, generation));
    }

    /// The entries for the follower.
    pub(crate) fn entries(&self) -> Vec<Resume> {
        self.files.values().map(|file| file.entry.clone()).collect()
    }
}

fn key(id: FileId, generation: u32) -> (u64, u64, u32) {
    (id.device, id.inode, generation)
}
