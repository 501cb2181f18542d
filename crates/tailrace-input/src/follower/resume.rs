//! Matching what an earlier run knew with what is on disk now.
//!
//! Takes resume entries, gives each a file or says that its file is gone. Device and inode find the
//! candidate; the fingerprint decides, when the file is opened at its turn. A file whose size is
//! exactly where it was left, and that was not changed since, is not opened at all until it is.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::order::Known;
use super::{Follower, Resume};
use crate::event::{FileEvent, LossReason};
use crate::file::File;
use crate::identity::Inode;
use crate::meta::Meta;

impl Follower {
    pub(super) fn take_resume(&mut self, resume: Vec<Resume>) {
        for entry in resume {
            let entries = self.resume.entry(Inode::from(entry.id));
            // Nearly all have one entry.
            let entries = entries.or_insert_with(|| Vec::with_capacity(1));
            entries.push(entry);
        }
        for entries in self.resume.values_mut() {
            entries.sort_by_key(|entry| entry.generation);
        }
    }

    /// The paths of the input that belong to files which are not where they were.
    pub(super) fn origins(&self, known: Vec<(Arc<Path>, Inode, u64)>) -> Vec<Known> {
        let moved = known.into_iter().filter(|(path, inode, born)| {
            let now = self
                .by_path
                .get(path)
                .and_then(|&slot| self.files[slot as usize].as_ref());
            now.is_none_or(|file| (file.inode, file.born) != (*inode, *born))
        });
        let origin = |(path, _, born): (Arc<Path>, Inode, u64)| (self.origin_of(&path), born);
        moved.map(origin).collect()
    }

    /// Gives a new file the place where its latest generation was left. True if it is read to its
    /// end as far as its size tells.
    pub(super) fn claim_resume(&mut self, file: &mut File, meta: &Meta) -> bool {
        let Some(mut entries) = self.resume.remove(&file.inode) else {
            return false;
        };
        let Some(latest) = entries.pop() else {
            return false;
        };
        for entry in entries {
            // Earlier contents of one file were cut; other files that had the inode are gone.
            let is_same = entry.id.born == latest.id.born;
            let reason = if is_same {
                LossReason::Truncated
            } else {
                LossReason::Vanished
            };
            self.resume_failed(entry, reason);
        }
        if latest.id.born != 0 && file.born != 0 && latest.id.born != file.born {
            // The inode is another file's now. Both may be in the checkpoint for a while.
            file.generation = file.generation.max(latest.generation + 1);
            file.skip = None;
            self.resume_failed(latest, LossReason::Vanished);
            return false;
        }
        if file.path == latest.path {
            file.path = Arc::clone(&latest.path);
        }
        file.origin = Arc::clone(&latest.path);
        file.go_on(latest.id, latest.generation, latest.offset, latest.size);
        // Without a birth time only its content tells whether it is that file: it is opened.
        let is_same = latest.id.born != 0 && latest.id.born == file.born;
        if !is_same || meta.bytes != latest.offset || latest.size > latest.offset {
            return false;
        }
        // Rotated, read, and finished by the run before.
        file.flushed = !self.discovery.patterns.matches(&file.path);
        // What was changed since and has its size may be another content: it is opened and compared.
        if latest.id.changed == 0 || latest.id.changed != meta.changed {
            return false;
        }
        // Read to its end. It is opened, compared and told when it changes.
        file.note_changed(meta);
        true
    }

    /// Looks for the entries that no discovered file claimed, under their old name and then in its
    /// directory; the rest are gone.
    pub(super) fn resume_unclaimed(&mut self) {
        let mut listings: HashMap<PathBuf, HashMap<u64, PathBuf>> = HashMap::new();
        let mut entries: Vec<Resume> = std::mem::take(&mut self.resume)
            .into_values()
            .flatten()
            .collect();
        entries.sort_by(|a, b| (&a.path, a.generation).cmp(&(&b.path, b.generation)));
        self.take_resume(entries.clone());
        for entry in &entries {
            let inode = Inode::from(entry.id);
            if !self.resume.contains_key(&inode) {
                continue;
            }
            let path = [Some(entry.path.to_path_buf()), listed(&mut listings, entry)]
                .into_iter()
                .flatten()
                .find(|path| {
                    // Another file may have the inode now. One that is ours was found by its name.
                    Meta::of_target(path).is_ok_and(|meta| {
                        let is_other = meta.born != entry.id.born && meta.born != 0;
                        let is_known = entry.id.born == 0 || !is_other;
                        meta.is_file() && meta.inode == inode && is_known
                    })
                });
            if let Some(path) = path {
                // It may be another file's inode by now, which is left out: a compressed one.
                self.appeared(&path, true);
            }
            // Other files that had the inode, or have it now, are looked for by themselves.
            let Some(entries) = self.resume.get_mut(&inode) else {
                continue;
            };
            let at = |known: &Resume| known.generation == entry.generation;
            let Some(at) = entries.iter().position(at) else {
                continue;
            };
            let is_latest = at + 1 == entries.len();
            let entry = entries.remove(at);
            if entries.is_empty() {
                self.resume.remove(&inode);
            }
            if !is_latest || !self.resume_handed_over(&entry) {
                self.resume_failed(entry, LossReason::Vanished);
            }
        }
    }

    fn resume_failed(&mut self, entry: Resume, reason: LossReason) {
        if reason == LossReason::Vanished && self.resume_from_twin(&entry, false) {
            return;
        }
        let bytes = entry.size.saturating_sub(entry.offset);
        if bytes == 0 && reason == LossReason::Vanished && self.is_new {
            self.generations
                .hold(Inode::from(entry.id), entry.generation);
            self.read_and_gone.push(entry);
            return;
        }
        if bytes > 0 {
            self.pending.push(FileEvent::Lost {
                source: None,
                path: entry.path.to_path_buf(),
                bytes,
                reason,
            });
        }
        self.forgotten(&entry);
    }

    pub(super) fn forgotten(&mut self, entry: &Resume) {
        self.note_ended(entry.id);
        self.pending.push(FileEvent::Forgotten {
            id: entry.id,
            generation: entry.generation,
            path: entry.path.to_path_buf(),
        });
    }
}

/// The name an inode has now in the directory where it was: each directory is listed once.
fn listed(
    listings: &mut HashMap<PathBuf, HashMap<u64, PathBuf>>,
    entry: &Resume,
) -> Option<PathBuf> {
    let dir = entry.path.parent()?;
    if !listings.contains_key(dir) {
        listings.insert(dir.to_owned(), list(dir));
    }
    listings.get(dir)?.get(&entry.id.inode).cloned()
}

fn list(dir: &Path) -> HashMap<u64, PathBuf> {
    fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| (entry.ino(), entry.path()))
        .collect()
}
