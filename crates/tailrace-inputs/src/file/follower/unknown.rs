//! Files of which nothing is known: made, rotated away and perhaps compressed while no agent ran.
//!
//! Takes what earlier runs knew, looks through the directories of the input, and reads every rotated or
//! compressed file that none of it fits, in the order in which they were made. What comes and goes while it runs is
//! `missed`'s affair. A compressed file is one of
//! those only if it was made since all files that went are on record, so that it would be known had it been
//! read. Never reads one whose path still leads to the file that had it: then nothing was in between.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::order::{KnownPath, youngest};
use super::{FileEvent, Follower};
use crate::event::{LossReason, SourceId};
use crate::file::compressed_copy::CompressedCopy;
use crate::file::compressed_file::{CompressedFile, CopyId};
use crate::file::gzip::{self, Sketch};
use crate::file::tracked::File;
use crate::identity::FileId;
use crate::meta::Meta;

/// How often directories are listed at most while files go that were listed.
const LOOKS_MAX: usize = 16;

/// A compressed file that may be unknown.
struct Candidate {
    copy: CompressedFile,
    origin: PathBuf,
}

/// What was read, or is: a compressed file that holds just that is its copy.
#[derive(Clone, Copy)]
struct ReadContent {
    id: FileId,
    /// The file, if it is open.
    slot: Option<u32>,
}

impl From<FileId> for ReadContent {
    fn from(id: FileId) -> Self {
        Self { id, slot: None }
    }
}

impl Follower {
    /// `known` is the files of the checkpoint by path; `read` is every identity that was read from.
    pub(super) fn find_unknown(&mut self, known: &[KnownPath], read: impl Iterator<Item = FileId>) {
        if self.config.gone.since == 0 {
            return;
        }
        let youngest = youngest(known);
        let compressed = self.look_for_rotated(known, &youngest);
        if compressed.is_empty() {
            return;
        }
        let read = read.filter(|id| id.fingerprint.bytes > 0);
        let mut read: Vec<Option<ReadContent>> = read.map(|id| Some(id.into())).collect();
        self.add_handed_over(&mut read);
        let copies = self.copies_read();
        for (index, candidate) in compressed.into_iter().enumerate() {
            if !copies.contains(&candidate.copy.id()) {
                // Behind all that is known of the path, before all that is not compressed yet.
                let known = youngest.get(candidate.origin.as_path());
                let assumed_at = known.map_or(0, |created_at| *created_at) + 1 + index as u64;
                self.read_unless_known(candidate, assumed_at, &mut read);
            }
        }
    }

    /// Of a file that was handed over open it is known what it holds, and not only what of that was read and acked. It takes
    /// the place of that: it has one compressed copy at most.
    fn add_handed_over(&self, read: &mut Vec<Option<ReadContent>>) {
        for (slot, file) in (0..).zip(&self.files) {
            let Some(file) = file.as_deref().filter(|file| file.is_open()) else {
                continue;
            };
            let Some((id, _)) = file.as_copied(self.config.fingerprint_key) else {
                continue;
            };
            let slot = Some(slot);
            let (acked, changed) = (file.id(), 0);
            let is_it = |known: &&mut Option<ReadContent>| {
                known.is_some_and(|known| {
                    FileId {
                        changed,
                        ..known.id
                    } == FileId { changed, ..acked }
                })
            };
            match read.iter_mut().find(is_it) {
                Some(known) => *known = Some(ReadContent { id, slot }),
                None => read.push(Some(ReadContent { id, slot })),
            }
        }
    }

    /// Takes up what is rotated and not compressed, and gives the compressed files, oldest first. What is compressed
    /// between the listing and the look at it is in the next listing; so is what was left out because it was renamed.
    fn look_for_rotated(
        &mut self,
        known: &[KnownPath],
        youngest: &HashMap<&Path, u64>,
    ) -> Vec<Candidate> {
        let homes = self.homes_of(known);
        let mut compressed: BTreeMap<CopyId, Candidate> = BTreeMap::new();
        let mut before = Vec::new();
        for _ in 0..LOOKS_MAX {
            let (mut rotated, mut listed) = (Vec::new(), Vec::new());
            for dir in &homes {
                self.look_through(dir, youngest, &mut rotated, &mut listed);
            }
            #[cfg(test)]
            super::tests::between_looks();
            rotated.sort();
            let mut are_there = true;
            for (_, path) in &rotated {
                let origin = self.origin_of(path);
                are_there &= self.rotated_appeared(path, &origin) || Meta::of_name(path).is_ok();
            }
            let names = listed.iter().map(|found| &found.copy);
            let mut names: Vec<_> = names
                .map(|copy| (copy.id(), copy.path().to_owned()))
                .collect();
            names.sort();
            compressed.extend(listed.into_iter().map(|found| (found.copy.id(), found)));
            if are_there && names == before {
                break;
            }
            before = names;
        }
        let mut compressed: Vec<_> = compressed.into_values().collect();
        compressed.sort_by_cached_key(|found| (found.copy.made(), found.copy.path().to_owned()));
        compressed
    }

    fn homes_of(&self, known: &[KnownPath]) -> BTreeSet<PathBuf> {
        let mut homes = self.homes();
        for KnownPath { path, .. } in known {
            if let Some(dir) = path.parent()
                && !homes.contains(dir)
            {
                homes.insert(dir.to_owned());
            }
        }
        homes
    }

    /// Lists the files of a directory that carry a rotated name and are followed by nobody.
    fn look_through(
        &self,
        dir: &Path,
        youngest: &HashMap<&Path, u64>,
        rotated: &mut Vec<(u64, PathBuf)>,
        compressed: &mut Vec<Candidate>,
    ) {
        let patterns = &self.discovery.patterns;
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if self.by_path.contains_key(path.as_path()) || gzip::is_otherwise_compressed(&path) {
                continue;
            }
            let is_gzip = gzip::is_gzip(&path);
            let original = gzip::uncompressed(&path).into_owned();
            let origin = self.origin_of(&path);
            let is_rotated = is_gzip || origin != original;
            if !is_rotated || !self.discovery.matches(&origin) || patterns.excluded(&original) {
                continue;
            }
            let known = youngest.get(origin.as_path());
            if self.is_known(&origin, known.map_or(0, |created_at| *created_at)) {
                continue;
            }
            let Some(meta) = Meta::of_name(&path).ok().filter(Meta::is_file) else {
                continue;
            };
            let made = meta.created_at;
            if made < self.config.gone.since || self.is_followed(&meta) {
                continue;
            }
            let uncompressed = Meta::of_name(&original);
            if !is_gzip {
                rotated.push((made, path));
            } else if uncompressed.is_ok_and(|meta| meta.created_at <= made) {
                // It is being made, of a file that is there.
                if !self.by_path.contains_key(original.as_path()) && origin != original {
                    rotated.push((made, original));
                }
            } else {
                let copy = CompressedFile::new(path, &meta);
                compressed.push(Candidate { copy, origin });
            }
        }
    }

    /// A birth time behind those of the files that had a path, and before that of the file that has it now.
    pub(super) fn assume_created_at(&self, origin: &Path, made: u64) -> u64 {
        let now = self.by_path.get(origin);
        let now = now.and_then(|&slot| self.files[slot as usize].as_ref());
        let now = now.map_or(made, |file| file.created_at);
        let chain = self.chain_of(origin);
        let before = chain.partition_point(|known| known.created_at < now);
        let before = chain[..before].last();
        before.map_or(now.saturating_sub(1), |known| known.created_at + 1)
    }

    /// Each file that was read accounts for one compressed file at most.
    fn read_unless_known(
        &mut self,
        mut found: Candidate,
        assumed_at: u64,
        read: &mut [Option<ReadContent>],
    ) {
        let key = self.config.fingerprint_key;
        let opened = found.copy.open(|path| self.roots.open_beneath(path));
        let sketch = opened.and_then(|file| Ok((Sketch::of(&file)?, file)));
        let (sketch, file) = match sketch {
            Ok(sketch) => sketch,
            Err(error) => return self.damaged(found.copy.path().to_owned(), &error),
        };
        let fits = |known: &Option<ReadContent>| {
            known.is_some_and(|ReadContent { id, .. }| {
                id.tail.offset & u64::from(u32::MAX) == u64::from(sketch.size)
                    && key.matches(&sketch.head, id.fingerprint)
                    && gzip::holds(&file, id, id.tail.offset, key)
                        .is_ok_and(|held| held.is_some_and(|held| held.size == id.tail.offset))
            })
        };
        match read.iter_mut().find(|known| fits(known)) {
            Some(known) => {
                let slot = known.take().and_then(|known| known.slot);
                let file = slot.and_then(|slot| self.files[slot as usize].as_mut());
                let number = file.map_or(SourceId(u32::MAX), |file| {
                    file.has_copy = true;
                    file.number
                });
                self.owned.add(found.copy.id(), number, 0);
            }
            None => self.read_whole(found.copy, found.origin, &sketch, assumed_at),
        }
    }

    /// Reads a compressed file as a file of its own.
    pub(super) fn read_whole(
        &mut self,
        copy: CompressedFile,
        origin: PathBuf,
        sketch: &Sketch,
        assumed_at: u64,
    ) {
        let source = self.new_source();
        let inode = copy.inode();
        let generation = self.next_generation(inode);
        let mut file = File::new(inode, source, generation, copy.path().into());
        file.created_at = assumed_at;
        file.fingerprint = self.config.fingerprint_key.fingerprint(&sketch.head);
        file.size = sketch.stated_bytes();
        file.origin = origin.into();
        let origin = Arc::clone(&file.origin);
        let is_behind = file.path.parent() != origin.parent();
        let slot = self.add_copied(file, CompressedCopy::whole(copy, sketch.stated_bytes()));
        if is_behind {
            self.linked.insert(slot, origin);
        }
    }

    pub(super) fn damaged(&mut self, path: PathBuf, error: &std::io::Error) {
        let message = format!("cannot be decompressed: {error}; what nobody read of it is lost");
        self.lasting_problem(&path, message);
        self.pending.push(FileEvent::Lost {
            source: None,
            path,
            bytes: 0,
            reason: LossReason::of_gzip(error),
        });
    }
}
