//! Where an earlier run left a pipeline: the checkpoint's entries by file, for the reader, which
//! reads each file from the lowest watermark of the outputs.

use std::collections::BTreeMap;
use std::sync::Arc;

use tailrace_inputs::checkpoint::{FileState, PipelineState, Rest};
use tailrace_inputs::{FileId, Gone, Resume};

use crate::watermark::Resumed;

/// What the checkpoint knows of each file of one pipeline. Shares its memory with the checkpoint: of most files nothing
/// is ever asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResumeTable {
    files: BTreeMap<Key, Arc<FileState>>,
    /// The names of the outputs.
    outputs: Vec<String>,
    /// Those of them that are required; all, if none is.
    required: Vec<String>,
    /// What was read of files that are gone.
    pub(crate) gone: Gone,
}

/// Device, inode and generation.
type Key = (u64, u64, u32);

/// What the checkpoint knows of one file generation.
#[derive(Debug, Clone)]
pub(crate) struct ResumedFile {
    /// Where each output stood.
    pub(crate) outputs: Vec<Resumed>,
    /// Bytes below this may have been read by the earlier run.
    pub(crate) read_to: u64,
    /// Records that began in the file before and were not read to their end, or not acknowledged.
    pub(crate) rests: Vec<Rest>,
}

impl ResumeTable {
    /// The files of a checkpoint of which any of these outputs is known. `required` are those of them that are; if none
    /// is, what is lost to one of them is lost.
    pub(crate) fn new(
        state: &PipelineState,
        outputs: Vec<String>,
        mut required: Vec<String>,
    ) -> Self {
        if required.is_empty() {
            required.clone_from(&outputs);
        }
        let is_known =
            |file: &FileState| outputs.iter().any(|output| file.output(output).is_some());
        let files = state.files().filter(|(_, _, file)| is_known(file));
        let files = files.map(|(id, generation, file)| (key(id, generation), Arc::clone(file)));
        Self {
            files: files.collect(),
            outputs,
            required,
            gone: state.gone(),
        }
    }

    /// What is known of a file that is read from `offset`; given once, since an inode may be used
    /// again by another file later. It may be so already, by a file of another input.
    pub(crate) fn take(&mut self, id: FileId, generation: u32, offset: u64) -> Option<ResumedFile> {
        let key = key(id, generation);
        let created_at = self.files.get(&key)?.created_at;
        if created_at != id.created_at && created_at != 0 && id.created_at != 0 {
            return None;
        }
        let file = self.files.remove(&key)?;
        let resume = file.resume(id, generation, &self.outputs)?;
        let resumed = |output: &String| match file.output(output) {
            Some(at) => Resumed {
                watermark: at.offset,
                counts: at.counts,
            },
            // The file appeared while the output was not configured.
            None => Resumed::default(),
        };
        let is_whole = |output: &String| file.output(output).is_none();
        // Of a disk queue, what the other outputs have acknowledged may be gone.
        let is_same = resume.offset == offset || self.outputs.iter().any(is_whole);
        is_same.then(|| ResumedFile {
            outputs: self.outputs.iter().map(resumed).collect(),
            read_to: file.size,
            rests: file.rests().to_vec(),
        })
    }

    /// The file is gone.
    pub(crate) fn forget(&mut self, id: FileId, generation: u32) {
        self.files.remove(&key(id, generation));
    }

    /// The entries for the followers.
    pub(crate) fn entries(&self) -> Vec<Resume> {
        let mut entries = Vec::with_capacity(self.files.len());
        entries.extend(self.files.iter().filter_map(|(key, file)| {
            let &(device, inode, generation) = key;
            let id = FileId {
                device,
                inode,
                created_at: file.created_at,
                fingerprint: file.fingerprint,
                tail: file.tail,
                changed: file.changed,
            };
            let entry = file.resume(id, generation, &self.outputs)?;
            let required = file.resume(id, generation, &self.required);
            let owed_from = required.map_or(entry.offset, |required| required.offset);
            Some(Resume { owed_from, ..entry })
        }));
        entries
    }
}

fn key(id: FileId, generation: u32) -> Key {
    (id.device, id.inode, generation)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::path::Path;
    use tailrace_inputs::Fingerprint;
    use tailrace_inputs::checkpoint::Watermark;

    fn id(inode: u64, created_at: u64) -> FileId {
        FileId {
            device: 1,
            inode,
            created_at,
            fingerprint: Fingerprint { bytes: 3, hash: 1 },
            ..FileId::NONE
        }
    }

    /// A table of one output, that has acknowledged 50 of 100 bytes of each of these files.
    fn table(files: &[FileId]) -> ResumeTable {
        let mut state = PipelineState::default();
        for file in files {
            let at = Watermark {
                offset: 50,
                counts: tailrace_inputs::checkpoint::Counts {
                    delivered: 5,
                    ..Default::default()
                },
            };
            let path = Path::new("/var/log/app.log");
            state.set("otlp", *file, 0, path, 100, at).unwrap();
        }
        let outputs = ["new", "otlp"].map(str::to_owned);
        state.begin(&outputs);
        ResumeTable::new(&state, outputs.to_vec(), Vec::new())
    }

    #[test]
    fn what_is_known_of_an_inode_is_given_to_one_file_only() {
        let mut table = table(&[id(42, 0)]);
        let known = table.take(id(42, 0), 0, 50).unwrap();
        let outputs = known.outputs.iter();
        let outputs: Vec<_> = outputs
            .map(|at| (at.watermark, at.counts.delivered))
            .collect();
        assert_eq!((outputs, known.read_to), (vec![(50, 0), (50, 5)], 100));
        assert!(
            table.take(id(42, 0), 0, 50).is_none(),
            "the inode was used again by another file"
        );
    }

    #[test]
    fn a_file_that_was_made_at_another_time_is_another_file() {
        let mut table = table(&[id(42, 7)]);
        assert!(table.take(id(42, 8), 0, 50).is_none());
        // Of some filesystems nobody knows it.
        for created_at in [7, 0] {
            assert!(table.clone().take(id(42, created_at), 0, 50).is_some());
        }
        assert!(table.take(id(42, 7), 0, 50).is_some());
    }

    #[test]
    fn a_file_that_is_read_from_elsewhere_is_another_file() {
        let mut table = table(&[id(42, 0), id(43, 0)]);
        let entries = table.entries();
        assert_eq!(entries.len(), 2);
        assert!(
            entries
                .iter()
                .all(|entry| (entry.offset, entry.size) == (50, 100))
        );
        assert!(table.take(id(42, 0), 0, 0).is_none());
        table.forget(id(43, 0), 0);
        assert!(table.take(id(43, 0), 0, 50).is_none());
    }

    #[test]
    fn an_output_that_is_added_again_reads_what_appeared_meanwhile() {
        let (mut state, counts) = (PipelineState::default(), Default::default());
        let set = |state: &mut PipelineState, output: &str, inode, offset| {
            let at = Watermark { offset, counts };
            let path = Path::new("/var/log/app.log");
            state.set(output, id(inode, 0), 0, path, 100, at).unwrap();
        };
        let both = ["a", "b"].map(str::to_owned);
        state.begin(&both);
        set(&mut state, "a", 42, 100);
        set(&mut state, "b", 42, 70);
        state.begin(&both[..1]);
        set(&mut state, "a", 43, 90);
        // One that never ran begins with the others, one that was away with what it has not.
        let outputs = ["a", "b", "new"].map(str::to_owned);
        state.begin(&outputs);
        let mut table = ResumeTable::new(&state, outputs.to_vec(), Vec::new());
        let from: Vec<u64> = table.entries().iter().map(|entry| entry.offset).collect();
        assert_eq!(from, [70, 0]);
        let mut marks = |inode, offset| {
            let known = table.take(id(inode, 0), 0, offset).unwrap().outputs;
            known.iter().map(|at| at.watermark).collect::<Vec<_>>()
        };
        assert_eq!(marks(42, 70), [100, 70, 70]);
        assert_eq!(marks(43, 0), [90, 0, 90]);
    }

    #[test]
    fn what_no_output_knows_is_not_resumed() {
        let mut state = PipelineState::default();
        let at = Watermark {
            offset: 1,
            counts: Default::default(),
        };
        state
            .set("removed", id(42, 0), 0, Path::new("/a"), 1, at)
            .unwrap();
        let table = ResumeTable::new(&state, vec!["otlp".to_owned()], Vec::new());
        assert_eq!(table.entries(), []);
    }
}
