//! What the checkpoint learns from the tracker: the marks that changed, and which files may be forgotten. Writes nothing.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use tailrace_inputs::FileId;
use tailrace_inputs::checkpoint::{Counts, Rest};

use super::{Opening, Slot, State, TrackedSource, Tracker};

/// The state of one source for one output, as the checkpoint keeps it.
#[derive(Debug, Clone)]
pub(crate) struct CheckpointEntry {
    /// Identity of the file.
    pub id: FileId,
    /// Generation of the file.
    pub generation: u32,
    /// Path at opening.
    pub path: Arc<Path>,
    /// The path of its input that the file had, if no glob names `path`.
    pub origin: Option<Arc<Path>>,
    /// Where the file itself is, if the path is a link.
    pub target: Option<Arc<Path>>,
    /// Index of the output.
    pub output: usize,
    /// Lowest byte not acknowledged for this output.
    pub watermark: u64,
    /// Last known size of the file, in bytes.
    pub size: u64,
    /// Outcomes of the records below the watermark, over all runs.
    pub counts: Counts,
    /// Records that began in the file before and end above a watermark.
    pub rests: Vec<Rest>,
}

/// What the checkpoint must still learn of files that are tracked no more: their last marks, and
/// which files are gone and may be forgotten.
#[derive(Debug, Default)]
pub(super) struct Departed {
    marks: Vec<CheckpointEntry>,
    gone: Vec<(FileId, u32)>,
    /// Whether files that are gone were written to since they were looked at.
    unseen: Vec<(FileId, u32, bool)>,
}

impl Departed {
    /// A file is gone. Marks of it that were not taken yet would bring it back.
    pub(super) fn forget(&mut self, id: FileId, generation: u32) {
        let key = (id.device, id.inode, generation);
        let key_of = |mark: &CheckpointEntry| (mark.id.device, mark.id.inode, mark.generation);
        self.marks.retain(|mark| key_of(mark) != key);
        self.gone.push((id, generation));
    }
}

/// Device, inode and generation.
pub(super) type FileKey = (u64, u64, u32);

/// What the checkpoint must still learn of files that are tracked.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// Sources whose marks may be others than at the last look.
    pub(super) changed: BTreeSet<Slot>,
    /// The sources of each file: two, where one came back before its earlier bytes were acknowledged.
    pub(super) slots: HashMap<FileKey, Vec<Slot>>,
}

impl Tracker {
    /// Forgets a finished source that every output has acknowledged, and gives its end offset; `None`
    /// while it must be kept.
    pub(crate) fn take_done(&self, slot: Slot) -> Option<u64> {
        let State {
            sources,
            files,
            departed,
        } = &mut *self.lock();
        let source = sources.get(&slot)?;
        let end = source.read_to;
        if !source.finished || source.lowest() < end {
            return None;
        }
        match source.opening.id {
            Some(id) if source.gone => departed.forget(id, source.opening.generation),
            // It was renamed out of the globs and may yet come back: the checkpoint keeps it.
            _ => source.add_marks(&mut departed.marks),
        }
        files.drop_slot(source.key(), slot);
        sources.remove(&slot);
        Some(end)
    }

    /// A file of the checkpoint is gone: it may be forgotten, once what was read of it is acknowledged.
    pub(crate) fn gone(&self, id: FileId, generation: u32) {
        let State {
            sources, departed, ..
        } = &mut *self.lock();
        let mut tracked = false;
        for source in sources.values_mut() {
            if source.key() == Some((id.device, id.inode, generation)) {
                source.gone = true;
                tracked = true;
            }
        }
        if !tracked {
            departed.forget(id, generation);
        }
    }

    /// What the checkpoint must learn, since the last call: last marks of files that are tracked no more, files to forget, and
    /// the marks of files that may have others, of each such file those of all its sources. All of one moment: a file that is
    /// forgotten and comes back has its new mark in the same list or a later one.
    pub(crate) fn take_changes(
        &self,
    ) -> (
        Vec<CheckpointEntry>,
        Vec<(FileId, u32)>,
        Vec<CheckpointEntry>,
    ) {
        let mut state = self.lock();
        let marks = state.take_marks(self.outputs);
        let Departed {
            marks: last, gone, ..
        } = &mut state.departed;
        (std::mem::take(last), std::mem::take(gone), marks)
    }

    /// A file of the checkpoint is gone and was written to since it was looked at, or that was withdrawn.
    pub(crate) fn unseen(&self, id: FileId, generation: u32, is_unseen: bool) {
        let departed = &mut self.lock().departed;
        departed.unseen.push((id, generation, is_unseen));
    }

    /// What was said by [`Self::unseen`] since the last call.
    pub(crate) fn take_unseen(&self) -> Vec<(FileId, u32, bool)> {
        std::mem::take(&mut self.lock().departed.unseen)
    }

    /// Forgets a source that was opened and had no byte; gives how it was opened.
    pub(crate) fn forget(&self, slot: Slot) -> Option<Opening> {
        let State { sources, files, .. } = &mut *self.lock();
        let source = sources.remove(&slot)?;
        files.drop_slot(source.key(), slot);
        Some(source.opening)
    }
}

impl State {
    fn take_marks(&mut self, outputs: usize) -> Vec<CheckpointEntry> {
        let State { sources, files, .. } = self;
        let changed = std::mem::take(&mut files.changed);
        let changed = changed.iter().filter_map(|slot| sources.get(slot)?.key());
        let keys: BTreeSet<FileKey> = changed.collect();
        let mut marks = Vec::with_capacity(keys.len() * outputs);
        let slots = keys.iter().filter_map(|key| files.slots.get(key));
        for source in slots.flatten().filter_map(|slot| sources.get(slot)) {
            source.add_marks(&mut marks);
        }
        marks
    }
}

impl Files {
    pub(super) fn drop_slot(&mut self, key: Option<FileKey>, slot: Slot) {
        self.changed.remove(&slot);
        let Some(key) = key else { return };
        if let Some(slots) = self.slots.get_mut(&key) {
            slots.retain(|known| *known != slot);
            if slots.is_empty() {
                self.slots.remove(&key);
            }
        }
    }
}

impl TrackedSource {
    pub(super) fn key(&self) -> Option<FileKey> {
        let id = self.opening.id?;
        Some((id.device, id.inode, self.opening.generation))
    }

    pub(super) fn add_marks(&self, marks: &mut Vec<CheckpointEntry>) {
        let Some(id) = self.opening.id else { return };
        let rests = self.open_rests();
        for (output, view) in self.views.iter().enumerate() {
            let mark = &view.mark;
            marks.push(CheckpointEntry {
                id,
                generation: self.opening.generation,
                path: self.opening.path.clone(),
                origin: self.opening.origin.clone(),
                target: self.target.clone(),
                output,
                watermark: mark.watermark,
                size: self.size,
                counts: mark.counts,
                rests: rests.clone(),
            });
        }
    }
}
