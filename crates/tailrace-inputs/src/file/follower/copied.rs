//! Whose copies the compressed files of a directory are that were made while the agent runs.
//!
//! Takes a directory, compares its new compressed files with every file that is known, by size and content, and reads those
//! of which none is a copy: as what became of a file that went before it was opened, or as files of their own. Each is looked
//! into once. Never believes a name.

use std::io;
use std::path::{Path, PathBuf};

use super::Follower;
use super::missed::is_unopened;
use crate::event::SourceId;
use crate::file::compressed_copy::CompressedCopy;
use crate::file::compressed_file::{self, CompressedFile};
use crate::file::gzip::{self, Sketch};
use crate::file::tracked::{File, Open};
use crate::identity::FileId;

/// How often files are opened at most while their names change.
const TRIES_MAX: usize = 16;

/// What is known of the content of a file, and whose copy is no longer wanted.
enum KnownContent {
    /// This slot.
    Followed(u32),
    /// Of a file that has ended.
    Ended(FileId),
}

/// What a compressed file was found to be.
enum Classified {
    /// The copy of a file that is known, and when that was made; 0 where nobody knows.
    Known(u64),
    /// The copy of a file that nobody saw.
    Unknown(Sketch),
    /// Not to be opened or not whole: it may be written still.
    Unready,
}

impl Follower {
    /// Reads the compressed files of a directory that nobody knows. Gives how many were found of which it was not known
    /// before whose they are.
    pub(super) fn read_copies(&mut self, dir: &Path, unseen: &[(PathBuf, u64)]) -> usize {
        let mut copies = compressed_file::list(dir, |path| self.may_be_copy(path));
        copies.retain(|copy| self.owned.owner(copy.id()).is_none());
        let since = self.made_since(dir);
        let made = copies.iter().filter(|copy| copy.made() >= since);
        let originals: Vec<PathBuf> = made.map(|copy| copy.path().with_extension("")).collect();
        self.open_originals(dir, &originals);
        let since = self.made_since(dir);
        copies.retain(|copy| copy.made() >= since);
        let mut unopened = self.unopened_in(dir);
        copies.sort_by_key(|copy| (copy.made(), copy.path().to_owned()));
        let mut known = if copies.is_empty() {
            Vec::new()
        } else {
            self.known_in(dir)
        };
        let mut found = Vec::new();
        for mut copy in copies {
            match self.classify(&mut copy, &mut known) {
                Classified::Unready => self.missed.look_again(dir),
                Classified::Known(created_at) => found.push((copy, None, created_at)),
                Classified::Unknown(sketch) => {
                    let fits = |file: &(u64, u32)| self.fits(*file, &copy, &sketch);
                    let unopened = unopened.iter().position(fits).map(|at| unopened.remove(at));
                    let created_at = unopened.map_or(0, |(created_at, slot)| {
                        self.read_as(slot, copy.clone(), &sketch);
                        created_at
                    });
                    let sketch = Some(sketch).filter(|_| unopened.is_none());
                    found.push((copy, sketch, created_at));
                }
            }
        }
        let count = found.len();
        self.read_between(found, unseen);
        count
    }

    /// Reads compressed files as files of their own: behind the originals of those that were compressed before, and before
    /// those of later ones. Each comes with when its original was made, 0 where nobody knows.
    fn read_between(
        &mut self,
        found: Vec<(CompressedFile, Option<Sketch>, u64)>,
        unseen: &[(PathBuf, u64)],
    ) {
        let mut before = u64::MAX;
        let ends: Vec<u64> = found
            .iter()
            .rev()
            .map(|(_, _, created_at)| {
                before = if *created_at > 0 {
                    before.min(*created_at)
                } else {
                    before
                };
                before
            })
            .collect();
        let mut after = 0;
        for ((copy, sketch, created_at), before) in found.into_iter().zip(ends.into_iter().rev()) {
            after = after.max(created_at);
            let Some(sketch) = sketch else { continue };
            let origin = self.origin_of(copy.path());
            let original = copy.path().with_extension("");
            let named = unseen.iter().find(|(path, _)| *path == original);
            let assumed_at = match named {
                Some((_, assumed_at)) => *assumed_at,
                None if before == u64::MAX => self.assume_created_at(&origin, copy.made()),
                None => before.saturating_sub(1),
            };
            after = after.max(assumed_at);
            self.read_whole(copy, origin, &sketch, after);
        }
    }

    /// Compressed files of a directory that were made before are not looked into.
    fn made_since(&self, dir: &Path) -> u64 {
        let unopened = self.unopened_in(dir);
        let oldest = unopened
            .first()
            .map_or(u64::MAX, |(created_at, _)| *created_at);
        self.missed.since().min(oldest.max(self.missed.begin()))
    }

    /// Whether a name is that of a compressed file of the input.
    pub(super) fn may_be_copy(&self, path: &Path) -> bool {
        let original = path.with_extension("");
        self.discovery.matches(&self.origin_of(path))
            && !self.discovery.patterns.excluded(&original)
    }

    /// What is there still is known by what it holds: so it has to be open.
    fn open_originals(&mut self, dir: &Path, originals: &[PathBuf]) {
        for original in originals {
            let origin = self.origin_of(original);
            self.rotated_appeared(original, &origin);
        }
        // A name may lead elsewhere in the moment in which it is opened.
        for _ in 0..TRIES_MAX {
            let unopened = self.slots_in(dir);
            let unopened = unopened.filter(|(_, file)| !file.is_deleted() && is_unopened(file));
            let unopened: Vec<u32> = unopened.map(|(slot, _)| slot).collect();
            let mut is_stale = false;
            for slot in unopened {
                is_stale |= self.open_now(slot);
            }
            self.resolve_nameless();
            if !is_stale {
                break;
            }
        }
    }

    /// Opens a file before its turn, if there is a descriptor for it. True if a name of it led elsewhere.
    fn open_now(&mut self, slot: u32) -> bool {
        if self.open_files >= self.config.open_files_max.max(1) {
            return false;
        }
        let opened = self.files[slot as usize]
            .as_mut()
            .map(|file| file.open(&self.roots));
        match opened {
            Some(Ok(Open::Done)) => {
                self.open_files += 1;
                false
            }
            Some(Ok(Open::Stale(names))) => {
                names.iter().for_each(|name| self.detach(name));
                true
            }
            _ => false,
        }
    }

    /// The files of a directory that went before they were opened, oldest first.
    fn unopened_in(&self, dir: &Path) -> Vec<(u64, u32)> {
        let files = self.slots_in(dir);
        let files = files.filter(|(_, file)| file.is_deleted() && is_unopened(file));
        let mut unopened: Vec<_> = files.map(|(slot, file)| (file.created_at, slot)).collect();
        unopened.sort_unstable();
        unopened
    }

    /// The files of a directory, and those behind links that lead or led into it.
    fn slots_in<'a>(&'a self, dir: &'a Path) -> impl Iterator<Item = (u32, &'a File)> {
        let links = self.links_into(dir);
        let files = (0..).zip(&self.files);
        let files = files.filter_map(|(slot, file)| Some((slot, file.as_deref()?)));
        files.filter(move |(slot, file)| {
            let link = self.linked.get(slot);
            file.path.parent() == Some(dir) || link.is_some_and(|link| links.contains(&**link))
        })
    }

    /// Files that a compressed file of a directory may be the copy of.
    fn known_in(&self, dir: &Path) -> Vec<KnownContent> {
        let files = self.slots_in(dir);
        let files = files.filter(|(_, file)| !file.is_copied() && !file.has_copy);
        let files = files.filter(|(_, file)| file.is_open() || file.fingerprint.bytes > 0);
        let files = files.map(|(slot, _)| KnownContent::Followed(slot));
        let ended = self.ended_ids.iter();
        let ended = ended.filter(|id| id.fingerprint.bytes > 0);
        files
            .chain(ended.map(|id| KnownContent::Ended(*id)))
            .collect()
    }

    /// What a compressed file is. A known file accounts for one at most.
    fn classify(&mut self, copy: &mut CompressedFile, known: &mut Vec<KnownContent>) -> Classified {
        let key = self.config.fingerprint_key;
        let Ok(file) = copy.open(|path| self.roots.open_beneath(path)) else {
            return Classified::Unready;
        };
        let Ok(sketch) = Sketch::of(&file) else {
            return Classified::Unready;
        };
        if sketch.head.is_empty() {
            return Classified::Known(0);
        }
        let mut at = 0;
        while let Some(candidate) = known.get(at) {
            let known_as = match candidate {
                // Read to its end.
                KnownContent::Ended(id) => Some((*id, Some(id.tail.offset))),
                KnownContent::Followed(slot) => self.files[*slot as usize]
                    .as_ref()
                    .and_then(|file| file.as_copied(key)),
            };
            let is_alike = |(id, size): &(FileId, Option<u64>)| {
                let is_size = |size: u64| size & u64::from(u32::MAX) == u64::from(sketch.size);
                key.matches(&sketch.head, id.fingerprint) && size.is_none_or(is_size)
            };
            let Some((id, size)) = known_as.filter(is_alike) else {
                at += 1;
                continue;
            };
            match gzip::holds(&file, id, id.tail.offset, key) {
                Ok(Some(held)) if size.is_none_or(|size| held.size == size) => {
                    let (number, created_at) = self.has_copy(&known.swap_remove(at));
                    self.owned.add(copy.id(), number, self.missed.since());
                    return Classified::Known(created_at);
                }
                Ok(_) => at += 1,
                Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                    // It begins as a known file does, and nobody knows how it ends.
                    self.damaged(copy.path().to_owned(), &error);
                    self.owned
                        .add(copy.id(), SourceId(u32::MAX), self.missed.since());
                    return Classified::Known(0);
                }
                Err(_) => return Classified::Unready,
            }
        }
        // While it is written it has no size, and may be the copy of a known file. One that never ends is given up when
        // it is read.
        match gzip::expanded_bytes(&file) {
            Ok(size) if size & u64::from(u32::MAX) != u64::from(sketch.size) => Classified::Unready,
            Err(error) if error.kind() != io::ErrorKind::FileTooLarge => Classified::Unready,
            _ => Classified::Unknown(sketch),
        }
    }

    /// The copy of a known file was found. Gives the number of that file, and when it was made.
    fn has_copy(&mut self, known: &KnownContent) -> (SourceId, u64) {
        match known {
            KnownContent::Followed(slot) => match &mut self.files[*slot as usize] {
                Some(file) => {
                    file.has_copy = true;
                    (file.number, file.created_at)
                }
                None => (SourceId(u32::MAX), 0),
            },
            KnownContent::Ended(id) => {
                if let Some(at) = self.ended_ids.iter().position(|ended| ended == id) {
                    self.ended_ids.remove(at);
                }
                (SourceId(u32::MAX), id.created_at)
            }
        }
    }

    /// Whether a compressed file may be what became of one that went unopened.
    fn fits(&self, (created_at, slot): (u64, u32), copy: &CompressedFile, sketch: &Sketch) -> bool {
        let file = self.files[slot as usize].as_ref();
        file.is_some_and(|file| {
            created_at <= copy.made()
                && file.size <= u64::from(sketch.size)
                && *file.origin == *self.origin_of(copy.path())
        })
    }

    /// A file that went unopened is read from a compressed file.
    fn read_as(&mut self, slot: u32, copy: CompressedFile, sketch: &Sketch) {
        if let Some(file) = &mut self.files[slot as usize] {
            file.fingerprint = self.config.fingerprint_key.fingerprint(&sketch.head);
            file.size = sketch.stated_bytes();
        }
        self.go_on_from(slot, CompressedCopy::whole(copy, sketch.stated_bytes()));
    }
}
