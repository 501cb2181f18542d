//! Open files of a follower that has ended, for one that takes its place in the same process.
//!
//! Takes descriptors, gives them to the resume entries of files that nothing leads to any more: such a file is
//! there for whoever holds it open, and for nobody else. Files that have a name are found by it.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;

use super::Follower;
use crate::file::handed_over::{HandedOver, Handle, Names};
use crate::file::tracked::File;
use crate::identity::Inode;
use crate::meta::Meta;
use crate::resume::Resume;

/// A deleted file that was read to its end.
pub(super) struct Unacked {
    inode: Inode,
    handle: fs::File,
    bytes: u64,
}

impl Follower {
    /// Ends, and gives what it held open.
    #[must_use]
    pub fn into_open_files(mut self) -> HandedOver {
        let mut handles = HashMap::new();
        for file in self.files.iter_mut().flatten() {
            let is_unreported =
                file.is_deleted() && !file.is_reported && !file.listed && file.offset == 0;
            let unreported = is_unreported.then(|| Names::of(file));
            if let Some(handle) = file.give_handle() {
                let handle = Handle {
                    file: handle,
                    unreported,
                };
                handles.insert(file.inode, handle);
            }
        }
        for (_, unacked) in self.unacked.drain() {
            let handle = Handle {
                file: unacked.handle,
                unreported: None,
            };
            handles.insert(unacked.inode, handle);
        }
        HandedOver::new(handles)
    }

    /// A deleted file has ended: what was read of it may have to be read again, until it is acked. Files
    /// that are not read to their end come first.
    pub(super) fn keep_unacked(&mut self, file: &mut File) {
        let held = self.held_bytes() + self.unacked_bytes() + file.size;
        if held <= self.config.held_bytes_max
            && self.unacked.len() < self.config.open_files_max
            && let Some(handle) = file.give_handle()
        {
            let unacked = Unacked {
                inode: file.inode,
                handle,
                bytes: file.size,
            };
            self.unacked.insert(file.source, unacked);
        }
    }

    /// Bytes on disk that deleted files keep there which are read and not acked.
    pub(super) fn unacked_bytes(&self) -> u64 {
        self.unacked.values().map(|file| file.bytes).sum()
    }

    /// Reads the deleted files that were handed over open and never reported.
    pub(super) fn take_unreported(&mut self) {
        let handed_over = self.config.handed_over.clone();
        let taken =
            handed_over.take_unreported(|origin| self.discovery.matches(&self.origin_of(origin)));
        for (inode, handle, names) in taken {
            if self.by_inode.contains_key(&inode) {
                continue;
            }
            let source = self.new_source();
            let mut file = File::new(inode, source, self.next_generation(inode), names.path);
            file.origin = names.origin;
            file.created_at = created_at_of(&handle);
            file.size = Meta::of_file(&handle).map_or(0, |meta| meta.bytes);
            self.set_origin(&mut file);
            file.replace_handle(handle);
            self.admit_deleted(inode, file);
        }
    }

    /// Goes on with a file that has no name, if it was handed over open.
    pub(super) fn resume_handed_over(&mut self, entry: &Resume) -> bool {
        let inode = Inode::from(entry.id);
        if self.by_inode.contains_key(&inode) {
            return false;
        }
        let Some(handle) = self.config.handed_over.take(inode, entry.id.created_at) else {
            return false;
        };
        let source = self.new_source();
        let mut file = File::new(inode, source, entry.generation, Arc::clone(&entry.path));
        file.created_at = created_at_of(&handle);
        file.origin = Arc::clone(entry.origin());
        self.set_origin(&mut file);
        file.go_on(entry.id, entry.generation, entry.offset, entry.size);
        file.flushed = self.was_given_away(entry);
        file.replace_handle(handle);
        self.admit_deleted(inode, file);
        true
    }

    fn admit_deleted(&mut self, inode: Inode, mut file: File) {
        let source = file.source;
        file.is_gone();
        let slot = self.new_slot();
        self.by_inode.insert(inode, slot);
        self.by_source.insert(source, slot);
        self.files[slot as usize] = Some(Box::new(file));
        self.open_files += 1;
        self.hold_deleted(slot);
        self.join_rotation_chain(slot);
        self.mark_ready(slot);
    }
}

/// When an open file was made; 0 where the filesystem does not know it.
fn created_at_of(file: &fs::File) -> u64 {
    Meta::of_file(file).map_or(0, |meta| meta.created_at)
}
