//! Open files of a follower that has ended, for one that takes its place in the same process.
//!
//! Takes descriptors, gives them to the resume entries of files that nothing leads to any more: such a file is
//! there for whoever holds it open, and for nobody else. Files that have a name are found by it.

use std::collections::HashMap;
use std::fs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Follower, Resume};
use crate::file::File;
use crate::identity::{Inode, born};

/// Open files by inode, shared by the followers that may go on with them; closed with the last of these.
#[derive(Clone, Debug, Default)]
pub struct HandedOver(Arc<Mutex<HashMap<Inode, fs::File>>>);

/// A deleted file that was read to its end.
pub(super) struct Unsettled {
    inode: Inode,
    handle: fs::File,
    bytes: u64,
}

impl HandedOver {
    /// Adds those of another follower.
    pub fn extend(&self, other: &Self) {
        let others = std::mem::take(&mut *other.lock());
        self.lock().extend(others);
    }

    fn take(&self, inode: Inode) -> Option<fs::File> {
        self.lock().remove(&inode)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Inode, fs::File>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Follower {
    /// Ends, and gives what it held open.
    #[must_use]
    pub fn into_open_files(mut self) -> HandedOver {
        let mut handles = HashMap::new();
        for file in self.files.iter_mut().flatten() {
            if let Some(handle) = file.give_handle() {
                handles.insert(file.inode, handle);
            }
        }
        let unsettled = self.unsettled.drain();
        handles.extend(unsettled.map(|(_, file)| (file.inode, file.handle)));
        HandedOver(Arc::new(Mutex::new(handles)))
    }

    /// A deleted file has ended: what was read of it may have to be read again, until it is settled. Files
    /// that are not read to their end come first.
    pub(super) fn keep_unsettled(&mut self, file: &mut File) {
        let held = self.held_bytes() + self.unsettled_bytes() + file.size;
        if held <= self.config.held_bytes_max
            && self.unsettled.len() < self.config.open_files_max
            && let Some(handle) = file.give_handle()
        {
            let unsettled = Unsettled {
                inode: file.inode,
                handle,
                bytes: file.size,
            };
            self.unsettled.insert(file.source, unsettled);
        }
    }

    /// Bytes on disk that deleted files keep there which are read and not settled.
    pub(super) fn unsettled_bytes(&self) -> u64 {
        self.unsettled.values().map(|file| file.bytes).sum()
    }

    /// Goes on with a file that has no name, if it was handed over open.
    pub(super) fn resume_handed_over(&mut self, entry: &Resume) -> bool {
        let inode = Inode::from(entry.id);
        if self.by_inode.contains_key(&inode) {
            return false;
        }
        let Some(handle) = self.config.handed_over.take(inode) else {
            return false;
        };
        let born = handle.metadata().map_or(0, |meta| born(&meta));
        if born != entry.id.born && born != 0 && entry.id.born != 0 {
            return false;
        }
        let source = self.new_source();
        let mut file = File::new(inode, source, entry.generation, Arc::clone(&entry.path));
        file.born = born;
        self.set_origin(&mut file);
        file.go_on(entry.id, entry.generation, entry.offset, entry.size);
        file.replace_handle(handle);
        file.gone = true;
        let slot = self.new_slot();
        self.by_inode.insert(inode, slot);
        self.by_source.insert(source, slot);
        self.files[slot as usize] = Some(Box::new(file));
        self.open_files += 1;
        self.hold_deleted(slot);
        self.join_lineage(slot);
        self.mark_ready(slot);
        true
    }
}
