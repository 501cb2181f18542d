//! Files of which nothing is known: made, rotated away and perhaps compressed while no agent ran.
//!
//! Takes what earlier runs knew, looks through the directories of the input, and reads every rotated or
//! compressed file that none of it fits, in the order in which they were made. While it runs, the same for a
//! file that came and went between two looks. A compressed file is one of
//! those only if it was made since all files that went are on record, so that it would be known had it been
//! read. Never reads one whose path still leads to the file that had it: then nothing was in between.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::order::{Known, youngest};
use super::twin::Twin;
use super::{FileEvent, Follower};
use crate::event::LossReason;
use crate::file::File;
use crate::gzip::{self, Sketch};
use crate::identity::{FileId, Inode};
use crate::meta::Meta;

/// How often directories are listed at most while files go that were listed.
const LOOKS_MAX: usize = 16;

/// A compressed file that may be unknown.
struct Candidate {
    made: u64,
    path: PathBuf,
    origin: PathBuf,
    inode: Inode,
}

impl Follower {
    /// `known` is the files of the checkpoint by path; `read` is every identity that was read from.
    pub(super) fn find_unknown(&mut self, known: &[Known], read: &[FileId]) {
        if self.config.gone.since == 0 {
            return;
        }
        let youngest = youngest(known);
        let compressed = self.look_for_rotated(known, &youngest);
        let mut read: Vec<Option<FileId>> = read
            .iter()
            .filter(|id| id.fingerprint.bytes > 0)
            .map(|id| Some(*id))
            .collect();
        let twins = self.files.iter().flatten();
        let twins = twins.filter_map(|file| Some(file.twin.as_ref()?.path().to_owned()));
        let twins: HashSet<PathBuf> = twins.collect();
        for (index, candidate) in compressed.into_iter().enumerate() {
            if !twins.contains(&candidate.path) {
                // Behind all that is known of the path, before all that is not compressed yet.
                let known = youngest.get(candidate.origin.as_path());
                let place = known.map_or(0, |born| *born) + 1 + index as u64;
                self.read_unless_known(candidate, place, &mut read);
            }
        }
    }

    /// Takes up what is rotated and not compressed, and gives the compressed files, oldest first. What is
    /// compressed between the listing and the look at it is in the next listing.
    fn look_for_rotated(
        &mut self,
        known: &[Known],
        youngest: &HashMap<&Path, u64>,
    ) -> Vec<Candidate> {
        let homes = self.homes(known);
        let (mut rotated, mut compressed) = (Vec::new(), Vec::new());
        for _ in 0..LOOKS_MAX {
            rotated.clear();
            compressed.clear();
            for dir in &homes {
                self.look_through(dir, youngest, &mut rotated, &mut compressed);
            }
            #[cfg(test)]
            super::tests::between_looks();
            rotated.sort();
            let mut are_there = true;
            for (_, path) in &rotated {
                are_there &= self.appeared(path, true) || Meta::of_name(path).is_ok();
            }
            if are_there {
                break;
            }
        }
        compressed.sort_by(|a, b| (a.made, &a.path).cmp(&(b.made, &b.path)));
        compressed
    }

    fn homes(&self, known: &[Known]) -> BTreeSet<PathBuf> {
        let mut homes: BTreeSet<PathBuf> = self.discovery.homes().map(Path::to_owned).collect();
        for (path, _) in known {
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
            if self.by_path.contains_key(path.as_path()) {
                continue;
            }
            let is_gzip = gzip::is_gzip(&path);
            let original = if is_gzip {
                path.with_extension("")
            } else {
                path.clone()
            };
            let origin = self.origin_of(&path);
            let is_rotated = is_gzip || origin != original;
            if !is_rotated || !self.discovery.matches(&origin) || patterns.excluded(&original) {
                continue;
            }
            let known = youngest.get(origin.as_path());
            if self.is_known(&origin, known.map_or(0, |born| *born)) {
                continue;
            }
            let Some(meta) = Meta::of_name(&path).ok().filter(Meta::is_file) else {
                continue;
            };
            let (made, inode) = (meta.born, meta.inode);
            let namesake = self
                .by_inode
                .get(&inode)
                .and_then(|&slot| self.files[slot as usize].as_ref());
            // One that is gone may be listed under its inode still.
            let is_followed = namesake.is_some_and(|file| file.born == made || file.born == 0);
            if made < self.config.gone.since || is_followed {
                continue;
            }
            let uncompressed = Meta::of_name(&original);
            if !is_gzip {
                rotated.push((made, path));
            } else if uncompressed.is_ok_and(|meta| meta.born <= made) {
                // It is being made, of a file that is there.
                if !self.by_path.contains_key(original.as_path()) && origin != original {
                    rotated.push((made, original));
                }
            } else {
                compressed.push(Candidate {
                    made,
                    path,
                    origin,
                    inode,
                });
            }
        }
    }

    /// A file of the input came and went between two looks. If it was compressed and none that is known fits, it
    /// is read. False if there is no such file.
    pub(super) fn read_missed(&mut self, path: &Path) -> bool {
        let compressed = gzip::compressed_name(path);
        let Some(meta) = Meta::of_name(&compressed).ok().filter(Meta::is_file) else {
            return false;
        };
        let files = self.files.iter().flatten();
        let mut twins = files.clone().filter_map(|file| file.twin.as_ref());
        if twins.any(|twin| twin.path() == compressed) {
            return true;
        }
        let found = Candidate {
            made: meta.born,
            origin: self.origin_of(path),
            inode: meta.inode,
            path: compressed,
        };
        let sketch = match Sketch::of(&found.path, &self.roots) {
            Ok(sketch) => sketch,
            Err(error) => {
                self.damaged(found.path, &error);
                return true;
            }
        };
        let key = self.config.fingerprint_key;
        let read = files
            .map(|file| file.id())
            .chain(self.ended_ids.iter().copied());
        let mut read = read.filter(|id| id.fingerprint.bytes > 0);
        let is_known = read.any(|id| {
            key.matches(&sketch.head, id.fingerprint)
                && gzip::holds(&found.path, id, id.tail.offset, key, &self.roots)
                    .is_ok_and(|held| held.is_some())
        });
        if !is_known {
            let place = self.place_before_now(&found);
            self.read_whole(found, &sketch, place);
        }
        true
    }

    /// A birth time behind those of the files that had its path, and before that of the file that has it now.
    fn place_before_now(&self, found: &Candidate) -> u64 {
        let now = self.by_path.get(found.origin.as_path());
        let now = now.and_then(|&slot| self.files[slot as usize].as_ref());
        let now = now.map_or(found.made, |file| file.born);
        let lineage = self
            .lineages
            .get(found.origin.as_path())
            .into_iter()
            .flatten();
        let before = lineage.map(|known| known.0).take_while(|born| *born < now);
        before.last().map_or(now.saturating_sub(1), |born| born + 1)
    }

    /// Each file that was read accounts for one compressed file at most.
    fn read_unless_known(&mut self, found: Candidate, place: u64, read: &mut [Option<FileId>]) {
        let key = self.config.fingerprint_key;
        let sketch = match Sketch::of(&found.path, &self.roots) {
            Ok(sketch) => sketch,
            Err(error) => return self.damaged(found.path, &error),
        };
        let fits = |id: &Option<FileId>| {
            id.is_some_and(|id| {
                id.tail.offset & u64::from(u32::MAX) == u64::from(sketch.size)
                    && key.matches(&sketch.head, id.fingerprint)
                    && gzip::holds(&found.path, id, id.tail.offset, key, &self.roots)
                        .is_ok_and(|held| held.is_some_and(|held| held.size == id.tail.offset))
            })
        };
        match read.iter_mut().find(|id| fits(id)) {
            Some(known) => *known = None,
            None => self.read_whole(found, &sketch, place),
        }
    }

    fn read_whole(&mut self, found: Candidate, sketch: &Sketch, place: u64) {
        let twin = match Twin::whole(&found.path, sketch.size.into(), &self.roots) {
            Ok(twin) => twin,
            Err(error) => return self.damaged(found.path, &error),
        };
        let source = self.new_source();
        let generation = self.next_generation(found.inode);
        let mut file = File::new(found.inode, source, generation, found.path.into());
        file.born = place;
        file.fingerprint = self.config.fingerprint_key.fingerprint(&sketch.head);
        file.size = sketch.size.into();
        file.origin = found.origin.into();
        self.add_twin(file, twin);
    }

    fn damaged(&mut self, path: PathBuf, error: &std::io::Error) {
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
