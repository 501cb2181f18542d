//! One inotify instance on directories, and the waker that ends a wait early.
//!
//! Takes directories, gives batches of what changed in them. Never watches a single file and never
//! reads one. No thread of its own: the reader thread waits in `poll` on two descriptors.
//!
//! The mask leaves out what readers cause (open, close, access), so that following a file makes no
//! events. Directories are known by path; one inode reached under two paths has one watch
//! descriptor and both paths.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

/// At most this many changes are taken at once; the rest stay in the kernel's queue.
const CHANGES_MAX: usize = 8192;

/// How many changes the kernel keeps if it does not say: more than anybody sets.
const QUEUE_MAX: usize = 1 << 22;

/// Ends a wait early, from any thread.
#[derive(Clone, Debug)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(Arc::new(fd)))
    }

    /// Makes the current wait return, or the next one if nobody waits.
    pub fn wake(&self) {
        // A full counter means that a wake is already there.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }

    fn clear(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0_u8; 8][..]);
    }

    /// Waits until `deadline`, a wake, or `fd` being readable.
    pub(crate) fn wait(&self, fd: Option<&dyn AsFdDyn>, deadline: Instant) -> Woken {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = timespec(left);
            let mut fds = vec![PollFd::new(&*self.0, PollFlags::IN)];
            if let Some(fd) = fd {
                fds.push(PollFd::from_borrowed_fd(fd.borrow_fd(), PollFlags::IN));
            }
            match poll(&mut fds, Some(&timeout)) {
                Err(Errno::INTR) => continue,
                // Nothing that waiting could make better; a read will show it.
                Err(_) => return Woken::Data,
                Ok(_) => {}
            }
            if !fds[0].revents().is_empty() {
                self.clear();
                return Woken::Waker;
            }
            let readable = fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
            return if readable {
                Woken::Data
            } else {
                Woken::Timeout
            };
        }
    }
}

/// What ended a wait. A wake comes first: it is used up by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    Waker,
    Data,
    Timeout,
}

/// `AsFd` as an object.
pub(crate) trait AsFdDyn {
    fn borrow_fd(&self) -> std::os::fd::BorrowedFd<'_>;
}

impl<T: AsFd> AsFdDyn for T {
    fn borrow_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.as_fd()
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

/// What happened, in the words of the follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    /// Bytes were written or cut.
    Modified,
    /// A name appeared: created or linked.
    Created,
    /// A name appeared by a rename; the same cookie is on the `MovedFrom`.
    MovedTo { cookie: u32 },
    /// A name went by a rename.
    MovedFrom { cookie: u32 },
    /// A name was unlinked.
    Deleted,
    /// The watched directory itself was deleted, moved or unmounted. The name is empty.
    DirGone,
    /// The kernel dropped changes: look at everything. Directory and name are empty.
    Overflow,
}

/// The changes of one drain; its memory is used again.
#[derive(Default)]
pub(crate) struct Changes {
    /// The number of the first: all changes that a watcher ever sees are numbered.
    first: u64,
    changes: Vec<Change>,
    names: Vec<u8>,
}

struct Change {
    watch: i32,
    kind: ChangeKind,
    is_dir: bool,
    name: (usize, usize),
}

/// The watches of one follower. Without inotify it watches nothing and says so.
pub(crate) struct Watcher {
    inotify: Option<OwnedFd>,
    dirs: HashMap<i32, Vec<PathBuf>>,
    watches: HashMap<PathBuf, i32>,
    /// Changes that were fetched and not drained.
    ahead: Changes,
    /// How many changes were drained.
    drained: u64,
    /// How many changes the kernel keeps.
    queue_max: usize,
}

impl Watcher {
    pub(crate) fn new() -> io::Result<Self> {
        let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        Ok(Self {
            inotify: Some(fd),
            dirs: HashMap::new(),
            watches: HashMap::new(),
            ahead: Changes::default(),
            drained: 0,
            queue_max: queue_max().unwrap_or(QUEUE_MAX),
        })
    }

    /// A watcher that never sees anything: the follower polls.
    pub(crate) fn blind() -> Self {
        Self {
            inotify: None,
            dirs: HashMap::new(),
            watches: HashMap::new(),
            ahead: Changes::default(),
            drained: 0,
            queue_max: 0,
        }
    }

    pub(crate) fn is_blind(&self) -> bool {
        self.inotify.is_none()
    }

    pub(crate) fn watches(&self, dir: &Path) -> bool {
        self.watches.contains_key(dir)
    }

    /// Begins to watch a directory; a directory already watched is checked to be the same one.
    pub(crate) fn add(&mut self, dir: &Path) -> io::Result<()> {
        let Some(fd) = &self.inotify else {
            return Ok(());
        };
        let flags = WatchFlags::ONLYDIR
            | WatchFlags::CREATE
            | WatchFlags::MODIFY
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF;
        let watch = inotify::add_watch(fd, dir, flags)?;
        match self.watches.get(dir) {
            Some(&known) if known == watch => return Ok(()),
            Some(_) => self.forget(dir),
            None => {}
        }
        self.watches.insert(dir.to_owned(), watch);
        self.dirs.entry(watch).or_default().push(dir.to_owned());
        Ok(())
    }

    /// Gives up watching altogether; the follower polls from here on.
    pub(crate) fn blindfold(&mut self) {
        *self = Self::blind();
    }

    /// Fills `changes` with what was fetched and what is in the kernel's queue. True if more may be there.
    pub(crate) fn drain(&mut self, changes: &mut Changes) -> bool {
        changes.changes.clear();
        changes.names.clear();
        std::mem::swap(changes, &mut self.ahead);
        let more = self.read(changes);
        changes.first = self.drained;
        self.drained += changes.len() as u64;
        more
    }

    /// Takes what is in the kernel's queue, to be drained later, and gives the number of the next change: what happens from
    /// now on has no lower one. Without that, the kernel would take a change for one with its equal before it.
    pub(crate) fn fetch(&mut self) -> u64 {
        let mut ahead = std::mem::take(&mut self.ahead);
        self.read(&mut ahead);
        self.ahead = ahead;
        self.drained + self.ahead.len() as u64
    }

    /// How many changes there are at most that happened and were not applied: those drained last, those fetched, and the
    /// kernel's queue. One read from the kernel may go beyond what is taken at once.
    pub(crate) fn on_their_way_max(&self) -> usize {
        4 * CHANGES_MAX + self.queue_max
    }

    /// Whether changes were fetched and not drained.
    pub(crate) fn has_fetched(&self) -> bool {
        self.ahead.len() > 0
    }

    /// Adds what is in the kernel's queue. True if more may be there.
    fn read(&self, changes: &mut Changes) -> bool {
        let Some(fd) = &self.inotify else {
            return false;
        };
        let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
        let mut reader = Reader::new(fd, &mut buffer);
        loop {
            if changes.changes.len() >= CHANGES_MAX && reader.is_buffer_empty() {
                return true;
            }
            match reader.next() {
                Ok(event) => changes.push(&event),
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// The paths of the directory a change was seen in: more than one where links lead to it.
    pub(crate) fn dirs_of(&self, changes: &Changes, index: usize) -> &[PathBuf] {
        self.dirs
            .get(&changes.changes[index].watch)
            .map_or(&[], Vec::as_slice)
    }

    /// A directory said that it went. Keeps the paths that still lead to it (it was moved and found
    /// again before this change was read) and gives those that do not.
    pub(crate) fn drop_dir(&mut self, changes: &Changes, index: usize) -> Vec<PathBuf> {
        let watch = changes.changes[index].watch;
        let paths = self.dirs.get(&watch).cloned().unwrap_or_default();
        let mut gone = Vec::new();
        for path in paths {
            if self.add(&path).is_err() {
                self.forget(&path);
            }
            if self.watches.get(&path) != Some(&watch) {
                gone.push(path);
            }
        }
        gone
    }

    pub(crate) fn poll_fd(&self) -> Option<&dyn AsFdDyn> {
        self.inotify.as_ref().map(|fd| fd as &dyn AsFdDyn)
    }

    fn forget(&mut self, dir: &Path) {
        let Some(watch) = self.watches.remove(dir) else {
            return;
        };
        let Some(paths) = self.dirs.get_mut(&watch) else {
            return;
        };
        paths.retain(|path| path != dir);
        if paths.is_empty() {
            self.dirs.remove(&watch);
            if let Some(fd) = &self.inotify {
                // Fails where the directory is gone, and the watch with it.
                let _ = inotify::remove_watch(fd, watch);
            }
        }
    }
}

/// What an inotify instance that is made now is allowed.
fn queue_max() -> Option<usize> {
    let limit = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events");
    limit.ok()?.trim().parse().ok()
}

impl Changes {
    pub(crate) fn len(&self) -> usize {
        self.changes.len()
    }

    pub(crate) fn number(&self, index: usize) -> u64 {
        self.first + index as u64
    }

    pub(crate) fn kind(&self, index: usize) -> ChangeKind {
        self.changes[index].kind
    }

    pub(crate) fn is_dir(&self, index: usize) -> bool {
        self.changes[index].is_dir
    }

    pub(crate) fn name(&self, index: usize) -> &OsStr {
        let (start, end) = self.changes[index].name;
        OsStr::from_bytes(&self.names[start..end])
    }

    fn push(&mut self, event: &inotify::Event<'_>) {
        let flags = event.events();
        let cookie = event.cookie();
        let kind = if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            ChangeKind::Overflow
        } else if flags
            .intersects(ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT)
        {
            ChangeKind::DirGone
        } else if flags.contains(ReadFlags::MODIFY) {
            ChangeKind::Modified
        } else if flags.contains(ReadFlags::CREATE) {
            ChangeKind::Created
        } else if flags.contains(ReadFlags::MOVED_TO) {
            ChangeKind::MovedTo { cookie }
        } else if flags.contains(ReadFlags::MOVED_FROM) {
            ChangeKind::MovedFrom { cookie }
        } else if flags.contains(ReadFlags::DELETE) {
            ChangeKind::Deleted
        } else {
            return;
        };
        let name = event.file_name().map_or(&[][..], |name| name.to_bytes());
        let start = self.names.len();
        self.names.extend_from_slice(name);
        self.changes.push(Change {
            watch: event.wd(),
            kind,
            is_dir: flags.contains(ReadFlags::ISDIR),
            name: (start, self.names.len()),
        });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;

    fn far() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn a_wake_ends_the_wait_that_follows_it() {
        let waker = Waker::new().unwrap();
        waker.clone().wake();
        assert_eq!(waker.wait(None, far()), Woken::Waker);
        let again = waker.wait(None, Instant::now());
        assert_eq!(again, Woken::Timeout, "the wake is used up");
    }

    #[test]
    fn changes_carry_their_names_and_kinds() {
        let dir = tempfile::tempdir().unwrap();
        let mut watcher = Watcher::new().unwrap();
        let waker = Waker::new().unwrap();
        watcher.add(dir.path()).unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        fs::write(&a, "x").unwrap();
        fs::rename(&a, &b).unwrap();
        fs::remove_file(&b).unwrap();
        assert_eq!(waker.wait(watcher.poll_fd(), far()), Woken::Data);
        let mut changes = Changes::default();
        assert!(!watcher.drain(&mut changes));
        let got: Vec<_> = (0..changes.len())
            .map(|i| (changes.kind(i), changes.name(i).to_str().unwrap()))
            .collect();
        assert_eq!(got[0], (ChangeKind::Created, "a"));
        assert_eq!(got[1], (ChangeKind::Modified, "a"));
        let [(ChangeKind::MovedFrom { cookie }, "a"), to, deleted] = &got[2..] else {
            panic!("{got:?}");
        };
        assert_eq!(to, &(ChangeKind::MovedTo { cookie: *cookie }, "b"));
        assert_eq!(deleted, &(ChangeKind::Deleted, "b"));
        assert_eq!(watcher.dirs_of(&changes, 0), [dir.path().to_owned()]);
    }

    #[test]
    fn what_is_fetched_is_drained_in_order_and_numbered() {
        let dir = tempfile::tempdir().unwrap();
        let mut watcher = Watcher::new().unwrap();
        watcher.add(dir.path()).unwrap();
        let path = dir.path().join("a");
        let mut file = fs::File::create(&path).unwrap();
        let mut write = || std::io::Write::write_all(&mut file, b"x").unwrap();
        write();
        assert!(!watcher.has_fetched());
        assert_eq!(watcher.fetch(), 2);
        assert!(watcher.has_fetched());
        write();
        let mut changes = Changes::default();
        let drain = |watcher: &mut Watcher, changes: &mut Changes| -> Vec<_> {
            watcher.drain(changes);
            (0..changes.len())
                .map(|index| (changes.number(index), changes.kind(index)))
                .collect()
        };
        let (created, modified) = (ChangeKind::Created, ChangeKind::Modified);
        assert_eq!(
            drain(&mut watcher, &mut changes),
            [(0, created), (1, modified), (2, modified)],
            "the last one is not taken for the one before it"
        );
        assert!(!watcher.has_fetched());
        assert_eq!(watcher.fetch(), 3);
        write();
        assert_eq!(drain(&mut watcher, &mut changes), [(3, modified)]);
    }

    #[test]
    fn a_moved_directory_is_dropped_and_a_found_one_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        fs::create_dir(&a).unwrap();
        let mut watcher = Watcher::new().unwrap();
        watcher.add(&a).unwrap();
        fs::rename(&a, &b).unwrap();
        watcher.add(&b).unwrap();
        let mut changes = Changes::default();
        watcher.drain(&mut changes);
        assert_eq!(changes.kind(0), ChangeKind::DirGone);
        assert_eq!(watcher.drop_dir(&changes, 0), std::slice::from_ref(&a));
        assert!(!watcher.watches(&a) && watcher.watches(&b));
    }
}
