//! Follows the files of one input: finds them, reads them in turn, through every rotation.
//!
//! Takes globs, resume entries and a buffer; gives [`FileEvent`]s and the bytes they speak of.
//! Never looks inside a line, never says a byte is safe, never blocks on a file: only
//! [`Follower::wait`] blocks, in one `poll`.
//!
//! How a change is noticed: inotify on the directories says which name changed; the changes of 10 ms
//! are taken together. A rescan walks the globs again and stats every known file, as a net for what
//! inotify does not report (other hosts of a network filesystem, a queue that overflowed). It runs every
//! `scan_interval`, but takes no more than 0.1 % of the time, so twenty thousand idle files cost next to nothing;
//! at the latest it runs every five minutes. Where it is the only means, because there is no inotify, it runs
//! four times a second and takes up to 5 % of the time.
//!
//! Descriptors: a file is open while it has something to read and for `idle_close` after; then only
//! its identity is kept and it is opened again when it grows. At most `open_files_max` are open.
//!
//! Ends: a deleted file is read to its end, and ends when it has not grown for `linger`. A file
//! renamed out of the globs is read on under its new name; when it has not grown for `linger` it is
//! `Finished`, but still looked after: should it grow, it comes back at its offset.

mod access;
mod chain;
mod copied;
mod from_copy;
mod gaps;
mod generation;
mod handover;
mod held;
mod hole;
mod linked;
mod links;
mod listings;
mod look;
mod memory;
mod missed;
mod names;
mod order;
mod read;
mod resume;
mod skipped;
mod timers;
mod unannounced;
mod unknown;

#[cfg(test)]
pub(crate) mod tests;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crate::chunk::ChunkBuffer;
use crate::error::{Error, Kind};
use crate::event::{FileEvent, ProblemKind, SkipReason, SourceId};
use crate::file::compressed_file::{Owned, Permit};
use crate::file::config::{FileConfig, WatchMode};
use crate::file::discover::{Discovery, Found};
use crate::file::handed_over::HandedOver;
use crate::file::pattern::Patterns;
use crate::file::reread::Reread;
use crate::file::roots::Roots;
use crate::file::tracked::{File, Open, Turn};
use crate::file::watch::{Changes, Waker, Watcher, Woken};
use crate::identity::{FileId, Inode};
use crate::meta::Meta;
use crate::options::StartAt;
use crate::resume::Resume;
pub use access::{Denied, Unreadable, matching, unreadable};
use generation::Generations;
use memory::Memory;
use missed::Missed;
pub(crate) use order::unrotated_paths;
use timers::Timers;

/// The longest time between two rescans.
const RESCAN_PAUSE_MAX: Duration = Duration::from_secs(300);
/// The least time between two rescans where nothing else says what changed.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// A source as it stands now.
#[derive(Clone, Copy, Debug)]
pub struct SourceStatus<'a> {
    /// Which source.
    pub source: SourceId,
    /// Its identity.
    pub id: FileId,
    /// Its generation.
    pub generation: u32,
    /// Its name.
    pub path: &'a Path,
    /// The next byte to read.
    pub offset: u64,
    /// The last known size.
    pub size: u64,
    /// Whether a descriptor is held.
    pub is_open: bool,
    /// Whether [`Follower::pause`] holds it.
    pub is_paused: bool,
}

/// Follows the files of one input. Belongs to one thread.
pub struct Follower {
    config: FileConfig,
    discovery: Discovery,
    roots: Roots,
    waker: Waker,
    /// The files by slot; a slot is used again when its file is gone for good.
    files: Vec<Option<Box<File>>>,
    free: Vec<u32>,
    by_inode: HashMap<Inode, u32>,
    by_path: HashMap<Arc<Path>, u32>,
    by_source: HashMap<SourceId, u32>,
    /// Links that lead to a path in a watched directory: what happens there happens to them.
    links: links::Links,
    /// The link of the input by which a file was found that itself is elsewhere, by slot: the path that is reported of it,
    /// whatever becomes of the file's own name.
    linked: HashMap<u32, Arc<Path>>,
    /// The files of each path, for the order in which they are read.
    rotation_chains: HashMap<Arc<Path>, chain::RotationChain>,
    /// Paths whose files were joined by others, and the youngest of those, until the older ones are waited for.
    joined: HashMap<Arc<Path>, chain::ChainedFile>,
    /// Files of those paths that are lost.
    gaps: gaps::Gaps,
    /// Files that lost their last name and are not read to their end.
    held: Vec<u32>,
    /// Paths that were found to lead to another file, and when the earlier one was made: a rescan looks for
    /// what it missed in between. Where only rescans see what changes, also paths that are new, and when the rescan
    /// before began.
    rotated: Vec<order::KnownPath>,
    /// When the last rescan began, in nanoseconds since the Unix epoch.
    rescanned_at: u64,
    /// When the first one did.
    started_at: u64,
    /// What files are found by this rescan that nothing announced: those made since this time. 0: inotify reports them.
    unannounced_since: u64,
    /// Whether changes were dropped by the kernel since the last rescan.
    has_missed: bool,
    /// Until when all changes were taken.
    announced: unannounced::Announced,
    /// Those that somebody may still speak of though their inodes may be other files'.
    generations: Generations,
    /// Finished sources that are not acked: inode and end offset.
    ended: HashMap<SourceId, (Inode, u64)>,
    /// Deleted and renamed files that ended and are not acked: they may have to be read again.
    unacked: HashMap<SourceId, handover::Unacked>,
    /// What was read of files that ended of late.
    ended_ids: VecDeque<FileId>,
    /// Resume entries that no file has claimed; empty once the follower is made.
    resume: resume::Unclaimed,
    /// What an earlier run had read to its end and is gone now, until it is known whether that matters.
    read_and_gone: Vec<Resume>,
    /// Whether files found now were present at the first start.
    first_start: bool,
    /// Whether it is being made: nothing has been read.
    is_new: bool,
    /// Whether a path is there, as found while it is being made.
    asked: RefCell<HashMap<PathBuf, bool>>,
    next_source: u32,
    /// Files that may have something to read, in turn.
    ready: VecDeque<u32>,
    /// One of them may have changed since it was looked at.
    has_changed: bool,
    /// Open files that had nothing to read, longest first.
    idle: VecDeque<u32>,
    /// Sources of closed files that may be forgotten until they grow.
    dormant: Vec<SourceId>,
    open_files: usize,
    /// Files that lost their last name and have not been looked for.
    nameless: Vec<u32>,
    timers: Timers,
    /// Events to hand out at the next read.
    pending: Vec<FileEvent>,
    /// What was reported about a path; false where only success takes it back.
    problems: HashMap<PathBuf, (String, u32)>,
    /// Those of them that are for want of a permission.
    denied: HashSet<PathBuf>,
    /// Compressed files of which it is known whose they are.
    owned: Owned,
    /// Counts the descriptors held by compressed files that wait for their turn.
    copies_held: Permit,
    /// Directories in which files went unseen.
    missed: Missed,
    /// Compressed files that expand without end, and what is to be said of each.
    too_large: RefCell<Vec<(PathBuf, String)>>,
    changes: Changes,
    memory: Memory,
    next_drain: Instant,
    /// What changed before is taken in.
    drained_at: Instant,
    /// When the last rescan began, and how long it took.
    last_rescan: (Instant, Duration),
    tick: u32,
}

impl Follower {
    /// Finds the files present now. `resume` is where an earlier run stopped; `first_start` is
    /// whether there was none, so that `start_at` and `ignore_older` apply.
    ///
    /// Every resume entry is answered by `Opened` (same id and generation) or by `Forgotten`, or,
    /// for a fully read file that now has a name outside the globs, by nothing until it grows or
    /// goes.
    ///
    /// # Errors
    /// A glob that cannot be read. A directory that is missing or cannot be read is a `Problem`.
    pub fn new(config: FileConfig, resume: Vec<Resume>, first_start: bool) -> Result<Self, Error> {
        let base = std::env::current_dir().map_err(|source| Kind::CurrentDir { source })?;
        let patterns = Patterns::new(&config.include, &config.exclude, &base)?;
        let waker = Waker::new().map_err(|source| Kind::Waker { source })?;
        let mut problem = None;
        let watcher = match config.watch {
            WatchMode::Poll => Watcher::blind(),
            WatchMode::Inotify => Watcher::new().unwrap_or_else(|error| {
                problem = Some(format!(
                    "inotify is not available ({error}); files are polled instead, \
                     raise fs.inotify.max_user_instances and restart"
                ));
                Watcher::blind()
            }),
        };
        let now = Instant::now();
        let globs = 0..patterns.texts().count();
        let mut roots: Vec<PathBuf> = globs.map(|glob| patterns.fixed_dir(glob)).collect();
        roots.extend(config.follow_roots.iter().map(|root| base.join(root)));
        let mut follower = Self {
            config,
            roots: Roots::new(roots),
            discovery: Discovery::new(patterns, watcher),
            waker,
            files: Vec::new(),
            free: Vec::new(),
            by_inode: HashMap::new(),
            by_path: HashMap::new(),
            by_source: HashMap::new(),
            links: links::Links::default(),
            linked: HashMap::new(),
            rotation_chains: HashMap::new(),
            joined: HashMap::new(),
            gaps: gaps::Gaps::default(),
            held: Vec::new(),
            rotated: Vec::new(),
            rescanned_at: 0,
            started_at: 0,
            unannounced_since: 0,
            has_missed: false,
            announced: unannounced::Announced::default(),
            generations: Generations::default(),
            ended: HashMap::new(),
            unacked: HashMap::new(),
            ended_ids: VecDeque::new(),
            resume: resume::Unclaimed::new(resume),
            read_and_gone: Vec::new(),
            first_start,
            is_new: true,
            asked: RefCell::default(),
            next_source: 0,
            ready: VecDeque::new(),
            has_changed: false,
            idle: VecDeque::new(),
            dormant: Vec::new(),
            open_files: 0,
            nameless: Vec::new(),
            timers: Timers::default(),
            pending: Vec::new(),
            problems: HashMap::new(),
            denied: HashSet::new(),
            owned: Owned::default(),
            copies_held: Arc::default(),
            missed: Missed::new(),
            too_large: RefCell::default(),
            changes: Changes::default(),
            memory: Memory::default(),
            next_drain: now,
            drained_at: now,
            last_rescan: (now, Duration::ZERO),
            tick: 0,
        };
        if let Some(message) = problem {
            follower.problem(Path::new("inotify"), message);
        }
        let gone = std::mem::take(&mut follower.config.gone.files);
        let found = follower.rescan_files();
        follower.note_targets();
        let copies = follower.copies_there();
        follower.report_empty_globs(&found);
        follower.resume_unclaimed();
        follower.take_unreported();
        let entries = std::mem::take(&mut follower.resume).into_entries();
        let known = follower.origins(&entries);
        follower.find_between(&known);
        if !first_start {
            let ids = entries.iter().map(|entry| entry.id);
            follower.find_unknown(&known, gone.iter().copied().chain(ids));
        }
        drop(entries);
        follower.find_read_ahead();
        follower.place_gaps_of_earlier();
        follower.leave_copies(copies);
        follower.config.handed_over = HandedOver::default();
        follower.first_start = false;
        follower.is_new = false;
        follower.asked = RefCell::default();
        Ok(follower)
    }

    /// Appends at most `bytes_max` bytes to `buffer`, from as many files as have some, and reports
    /// what happened. The buffer grows only if its spare capacity is smaller. True if there is more
    /// to read at once; false means [`Self::wait`].
    pub fn read(
        &mut self,
        buffer: &mut ChunkBuffer,
        bytes_max: usize,
        events: &mut Vec<FileEvent>,
    ) -> bool {
        self.refresh();
        events.append(&mut self.pending);
        self.read_ready(buffer, bytes_max, events);
        !self.ready.is_empty() || !self.pending.is_empty()
    }

    /// Blocks until something changed, a timer of the follower is due, the waker was used, or
    /// `timeout` has passed. Returns at once when there is something to read.
    pub fn wait(&mut self, timeout: Duration) {
        if !self.ready.is_empty() || !self.pending.is_empty() {
            return;
        }
        let now = Instant::now();
        let mut deadline = (now + timeout).min(self.next_rescan());
        if let Some(due) = self.timers.next_due() {
            deadline = deadline.min(due);
        }
        let fd = self.discovery.watcher.poll_fd();
        let has_fetched = self.discovery.watcher.has_fetched();
        if now < self.next_drain && fd.is_some() {
            // Changes wait a little, so that a busy file costs a hundred wakes a second at most.
            let before = self.next_drain.min(deadline);
            if self.waker.wait(None, before) == Woken::Waker || before == deadline {
                return;
            }
        }
        if !has_fetched {
            self.waker.wait(fd, deadline);
        }
    }

    /// A handle that ends [`Self::wait`] from another thread.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Looks at every directory and every known file now, without waiting for a notification.
    pub fn rescan(&mut self) {
        self.take_changes();
        self.rescan_files();
    }

    /// Reads no more of a source until [`Self::resume`]. Its end is still noticed.
    pub fn pause(&mut self, source: SourceId) {
        if let Some(file) = self.file_of(source) {
            file.paused = true;
        }
    }

    /// Reads a paused source again.
    pub fn resume(&mut self, source: SourceId) {
        if let Some(&slot) = self.by_source.get(&source)
            && let Some(file) = &mut self.files[slot as usize]
            && file.paused
        {
            file.paused = false;
            self.mark_ready(slot);
        }
    }

    /// Whether `source` is read up to its size when it was last looked at.
    #[must_use]
    pub fn is_read_to_end(&self, source: SourceId) -> bool {
        let file = self.by_source.get(&source);
        let file = file.and_then(|&slot| self.files[slot as usize].as_ref());
        file.is_none_or(|file| file.offset >= file.size)
    }

    /// Takes the sources whose files were closed because they have not grown for a while, where there are many sources.
    pub fn take_dormant(&mut self) -> Vec<SourceId> {
        if self.by_source.len() > self.config.dormant_min {
            std::mem::take(&mut self.dormant)
        } else {
            self.dormant.clear();
            Vec::new()
        }
    }

    /// Takes back a dormant source that cannot be put to rest yet.
    pub fn stays_dormant(&mut self, source: SourceId) {
        self.dormant.push(source);
    }

    /// Ends a source whose file has not grown since it was closed: if it grows it goes on as a new source. The caller knows
    /// that every byte is acknowledged and that nothing is held of an unfinished record. What is known of the file is
    /// then as little as of one that was read by an earlier run.
    pub fn put_to_rest(&mut self, source: SourceId) {
        let Some(&slot) = self.by_source.get(&source) else {
            return;
        };
        if self.files[slot as usize]
            .as_deref()
            .is_some_and(File::is_dormant)
        {
            let mut events = Vec::new();
            self.finish_source(slot, &mut events);
            self.pending.append(&mut events);
            if let Some(file) = &mut self.files[slot as usize] {
                file.be_idle();
            }
        }
    }

    /// Says that all outputs have acknowledged every byte of `source` below `offset`. A finished source
    /// acked to its end is forgotten: its inode may begin at generation 0 again, so the
    /// checkpoint entry must be dropped first.
    pub fn acked(&mut self, source: SourceId, offset: u64) {
        let Some(&(inode, end)) = self.ended.get(&source) else {
            return;
        };
        if offset < end {
            return;
        }
        self.ended.remove(&source);
        self.unacked.remove(&source);
        self.generations.let_go(inode);
    }

    /// Says that no output for whom a deleted file is kept needs `source` any more: the handle of one that was
    /// read to its end is dropped before all have [acked](Self::acked) it. The same holds for a renamed one.
    pub fn let_go(&mut self, source: SourceId) {
        self.unacked.remove(&source);
    }

    /// Notices what changed and opens what is there to read, without reading it: for the time in which nothing can be taken.
    /// So a file that is deleted meanwhile is not missed, and what is cut is known to have been there. Events are those of
    /// [`Self::read`], without chunks.
    pub fn hold(&mut self, events: &mut Vec<FileEvent>) {
        self.refresh();
        events.append(&mut self.pending);
        self.look_at_ready(events);
    }

    /// A handle of its own of the file of a source, to read it again from `offset` or later: it stays
    /// readable when the file is deleted. `None` where there is none: the source has ended and its file is not kept, is
    /// read from a compressed file, or cannot be opened.
    pub fn reread(&mut self, source: SourceId, offset: u64) -> Option<Reread> {
        let Some(&slot) = self.by_source.get(&source) else {
            let ended = self.unacked.get(&source)?;
            return ended.reread(offset, self.config.fingerprint_key);
        };
        let file = self.files[slot as usize].as_mut()?;
        if !file.is_open() && matches!(file.open(&self.roots), Ok(Open::Done)) {
            self.open_files += 1;
            self.mark_ready(slot);
        }
        let handle = self.files[slot as usize].as_ref()?.duplicate()?;
        Reread::new(handle, offset).ok()
    }

    /// How many files may be open at once.
    #[must_use]
    pub fn open_files_max(&self) -> usize {
        self.config.open_files_max
    }

    /// How many files hold a descriptor.
    #[must_use]
    pub fn open_files(&self) -> usize {
        self.open_files
    }

    /// How many files are followed, open or not.
    #[must_use]
    pub fn files(&self) -> usize {
        self.by_inode.len()
    }

    /// Bytes known to exist and not read. Takes time in the number of files.
    #[must_use]
    pub fn unread_bytes(&self) -> u64 {
        self.sources()
            .map(|s| s.size.saturating_sub(s.offset))
            .sum()
    }

    /// Every followed file as it stands. A file that was not yet opened is among them.
    pub fn sources(&self) -> impl Iterator<Item = SourceStatus<'_>> {
        self.files.iter().flatten().map(|file| SourceStatus {
            source: file.source,
            id: file.id(),
            generation: file.generation,
            path: &file.path,
            offset: file.offset,
            size: file.size.max(file.offset),
            is_open: file.is_open(),
            is_paused: file.paused,
        })
    }

    /// Whether changes are found by rescans alone.
    #[must_use]
    pub fn is_polling(&self) -> bool {
        self.discovery.watcher.is_blind()
    }

    fn file_of(&mut self, source: SourceId) -> Option<&mut File> {
        let slot = *self.by_source.get(&source)?;
        self.files[slot as usize].as_deref_mut()
    }

    fn mark_ready(&mut self, slot: u32) {
        if let Some(file) = &mut self.files[slot as usize] {
            self.has_changed = true;
            let had_none = std::mem::replace(&mut file.turn, Turn::Changed) == Turn::None;
            let is_reported = file.is_reported;
            if had_none {
                self.ready.push_back(slot);
            }
            if had_none || !is_reported {
                self.look_again_at(slot);
            }
        }
    }

    fn new_slot(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.files.push(None);
            u32::try_from(self.files.len() - 1).unwrap_or(u32::MAX)
        })
    }

    fn new_source(&mut self) -> SourceId {
        let source = SourceId(self.next_source);
        self.next_source += 1;
        source
    }

    /// Reports what is wrong with a path, unless that was reported last.
    fn problem(&mut self, path: &Path, message: String) {
        let kind = if self.denied.contains(path) {
            ProblemKind::Permission
        } else {
            ProblemKind::Notice
        };
        self.problem_of(kind, path, message);
    }

    /// The same of a problem of this kind.
    fn problem_of(&mut self, kind: ProblemKind, path: &Path, message: String) {
        match self.problems.get_mut(path) {
            Some((known, tick)) if *known == message => *tick = self.tick,
            _ => {
                self.problems
                    .insert(path.to_owned(), (message.clone(), self.tick));
                self.pending.push(FileEvent::Problem {
                    kind,
                    path: path.to_owned(),
                    message,
                });
            }
        }
    }

    fn report_empty_globs(&mut self, matched: &[bool]) {
        let texts: Vec<String> = self.discovery.patterns.texts().map(str::to_owned).collect();
        for (index, text) in texts.iter().enumerate() {
            let patterns = &self.discovery.patterns;
            let below = patterns.fixed_dir(index);
            let is_taken = || {
                let known = self.files.iter().flatten();
                let mut known = known.filter(|file| file.path.starts_with(&below));
                known.any(|file| patterns.names(index, &file.path))
            };
            if matched.get(index) == Some(&true) || is_taken() {
                continue;
            }
            let dir = self.discovery.patterns.fixed_dir(index);
            let message = if dir.is_dir() {
                "matches no file yet; files that appear are read from their first byte".to_owned()
            } else {
                format!(
                    "matches no file: there is no directory {} yet; it is waited for",
                    dir.display()
                )
            };
            self.problem(Path::new(text), message);
        }
    }

    fn skip_at_first_start(&self, meta: &Meta) -> Option<SkipReason> {
        if !self.first_start {
            return None;
        }
        if self.config.start_at == StartAt::End {
            return Some(SkipReason::StartAtEnd);
        }
        let age = SystemTime::now().duration_since(meta.modified()?).ok()?;
        (age > self.config.ignore_older?).then_some(SkipReason::IgnoreOlder)
    }

    /// Files and directories that the agent may not read, and what to do about each; those that are not quiet first.
    pub fn denied(&self) -> Vec<Denied> {
        let denied = self.denied.iter();
        let denied =
            denied.filter_map(|path| Some(Denied::new(path, self.problems.get(path)?.0.clone())));
        let mut denied: Vec<_> = denied.collect();
        denied.sort();
        denied
    }

    fn report(&mut self, found: &mut Found) {
        for (path, error) in found.denied.drain(..) {
            self.denied.insert(path.clone());
            self.problem(&path, access::what_to_do(&path, &error));
        }
        for (path, message) in found.problems.drain(..) {
            self.problem(&path, message);
        }
    }
}
