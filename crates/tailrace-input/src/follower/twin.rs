//! Files that were compressed before they were read to their end.
//!
//! Takes a file that is gone, looks for a `.gz` file that holds it, and reads the rest from there under the
//! same source or resume entry. Never reads anything twice. A `.gz` file whose original nobody saw is
//! `unknown`'s affair.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::{Follower, Resume};
use crate::chunk::ChunkBuffer;
use crate::event::{FileEvent, LossReason};
use crate::file::File;
use crate::gzip::{self, GzipReader, Original, Sketch};
use crate::identity::{FingerprintKey, Inode, head_bytes};
use crate::meta::Meta;
use crate::roots::Roots;

/// What stands in for a file that is gone.
#[derive(Debug)]
pub(crate) struct Twin {
    path: PathBuf,
    original: Original,
    /// Whether the size is what the file itself tells, and not what was found in it.
    size_is_told: bool,
    /// Open from the first read on.
    reader: Option<GzipReader>,
    /// All of it was read.
    is_at_end: bool,
}

impl Twin {
    /// A compressed file that is read from its first byte, open from now on: it may be renamed or deleted
    /// before its turn.
    pub(super) fn whole(path: &Path, size: u64, roots: &Roots) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            original: Original {
                size,
                mid_line: false,
            },
            size_is_told: true,
            reader: Some(GzipReader::open(path, 0, roots)?),
            is_at_end: false,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Follower {
    /// A file that is gone before it was read to its end goes on from its compressed twin. False if
    /// there is none.
    pub(super) fn go_on_from_twin(&mut self, slot: u32) -> bool {
        let Some(file) = &self.files[slot as usize] else {
            return false;
        };
        if file.twin.is_some() {
            return false;
        }
        // Of one that is closed nobody knows how it has grown; but only one twin is looked into for that.
        let overtook = file.overtook;
        if file.unread() == 0 && !overtook && (file.is_open() || !has_grown_twin(file, &self.roots))
        {
            return false;
        }
        let twin = self
            .find_twin(file)
            .filter(|twin| twin.original.size > file.offset || overtook);
        self.tell_too_large();
        let Some(twin) = twin else {
            return false;
        };
        self.close(slot);
        let Some(file) = &mut self.files[slot as usize] else {
            return false;
        };
        file.twin = Some(Box::new(twin));
        let (inode, generation) = (file.inode, file.generation);
        for name in std::mem::take(&mut file.names) {
            self.by_path.remove(&name);
        }
        // Another file may get the inode while this one is read.
        self.by_inode.remove(&inode);
        self.generations.hold(inode, generation);
        self.mark_ready(slot);
        true
    }

    /// The same for a file that went while no agent ran. If all of it was read it is of no use, unless a record ends in
    /// it that has to be read again from the file before: `overtook`.
    pub(super) fn resume_from_twin(&mut self, entry: &Resume, overtook: bool) -> bool {
        let source = self.new_source();
        let inode = Inode::from(entry.id);
        let mut file = File::new(inode, source, entry.generation, Arc::clone(&entry.path));
        file.born = entry.id.born;
        file.go_on(entry.id, entry.generation, entry.offset, entry.size);
        self.set_origin(&mut file);
        let twin = self
            .find_twin(&file)
            .filter(|t| t.original.size > entry.offset || overtook);
        self.tell_too_large();
        let Some(twin) = twin else {
            return false;
        };
        file.overtook = overtook;
        self.add_twin(file, twin);
        true
    }

    /// A file that is read from its twin from the beginning.
    pub(super) fn add_twin(&mut self, mut file: File, twin: Twin) {
        file.gone = true;
        file.twin = Some(Box::new(twin));
        self.generations.hold(file.inode, file.generation);
        let slot = self.new_slot();
        self.by_source.insert(file.source, slot);
        self.files[slot as usize] = Some(Box::new(file));
        self.mark_ready(slot);
        self.join_lineage(slot);
    }

    fn find_twin(&self, file: &File) -> Option<Twin> {
        let dir = file.path.parent()?;
        let mut names: Vec<PathBuf> = fs::read_dir(dir)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| gzip::is_gzip(path))
            .filter(|path| begins_alike(path, &file.origin) || begins_alike(path, &file.path))
            .collect();
        // The likely one first: looking into one costs its decompression. Then the oldest: of those that go
        // on alike, the file that is known is the first.
        names.sort_by_cached_key(|path| {
            let is_named = path.with_extension("") == *file.path || **path == *file.path;
            let made = Meta::of_name(path).map_or(0, |meta| meta.born);
            (!is_named, made)
        });
        names.into_iter().find_map(|path| {
            // Nothing is known of its content: only the name can tell.
            let is_unknown = file.fingerprint.bytes == 0;
            if is_unknown && path.with_extension("") != *file.path {
                return None;
            }
            let key = self.config.fingerprint_key;
            let original = is_regular(&path).then(|| self.holds(&path, file, key)?)??;
            (original.size >= file.offset).then_some(Twin {
                path,
                original,
                size_is_told: false,
                reader: None,
                is_at_end: false,
            })
        })
    }

    /// Says which compressed files were not looked through to their end.
    fn tell_too_large(&mut self) {
        for (path, message) in self.too_large.take() {
            self.problem(&path, message);
        }
    }

    fn holds(&self, path: &Path, file: &File, key: FingerprintKey) -> Option<Option<Original>> {
        let held = gzip::holds(path, file.id(), file.offset, key, &self.roots);
        if let Err(error) = &held
            && error.kind() == io::ErrorKind::FileTooLarge
        {
            let message =
                format!("cannot be decompressed: {error}; what nobody read of it is lost");
            self.too_large.borrow_mut().push((path.to_owned(), message));
        }
        held.ok()
    }

    /// The turn of a file that is read from its twin.
    pub(super) fn serve_twin(
        &mut self,
        slot: u32,
        buffer: &mut ChunkBuffer,
        bytes_max: usize,
        events: &mut Vec<FileEvent>,
    ) -> bool {
        let waits = self.has_to_wait(slot);
        let Some(Twin { original, .. }) = self.twin_of(slot) else {
            return false;
        };
        let Original { size, mid_line } = *original;
        self.tell_twin(slot, size, mid_line, events);
        let slice_max = self.config.slice_bytes_max.max(1).min(bytes_max);
        let key = self.config.fingerprint_key;
        let Some(file) = &mut self.files[slot as usize] else {
            return false;
        };
        if file.paused || waits {
            return false;
        }
        let start = buffer.len();
        match file.read_twin(buffer.room(slice_max), key, &self.roots) {
            Ok(0) => {
                file.size = file.offset;
                if file.overtook {
                    let offset = file.offset;
                    self.tell_what_goes_on(slot, offset, events);
                }
                self.release(slot);
                if self.goes_on_later(slot) {
                    self.set_due(slot, Instant::now() + self.config.idle_close);
                    return false;
                }
                self.end(slot, LossReason::Vanished, events);
                false
            }
            Ok(bytes) => {
                buffer.fill(bytes);
                let offset = file.offset;
                file.offset += bytes as u64;
                file.size = file.size.max(file.offset);
                self.give_chunk(slot, offset, start..start + bytes, events);
                true
            }
            Err(error) => {
                let path = self.twin_of(slot).map(|twin| twin.path.clone());
                let message = format!("cannot be decompressed: {error}; the rest is lost");
                self.problem(&path.unwrap_or_default(), message);
                let reason = LossReason::of_gzip(&error);
                self.lose_rest(slot, &error, events);
                self.end(slot, reason, events);
                false
            }
        }
    }

    /// A file that is cut off does not say how much is missing: then that is lost which was known before.
    fn lose_rest(&mut self, slot: u32, error: &io::Error, events: &mut Vec<FileEvent>) {
        let Some(file) = &mut self.files[slot as usize] else {
            return;
        };
        let is_guess = file.twin.as_ref().is_some_and(|twin| twin.size_is_told);
        if is_guess && error.kind() == io::ErrorKind::UnexpectedEof {
            file.size = file.offset;
        }
        if file.unread() == 0 {
            events.push(FileEvent::Lost {
                source: file.told.then_some(file.source),
                path: file.path.to_path_buf(),
                bytes: 0,
                reason: LossReason::of_gzip(error),
            });
        }
    }

    fn twin_of(&self, slot: u32) -> Option<&Twin> {
        self.files[slot as usize].as_ref()?.twin.as_deref()
    }
}

impl Twin {
    /// What the original begins with, before an offset.
    pub(crate) fn head(&self, offset: u64, roots: &Roots) -> io::Result<Vec<u8>> {
        let mut head = vec![0; head_bytes(offset)];
        let mut reader = GzipReader::open(&self.path, 0, roots)?;
        let mut bytes = 0;
        while bytes < head.len() {
            match reader.read(&mut head[bytes..])? {
                0 => break,
                more => bytes += more,
            }
        }
        head.truncate(bytes);
        Ok(head)
    }
}

impl File {
    /// Reads on where the offset is, without moving it. The tail is then that behind what was read.
    fn read_twin(
        &mut self,
        room: &mut [u8],
        key: FingerprintKey,
        roots: &Roots,
    ) -> io::Result<usize> {
        let Some(twin) = &mut self.twin else {
            return Ok(0);
        };
        if twin.is_at_end {
            return Ok(0);
        }
        let reader = match &mut twin.reader {
            Some(reader) => reader,
            none => none.insert(GzipReader::open(&twin.path, self.offset, roots)?),
        };
        let bytes = reader.read(room)?;
        self.tail = key.tail(reader.last(), self.offset + bytes as u64);
        if bytes == 0 {
            // It may have to wait until the next file goes on, and needs no descriptor for that.
            (twin.reader, twin.is_at_end) = (None, true);
        }
        Ok(bytes)
    }
}

/// Whether there is a compressed file of its last name that says that it holds more than was read.
fn has_grown_twin(file: &File, roots: &Roots) -> bool {
    let twin = gzip::compressed_name(&file.path);
    let size = is_regular(&twin).then(|| Sketch::of(&twin, roots).ok().map(|sketch| sketch.size));
    let read = file.offset & u64::from(u32::MAX);
    size.flatten().is_some_and(|size| u64::from(size) != read)
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

fn is_regular(path: &Path) -> bool {
    Meta::of_name(path).is_ok_and(|meta| meta.is_file())
}
