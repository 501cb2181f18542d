//! Where an earlier run left a pipeline: the checkpoint's entries by file, for the reader, which
//! reads each file from the lowest watermark of the outputs.

use std::collections::HashMap;

use tailrace_input::checkpoint::Rest;
use tailrace_input::{FileId, Gone, Resume};

use crate::watermark::Resumed;

/// What the checkpoint knows of each file of one pipeline.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResumeTable {
    files: HashMap<(u64, u64, u32), ResumedFile>,
    /// The entries for the followers, until they have them.
    entries: Vec<Resume>,
    /// What was read of files that are gone.
    pub(crate) gone: Gone,
}

/// What the checkpoint knows of one file generation.
#[derive(Debug, Clone)]
pub(crate) struct ResumedFile {
    /// Where each output stood.
    pub(crate) outputs: Vec<Resumed>,
    /// Bytes below this may have been read by the earlier run.
    pub(crate) read_to: u64,
    /// Records that began in the file before and were not read to their end, or not settled.
    pub(crate) rests: Vec<Rest>,
    /// Where it is read from.
    offset: u64,
    /// When it was made; 0 where the filesystem does not know it.
    born: u64,
}

impl ResumeTable {
    /// Adds a file, where each output stood in it, and which records end there that began in the file before.
    pub(crate) fn add(&mut self, entry: Resume, outputs: Vec<Resumed>, rests: Vec<Rest>) {
        self.files.insert(
            key(entry.id, entry.generation),
            ResumedFile {
                outputs,
                rests,
                read_to: entry.size,
                offset: entry.offset,
                born: entry.id.born,
            },
        );
        self.entries.push(entry);
    }

    /// What is known of a file that is read from `offset`; given once, since an inode may be used
    /// again by another file later. It may be so already, by a file of another input.
    pub(crate) fn take(&mut self, id: FileId, generation: u32, offset: u64) -> Option<ResumedFile> {
        let key = key(id, generation);
        let born = self.files.get(&key)?.born;
        if born != id.born && born != 0 && id.born != 0 {
            return None;
        }
        let file = self.files.remove(&key)?;
        (file.offset == offset).then_some(file)
    }

    /// The file is gone.
    pub(crate) fn forget(&mut self, id: FileId, generation: u32) {
        self.files.remove(&key(id, generation));
    }

    /// The entries for the followers; given once.
    pub(crate) fn take_entries(&mut self) -> Vec<Resume> {
        std::mem::take(&mut self.entries)
    }
}

fn key(id: FileId, generation: u32) -> (u64, u64, u32) {
    (id.device, id.inode, generation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use tailrace_input::Fingerprint;

    fn entry(inode: u64, offset: u64) -> Resume {
        let fingerprint = Fingerprint { bytes: 3, hash: 1 };
        Resume {
            id: FileId {
                device: 1,
                inode,
                fingerprint,
                ..FileId::NONE
            },
            generation: 0,
            path: Path::new("/var/log/app.log").into(),
            offset,
            size: 100,
        }
    }

    #[test]
    fn what_is_known_of_an_inode_is_given_to_one_file_only() {
        let mut table = ResumeTable::default();
        table.add(
            entry(42, 50),
            vec![Resumed {
                watermark: 50,
                ..Resumed::default()
            }],
            Vec::new(),
        );
        let id = entry(42, 50).id;
        assert_eq!(
            table.take(id, 0, 50).map(|file| file.outputs[0].watermark),
            Some(50)
        );
        assert!(
            table.take(id, 0, 50).is_none(),
            "the inode was used again by another file"
        );
    }

    #[test]
    fn a_file_that_was_made_at_another_time_is_another_file() {
        let mut table = ResumeTable::default();
        let mut known = entry(42, 50);
        known.id.born = 7;
        table.add(known.clone(), vec![Resumed::default()], Vec::new());
        let born_at = |born| FileId { born, ..known.id };
        assert!(table.take(born_at(8), 0, 50).is_none());
        // Of some filesystems nobody knows it.
        for born in [7, 0] {
            assert!(table.clone().take(born_at(born), 0, 50).is_some());
        }
    }

    #[test]
    fn a_file_that_is_read_from_elsewhere_is_another_file() {
        let mut table = ResumeTable::default();
        table.add(entry(42, 50), vec![Resumed::default()], Vec::new());
        assert!(table.take(entry(42, 50).id, 0, 0).is_none());
        table.add(entry(43, 50), vec![Resumed::default()], Vec::new());
        table.forget(entry(43, 50).id, 0);
        assert!(table.take(entry(43, 50).id, 0, 50).is_none());
    }
}
