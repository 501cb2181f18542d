//! What a checkpoint holds: pipelines, their files, and how far each output is in them.
//!
//! Lives in memory and knows nothing of the disk. It never moves a watermark back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::gone::GoneFiles;
use super::watermarks::{Counts, Watermark, Watermarks};
use crate::identity::{FileId, FileKey, Fingerprint, FingerprintKey, Tail};
use crate::resume::{Gone, Resume};

pub(super) const NAME: &str = "checkpoint.json";
pub(super) const PREVIOUS: &str = "checkpoint.json.prev";
pub(super) const JOURNAL: &str = "checkpoint.journal";
pub(super) const JOURNAL_PREVIOUS: &str = "checkpoint.journal.prev";

/// The state of all pipelines of one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    pub(super) key: FingerprintKey,
    pub(super) pipelines: BTreeMap<String, PipelineState>,
}

/// The state of one pipeline: its files and what became of files that are gone.
#[derive(Clone, Debug, Default)]
pub struct PipelineState {
    /// Not in the nodes of the map, which are half empty after many insertions in order.
    pub(super) files: BTreeMap<FileKey, Arc<FileState>>,
    /// Counts of files that are no longer listed, by output.
    pub(super) retired: BTreeMap<String, Counts>,
    /// Files that were set or removed since the state was last written.
    pub(super) changed: BTreeSet<FileKey>,
    /// What was read of files that were removed of late.
    pub(super) gone: GoneFiles,
    /// The outputs that have run, whether they are configured now or not.
    pub(super) outputs: BTreeSet<String>,
    /// Some of them are not written yet.
    pub(super) outputs_changed: bool,
}

impl PartialEq for PipelineState {
    fn eq(&self, other: &Self) -> bool {
        self.files == other.files && self.retired == other.retired && self.outputs == other.outputs
    }
}

impl Eq for PipelineState {}

/// The end of a record of several parts that began in the file before this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// The caller's number of the container's stream.
    pub stream: u8,
    /// Where in this file the record ends; [`u64::MAX`] as long as that is not known.
    pub end: u64,
    /// All of the record is acked, though no watermark of this file may be beyond it.
    pub is_acked: bool,
}

/// A file as the checkpoint knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileState {
    /// When it was made: [`FileId::created_at`].
    pub created_at: u64,
    /// Of its first bytes; replaced as it grows.
    pub fingerprint: Fingerprint,
    /// Of the last bytes read of it; replaced as it is read.
    pub tail: Tail,
    /// When it was last changed, as it was last looked at: [`FileId::changed`].
    pub changed: u64,
    /// Its last known name.
    pub path: Arc<Path>,
    /// The path of its input that it had, if no glob names `path`: by that its input is known again.
    pub origin: Option<Arc<Path>>,
    /// Where the file itself was last, if `path` is a link.
    pub target: Option<Arc<Path>>,
    /// Its last known size.
    pub size: u64,
    /// It was gone, and had been written to since it was looked at; not yet counted as lost.
    pub is_unseen: bool,
    pub(super) outputs: Watermarks,
    /// Records that begin in the file before and end above a watermark, one for each stream at most.
    pub(super) rests: Box<[Rest]>,
}

/// Why a watermark was not taken: it lies below the one that is known, which stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("watermark {offset} is below {known}, which is already acknowledged")]
pub struct Backwards {
    /// The refused offset.
    pub offset: u64,
    /// The offset that is kept.
    pub known: u64,
}

impl Default for Checkpoint {
    fn default() -> Self {
        Self::new()
    }
}

impl Checkpoint {
    /// An empty state with a new random fingerprint key.
    #[must_use]
    pub fn new() -> Self {
        Self {
            key: FingerprintKey::random(),
            pipelines: BTreeMap::new(),
        }
    }

    /// The key of all fingerprints in this state.
    #[must_use]
    pub fn fingerprint_key(&self) -> FingerprintKey {
        self.key
    }

    /// The state of one pipeline; `None` if it never ran.
    #[must_use]
    pub fn pipeline(&self, name: &str) -> Option<&PipelineState> {
        self.pipelines.get(name)
    }

    /// The state of one pipeline, to be changed; made if it never ran.
    pub fn pipeline_mut(&mut self, name: &str) -> &mut PipelineState {
        if !self.pipelines.contains_key(name) {
            self.merge(name, PipelineState::default());
        }
        self.pipelines.entry(name.to_owned()).or_default()
    }

    /// Puts the state of one pipeline in, in place of what was known of it. A pipeline that has run
    /// is put in even if it has no file, so that its next start is not a first one.
    pub fn merge(&mut self, pipeline: &str, state: PipelineState) {
        self.pipelines.insert(pipeline.to_owned(), state);
    }
}

impl PipelineState {
    /// Notes which outputs run from now on. One that never ran begins where the others are: in each file at the lowest
    /// of their watermarks. So a file without a watermark of an output of these appeared while the output was not
    /// configured, and the output has all of it to read.
    pub fn begin<S: AsRef<str>>(&mut self, outputs: &[S]) {
        let outputs = || outputs.iter().map(AsRef::as_ref);
        let new: Vec<&str> = outputs()
            .filter(|name| !self.outputs.contains(*name))
            .collect();
        if new.is_empty() {
            return;
        }
        let mut earlier = BTreeSet::new();
        for (key, file) in &mut self.files {
            if self.outputs.is_empty() {
                // An earlier build wrote no outputs. Those that were removed since have run, too.
                earlier.extend(file.outputs().map(|(name, _)| name.to_owned()));
            }
            let marks = outputs().filter_map(|name| file.output(name));
            let Some(offset) = marks.map(|at| at.offset).min() else {
                continue;
            };
            let counts = Counts::default();
            for name in &new {
                if file.output(name).is_none() {
                    let file = Arc::make_mut(file);
                    file.outputs.set(name, Watermark { offset, counts });
                    self.changed.insert(*key);
                }
            }
        }
        self.outputs.extend(earlier);
        self.outputs.extend(new.into_iter().map(str::to_owned));
        self.outputs_changed = true;
    }

    /// Whether anything is to be written.
    pub(super) fn is_changed(&self) -> bool {
        self.outputs_changed || !self.changed.is_empty()
    }

    /// All of it is on the disk.
    pub(super) fn written(&mut self) {
        self.changed.clear();
        self.outputs_changed = false;
        self.gone.written();
    }

    /// Notes how far an output has acked a file, with the identity, name and size it has now.
    ///
    /// # Errors
    /// The offset is below the known one. Nothing is changed then.
    pub fn set(
        &mut self,
        output: &str,
        id: FileId,
        generation: u32,
        path: impl AsRef<Path> + Into<Arc<Path>>,
        size: u64,
        watermark: Watermark,
    ) -> Result<(), Backwards> {
        let key = id.key(generation);
        let known = self.files.get(&key).and_then(|file| file.output(output));
        if let Some(known) = known
            && watermark.offset < known.offset
        {
            return Err(Backwards {
                offset: watermark.offset,
                known: known.offset,
            });
        }
        let Some(file) = self.files.get_mut(&key) else {
            self.changed.insert(key);
            let file = FileState::new(id, path.into(), size, (output, watermark));
            self.files.insert(key, Arc::new(file));
            return Ok(());
        };
        let is_known = file.id(key) == id && file.size == size && *file.path == *path.as_ref();
        if is_known && known == Some(watermark) {
            return Ok(());
        }
        self.changed.insert(key);
        let file = Arc::make_mut(file);
        file.created_at = id.created_at;
        file.fingerprint = id.fingerprint;
        file.tail = id.tail;
        file.changed = id.changed;
        file.size = size;
        if *file.path != *path.as_ref() {
            file.path = path.into();
        }
        if known != Some(watermark) {
            file.outputs.set(output, watermark);
        }
        Ok(())
    }

    /// Notes which records end in a file, above a watermark, that began in the one before it.
    pub fn set_rests(&mut self, id: FileId, generation: u32, rests: &[Rest]) {
        let key = id.key(generation);
        if let Some(file) = self.files.get_mut(&key)
            && *file.rests != *rests
        {
            Arc::make_mut(file).rests = rests.into();
            self.changed.insert(key);
        }
    }

    /// Notes where a file itself is, if its path is a link.
    pub fn set_target(&mut self, id: FileId, generation: u32, target: Option<&Arc<Path>>) {
        let key = id.key(generation);
        if let Some(file) = self.files.get_mut(&key)
            && file.target.as_ref() != target
        {
            Arc::make_mut(file).target = target.cloned();
            self.changed.insert(key);
        }
    }

    /// Notes which path of its input a file had, if no glob names the one that it has.
    pub fn set_origin(&mut self, id: FileId, generation: u32, origin: Option<&Arc<Path>>) {
        let key = id.key(generation);
        if let Some(file) = self.files.get_mut(&key)
            && file.origin.as_ref() != origin
        {
            Arc::make_mut(file).origin = origin.cloned();
            self.changed.insert(key);
        }
    }

    /// Notes whether a file that is gone was written to since it was looked at.
    pub fn set_unseen(&mut self, id: FileId, generation: u32, is_unseen: bool) {
        let key = id.key(generation);
        if let Some(file) = self.files.get_mut(&key)
            && file.is_unseen != is_unseen
        {
            Arc::make_mut(file).is_unseen = is_unseen;
            self.changed.insert(key);
        }
    }

    /// The watermark of an output in a file.
    #[must_use]
    pub fn get(&self, output: &str, id: FileId, generation: u32) -> Option<Watermark> {
        self.file(id, generation)?.output(output)
    }

    /// What is known of a file.
    #[must_use]
    pub fn file(&self, id: FileId, generation: u32) -> Option<&FileState> {
        self.files.get(&id.key(generation)).map(|file| &**file)
    }

    /// Drops a file that is gone and acked, or lost. Its counts stay in the totals.
    pub fn remove(&mut self, id: FileId, generation: u32) {
        let key = id.key(generation);
        let file = self.files.remove(&key);
        // It may have come and gone since the state was last written.
        if self.gone.push(id) || file.is_some() {
            self.changed.insert(key);
        }
        let Some(file) = file else {
            return;
        };
        for (output, watermark) in file.outputs.iter() {
            let total = self.retired.entry(output.to_owned()).or_default();
            *total = total.plus(watermark.counts);
        }
    }

    /// The records of an output over all files, those that are gone too.
    #[must_use]
    pub fn total(&self, output: &str) -> Counts {
        self.files
            .values()
            .filter_map(|file| file.output(output))
            .fold(
                self.retired.get(output).copied().unwrap_or_default(),
                |sum, watermark| sum.plus(watermark.counts),
            )
    }

    /// Every file with its identity and generation.
    pub fn files(&self) -> impl Iterator<Item = (FileId, u32, &Arc<FileState>)> {
        self.files
            .iter()
            .map(|(key, file)| (file.id(*key), key.generation, file))
    }

    /// What was read of files that are gone, as far back as it is known.
    #[must_use]
    pub fn gone(&self) -> Gone {
        self.gone.known()
    }

    /// Where to read on so that each of `outputs` gets all it has not acked: per file, the lowest
    /// watermark. An output without a watermark in a file that others know has all of it to read.
    #[must_use]
    pub fn resume(&self, outputs: &[&str]) -> Vec<Resume> {
        self.files()
            .filter_map(|(id, generation, file)| file.resume(id, generation, outputs))
            .collect()
    }
}

impl FileState {
    /// The records that end in the file, above a watermark, and began in the one before it.
    #[must_use]
    pub fn rests(&self) -> &[Rest] {
        &self.rests
    }

    pub(super) fn new(id: FileId, path: Arc<Path>, size: u64, mark: (&str, Watermark)) -> Self {
        Self {
            created_at: id.created_at,
            fingerprint: id.fingerprint,
            tail: id.tail,
            changed: id.changed,
            path,
            origin: None,
            target: None,
            size,
            is_unseen: false,
            outputs: std::iter::once(mark).collect(),
            rests: Box::default(),
        }
    }

    pub(super) fn id(&self, key: FileKey) -> FileId {
        FileId {
            device: key.device,
            inode: key.inode,
            created_at: self.created_at,
            fingerprint: self.fingerprint,
            tail: self.tail,
            changed: self.changed,
        }
    }

    /// The watermark of each output.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, Watermark)> {
        self.outputs.iter()
    }

    /// Where to read on so that each of `outputs` gets all it has not acked; `None` if none of them is known.
    #[must_use]
    pub fn resume<S: AsRef<str>>(
        &self,
        id: FileId,
        generation: u32,
        outputs: &[S],
    ) -> Option<Resume> {
        let marks = outputs.iter().map(|name| self.output(name.as_ref()));
        let known: Vec<_> = marks.flatten().map(|at| at.offset).collect();
        let offset = match known.iter().min()? {
            _ if known.len() < outputs.len() => 0,
            lowest => *lowest,
        };
        Some(Resume {
            id,
            generation,
            path: Arc::clone(&self.path),
            origin: self.origin.clone(),
            target: self.target.clone(),
            offset,
            owed_from: offset,
            size: self.size,
            is_unseen: self.is_unseen,
        })
    }

    /// The watermark of one output.
    #[must_use]
    pub fn output(&self, name: &str) -> Option<Watermark> {
        self.outputs.get(name)
    }
}
