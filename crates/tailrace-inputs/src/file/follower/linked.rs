//! Files that are found by a link of the input and themselves are elsewhere.
//!
//! Takes links and what they lead to; decides which path is reported of such a file, and where it is looked for. The path is
//! that of the link for as long as the file lives, since attributes are made of it; the file's own name goes into the
//! checkpoint beside it, so that a file is found whose name, or whose link, was changed while no agent ran.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{FileEvent, Follower};
use crate::meta::Meta;
use crate::resume::Resume;

impl Follower {
    /// A file was found by a link. If no glob names the file itself, it is reported by the link from now on.
    pub(super) fn found_by_link(&mut self, slot: u32, link: &Path, target: &Path) {
        let is_named = self.discovery.matches(target) || !self.discovery.matches(link);
        if is_named || self.linked.contains_key(&slot) {
            return;
        }
        self.linked.insert(slot, link.into());
        let Some(file) = &self.files[slot as usize] else {
            return;
        };
        if file.is_reported && *file.path == *link {
            self.report_names(slot);
        }
    }

    /// A file is there that an earlier run found by `link`, or that was made and rotated away behind it meanwhile.
    pub(super) fn appeared_behind(&mut self, path: &Path, link: &Arc<Path>) {
        self.appeared(path, true);
        if let Some(&slot) = self.by_path.get(path)
            && !self.discovery.matches(path)
        {
            self.linked.entry(slot).or_insert_with(|| Arc::clone(link));
        }
    }

    /// The path that is reported of a file; and its own, if that is another.
    pub(super) fn reported_names(&self, slot: u32) -> Option<(Arc<Path>, Option<Arc<Path>>)> {
        let file = self.files[slot as usize].as_ref()?;
        let path = Arc::clone(&file.path);
        let Some(link) = self.linked.get(&slot) else {
            return Some((path, None));
        };
        if path == *link {
            let target = file.names.iter().find(|name| *name != link);
            return Some((path, target.cloned()));
        }
        Some(if self.discovery.matches(&path) {
            (path, None)
        } else {
            (Arc::clone(link), Some(path))
        })
    }

    /// A file that was reported has another name.
    pub(super) fn report_names(&mut self, slot: u32) {
        let Some((path, target)) = self.reported_names(slot) else {
            return;
        };
        let file = self.files[slot as usize].as_ref();
        let Some(file) = file.filter(|file| file.is_reported) else {
            return;
        };
        let source = file.source;
        self.pending.push(match target {
            Some(target) => FileEvent::Linked { source, target },
            None => FileEvent::Renamed { source, path },
        });
    }

    /// Where the file of an entry was itself, if its path is a link. An earlier build did not note that: then it is where the
    /// link leads to now.
    pub(super) fn target_of(&self, entry: &Resume) -> Option<Arc<Path>> {
        if entry.target.is_some() {
            return entry.target.clone();
        }
        let is_link = Meta::of_name(&entry.path).is_ok_and(|meta| meta.is_link());
        is_link.then(|| Some(fs::canonicalize(&entry.path).ok()?.into()))?
    }

    /// What a link of the input leads to, and led to before.
    pub(super) fn targets_of<'a>(&'a self, link: &'a Path) -> impl Iterator<Item = &'a Path> {
        let leads = move |links: &[PathBuf]| links.iter().any(|known| known == link);
        let targets = self.links.iter().filter(move |(_, links)| leads(links));
        targets.map(|(target, _)| target.as_path())
    }

    /// A link of the input that leads to a path. Only while the follower is made: what comes later is announced.
    pub(super) fn link_to(&self, target: &Path) -> Option<PathBuf> {
        let mut links = self.links.get(target).filter(|_| self.is_new)?.iter();
        links.find(|link| self.discovery.matches(link)).cloned()
    }
}
