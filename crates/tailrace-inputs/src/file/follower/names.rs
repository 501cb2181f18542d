//! Names and inodes: which name leads to which file, as inotify and the rescans report it.
//!
//! Takes paths, asks the disk, and keeps `by_path`, `by_inode` and each file's names true. Reads no
//! log byte. A name is only ever a hint: a file's identity is its inode, and a name that leads to
//! another inode is taken away from the old file and given to the new one, while the old one is
//! read on.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::links::missing_target;
use super::memory::Moved;
use super::missed::{CLOCK_TICK_NS, now_ns};
use super::order::KnownPath;
use super::unannounced::Announced;
use super::{Follower, POLL_INTERVAL, RESCAN_PAUSE_MAX};
use crate::event::{LossReason, ProblemKind};
use crate::file::discover::Found;
use crate::file::gzip;
use crate::file::tracked::{File, Turn, is_absent};
use crate::file::watch::{ChangeKind, Changes};
use crate::identity::Inode;
use crate::meta::{Meta, find_inode};

/// A path that is new may have had a file before the last rescan, which was rotated before that, and none in that moment.
const LOOK_BACK_NS: u64 = 60_000_000_000;

/// How many times the kernel's queue is emptied before files get their turn.
const DRAINS_MAX: usize = 4;

impl Follower {
    /// Takes in what changed, and what is due.
    pub(super) fn refresh(&mut self) {
        let now = Instant::now();
        if now >= self.next_drain {
            self.take_changes();
            self.next_drain = now + self.config.coalesce;
        }
        if now >= self.next_rescan() {
            self.rescan_files();
        }
        if !self.held.is_empty() {
            self.limit_held();
        }
        while let Some(slot) = self.timers.pop(now) {
            let Some(file) = &mut self.files[slot as usize] else {
                continue;
            };
            let Some(pace) = file.pace_if_any() else {
                continue;
            };
            pace.timer = None;
            match pace.due {
                Some(due) if due <= now => {
                    pace.due = None;
                    self.mark_ready(slot);
                }
                Some(due) => self.set_due(slot, due),
                None => {}
            }
        }
    }

    /// Walks the globs and looks at every known file. Gives which globs matched.
    pub(super) fn rescan_files(&mut self) -> Vec<bool> {
        let begin = Instant::now();
        // Never the mark of what lasts.
        self.tick = (self.tick + 1) % u32::MAX;
        self.rotated.clear();
        let rescanned_at = std::mem::replace(&mut self.rescanned_at, now_ns());
        if self.is_new {
            self.started_at = self.rescanned_at;
            self.announced = Announced::at(self.started_at);
        } else if self.is_polling() {
            let since = rescanned_at
                .saturating_sub(LOOK_BACK_NS)
                .max(self.started_at);
            self.unannounced_since = since.saturating_sub(CLOCK_TICK_NS).max(1);
        }
        if self.is_polling() {
            self.missed.look();
        }
        let mut found = Found::default();
        self.discovery.walk_all(&mut found);
        self.report(&mut found);
        let mut matched = vec![false; self.discovery.patterns.texts().count()];
        for (path, pattern) in std::mem::take(&mut found.files) {
            if self.appeared(&path, true) {
                matched[usize::from(pattern)] = true;
            }
        }
        for slot in 0..self.files.len() {
            self.rescan_file(slot);
        }
        self.resolve_nameless();
        self.unannounced_since = 0;
        let rotated = std::mem::take(&mut self.rotated);
        self.find_rotated(&rotated);
        if std::mem::take(&mut self.has_missed) {
            self.find_unannounced(self.announced.since());
        }
        for KnownPath { path, .. } in &rotated {
            if let Some(dir) = path.parent().filter(|_| self.is_polling()) {
                self.missed.note(dir, None);
            }
        }
        self.find_missed();
        let tick = self.tick;
        self.problems
            .retain(|_, (_, seen)| *seen == tick || *seen == u32::MAX);
        self.denied.retain(|path| self.problems.contains_key(path));
        self.forget_links();
        self.last_rescan = (begin, begin.elapsed());
        matched
    }

    /// When the next rescan is due; sooner, where inotify was lost since the last one.
    pub(super) fn next_rescan(&self) -> Instant {
        let (begin, cost) = self.last_rescan;
        begin + rescan_pause(cost, self.config.scan_interval, self.is_polling())
    }

    /// Tells a problem that only a successful read takes back.
    pub(super) fn lasting_problem(&mut self, path: &Path, message: String) {
        self.problem(path, message);
        if let Some((_, tick)) = self.problems.get_mut(path) {
            *tick = u32::MAX;
        }
    }

    /// A name leads to no file any more, or to another one than it did.
    pub(super) fn detach(&mut self, path: &Path) {
        let Some(slot) = self.by_path.remove(path) else {
            return;
        };
        let Some(file) = &mut self.files[slot as usize] else {
            return;
        };
        file.names.retain(|name| **name != *path);
        if file.names.is_empty() {
            self.nameless.push(slot);
        } else {
            self.names_changed(slot);
        }
    }

    /// Looks for the files that lost their last name: a rename may have taken them where no watch is.
    pub(super) fn resolve_nameless(&mut self) {
        while let Some(slot) = self.nameless.pop() {
            let nameless = self.files[slot as usize]
                .as_ref()
                .is_some_and(|file| file.names.is_empty());
            if nameless && !self.look_for(slot) {
                if let Some(file) = &mut self.files[slot as usize] {
                    file.is_gone();
                    file.was_active();
                }
                self.hold_deleted(slot);
                self.mark_ready(slot);
                self.went(slot);
            }
        }
    }

    /// Whether a file without a name has one after all: the kernel's for an open file, else one in
    /// the directory it was last in.
    pub(super) fn look_for(&mut self, slot: u32) -> bool {
        let Some(file) = &self.files[slot as usize] else {
            return false;
        };
        let path = if file.is_open() {
            file.kernel_path()
        } else {
            let targets = self.targets_of(&file.path);
            let mut dirs = std::iter::once(&*file.path)
                .chain(targets)
                .filter_map(Path::parent);
            dirs.find_map(|dir| find_inode(dir, file.inode, file.created_at))
        };
        match path {
            Some(path) => {
                self.attach(slot, &path);
                self.mark_ready(slot);
                true
            }
            None => false,
        }
    }

    /// Gives a file a name; another file that had it loses it.
    pub(super) fn attach(&mut self, slot: u32, path: &Path) {
        let is_link = Meta::of_name(path).is_ok_and(|meta| meta.is_link());
        self.attach_as(slot, path, is_link);
    }

    fn attach_as(&mut self, slot: u32, path: &Path, is_link: bool) {
        match self.by_path.get(path) {
            Some(&known) if known == slot => return,
            Some(&known) => {
                if let Some(file) = &self.files[known as usize] {
                    self.rotated.push(KnownPath {
                        path: path.to_owned(),
                        created_at: file.created_at,
                    });
                }
                self.detach(path);
            }
            None if self.unannounced_since > 0 => {
                self.rotated.push(KnownPath {
                    path: path.to_owned(),
                    created_at: self.unannounced_since,
                });
            }
            None => {}
        }
        if let Some(file) = &mut self.files[slot as usize] {
            let is_reported_name = *file.path == *path;
            let name = if is_reported_name {
                Arc::clone(&file.path)
            } else {
                path.into()
            };
            self.by_path.insert(Arc::clone(&name), slot);
            // Nearly all have one name.
            file.names.reserve_exact(1);
            file.names.push(name);
            file.is_reached(file.is_wanted());
        }
        self.withdraw_unseen(slot);
        let mut found = Found::default();
        if let Some(dir) = path.parent() {
            self.discovery.watch_extra(dir, &mut found);
        }
        self.report(&mut found);
        if is_link && let Ok(target) = fs::canonicalize(path) {
            self.links.lead(path, &[&target], now_ns());
            self.attach(slot, &target);
            self.found_by_link(slot, path, &target);
        }
        self.names_changed(slot);
    }

    /// A path exists, or may: finds out what it leads to. True if that is a file that is followed.
    pub(super) fn appeared(&mut self, path: &Path, wanted: bool) -> bool {
        // Most are no links: they are asked about once.
        let meta = Meta::of_name(path);
        let is_link = meta.as_ref().is_ok_and(Meta::is_link);
        let meta = match if is_link { Meta::of_target(path) } else { meta } {
            Ok(meta) => meta,
            Err(error) => {
                self.detach(path);
                if wanted {
                    self.unreadable(path, &error);
                }
                return false;
            }
        };
        if !meta.is_file() {
            self.detach(path);
            if wanted {
                self.problem(path, not_regular(meta.kind));
            }
            return false;
        }
        let inode = meta.inode;
        self.end_if_inode_reused(inode, &meta);
        let slot = match self.by_inode.get(&inode) {
            Some(&slot) => slot,
            None if wanted && gzip::is_gzip(path) => {
                self.compressed(path);
                return false;
            }
            // What the checkpoint knows is read on.
            None if wanted && gzip::is_otherwise_compressed(path) && !self.resume.has(inode) => {
                self.otherwise_compressed(path);
                return false;
            }
            None if wanted => self.admit(path, &meta),
            None => {
                self.detach(path);
                return false;
            }
        };
        self.attach_as(slot, path, is_link);
        self.seen(slot, &meta);
        true
    }

    /// Another file has the inode of one that is known: the known one is gone. It was closed, or the
    /// inode would not be free.
    fn end_if_inode_reused(&mut self, inode: Inode, meta: &Meta) {
        let Some(&slot) = self.by_inode.get(&inode) else {
            return;
        };
        let known = self.files[slot as usize]
            .as_ref()
            .map_or(0, |f| f.created_at);
        let created_at = meta.created_at;
        if known != 0 && created_at != 0 && known != created_at {
            let is_unopened = self.went_unopened(slot);
            if is_unopened || self.continue_from_copy(slot) {
                return;
            }
            let mut events = std::mem::take(&mut self.pending);
            self.report_missed(slot, &mut events);
            self.end(slot, LossReason::Vanished, &mut events);
            self.pending = events;
        }
    }

    pub(super) fn take_changes(&mut self) {
        let mut changes = std::mem::take(&mut self.changes);
        let mut rescan = false;
        if !self.is_polling() {
            self.missed.look();
        }
        let mut emptied_at = None;
        for _ in 0..DRAINS_MAX {
            let (begin, clock) = (Instant::now(), now_ns());
            let more = self.discovery.watcher.drain(&mut changes);
            rescan |= self.apply(&changes);
            if !more {
                self.drained_at = begin;
                emptied_at = Some(clock);
                // What is in the queue by now may take several batches.
                self.memory.next_batch();
                break;
            }
            let on_their_way_max = self.discovery.watcher.on_their_way_max();
            self.memory.applied(changes.len(), on_their_way_max);
        }
        self.changes = changes;
        if rescan {
            self.note_all_missed();
            self.rescan_files();
        } else {
            self.resolve_nameless();
            self.find_missed();
        }
        if let Some(at) = emptied_at {
            self.announced.until(at);
        }
    }

    /// True if only a rescan can show what happened.
    fn apply(&mut self, changes: &Changes) -> bool {
        let mut rescan = false;
        let mut path = PathBuf::new();
        for index in 0..changes.len() {
            match changes.kind(index) {
                ChangeKind::Overflow => {
                    self.lasting_problem(
                        Path::new("inotify"),
                        "more changes came than fs.inotify.max_queued_events allows; \
                         all files are looked at again"
                            .to_owned(),
                    );
                    (rescan, self.has_missed) = (true, true);
                }
                ChangeKind::DirGone => {
                    for dir in self.discovery.watcher.drop_dir(changes, index) {
                        rescan |= self.discovery.dir_gone(&dir);
                        self.dir_left(&dir);
                    }
                }
                kind => {
                    // Only a directory reached by two paths has a second one.
                    let mut at = 0;
                    while let Some(dir) = self.discovery.watcher.dirs_of(changes, index).get(at) {
                        path.push(dir);
                        path.push(changes.name(index));
                        match kind {
                            ChangeKind::Modified => self.modified(&path, changes.number(index)),
                            _ => self.change(kind, changes.is_dir(index), &path),
                        }
                        at += 1;
                    }
                }
            }
        }
        rescan
    }

    fn modified(&mut self, path: &Path, number: u64) {
        match self.by_path.get(path) {
            Some(&slot) => self.was_written_to(slot, number),
            None if self.discovery.wants(path) => {
                self.appeared(path, true);
            }
            None => {}
        }
    }

    fn change(&mut self, kind: ChangeKind, is_dir: bool, path: &Path) {
        if is_dir {
            match kind {
                ChangeKind::Created | ChangeKind::MovedTo { .. } => self.dir_appeared(path),
                _ => self.dir_left(path),
            }
            return;
        }
        let inherited = self.memory.inherited.remove(path);
        let is_named = self.discovery.wants(path);
        let link = if is_named {
            None
        } else {
            self.link_to_beneath(path)
        };
        let wanted = is_named || link.is_some();
        match kind {
            ChangeKind::Created => self.name_came(path, wanted, None, link),
            ChangeKind::MovedTo { cookie } => {
                let moved = self.memory.moves.remove(&cookie);
                let (moved, _) = moved.unwrap_or_default();
                let link = link.or(moved.link);
                if moved.wanted {
                    let passed_on = (link.clone(), self.memory.number);
                    self.memory.inherited.insert(path.to_owned(), passed_on);
                }
                self.name_came(path, wanted || moved.wanted, moved.slot, link);
            }
            ChangeKind::MovedFrom { cookie } => {
                self.memory.unseen.remove(path);
                let slot = self.by_path.get(path).copied();
                self.name_left(path);
                let moved = Moved {
                    wanted: wanted || inherited.is_some(),
                    link: link.or_else(|| inherited?.0),
                    // One that has the name still, or again, was not what went.
                    slot: slot.filter(|_| !self.by_path.contains_key(path)),
                };
                let number = self.memory.number;
                self.memory.moves.insert(cookie, (moved, number));
            }
            ChangeKind::Deleted => {
                let unseen = self.memory.unseen.remove(path);
                let was_known = self.by_path.contains_key(path);
                self.name_left(path);
                // What has the name still, or again, is not what went.
                let is_known = was_known && !self.by_path.contains_key(path);
                if !is_known && (wanted || inherited.is_some() || self.is_original(path)) {
                    self.deleted_unknown(path, unseen.map(|(assumed_at, _)| assumed_at));
                }
            }
            ChangeKind::Modified | ChangeKind::DirGone | ChangeKind::Overflow => {}
        }
    }

    /// It was not before the changes were taken last, or it would have been reported then.
    fn was_written_to(&mut self, slot: u32, number: u64) {
        if let Some(file) = &mut self.files[slot as usize] {
            if let Some(closed) = file.closed() {
                closed.was_changed(number);
            }
            if file.turn != Turn::Changed
                && let Some(pace) = file.pace_if_any()
            {
                pace.growth.seen_to(self.drained_at);
            }
        }
        self.mark_ready(slot);
    }

    fn deleted_unknown(&mut self, path: &Path, assumed_at: Option<u64>) {
        if let Some(dir) = path.parent().filter(|_| !gzip::is_compressed(path)) {
            self.missed
                .note(dir, assumed_at.map(|assumed_at| (path, assumed_at)));
        }
    }

    /// Whether a name may be that of a rotated file of the input.
    fn is_original(&self, path: &Path) -> bool {
        !gzip::is_compressed(path) && self.discovery.matches(&self.origin_of(path))
    }

    /// A name was created or renamed to, by the file of `moved` if that is known; it may have gone again since. `link` is by
    /// what it is known, if not by itself.
    fn name_came(
        &mut self,
        path: &Path,
        wanted: bool,
        moved: Option<u32>,
        link: Option<Arc<Path>>,
    ) {
        self.appeared(path, wanted);
        if let Some(link) = link {
            self.note_behind(path, &link);
        }
        if wanted && Meta::of_name(path).is_err() {
            match moved {
                Some(slot) => self.was_called(slot, path),
                None => {
                    let assumed_at = self.assume_created_at(&self.origin_of(path), now_ns());
                    let number = self.memory.number;
                    self.memory
                        .unseen
                        .insert(path.to_owned(), (assumed_at, number));
                }
            }
        }
        let leads = self.links.to(path).iter();
        let links: Vec<_> = leads.map(|lead| Arc::clone(&lead.link)).collect();
        for link in links {
            self.appeared(&link, true);
        }
    }

    /// A file had this name last, and has none now: by it a compressed copy is known.
    fn was_called(&mut self, slot: u32, path: &Path) {
        let Some(file) = &mut self.files[slot as usize] else {
            return;
        };
        if file.names.is_empty() {
            file.path = path.into();
            self.report_names(slot);
        }
    }

    fn dir_appeared(&mut self, path: &Path) {
        let mut found = Found::default();
        if let Some(parent) = path.parent() {
            self.discovery.dir_appeared(parent, path, &mut found);
        }
        self.report(&mut found);
        for (file, _) in found.files {
            self.appeared(&file, true);
        }
    }

    /// A directory was deleted or moved: its files may be under other names, or gone.
    fn dir_left(&mut self, dir: &Path) {
        let names: Vec<Arc<Path>> = self
            .by_path
            .keys()
            .filter(|name| name.starts_with(dir))
            .cloned()
            .collect();
        for name in names {
            self.name_left(&name);
        }
    }

    /// A name was unlinked or renamed; it may have been given again since.
    fn name_left(&mut self, path: &Path) {
        let Some(&slot) = self.by_path.get(path) else {
            return;
        };
        let file = self.files[slot as usize].as_ref();
        match Meta::of_target(path) {
            Ok(meta) if file.is_some_and(|file| file.is(&meta)) => self.seen(slot, &meta),
            _ => self.detach(path),
        }
    }

    fn unreadable(&mut self, path: &Path, error: &std::io::Error) {
        if !is_absent(error) {
            let message = match error.kind() {
                std::io::ErrorKind::PermissionDenied => {
                    self.denied.insert(path.to_owned());
                    super::access::what_to_do(path, error)
                }
                _ => {
                    let message = format!("cannot be looked at: {error}");
                    return self.problem_of(ProblemKind::Read, path, message);
                }
            };
            self.problem(path, message);
            return;
        }
        let Ok(target) = fs::read_link(path) else {
            return;
        };
        let target = path.parent().unwrap_or(Path::new("/")).join(target);
        let message = format!(
            "is a link to {}, which is not there; it is waited for",
            target.display()
        );
        self.problem(path, message);
        let missing = missing_target(path);
        let places = [Some(&target), missing.as_ref()].into_iter().flatten();
        let places: Vec<&Path> = places.map(PathBuf::as_path).collect();
        self.links.lead(path, &places, now_ns());
        let mut found = Found::default();
        if let Some(dir) = target.parent() {
            self.discovery.watch_extra(dir, &mut found);
        }
        self.report(&mut found);
    }

    /// Said once for a directory: there may be thousands.
    fn compressed(&mut self, path: &Path) {
        self.lasting_problem(
            &path.with_file_name("*.gz"),
            "is named by a glob and left out: of compressed files only what was not read before they were \
             compressed is read; exclude them to be rid of this line"
                .to_owned(),
        );
    }

    fn otherwise_compressed(&mut self, path: &Path) {
        let extension = path.extension().unwrap_or_default();
        let all = format!("*.{}", extension.display());
        self.lasting_problem(
            &path.with_file_name(all),
            "is named by a glob and left out: compressed files of this kind are not read; compress with gzip, of which what was not \
             read before is read, and exclude these to be rid of this line"
                .to_owned(),
        );
    }

    /// A new file. It is opened at its turn.
    fn admit(&mut self, path: &Path, meta: &Meta) -> u32 {
        let inode = meta.inode;
        let source = self.new_source();
        let generation = self.next_generation(inode);
        let mut file = File::new(inode, source, generation, path.into());
        file.size = meta.bytes;
        file.created_at = meta.created_at;
        file.skip = self.skip_at_first_start(meta);
        let slot = self.new_slot();
        self.by_inode.insert(inode, slot);
        self.by_source.insert(source, slot);
        let is_read = self.claim_resume(&mut file, meta);
        self.set_origin(&mut file);
        if !is_read {
            self.open_handed_over(&mut file, path);
        }
        self.files[slot as usize] = Some(Box::new(file));
        self.join_rotation_chain(slot);
        if !is_read {
            self.mark_ready(slot);
        }
        slot
    }

    /// A `stat` through one of its names.
    fn seen(&mut self, slot: u32, meta: &Meta) {
        let Some(file) = &mut self.files[slot as usize] else {
            return;
        };
        file.tick = self.tick;
        if meta.bytes > file.offset
            && let Some(closed) = file.closed()
        {
            closed.was_written_to();
        }
        if file.differs(meta) {
            self.mark_ready(slot);
        }
    }

    /// A file the walk did not come upon: looks at its names one by one.
    fn rescan_file(&mut self, slot: usize) {
        let Some(file) = &self.files[slot] else {
            return;
        };
        if file.tick == self.tick {
            return;
        }
        let slot = u32::try_from(slot).unwrap_or(u32::MAX);
        if file.names.is_empty() {
            self.mark_ready(slot);
        }
        let names = self.files[slot as usize]
            .as_ref()
            .map_or_else(Vec::new, |file| file.names.clone());
        for name in names {
            self.name_left(&name);
        }
    }

    /// Which of the names is reported, and whether any belongs to the input.
    fn names_changed(&mut self, slot: u32) {
        let Some(file) = &mut self.files[slot as usize] else {
            return;
        };
        let discovery = &self.discovery;
        let is_wanted = file.names.iter().any(|name| discovery.matches(name));
        file.is_reached(is_wanted);
        let Some(first) = file.names.first() else {
            return;
        };
        if file.names.contains(&file.path) {
            return;
        }
        file.path = Arc::clone(first);
        file.was_active();
        let is_wanted = file.is_wanted();
        self.report_names(slot);
        if !is_wanted {
            self.mark_ready(slot);
        }
    }
}

/// From the beginning of a rescan that took so long to the next.
fn rescan_pause(cost: Duration, scan_interval: Duration, is_polling: bool) -> Duration {
    let (share, interval) = if is_polling {
        (20, scan_interval.min(POLL_INTERVAL))
    } else {
        (1000, scan_interval)
    };
    (cost * share).min(RESCAN_PAUSE_MAX).max(interval)
}

fn not_regular(kind: rustix::fs::FileType) -> String {
    let what = if kind.is_dir() {
        "a directory"
    } else if kind.is_fifo() {
        "a pipe (FIFO)"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    format!("is {what}, not a regular file, and is left out")
}
