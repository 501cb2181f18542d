//! Files of the input that came and went while the agent runs, before anybody could open them.
//!
//! Takes what happens to names, and has the compressed files looked at (`copied`) that were made since in the directories in
//! which such a file went. Inotify reports names only, and by the time it does they may lead elsewhere: a name that was deleted and
//! was not that of a known file is all there is to see. What has no compressed copy is counted as lost. So is a known file
//! that was closed and went after it was written to: the caller is told at once, so that another run counts it if this one
//! ends before.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::Follower;
use crate::event::{FileEvent, LossReason, SourceId};
use crate::file::compressed_file::{self, CopyId};
use crate::file::tracked::File;

/// By how much the time at which a file was made may lie behind the clock: more than a tick of any kernel.
pub(super) const CLOCK_TICK_NS: u64 = 20_000_000;
/// A compressed file may be so much older than the look at its directory before which it was made.
const MARGIN_NANOS: u64 = 1_000_000_000;

/// What was missed since the last look.
pub(super) struct Missed {
    dirs: BTreeMap<PathBuf, Unseen>,
    /// Files of a directory that were found by the copies made of them, before it was known that they went; and at which
    /// look.
    ahead: BTreeMap<PathBuf, (usize, u64)>,
    /// Directories with compressed files that were not whole at the last look.
    unready: BTreeSet<PathBuf>,
    /// How often names were looked at.
    number: u64,
    /// When names were looked at, in nanoseconds since the Unix epoch: what was made before the first was seen then.
    looks: [u64; 3],
    /// When the follower began: compressed files made before are not its affair.
    begin: u64,
    /// Whether the first look is over, which is of changes from while the follower was made.
    has_looked: bool,
}

/// What was missed in one directory.
#[derive(Default)]
struct Unseen {
    /// Names that appeared, led nowhere when looked at, and were deleted; each with the time at which its file is assumed
    /// to have been created.
    names: Vec<(PathBuf, u64)>,
    /// Known files that went meanwhile: names may have been theirs.
    gone: usize,
}

impl Missed {
    pub(super) fn new() -> Self {
        let now = now_ns();
        Self {
            looks: [now; 3],
            begin: now.saturating_sub(CLOCK_TICK_NS),
            ahead: BTreeMap::new(),
            unready: BTreeSet::new(),
            number: 0,
            dirs: BTreeMap::new(),
            has_looked: false,
        }
    }

    /// Names are looked at now.
    pub(super) fn look(&mut self) {
        self.looks = [self.looks[1], self.looks[2], now_ns()];
        for dir in std::mem::take(&mut self.unready) {
            self.dirs.entry(dir).or_default();
        }
        self.number += 1;
        let number = self.number;
        self.ahead.retain(|_, (_, seen)| *seen + 2 >= number);
    }

    /// A file of the input went from a directory that was not known by its name. `unseen` is that name and
    /// when its file was created, as is assumed, if it was never seen to lead to a file.
    pub(super) fn note(&mut self, dir: &Path, unseen: Option<(&Path, u64)>) {
        let missed = self.dirs.entry(dir.to_owned()).or_default();
        let unseen = unseen.map(|(path, assumed_at)| (path.to_owned(), assumed_at));
        missed.names.extend(unseen);
    }

    /// A compressed file of a directory is not whole yet.
    pub(super) fn look_again(&mut self, dir: &Path) {
        self.unready.insert(dir.to_owned());
    }

    /// A known file went from a directory.
    fn note_gone(&mut self, dir: &Path) {
        if let Some(missed) = self.dirs.get_mut(dir) {
            missed.gone += 1;
        }
    }

    /// Compressed files made before are not this follower's affair.
    pub(super) fn begin(&self) -> u64 {
        self.begin
    }

    /// Compressed files made before are copies of files that were seen.
    pub(super) fn since(&self) -> u64 {
        self.looks[0].saturating_sub(MARGIN_NANOS).max(self.begin)
    }
}

impl Follower {
    /// A file has lost its last name.
    pub(super) fn went(&mut self, slot: u32) {
        let Some(file) = &self.files[slot as usize] else {
            return;
        };
        let Some(dir) = file.path.parent() else {
            return;
        };
        if is_unopened(file) {
            self.missed.note(dir, None);
        }
        self.missed.note_gone(dir);
        if let Some(file) = &mut self.files[slot as usize]
            && file.listed
            && file.has_unseen()
        {
            self.pending.extend(tell_unseen(file, true));
        }
    }

    /// A file that was gone is there again, or its compressed copy is.
    pub(super) fn withdraw_unseen(&mut self, slot: u32) {
        if let Some(file) = &mut self.files[slot as usize] {
            self.pending.extend(tell_unseen(file, false));
        }
    }

    /// A file is gone: counts it if it was never opened, or was written to while it was closed. How much that was, nobody
    /// knows.
    pub(super) fn report_missed(&mut self, slot: u32, events: &mut Vec<FileEvent>) {
        let file = self.files[slot as usize].as_mut();
        if let Some(file) = file.filter(|file| is_missed(file)) {
            events.push(FileEvent::Lost {
                source: None,
                path: file.path.to_path_buf(),
                bytes: 0,
                reason: LossReason::Missed,
            });
            // Another run does not count it again.
            events.extend(tell_unseen(file, false));
        }
    }

    /// Another file has the inode of one. True if that went before it was opened: it waits for its compressed copy.
    pub(super) fn went_unopened(&mut self, slot: u32) -> bool {
        let file = self.files[slot as usize].as_ref();
        if !file.is_some_and(|file| is_unopened(file)) {
            return false;
        }
        self.let_inode_go(slot);
        self.went(slot);
        self.mark_ready(slot);
        true
    }

    /// The compressed files that are there when the follower begins, as far as their age does not show it.
    pub(super) fn copies_there(&self) -> Vec<CopyId> {
        let homes = self.homes();
        let homes = homes.iter();
        let copies =
            homes.flat_map(|dir| compressed_file::list(dir, |path| self.may_be_copy(path)));
        let copies = copies.map(|copy| copy.id());
        copies
            .filter(|copy| copy.made >= self.missed.begin)
            .collect()
    }

    /// They are not its affair, but for those that it reads.
    pub(super) fn leave_copies(&mut self, copies: Vec<CopyId>) {
        for copy in copies {
            if self.owned.owner(copy).is_none() {
                self.owned.add(copy, SourceId(u32::MAX), self.missed.begin);
            }
        }
    }

    /// The kernel's queue overflowed: anything may have come and gone.
    pub(super) fn note_all_missed(&mut self) {
        for dir in self.homes() {
            self.missed.note(&dir, None);
        }
    }

    /// Looks for what was missed.
    pub(super) fn find_missed(&mut self) {
        if self.is_new {
            return;
        }
        while let Some((dir, unseen)) = self.missed.dirs.pop_first() {
            let found = self.read_copies(&dir, &unseen.names);
            if !self.missed.has_looked {
                continue;
            }
            let (ahead, _) = self.missed.ahead.remove(&dir).unwrap_or_default();
            let explained = found + unseen.gone + ahead;
            let ahead = explained.saturating_sub(unseen.names.len());
            if ahead > 0 {
                let number = self.missed.number;
                self.missed.ahead.insert(dir, (ahead, number));
            }
            for (path, _) in unseen.names.into_iter().skip(explained) {
                self.pending.push(FileEvent::Lost {
                    source: None,
                    path,
                    bytes: 0,
                    reason: LossReason::Missed,
                });
            }
        }
        self.missed.has_looked = true;
    }

    /// A file that was never opened is gone. True if it is read from a compressed file now.
    pub(super) fn read_unopened(&mut self, slot: u32) -> bool {
        let file = self.files[slot as usize].as_ref();
        let Some(dir) = file.and_then(|file| Some(file.path.parent()?.to_owned())) else {
            return false;
        };
        self.read_copies(&dir, &[]);
        let file = self.files[slot as usize].as_ref();
        file.is_some_and(|file| file.is_copied())
    }

    /// Compressed files that are read.
    pub(super) fn copies_read(&self) -> HashSet<CopyId> {
        let copies = self.files.iter().flatten();
        let copies = copies.filter_map(|file| Some(file.copy()?.copy_id()));
        copies.collect()
    }
}

/// Says whether a file is gone with what was written to it unseen, unless that was said before.
fn tell_unseen(file: &mut File, is_unseen: bool) -> Option<FileEvent> {
    let is_new = file.closed().is_some_and(|closed| closed.tell(is_unseen));
    is_new.then(|| FileEvent::Unseen {
        id: file.id(),
        generation: file.generation,
        is_unseen,
    })
}

/// Whether a file that is gone held something of which nobody knows how much it was.
pub(super) fn is_missed(file: &File) -> bool {
    file.has_unseen() || (!file.listed && !file.is_open() && file.size == 0)
}

/// Whether nothing is known of a file's content.
pub(super) fn is_unopened(file: &File) -> bool {
    !file.is_open() && !file.is_copied() && file.fingerprint.bytes == 0 && file.offset == 0
}

/// In nanoseconds since the Unix epoch.
pub(super) fn now_ns() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}
