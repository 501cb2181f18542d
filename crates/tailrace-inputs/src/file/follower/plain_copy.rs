//! Copies that are not compressed, as `copytruncate` makes them: files under rotated names that hold what a log held.
//!
//! Takes files under rotated names that nothing announced, compares each with the log at the path that it had, and says
//! what is read of it. Of a copy of what was read before the log was cut, that is the rest. While the log holds all of a copy, the
//! copy is remembered: should the log be cut before it is read, or go, the rest is read from there. Never takes a file for a
//! copy that is older than the log, since that had the path itself. What cannot be told from a file of its own is read.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{FileEvent, Follower};
use crate::identity::{
    FINGERPRINT_BYTES_MAX, FileId, FingerprintKey, Inode, TAIL_BYTES_MAX, Tail, read_full_at,
};
use crate::meta::{Meta, find_inode};

/// How many copies are remembered.
const COPIES_MAX: usize = 1024;

/// A file that was found to be a copy, and is not read.
struct PlainCopy {
    path: PathBuf,
    origin: PathBuf,
    inode: Inode,
    created_at: u64,
    /// Its size when it was compared.
    bytes: u64,
    /// The log that it was made of.
    log: Inode,
    /// Whether the log held all of it.
    is_spare: bool,
    /// The generation of the log then; `None` if it had been cut, and that was not noticed.
    generation: Option<u32>,
}

/// Copies of logs that are not read, the latest last.
#[derive(Default)]
pub(super) struct PlainCopies(VecDeque<PlainCopy>);

impl PlainCopies {
    /// Whether a file was found to be a copy, and has not grown since.
    pub(super) fn have(&self, meta: &Meta) -> bool {
        let is_it = |copy: &PlainCopy| {
            (copy.inode, copy.created_at, copy.bytes) == (meta.inode, meta.created_at, meta.bytes)
        };
        self.0.iter().any(is_it)
    }

    fn add(&mut self, copy: PlainCopy) {
        self.0.retain(|known| known.inode != copy.inode);
        if self.0.len() >= COPIES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(copy);
    }

    /// Takes those of which a log held all.
    fn take_spares(&mut self, log: Inode) -> Vec<PlainCopy> {
        let copies = std::mem::take(&mut self.0).into_iter();
        let (spares, others): (Vec<_>, _) =
            copies.partition(|copy| copy.is_spare && copy.log == log);
        self.0 = others.into();
        spares
    }
}

impl PlainCopy {
    /// Whether this is of the copy.
    fn is(&self, meta: &Meta) -> bool {
        meta.is_file() && meta.is_of(self.inode, self.created_at)
    }

    /// Finds it again, which may have been renamed.
    fn find(&mut self) -> Option<Meta> {
        let here = Meta::of_name(&self.path).ok();
        if let Some(meta) = here.filter(|meta| self.is(meta)) {
            return Some(meta);
        }
        self.path = find_inode(self.path.parent()?, self.inode, self.created_at)?;
        Meta::of_name(&self.path).ok().filter(|meta| self.is(meta))
    }
}

/// What a file under a rotated name is.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// A copy of which the log holds all.
    Spare,
    /// A copy of what was read of the log, which was cut since.
    Read,
    /// The same, and what was not read from there on.
    ReadTo(FileId, u64),
}

/// What is compared of a file.
struct Sketch {
    file: fs::File,
    meta: Meta,
    head: Vec<u8>,
}

impl Sketch {
    fn of(file: fs::File) -> io::Result<Self> {
        let meta = Meta::of_file(&file)?;
        let bytes = usize::try_from(meta.bytes).unwrap_or(usize::MAX);
        let mut head = vec![0; bytes.min(FINGERPRINT_BYTES_MAX)];
        let read = read_full_at(&file, &mut head, 0)?;
        head.truncate(read);
        Ok(Self { file, meta, head })
    }

    /// The tail at an offset; `None` if the file is shorter.
    fn tail_at(&self, offset: u64, key: FingerprintKey) -> Option<Tail> {
        let mut room = [0; TAIL_BYTES_MAX];
        let before = &mut room[..Tail { offset, hash: 0 }.bytes()];
        let from = offset - before.len() as u64;
        let read = read_full_at(&self.file, before, from).ok()?;
        (read == before.len()).then(|| key.tail(before, offset))
    }

    /// Whether this holds all that another one does, as far as heads and tails show.
    fn holds(&self, other: &Self, key: FingerprintKey) -> bool {
        let end = other.meta.bytes;
        self.meta.bytes >= end
            && self.head.starts_with(&other.head)
            && self.tail_at(end, key) == other.tail_at(end, key)
    }

    /// Whether this begins with the content that was known by an identity, up to where that was read.
    fn goes_on_from(&self, id: FileId, key: FingerprintKey) -> bool {
        key.matches(&self.head, id.fingerprint)
            && self.tail_at(id.tail.offset, key) == Some(id.tail)
    }
}

impl Follower {
    /// A file is there under a rotated name, and nothing announced it. It is read as far as nobody reads the same elsewhere.
    pub(super) fn unannounced_appeared(&mut self, path: &Path, origin: &Path) {
        let Some((kind, copy)) = self.kind_of(path, origin) else {
            self.rotated_appeared(path, origin);
            return;
        };
        if let Kind::ReadTo(id, offset) = kind {
            self.read_copy_from(path, origin, id, offset);
        } else {
            self.plain_copies.add(copy);
        }
    }

    /// Whether a file is a copy of the log at the path that it had. None if it is a file of its own, as far as anybody knows.
    fn kind_of(&mut self, path: &Path, origin: &Path) -> Option<(Kind, PlainCopy)> {
        let key = self.config.fingerprint_key;
        let slot = *self.by_path.get(origin)?;
        let file = self.files[slot as usize].as_mut()?;
        let (made, made_before) = (Meta::of_name(path).ok()?.created_at, file.created_at);
        if made_before == 0 || made < made_before {
            // It had the path before.
            return None;
        }
        let copy = Sketch::of(self.roots.open_beneath(path).ok()?).ok()?;
        let log = Sketch::of(self.roots.open_beneath(origin).ok()?).ok()?;
        // One of the same tick may have had it as well; its bytes show that, if it has some.
        let may_be_own = made == made_before && copy.meta.bytes == 0;
        if may_be_own || !file.is(&log.meta) {
            return None;
        }
        let is_known = match file.read_part() {
            Some((id, _)) => log.goes_on_from(id, key),
            None => key.matches(&log.head, file.fingerprint),
        };
        let generation = is_known.then_some(file.generation);
        let kind = if log.holds(&copy, key) {
            if file.fingerprint.bytes == 0 && !file.is_open() {
                // Should it be cut before its turn, that shows.
                file.fingerprint = key.fingerprint(&log.head);
            }
            Kind::Spare
        } else {
            let log = (file.inode, file.created_at);
            let ended = self.ended_ids.iter();
            let ended = ended.filter(|id| (Inode::from(**id), id.created_at) == log);
            let read = ended
                .map(|id| (*id, id.tail.offset))
                .chain(file.read_part());
            let read = read.filter(|(id, _)| id.tail.offset > 0 && copy.goes_on_from(*id, key));
            let (id, offset) = read.max_by_key(|(_, offset)| *offset)?;
            if copy.meta.bytes <= offset {
                Kind::Read
            } else {
                Kind::ReadTo(id, offset)
            }
        };
        let copy = PlainCopy {
            path: path.to_owned(),
            origin: origin.to_owned(),
            inode: copy.meta.inode,
            created_at: made,
            bytes: copy.meta.bytes,
            log: log.meta.inode,
            is_spare: kind == Kind::Spare,
            generation,
        };
        Some((kind, copy))
    }

    /// Reads a copy from where its log was read to.
    fn read_copy_from(&mut self, path: &Path, origin: &Path, id: FileId, offset: u64) {
        self.rotated_appeared(path, origin);
        let file = self.by_path.get(path);
        let file = file.and_then(|&slot| self.files[slot as usize].as_mut());
        // What is known of it, it is compared with before it is read.
        if let Some(file) = file.filter(|file| !file.listed && file.offset == 0) {
            (file.fingerprint, file.tail, file.offset) = (id.fingerprint, id.tail, offset);
        }
    }

    /// The content of a log was cut off, or the log is gone: what was not read of it is read from a copy, where there is one,
    /// and is not lost.
    pub(super) fn read_spares_of(&mut self, slot: u32, events: &mut Vec<FileEvent>) {
        let Some(file) = &self.files[slot as usize] else {
            return;
        };
        let spares = self.plain_copies.take_spares(file.inode);
        if spares.is_empty() {
            return;
        }
        let key = self.config.fingerprint_key;
        let generation = Some(file.generation);
        let (id, offset) = file.read_part().unwrap_or((file.id(), 0));
        let mut whole: Option<PlainCopy> = None;
        for mut copy in spares {
            let Some(meta) = copy.find() else { continue };
            let opened = self.roots.open_beneath(&copy.path).and_then(Sketch::of);
            let goes_on = |sketch: Sketch| meta.bytes <= offset || sketch.goes_on_from(id, key);
            if copy.generation != generation || !opened.is_ok_and(goes_on) {
                self.unannounced_appeared(&copy.path, &copy.origin);
                continue;
            }
            (copy.bytes, copy.is_spare) = (meta.bytes, false);
            let known = whole.as_ref().map_or(offset, |whole| whole.bytes);
            let other = if copy.bytes > known {
                whole.replace(copy)
            } else {
                Some(copy)
            };
            if let Some(copy) = other {
                self.plain_copies.add(copy);
            }
        }
        if let Some(copy) = &whole {
            self.read_copy_from(&copy.path, &copy.origin, id, offset);
        }
        events.append(&mut self.pending);
        if let Some(copy) = whole
            && let Some(file) = &mut self.files[slot as usize]
        {
            let kept = file.unread().min(copy.bytes - offset);
            file.size -= kept;
            if file.is_reported && kept > 0 {
                let (source, size) = (file.source, file.size);
                events.push(FileEvent::Grown { source, size });
            }
        }
    }

    /// Copies that have grown are compared again; those that are gone are forgotten.
    pub(super) fn look_at_copies(&mut self) {
        let mut left = VecDeque::new();
        for mut copy in std::mem::take(&mut self.plain_copies.0) {
            match copy.find() {
                Some(meta) if meta.bytes == copy.bytes => left.push_back(copy),
                Some(_) => self.unannounced_appeared(&copy.path, &copy.origin),
                None => {}
            }
        }
        left.append(&mut self.plain_copies.0);
        self.plain_copies.0 = left;
    }
}
