//! Who is read before whom: the files that had one path, in the order in which they were made.
//!
//! Takes files as they are found and as they reach their end; decides whether a new file has its turn yet. A
//! new file under a rotated path waits, open and unread, until every older one is read to its end: what a
//! writer writes in one order arrives in that order, and a partial line can be joined across the rotation.
//! An older file that cannot be read holds nobody up. Never closes or drops anything.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Follower;
use super::chain::{ChainedFile, Rank, RotationChain};
use crate::event::{LossReason, SourceId};
use crate::file::gzip;
use crate::file::tracked::File;
use crate::identity::Inode;
use crate::meta::Meta;

/// A file that was rotated away, and the path of the input that it had. They sort by age.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rotated {
    created_at: u64,
    /// Whether a link leads, or led, to it.
    is_led_to: bool,
    path: PathBuf,
    origin: PathBuf,
}

/// A path of the input, and when a file was created that had it.
pub(super) struct KnownPath {
    pub(super) path: PathBuf,
    pub(super) created_at: u64,
}

impl Follower {
    /// A new file joins those that had its path before; each of them is looked at once more.
    pub(super) fn join_rotation_chain(&mut self, slot: u32) {
        let Some(file) = &self.files[slot as usize] else {
            return;
        };
        let rank = if file.origin == file.path {
            Rank::Current
        } else if self.is_led_to(&file.path) {
            Rank::LedTo
        } else {
            Rank::Rotated
        };
        let entry = ChainedFile {
            created_at: file.created_at,
            rank,
            number: file.number,
            slot,
        };
        let chain = self.rotation_chains.entry(Arc::clone(&file.origin));
        chain.or_default().insert(entry);
        let youngest = self.joined.entry(Arc::clone(&file.origin)).or_insert(entry);
        *youngest = entry.max(*youngest);
    }

    /// Those that are older than files that joined them are waited for, before any file has its turn. Many may join at once,
    /// so this is not done for each.
    pub(super) fn await_older(&mut self) {
        for (origin, youngest) in std::mem::take(&mut self.joined) {
            let older = self.unread_before(&origin, youngest);
            for slot in older {
                if let Some(file) = &mut self.files[slot as usize] {
                    file.awaited = true;
                    self.mark_ready(slot);
                }
            }
        }
    }

    /// The files of a path that are waited for by one that joined them.
    fn unread_before(&mut self, origin: &Path, joined: ChainedFile) -> Vec<u32> {
        let files = &self.files;
        let Some(chain) = self.rotation_chains.get_mut(origin) else {
            return Vec::new();
        };
        let end = chain.partition_point(|known| *known <= joined);
        // A file that is found late is waited for as well.
        let end = end.min(chain.len() - 1);
        let first = chain.first_left(end, |slot| is_done(files, slot));
        // One may have been written to since it was read, but not those before it: their writer has gone on.
        let is_given = |known: &ChainedFile| {
            let file = files[known.slot as usize].as_ref();
            file.is_some_and(|file| file.chunked)
        };
        let last_given = chain[..end].iter().rposition(is_given).unwrap_or(0);
        let from = first.min(last_given);
        let older = chain[from..end].iter().zip(from..);
        let is_awaited = |(known, at): &(&ChainedFile, usize)| {
            let file = files[known.slot as usize].as_ref();
            file.is_some_and(|file| {
                file.is_queued() || file.unread() > 0 || (file.is_open() && *at >= last_given)
            })
        };
        let older = older.filter(is_awaited);
        older.map(|(known, _)| known.slot).collect()
    }

    /// Something happens to a file that has, or had, its turn: those after it may have to wait.
    pub(super) fn look_again_at(&mut self, slot: u32) {
        if let Some(file) = &self.files[slot as usize]
            && let Some(chain @ RotationChain::Many { .. }) =
                self.rotation_chains.get_mut(&file.origin)
            && let Some(at) = chain.position(file, slot)
        {
            chain.look_again_from(at);
        }
    }

    /// The files of a path, in order.
    pub(super) fn chain_of(&self, origin: &Path) -> &[ChainedFile] {
        let chain = self.rotation_chains.get(origin);
        chain.map_or(&[], |chain| chain)
    }

    /// A file's chain, and where it stands there.
    pub(super) fn place_of(&self, slot: u32) -> Option<(&RotationChain, usize)> {
        let file = self.files[slot as usize].as_ref()?;
        let chain = self.rotation_chains.get(&file.origin)?;
        Some((chain, chain.position(file, slot)?))
    }

    /// Whether a file of which nothing was read has to wait for an older one.
    pub(super) fn has_to_wait(&mut self, slot: u32) -> bool {
        let files = &self.files;
        let Some(file) = files[slot as usize].as_ref().filter(|file| !file.chunked) else {
            return false;
        };
        let Some(chain) = self.rotation_chains.get_mut(&file.origin) else {
            return false;
        };
        let Some(at) = chain.position(file, slot) else {
            return false;
        };
        let first = chain.first_left(at, |slot| is_done(files, slot));
        chain[first.min(at)..at].iter().any(|known| {
            let known = &files[known.slot as usize];
            known.as_ref().is_some_and(|file| file.awaited)
        })
    }

    /// What an earlier run had read further than a file before it is opened, though it may have no new byte: a record
    /// that is read again from the end of that file ended in this one.
    pub(super) fn find_read_ahead(&mut self) {
        self.await_older();
        for entry in std::mem::take(&mut self.read_and_gone) {
            let is_behind = |known: &ChainedFile| {
                let file = self.files[known.slot as usize].as_ref();
                file.is_some_and(|file| file.unread() > 0 || file.is_copied())
            };
            let mut chain = self.chain_of(&self.origin_of(entry.origin())).iter();
            let is_ahead =
                chain.any(|known| known.created_at < entry.id.created_at && is_behind(known));
            if !is_ahead || !self.resume_from_copy(&entry, true) {
                self.forgotten(&entry, LossReason::Vanished);
            }
            self.generations.let_go(Inode::from(entry.id));
        }
        let mut ahead_files = Vec::new();
        for chain in self.rotation_chains.values() {
            let files = chain.iter().map(|known| known.slot);
            let files = files.filter_map(|slot| Some((slot, self.files[slot as usize].as_ref()?)));
            let behind = files.skip_while(|(_, file)| file.unread() == 0 && !file.is_copied());
            let ahead = behind.skip(1).filter(|(_, file)| file.offset > 0);
            ahead_files.extend(ahead.map(|(slot, _)| slot));
        }
        for slot in ahead_files {
            if let Some(file) = &mut self.files[slot as usize] {
                // Those after it wait for it as for one that is read.
                (file.is_read_ahead, file.awaited) = (true, true);
            }
            self.mark_ready(slot);
        }
    }

    /// A file gives its first bytes: what had its path before it, and now may end. Nothing goes on in it if a file between
    /// them is lost.
    pub(super) fn goes_on(&mut self, slot: u32) -> Option<SourceId> {
        let (chain, at) = self.place_of(slot)?;
        let created_at = chain[at].created_at;
        let origin = Arc::clone(&self.files[slot as usize].as_ref()?.origin);
        let mut older = Vec::new();
        for known in chain[..at].iter().rev() {
            let Some(file) = &self.files[known.slot as usize] else {
                continue;
            };
            if file.is_reported
                && (file.is_deleted() || file.path != file.origin)
                && file.unread() == 0
            {
                older.push((*known, file.source, file.offset == 0));
            }
            // Those before it were told when it gave its own, or are over.
            if file.chunked || (!file.is_reported && file.offset > 0) {
                break;
            }
        }
        for (known, ..) in older.iter().rev() {
            self.mark_ready(known.slot);
        }
        // In one that stayed empty nothing went on.
        let with_bytes = older.iter().find(|(_, _, is_empty)| !is_empty);
        let (nearest, source, _) = with_bytes.or(older.first())?;
        let from = nearest.created_at;
        (!self.gaps.is_between(&origin, from, created_at)).then_some(*source)
    }

    /// Whether a younger file of the same path is there that gave no byte yet: a record may go on in it.
    pub(super) fn goes_on_later(&self, slot: u32) -> bool {
        let Some((chain, at)) = self.place_of(slot) else {
            return false;
        };
        let younger = chain[at + 1..].iter();
        let mut younger = younger.filter_map(|known| self.files[known.slot as usize].as_ref());
        let is_there = younger.next().is_some_and(|file| !file.chunked);
        is_there && younger.all(|file| !file.chunked) && !self.is_before_gap(slot)
    }

    /// The oldest file of the same path that has its turn to come and was not reported, for a file that was not
    /// either: a caller that knows of a file knows of those before it, and so does its checkpoint.
    pub(super) fn unreported_before(&mut self, slot: u32) -> Option<u32> {
        let files = &self.files;
        let file = files[slot as usize]
            .as_ref()
            .filter(|file| !file.is_reported)?;
        let chain = self.rotation_chains.get_mut(&file.origin)?;
        let at = chain.position(file, slot)?;
        chain.first_unreported(at, |known| {
            let known = files[known as usize].as_ref();
            known.is_none_or(|known| !known.is_queued() || known.is_reported)
        })
    }

    /// A file is at its end, or cannot be read: those that wait for it have their turn.
    pub(super) fn release(&mut self, slot: u32) {
        let Some(file) = &mut self.files[slot as usize] else {
            return;
        };
        if !std::mem::take(&mut file.awaited) {
            return;
        }
        let Some((chain, at)) = self.place_of(slot) else {
            return;
        };
        // Up to the first for whom the others wait now.
        let mut younger = Vec::new();
        for known in &chain[at + 1..] {
            younger.push(known.slot);
            let file = self.files[known.slot as usize].as_ref();
            if file.is_some_and(|file| file.awaited) {
                break;
            }
        }
        for younger in younger {
            self.mark_ready(younger);
        }
    }

    /// A file is gone for good.
    pub(super) fn leave_rotation_chain(&mut self, slot: u32) {
        self.release(slot);
        let Some(file) = &self.files[slot as usize] else {
            return;
        };
        if let Some(chain) = self.rotation_chains.get_mut(&file.origin) {
            chain.remove(file, slot);
            if chain.is_empty() {
                self.rotation_chains.remove(&file.origin);
                self.gaps.forget(&file.origin);
            }
        }
    }

    /// Looks for files that were made under paths of the input and rotated away unseen: they carry a rotated
    /// name of one, and are no older than the time that stands beside it: when the youngest file was made that is
    /// known to have had the path, or when the path was last looked for.
    pub(super) fn find_rotated(&mut self, paths: &[KnownPath]) {
        let paths = youngest(paths);
        let targets = paths.keys().flat_map(|path| self.targets_of(path));
        let dirs = paths.keys().copied().chain(targets);
        let dirs: BTreeSet<&Path> = dirs.filter_map(Path::parent).collect();
        let dirs = dirs.into_iter().filter(|dir| self.roots.lead_to(dir));
        let since = |origin: &Path| paths.get(origin).copied().filter(|since| *since > 0);
        let rotated = self.rotated_in(dirs, since);
        self.take_rotated(rotated);
    }

    /// The files of directories that carry a rotated name, are followed by nobody, and are no older than `since` gives for
    /// the path that they had, if it gives a time. Where the filesystem does not record when a file was made, nothing
    /// can be known of them. Each directory is listed once.
    pub(super) fn rotated_in<'a>(
        &self,
        dirs: impl Iterator<Item = &'a Path>,
        since: impl Fn(&Path) -> Option<u64>,
    ) -> Vec<Rotated> {
        let mut rotated = Vec::new();
        for entry in dirs.flat_map(fs::read_dir).flatten().flatten() {
            let path = entry.path();
            if self.by_path.contains_key(path.as_path()) || gzip::is_compressed(&path) {
                continue;
            }
            let origin = self.origin_of(&path);
            if origin != path
                && let Some(since) = since(&origin)
                && let Ok(meta) = Meta::of_name(&path)
                && meta.is_file()
                && meta.created_at >= since
                && self.may_have_had(&path, &origin, meta.created_at)
                && !self.is_followed(&meta)
                && !self.discovery.patterns.excluded(&path)
            {
                rotated.push(Rotated {
                    created_at: meta.created_at,
                    is_led_to: self.is_led_to(&path),
                    path,
                    origin,
                });
            }
        }
        rotated
    }

    /// Follows them, the oldest first.
    pub(super) fn take_rotated(&mut self, mut rotated: Vec<Rotated>) {
        rotated.sort();
        for Rotated { path, origin, .. } in rotated {
            self.rotated_appeared(&path, &origin);
        }
    }

    /// Whether a file is followed. One that is gone may stand for its inode still.
    pub(super) fn is_followed(&self, meta: &Meta) -> bool {
        let namesake = self.by_inode.get(&meta.inode);
        let namesake = namesake.and_then(|&slot| self.files[slot as usize].as_ref());
        namesake.is_some_and(|file| file.created_at == meta.created_at || file.created_at == 0)
    }

    /// Paths of the input that lead to another file than those that an earlier run knew: what was there in
    /// between is looked for.
    pub(super) fn find_between(&mut self, known: &[KnownPath]) {
        let mut others: Vec<KnownPath> = Vec::new();
        for (path, youngest) in youngest(known) {
            if !self.is_known(path, youngest) {
                others.push(KnownPath {
                    path: path.to_owned(),
                    created_at: youngest,
                });
            }
        }
        self.find_rotated(&others);
    }

    /// Whether a path leads to a file that an earlier run knew by it, the youngest of those.
    pub(super) fn is_known(&self, path: &Path, youngest: u64) -> bool {
        let slot = self.by_path.get(path);
        let file = slot.and_then(|&slot| self.files[slot as usize].as_ref());
        file.is_some_and(|file| file.listed && *file.origin == *path && file.created_at >= youngest)
    }

    /// Whether there is such a file. While the follower is made, asked once for each: thousands of files may
    /// carry a name that could be a rotated one of the same path.
    fn is_there(&self, path: &Path) -> bool {
        if !self.is_new {
            return Meta::of_name(path).is_ok();
        }
        let mut asked = self.asked.borrow_mut();
        if let Some(known) = asked.get(path) {
            return *known;
        }
        let is_there = Meta::of_name(path).is_ok();
        asked.insert(path.to_owned(), is_there);
        is_there
    }

    /// Finds the origin of a file whose `origin` is a name it had.
    pub(super) fn set_origin(&self, file: &mut File) {
        let origin = self.origin_of(&file.origin);
        if origin != *file.origin {
            file.origin = origin.into();
        } else if file.origin == file.path {
            file.origin = Arc::clone(&file.path);
        }
    }

    /// The path of the input that a file had before it was rotated away: `a.log` of `a.log.1`,
    /// `a.log.20260101-000000` and `a-20260101.log`, if that belongs to the input; else its own. Where the
    /// globs name both, only if both are there: `worker-1.log` need not be what became of `worker.log`.
    /// Of a compressed file, the same of what it was made of. Behind a link, the link that leads, or led, to that path.
    pub(super) fn origin_of(&self, path: &Path) -> PathBuf {
        let path = &*gzip::uncompressed(path);
        let discovery = &self.discovery;
        let origins = unrotated_paths(path);
        let origin = origins.iter().find(|origin| {
            discovery.matches(origin)
                && (self.rotation_chains.contains_key(origin.as_path())
                    || !discovery.matches(path)
                    || self.is_there(origin))
        });
        let linked = || origins.iter().find_map(|origin| self.link_to(origin));
        let is_target = || self.link_to(path).filter(|_| !discovery.matches(path));
        let origin = origin.cloned().or_else(linked).or_else(is_target);
        origin.unwrap_or_else(|| path.to_owned())
    }
}

/// Whether a file has no turn, is read, and is awaited by nobody.
fn is_done(files: &[Option<Box<File>>], slot: u32) -> bool {
    let file = files[slot as usize].as_ref();
    file.is_none_or(|file| !file.awaited && !file.is_queued() && file.unread() == 0)
}

/// When the youngest file was made that is known to have had a path.
pub(super) fn youngest(known: &[KnownPath]) -> HashMap<&Path, u64> {
    let mut youngest: HashMap<&Path, u64> = HashMap::new();
    for KnownPath { path, created_at } in known {
        let known = youngest.entry(path).or_default();
        *known = (*known).max(*created_at);
    }
    youngest
}

/// What a path may have been before it was rotated.
pub(crate) fn unrotated_paths(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let marks = name.match_indices(['.', '-', '_']);
    let origins = marks.filter_map(|(at, _)| unrotated(&name, at));
    origins.map(|origin| path.with_file_name(origin)).collect()
}

/// A name without the number or date that begins at `at`, which goes to its end or to an extension.
fn unrotated(name: &str, at: usize) -> Option<String> {
    let (stem, rest) = name.split_at(at);
    let is_mark = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '_' | ':' | 'T' | 'Z');
    let end = rest.find(|c| !is_mark(c)).unwrap_or(rest.len());
    // An extension keeps its dot.
    let end = if end == rest.len() {
        end
    } else {
        end.checked_sub(1)?
    };
    let (mark, extension) = rest.split_at(end);
    let is_rotation = mark.contains(|c: char| c.is_ascii_digit())
        && (extension.is_empty() || extension.starts_with('.'));
    (is_rotation && !stem.is_empty()).then(|| format!("{stem}{extension}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotated_names_lead_to_their_path() {
        let names = |name: &str| -> Vec<String> {
            let marks = name.match_indices(['.', '-', '_']);
            marks.filter_map(|(at, _)| unrotated(name, at)).collect()
        };
        for (name, expected) in [
            ("a.log.1", "a.log"),
            ("0.log.20260101-123456", "0.log"),
            ("a-20260101.log", "a.log"),
            ("a.log-2026-01-01T00:00:00Z", "a.log"),
            ("a.3.log", "a.log"),
        ] {
            assert!(names(name).contains(&expected.to_owned()), "{name}");
        }
        for name in ["a.log", "a-errors.log", "a.log.old", ".1", "a.log.gz"] {
            assert!(names(name).is_empty(), "{name}: {:?}", names(name));
        }
    }
}
