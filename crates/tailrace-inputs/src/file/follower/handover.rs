//! Open files of a follower that has ended, for one that takes its place in the same process.
//!
//! Takes descriptors, gives them to the resume entries of files that nothing leads to any more: such a file is
//! there for whoever holds it open, and for nobody else. Files that have a name are found by it, and may lose it before
//! they are opened: they begin with these descriptors, too.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::Follower;
use crate::event::SourceId;
use crate::file::handed_over::{HandedOver, Handle, Names};
use crate::file::reread::Reread;
use crate::file::roots::Opened;
use crate::file::tracked::{File, is_absent};
use crate::identity::{
    FINGERPRINT_BYTES_MAX, FileId, FingerprintKey, Inode, TAIL_BYTES_MAX, read_full_at,
};
use crate::meta::Meta;
use crate::resume::Resume;

/// A file that was read to its end, and was deleted, or renamed and may be deleted later.
pub(super) struct Unacked {
    id: FileId,
    handle: fs::File,
    /// What it keeps on the disk: nothing while it has a name.
    bytes: u64,
}

impl Unacked {
    /// A handle of its own to read it again; `None` if it is not what was read, or cannot be read.
    pub(super) fn reread(&self, offset: u64, key: FingerprintKey) -> Option<Reread> {
        // What is compared below is then what the handle compares each read with.
        let reread = Reread::new(self.handle.try_clone().ok()?, offset).ok()?;
        let mut head = [0; FINGERPRINT_BYTES_MAX];
        let bytes = read_full_at(&self.handle, &mut head, 0).ok()?;
        let read_to = self.id.tail.offset;
        let mut tail = [0; TAIL_BYTES_MAX];
        let tail = &mut tail[..self.id.tail.bytes()];
        let got = read_full_at(&self.handle, tail, read_to - tail.len() as u64).ok()?;
        let is_same = key.matches(&head[..bytes], self.id.fingerprint)
            && got == tail.len()
            && key.tail(tail, read_to) == self.id.tail;
        is_same.then_some(reread)
    }
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
            // One that goes on since was given above, with what is known of it now.
            handles.entry(unacked.id.into()).or_insert(handle);
        }
        HandedOver::new(handles)
    }

    /// The source of a file that was deleted or renamed has ended: what was read of it may have to be read again, until
    /// it is acked, when no name leads to it any more. Deleted files that are not read to their end come first, and those
    /// that have a name last.
    pub(super) fn keep_unacked(&mut self, slot: u32) {
        self.held.retain(|&held| held != slot);
        let Some(file) = &self.files[slot as usize] else {
            return;
        };
        let bytes = if file.is_deleted() { file.size } else { 0 };
        let held = self.held_bytes() + self.unacked_bytes() + bytes;
        if bytes > 0 && held > self.config.held_bytes_max {
            return;
        }
        // What has a name can be opened again, mostly: it takes none of the descriptors that others need. Its own is free soon.
        let others = match file.is_deleted() {
            true => 0,
            false => self.open_files.saturating_sub(1),
        };
        if self.unacked.len() + others >= self.config.open_files_max
            && !(file.is_deleted() && let_named_go(&mut self.unacked))
        {
            return;
        }
        if let Some(handle) = file.duplicate() {
            let (source, id) = (file.source, file.id());
            let unacked = Unacked { id, handle, bytes };
            self.unacked.insert(source, unacked);
        }
    }

    /// A file has lost its last name: what is kept of it takes space from now on.
    pub(super) fn unacked_lost_name(&mut self, slot: u32) {
        let Some(file) = &self.files[slot as usize] else {
            return;
        };
        let kept = self.unacked.values_mut();
        for kept in kept.filter(|kept| Inode::from(kept.id) == file.inode) {
            kept.bytes = file.size;
        }
    }

    /// Deleted files hold too much: what of it is read is let go.
    pub(super) fn let_unacked_go(&mut self) {
        self.unacked.retain(|_, file| file.bytes == 0);
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

    /// Opens a new file by the handle that it was handed over with: the name by which it was found may be gone before its
    /// turn. The roots may be others than those of the follower that opened it.
    pub(super) fn open_handed_over(&mut self, file: &mut File, path: &Path) {
        let is_unseen = file.closed().is_some_and(|closed| closed.is_written());
        if is_unseen || self.open_files >= self.config.open_files_max {
            return;
        }
        let handed_over = &self.config.handed_over;
        let Some(handle) = handed_over.take(file.inode, file.created_at) else {
            return;
        };
        let is_there = match self.roots.open(path) {
            Ok(Opened::Beneath(_)) => true,
            Ok(Opened::Outside(_)) => false,
            Err(error) => is_absent(&error),
        };
        if is_there {
            file.replace_handle(handle);
            self.open_files += 1;
        }
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

/// Lets one go that has a name. False if there is none.
fn let_named_go(unacked: &mut HashMap<SourceId, Unacked>) -> bool {
    let named = unacked.iter().find(|(_, file)| file.bytes == 0);
    let named = named.map(|(source, _)| *source);
    named.is_some_and(|source| unacked.remove(&source).is_some())
}

/// When an open file was made; 0 where the filesystem does not know it.
fn created_at_of(file: &fs::File) -> u64 {
    Meta::of_file(file).map_or(0, |meta| meta.created_at)
}
