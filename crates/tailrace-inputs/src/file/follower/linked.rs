//! Files that are found by a link of the input and themselves are elsewhere.
//!
//! Takes links and what they lead to; decides which path is reported of such a file, and where it is looked for. The path is
//! that of the link for as long as the file lives, since attributes are made of it; the file's own name goes into the
//! checkpoint beside it, so that a file is found whose name, or whose link, was changed while no agent ran.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::links::Lead;
use super::missed::now_ns;
use super::order::unrotated_paths;
use super::{FileEvent, Follower};
use crate::meta::Meta;
use crate::resume::Resume;

/// The names that are reported of a file.
pub(super) struct ReportedNames {
    pub(super) path: Arc<Path>,
    /// The path of the input that it had, if no glob names `path`.
    pub(super) origin: Option<Arc<Path>>,
    /// Its own name, if `path` is a link.
    pub(super) target: Option<Arc<Path>>,
}

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

    /// A file is there that an earlier run found by `link`, or that was made behind it and perhaps rotated away since.
    pub(super) fn appeared_behind(&mut self, path: &Path, link: &Arc<Path>) {
        self.appeared(path, true);
        self.note_behind(path, link);
    }

    /// A rotated file is there: beside the path of the input that it had, or behind the link that led to it.
    pub(super) fn rotated_appeared(&mut self, path: &Path, origin: &Path) -> bool {
        let is_followed = self.appeared(path, true);
        if path.parent() != origin.parent() {
            self.note_behind(path, &origin.into());
        }
        is_followed
    }

    /// The file of a path, if there is one, was found by a link of the input.
    pub(super) fn note_behind(&mut self, path: &Path, link: &Arc<Path>) {
        if let Some(&slot) = self.by_path.get(path)
            && !self.discovery.matches(path)
        {
            self.linked.entry(slot).or_insert_with(|| Arc::clone(link));
        }
    }

    /// The names that are reported of a file.
    pub(super) fn reported_names(&self, slot: u32) -> Option<ReportedNames> {
        let file = self.files[slot as usize].as_ref()?;
        let path = Arc::clone(&file.path);
        let (path, target) = match self.linked.get(&slot) {
            None => (path, None),
            Some(link) if path == *link => {
                let target = file.names.iter().find(|name| *name != link);
                (path, target.cloned())
            }
            Some(_) if self.discovery.matches(&path) => (path, None),
            Some(link) => (Arc::clone(link), Some(path)),
        };
        let is_rotated = file.origin != path && !self.discovery.matches(&path);
        let origin = is_rotated.then(|| Arc::clone(&file.origin));
        Some(ReportedNames {
            path,
            origin,
            target,
        })
    }

    /// A file that was reported has another name.
    pub(super) fn report_names(&mut self, slot: u32) {
        let Some(names) = self.reported_names(slot) else {
            return;
        };
        let file = self.files[slot as usize].as_ref();
        let Some(file) = file.filter(|file| file.is_reported) else {
            return;
        };
        let source = file.source;
        self.pending.push(match names.target {
            Some(target) => FileEvent::Linked { source, target },
            None => FileEvent::Renamed {
                source,
                path: names.path,
                origin: names.origin,
            },
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
    pub(super) fn targets_of(&self, link: &Path) -> impl Iterator<Item = &Path> {
        self.links.targets_of(link)
    }

    /// A link of the input that leads to a path, or one that led there.
    pub(super) fn link_to(&self, target: &Path) -> Option<PathBuf> {
        Some(self.lead_to(target)?.link.to_path_buf())
    }

    fn lead_to(&self, target: &Path) -> Option<&Lead> {
        let leads = self.links.to(target).iter();
        let leads = leads.filter(|lead| self.discovery.matches(&lead.link));
        leads.max_by_key(|lead| lead.is_live())
    }

    /// Whether there is one.
    pub(super) fn is_led_to(&self, target: &Path) -> bool {
        self.link_to(target).is_some()
    }

    /// The links that lead, or led, into a directory.
    pub(super) fn links_into(&self, dir: &Path) -> HashSet<&Path> {
        let links = self.links.iter();
        let links = links.filter(|(target, _)| target.parent() == Some(dir));
        let leads = links.flat_map(|(_, leads)| leads);
        leads.map(|lead| &*lead.link).collect()
    }

    /// The names beneath the roots that the file of a slot had behind a link, as far as links lead or led to them.
    pub(super) fn names_behind(&self, slot: u32) -> Vec<PathBuf> {
        let link = self.linked.get(&slot);
        let targets = link.into_iter().flat_map(|link| self.targets_of(link));
        let targets = targets.filter(|target| {
            let dir = target.parent();
            dir.is_some_and(|dir| self.roots.lead_to(dir))
        });
        targets.map(Path::to_owned).collect()
    }

    /// The link to a path that lies beneath the roots and is not named by a glob itself: what gets that name may be read.
    /// Where the link leads elsewhere since, only what was made before that may.
    pub(super) fn link_to_beneath(&self, target: &Path) -> Option<Arc<Path>> {
        let lead = self.lead_to(target)?;
        if !lead.is_live() {
            let made = Meta::of_name(target).map(|meta| meta.created_at).ok();
            let made = made.filter(|made| *made > 0).unwrap_or_else(now_ns);
            if !lead.may_own(made) {
                return None;
            }
        }
        let dir = target.parent().filter(|dir| self.roots.lead_to(dir))?;
        let is_named = self.discovery.matches(target) || dir == lead.link.parent()?;
        (!is_named).then(|| Arc::clone(&lead.link))
    }

    /// Whether a file with a rotated name, made then, can have had a path of the input: behind a link it cannot if it was
    /// made after the link led elsewhere.
    pub(super) fn may_have_had(&self, path: &Path, origin: &Path, made: u64) -> bool {
        let dir = path.parent();
        let targets = self.links.targets_of(origin);
        let targets = targets.filter(|target| target.parent() == dir);
        let leads = targets.flat_map(|target| self.links.to(target));
        let mut leads = leads.filter(|lead| *lead.link == *origin).peekable();
        dir == origin.parent() || leads.peek().is_none() || leads.any(|lead| lead.may_own(made))
    }

    /// Links that are gone need no watching over, nor does what a link led to before, once no file of that is followed.
    pub(super) fn forget_links(&mut self) {
        let now = now_ns();
        let followed = self.links.have_left(now).then(|| self.followed_behind());
        let by_path = &self.by_path;
        self.links.retain(|place, lead| {
            let is_there = || Meta::of_name(&lead.link).is_ok();
            let is_followed = |followed: &HashSet<(Arc<Path>, PathBuf)>| {
                let at = |place: &Path| (Arc::clone(&lead.link), place.to_owned());
                followed.contains(&at(place)) || followed.contains(&at(Path::new("")))
            };
            (by_path.contains_key(&lead.link) || is_there())
                && (lead.may_own(now) || followed.as_ref().is_none_or(is_followed))
        });
    }

    /// The links of files that are followed, each with a place where its file may have been found by it; an empty one stands
    /// for any.
    fn followed_behind(&self) -> HashSet<(Arc<Path>, PathBuf)> {
        let mut places = HashSet::new();
        for (slot, link) in &self.linked {
            let Some(file) = &self.files[*slot as usize] else {
                continue;
            };
            let names = file.names.iter().chain([&file.path]);
            let mut names = names.filter(|name| *name != link).peekable();
            if names.peek().is_none() {
                places.insert((Arc::clone(link), PathBuf::new()));
            }
            for name in names {
                let origins = unrotated_paths(name).into_iter();
                for place in origins.chain([name.to_path_buf()]) {
                    places.insert((Arc::clone(link), place));
                }
            }
        }
        places
    }

    /// The directories in which a file of the input can be: those of the globs, and those beneath the roots to which links
    /// lead or led.
    pub(super) fn homes(&self) -> BTreeSet<PathBuf> {
        let targets = self.links.iter();
        let targets = targets.filter(|(_, leads)| {
            let mut leads = leads.iter();
            leads.any(|lead| self.discovery.matches(&lead.link))
        });
        let targets: BTreeSet<&Path> = targets.filter_map(|(target, _)| target.parent()).collect();
        let targets = targets.into_iter().filter(|dir| self.roots.lead_to(dir));
        let homes = self.discovery.homes().chain(targets);
        homes.map(Path::to_owned).collect()
    }
}
