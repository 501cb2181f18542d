//! Files that were compressed before they were read to their end.
//!
//! Takes a file that is gone, looks for a `.gz` file that holds it, and reads the rest from there under the
//! same source or resume entry. Never reads anything twice. A `.gz` file whose original nobody saw is
//! `unknown`'s affair.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use rustix::io::Errno;

use super::Follower;
use crate::chunk::ChunkBuffer;
use crate::event::{FileEvent, LossReason, ProblemKind, SourceId};
use crate::file::compressed_copy::CompressedCopy;
use crate::file::compressed_file::{self, CompressedFile};
use crate::file::gzip::{self, Original, Sketch};
use crate::file::roots::Roots;
use crate::file::tracked::File;
use crate::identity::Inode;
use crate::resume::Resume;

impl Follower {
    /// A file that is gone before it was read to its end goes on from its compressed copy. False if
    /// there is none.
    pub(super) fn continue_from_copy(&mut self, slot: u32) -> bool {
        let Some(file) = &self.files[slot as usize] else {
            return false;
        };
        if file.is_copied() {
            return false;
        }
        if file.fingerprint.bytes == 0 {
            // Nothing is known of its content: any copy that nobody knows may be its own.
            return !file.is_open() && self.read_unopened(slot);
        }
        // Of one that is closed nobody knows how it has grown; but only one compressed copy is looked into for that.
        let is_read_ahead = file.is_read_ahead;
        if file.unread() == 0
            && !is_read_ahead
            && !file.has_unseen()
            && (file.is_open() || !has_grown_copy(file, &self.roots))
        {
            return false;
        }
        let names = self.names_behind(slot);
        let mut names = std::iter::once(&*file.path).chain(names.iter().map(PathBuf::as_path));
        let copy = names
            .find_map(|name| self.find_copy(file, name))
            .filter(|copy| copy.original.size > file.offset || is_read_ahead);
        self.report_too_large();
        let Some(copy) = copy else {
            return false;
        };
        self.go_on_from(slot, copy);
        true
    }

    /// A file is read from its compressed copy from now on.
    pub(super) fn go_on_from(&mut self, slot: u32, copy: CompressedCopy) {
        self.close(slot);
        self.let_inode_go(slot);
        self.withdraw_unseen(slot);
        let Some(file) = &mut self.files[slot as usize] else {
            return;
        };
        let number = file.number;
        file.read_from(copy);
        self.own_copy(slot, number);
        self.mark_ready(slot);
    }

    /// A file is gone, and others may have its names and its inode.
    pub(super) fn let_inode_go(&mut self, slot: u32) {
        let Some(file) = &mut self.files[slot as usize] else {
            return;
        };
        let (inode, generation) = (file.inode, file.generation);
        file.is_gone();
        for name in std::mem::take(&mut file.names) {
            self.by_path.remove(&name);
        }
        if self.by_inode.get(&inode) == Some(&slot) {
            self.by_inode.remove(&inode);
        }
        if !std::mem::replace(&mut file.holds_generation, true) {
            self.generations.hold(inode, generation);
        }
    }

    /// The copy is this file's, and nobody else's; it stays open as long as there are descriptors for it.
    fn own_copy(&mut self, slot: u32, number: SourceId) {
        let held = Arc::strong_count(&self.copies_held) - 1;
        let has_room = self.open_files + held < self.config.open_files_max;
        let permit = has_room.then(|| Arc::clone(&self.copies_held));
        let Some(copy) = self.files[slot as usize]
            .as_mut()
            .and_then(|file| file.copy_mut())
        else {
            return;
        };
        self.owned.add(copy.file.id(), number, self.missed.since());
        if let Some(permit) = permit
            && let Ok(file) = copy.open(&self.roots)
        {
            copy.file.hold(file, permit);
        }
    }

    /// The same for a file that went while no agent ran. If all of it was read it is of no use, unless a record ends in
    /// it that has to be read again from the file before: `is_read_ahead`.
    pub(super) fn resume_from_copy(&mut self, entry: &Resume, is_read_ahead: bool) -> bool {
        let source = self.new_source();
        let inode = Inode::from(entry.id);
        let mut file = File::new(inode, source, entry.generation, Arc::clone(&entry.path));
        file.created_at = entry.id.created_at;
        file.origin = Arc::clone(entry.origin());
        file.go_on(entry.id, entry.generation, entry.offset, entry.size);
        file.flushed = self.was_given_away(entry);
        self.set_origin(&mut file);
        let mut copy = self.find_copy(&file, &entry.path);
        if copy.is_none()
            && let Some(target) = self.target_of(entry)
            && target.parent().is_some_and(|dir| self.roots.lead_to(dir))
        {
            copy = self.find_copy(&file, &target);
        }
        let copy = copy.filter(|t| t.original.size > entry.offset || is_read_ahead);
        self.report_too_large();
        let Some(copy) = copy else {
            return false;
        };
        file.is_read_ahead = is_read_ahead;
        self.add_copied(file, copy);
        true
    }

    /// A file that is read from its compressed copy from the beginning.
    pub(super) fn add_copied(&mut self, mut file: File, copy: CompressedCopy) -> u32 {
        let number = file.number;
        file.is_gone();
        file.holds_generation = true;
        file.read_from(copy);
        self.generations.hold(file.inode, file.generation);
        let slot = self.new_slot();
        self.by_source.insert(file.source, slot);
        self.files[slot as usize] = Some(Box::new(file));
        self.own_copy(slot, number);
        self.join_rotation_chain(slot);
        self.mark_ready(slot);
        slot
    }

    /// The compressed copy of a file that had `name`, beside that.
    fn find_copy(&self, file: &File, name: &Path) -> Option<CompressedCopy> {
        // Nothing is known of its content.
        if file.fingerprint.bytes == 0 {
            return None;
        }
        let dir = name.parent()?;
        let mut copies = compressed_file::list(dir, |path| {
            begins_alike(path, &file.origin) || begins_alike(path, name)
        });
        // The likely one first: looking into one costs its decompression. Then the oldest: of those that go
        // on alike, the file that is known is the first.
        copies.sort_by_cached_key(|copy| {
            let path = copy.path();
            let is_named = path.with_extension("") == *name || *path == *name;
            (!is_named, copy.made())
        });
        let is_free = |copy: &CompressedFile| {
            let owner = self.owned.owner(copy.id());
            owner.is_none_or(|owner| owner == file.number)
        };
        copies
            .into_iter()
            .filter(is_free)
            .find_map(|copy| self.copy_in(copy, file))
    }

    /// The copy as the file's compressed copy, if it holds it.
    fn copy_in(&self, compressed: CompressedFile, file: &File) -> Option<CompressedCopy> {
        let mut copy = CompressedCopy::of(compressed, file.listed);
        let opened = copy.open(&self.roots).ok()?;
        let key = self.config.fingerprint_key;
        copy.original = match gzip::holds(&opened, file.id(), file.offset, key) {
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                let message =
                    format!("cannot be decompressed: {error}; what nobody read of it is lost");
                let path = copy.file.path().to_owned();
                self.too_large.borrow_mut().push((path, message));
                return None;
            }
            held => held.ok()??,
        };
        (copy.original.size >= file.offset).then_some(copy)
    }

    /// Says which compressed files were not looked through to their end.
    fn report_too_large(&mut self) {
        for (path, message) in self.too_large.take() {
            self.problem(&path, message);
        }
    }

    /// The turn of a file that is read from its compressed copy.
    pub(super) fn serve_copy(
        &mut self,
        slot: u32,
        buffer: &mut ChunkBuffer,
        bytes_max: usize,
        events: &mut Vec<FileEvent>,
    ) -> io::Result<bool> {
        let waits = self.has_to_wait(slot);
        if !self.report_unread_copy(slot, events) {
            return Ok(false);
        }
        let slice_max = self.config.slice_bytes_max.max(1).min(bytes_max);
        let key = self.config.fingerprint_key;
        let Some(file) = &mut self.files[slot as usize] else {
            return Ok(false);
        };
        if file.paused || waits {
            return Ok(false);
        }
        let start = buffer.len();
        match file.read_copy(buffer.room(slice_max), key, &self.roots) {
            Ok(0) => {
                file.size = file.offset;
                if file.is_read_ahead {
                    let offset = file.offset;
                    self.report_continuation(slot, offset, events);
                }
                self.release(slot);
                if self.goes_on_later(slot) {
                    self.set_due(slot, Instant::now() + self.config.idle_close);
                    return Ok(false);
                }
                self.end(slot, LossReason::Vanished, events);
                Ok(false)
            }
            Ok(bytes) => {
                buffer.fill(bytes);
                let offset = file.offset;
                file.offset += bytes as u64;
                file.size = file.size.max(file.offset);
                self.give_chunk(slot, offset, start..start + bytes, events);
                Ok(true)
            }
            // No descriptor is free, or the like: it is tried again.
            Err(error) if is_passing(&error) => Err(error),
            Err(error) => {
                let path = self.copy_of(slot).map(|copy| copy.file.path().to_owned());
                let message = format!("cannot be decompressed: {error}; the rest is lost");
                self.problem_of(ProblemKind::Read, &path.unwrap_or_default(), message);
                let reason = LossReason::of_gzip(&error);
                self.lose_rest(slot, &error, events);
                self.end(slot, reason, events);
                Ok(false)
            }
        }
    }

    /// A file that is cut off does not say how much is missing: then that is lost which was known before. What another one
    /// states is believed as far as what is left of it can hold so much.
    fn lose_rest(&mut self, slot: u32, error: &io::Error, events: &mut Vec<FileEvent>) {
        let Some(file) = &mut self.files[slot as usize] else {
            return;
        };
        if let Some(copy) = file.copy().filter(|copy| copy.size_is_reported) {
            let bytes_max = match error.kind() {
                io::ErrorKind::UnexpectedEof => 0,
                _ => copy.bytes_max().unwrap_or(u64::MAX),
            };
            file.size = file.size.min(bytes_max).max(file.offset);
        }
        if file.unread() == 0 {
            events.push(FileEvent::Lost {
                source: file.is_reported.then_some(file.source),
                path: file.path.to_path_buf(),
                bytes: 0,
                reason: LossReason::of_gzip(error),
            });
        }
    }

    /// Reports a compressed file as it stands. False if it is none.
    pub(super) fn report_unread_copy(&mut self, slot: u32, events: &mut Vec<FileEvent>) -> bool {
        let Some(CompressedCopy { original, .. }) = self.copy_of(slot) else {
            return false;
        };
        let Original { size, mid_line } = *original;
        let file = self.files[slot as usize].as_ref();
        let is_given_away = file.is_some_and(|file| file.flushed);
        self.report_copy(slot, size, mid_line && !is_given_away, events);
        true
    }

    fn copy_of(&self, slot: u32) -> Option<&CompressedCopy> {
        self.files[slot as usize].as_ref()?.copy()
    }
}

/// Whether there is a compressed file of its last name that says that it holds more than was read.
fn has_grown_copy(file: &File, roots: &Roots) -> bool {
    let copy = gzip::compressed_name(&file.path);
    let opened = if file.listed {
        roots.open_moved(&copy)
    } else {
        roots.open_beneath(&copy)
    };
    let size = opened.and_then(|file| Sketch::of(&Arc::new(file)));
    let read = file.offset & u64::from(u32::MAX);
    size.is_ok_and(|sketch| u64::from(sketch.size) != read)
}

/// Whether an error is about the moment, and not about the file.
fn is_passing(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(
        errno,
        Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::IO | Errno::ACCESS)
    )
}

/// Whether two names are alike up to what rotation puts into them.
fn begins_alike(path: &Path, other: &Path) -> bool {
    let stem = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let end = name.find(['.', '-', '_']).unwrap_or(name.len());
        name[..end].to_owned()
    };
    stem(path) == stem(other)
}
