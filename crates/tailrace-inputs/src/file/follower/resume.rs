//! Matching what an earlier run knew with what is on disk now.
//!
//! Takes resume entries, gives each a file or says that its file is gone. Device and inode find the
//! candidate; the fingerprint decides, when the file is opened at its turn. A file whose size is
//! exactly where it was left, and that was not changed since, is not opened at all until it is.

use std::path::Path;
use std::sync::Arc;

use super::Follower;
use super::listings::{Listings, is_at};
use super::missed::now_ns;
use super::order::KnownPath;
use crate::event::{FileEvent, LossReason};
use crate::file::tracked::File;
use crate::identity::Inode;
use crate::meta::{LISTINGS_MAX, Meta};
use crate::resume::Resume;

/// Resume entries that no file has claimed: of very many files they are much of what a start needs, so they stay where
/// they are.
#[derive(Default)]
pub(super) struct Unclaimed {
    /// By inode and generation.
    entries: Vec<Resume>,
    /// Which of them were claimed.
    is_taken: Vec<bool>,
}

impl Unclaimed {
    pub(super) fn new(mut entries: Vec<Resume>) -> Self {
        entries.sort_by_key(|entry| entry.id.key(entry.generation));
        let is_taken = vec![false; entries.len()];
        Self { entries, is_taken }
    }

    /// Those of an inode that are left, the latest generation last.
    fn of(&self, inode: Inode) -> impl DoubleEndedIterator<Item = usize> {
        let inode_at = |entry: &Resume| Inode::from(entry.id);
        let from = self
            .entries
            .partition_point(|entry| inode_at(entry) < inode);
        let same = self.entries[from..].partition_point(|entry| inode_at(entry) == inode);
        (from..from + same).filter(|&at| !self.is_taken[at])
    }

    pub(super) fn has(&self, inode: Inode) -> bool {
        self.of(inode).next().is_some()
    }

    /// The paths of those that were read through links, and where the files were.
    fn targets(&self) -> impl Iterator<Item = (&Arc<Path>, &Arc<Path>)> {
        let entries = self.entries.iter();
        entries.filter_map(|entry| Some((&entry.path, entry.target.as_ref()?)))
    }

    /// Takes all of an inode.
    fn take_all(&mut self, inode: Inode) -> Vec<Resume> {
        let all: Vec<usize> = self.of(inode).collect();
        for &at in &all {
            self.is_taken[at] = true;
        }
        all.into_iter().map(|at| self.entries[at].clone()).collect()
    }

    /// Takes one generation of an inode; and whether it was the latest.
    fn take(&mut self, inode: Inode, generation: u32) -> Option<(Resume, bool)> {
        let latest = self.of(inode).next_back()?;
        let at = self
            .of(inode)
            .find(|&at| self.entries[at].generation == generation)?;
        self.is_taken[at] = true;
        Some((self.entries[at].clone(), at == latest))
    }

    /// What is left.
    fn rest(&self) -> Vec<Resume> {
        let entries = self.entries.iter().zip(&self.is_taken);
        let left = entries.filter(|(_, is_taken)| !**is_taken);
        left.map(|(entry, _)| entry.clone()).collect()
    }

    /// All entries that there were.
    pub(super) fn into_entries(self) -> Vec<Resume> {
        self.entries
    }
}

impl Follower {
    /// The paths of the input that belong to files which are not where they were.
    pub(super) fn origins(&self, known: &[Resume]) -> Vec<KnownPath> {
        let moved = known.iter().filter(|entry| {
            let now = self
                .by_path
                .get(&entry.path)
                .and_then(|&slot| self.files[slot as usize].as_ref());
            let known = (Inode::from(entry.id), entry.id.created_at);
            now.is_none_or(|file| (file.inode, file.created_at) != known)
        });
        let origin = |entry: &Resume| KnownPath {
            path: self.origin_of(entry.origin()),
            created_at: entry.id.created_at,
        };
        moved.map(origin).collect()
    }

    /// Gives a new file the place where its latest generation was left. True if it is read to its
    /// end as far as its size shows.
    pub(super) fn claim_resume(&mut self, file: &mut File, meta: &Meta) -> bool {
        let mut entries = self.resume.take_all(file.inode);
        let Some(latest) = entries.pop() else {
            return false;
        };
        for entry in entries {
            // Earlier contents of one file were cut; other files that had the inode are gone.
            let is_same = entry.id.created_at == latest.id.created_at;
            let reason = if is_same {
                LossReason::Truncated
            } else {
                LossReason::Vanished
            };
            self.resume_failed(entry, reason);
        }
        if latest.id.created_at != 0
            && file.created_at != 0
            && latest.id.created_at != file.created_at
        {
            // The inode is another file's now. Both may be in the checkpoint for a while.
            file.generation = file.generation.max(latest.generation + 1);
            file.skip = None;
            self.resume_failed(latest, LossReason::Vanished);
            return false;
        }
        if file.path == latest.path {
            file.path = Arc::clone(&latest.path);
        }
        file.origin = Arc::clone(latest.origin());
        file.go_on(latest.id, latest.generation, latest.offset, latest.size);
        file.flushed = self.was_given_away(&latest);
        if latest.is_unseen {
            // That is withdrawn when it has its name.
            if let Some(closed) = file.closed() {
                closed.tell(true);
            }
            return false;
        }
        // Without a birth time only its content shows whether it is that file: it is opened.
        let is_same = latest.id.created_at != 0 && latest.id.created_at == file.created_at;
        if !is_same || meta.bytes != latest.offset || latest.size > latest.offset {
            return false;
        }
        // What was changed since and has its size may be another content: it is opened and compared.
        if latest.id.changed == 0 || latest.id.changed != meta.changed {
            return false;
        }
        // Read to its end. It is opened, compared and reported when it changes.
        file.note_changed(meta);
        true
    }

    /// Whether the beginning of a line may have been given away as a record. The run before does so at the end of a file that
    /// was rotated away: if its writer goes on, what it writes is no rest of anything. Within the file it does not: there a
    /// line that is too long was cut, and the rest of that is skipped.
    pub(super) fn was_given_away(&self, entry: &Resume) -> bool {
        entry.offset >= entry.size && !self.discovery.patterns.matches(&entry.path)
    }

    /// What links of the input led to when an earlier run read it: they may lead elsewhere now.
    pub(super) fn note_targets(&mut self) {
        let targets = self.resume.targets();
        let targets: Vec<_> = targets
            .filter(|(link, target)| link.parent() != target.parent())
            .map(|(link, target)| (Arc::clone(link), Arc::clone(target)))
            .collect();
        for (link, target) in targets {
            self.links.led(&link, &target, now_ns());
        }
    }

    /// Looks for the entries that no discovered file claimed, under their old name and then in its
    /// directory; the rest are gone.
    pub(super) fn resume_unclaimed(&mut self) {
        let mut listings = Listings::default();
        let mut entries = self.resume.rest();
        entries.sort_by(|a, b| (&a.path, a.generation).cmp(&(&b.path, b.generation)));
        for entry in &entries {
            let inode = Inode::from(entry.id);
            if !self.resume.has(inode) {
                continue;
            }
            self.find_renamed(entry, &mut listings);
            // Other files that had the inode, or have it now, are looked for by themselves.
            let Some((entry, is_latest)) = self.resume.take(inode, entry.generation) else {
                continue;
            };
            if !is_latest || !self.resume_handed_over(&entry) {
                self.resume_failed(entry, LossReason::Vanished);
            }
        }
    }

    /// Looks for the file of an entry, which claims it if it is there. It may be renamed once more in that moment: a rotation
    /// goes through hundreds of files, and none of them may be taken for gone because of that.
    fn find_renamed(&mut self, entry: &Resume, listings: &mut Listings) {
        let (inode, created_at) = (Inode::from(entry.id), entry.id.created_at);
        for _ in 0..LISTINGS_MAX {
            let named = listings.find(&entry.path, inode, created_at);
            #[cfg(test)]
            super::tests::between_looks();
            let path = if let Some(path) = named {
                // It may be another file's inode by now, which is left out: a compressed one.
                self.appeared(&path, true);
                path
            } else if let Some(target) = self.target_of(entry)
                && let Some(path) = listings.find(&target, inode, created_at)
                // The roots may be others than those of the run before.
                && self.roots.lead_to(&path)
            {
                self.appeared_behind(&path, &entry.path);
                path
            } else {
                return;
            };
            if !self.resume.has(inode) || is_at(&path, inode, created_at) {
                return;
            }
        }
    }

    fn resume_failed(&mut self, entry: Resume, reason: LossReason) {
        if reason == LossReason::Vanished && self.resume_from_copy(&entry, false) {
            return;
        }
        let bytes = entry.size.saturating_sub(entry.owed_from);
        let is_unseen = entry.is_unseen && bytes == 0 && reason == LossReason::Vanished;
        if bytes == 0 && reason == LossReason::Vanished && !is_unseen && self.is_new {
            self.generations
                .hold(Inode::from(entry.id), entry.generation);
            self.read_and_gone.push(entry);
            return;
        }
        if bytes > 0 || is_unseen {
            self.pending.push(FileEvent::Lost {
                source: None,
                path: entry.path.to_path_buf(),
                bytes,
                reason: if is_unseen {
                    LossReason::Missed
                } else {
                    reason
                },
            });
        }
        self.forgotten(&entry, reason);
    }

    pub(super) fn forgotten(&mut self, entry: &Resume, reason: LossReason) {
        self.note_ended(entry.id);
        self.note_gap_of_earlier(entry, reason);
        self.pending.push(FileEvent::Forgotten {
            id: entry.id,
            generation: entry.generation,
            path: entry.path.to_path_buf(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::FileId;

    fn entry(inode: u64, generation: u32) -> Resume {
        Resume {
            id: FileId {
                inode,
                ..FileId::NONE
            },
            generation,
            path: Path::new("/a").into(),
            origin: None,
            target: None,
            offset: 1,
            owed_from: 1,
            size: 1,
            is_unseen: false,
        }
    }

    #[test]
    fn each_entry_is_claimed_once() {
        let at = |inode| Inode { device: 0, inode };
        let generations = |entries: Vec<Resume>| -> Vec<_> {
            let entries = entries.iter();
            entries
                .map(|entry| (entry.id.inode, entry.generation))
                .collect()
        };
        let known = [(5, 1), (3, 0), (5, 0), (7, 2), (5, 4)];
        let mut resume = Unclaimed::new(known.map(|(inode, number)| entry(inode, number)).into());
        assert_eq!(generations(resume.take_all(at(4))), []);
        assert_eq!(generations(resume.take_all(at(3))), [(3, 0)]);
        assert!(!resume.has(at(3)) && resume.has(at(7)));
        let mut take = |inode, generation| {
            let taken = resume.take(at(inode), generation);
            taken.map(|(entry, is_latest)| (entry.generation, is_latest))
        };
        assert_eq!(take(5, 1), Some((1, false)));
        assert_eq!(take(5, 1), None);
        assert_eq!(take(5, 4), Some((4, true)));
        assert_eq!(take(5, 0), Some((0, true)));
        assert_eq!(generations(resume.rest()), [(7, 2)]);
        assert_eq!(resume.into_entries().len(), 5);
        assert!(Unclaimed::default().take_all(at(1)).is_empty());
    }
}
