//! Watches the directories of a config's files and triggers a reload when something in them may have changed. It reads
//! no file. It watches directories rather than files, so that it notices replaced files and swapped links, such as the
//! `..data` of a mounted ConfigMap. A slow timer catches what inotify misses.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

use super::trigger::{Trigger, pull};

/// How often files are checked although inotify reported nothing.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// How often files are checked without inotify.
const LOOK_BLIND_EVERY: Duration = Duration::from_secs(5);
/// Changes that follow one another within this time cause one reload.
const QUIET: Duration = Duration::from_millis(50);
/// The longest time for which changes are collected.
const QUIET_MAX: Duration = Duration::from_millis(500);

/// The watched directories.
pub(super) struct Watch {
    inotify: Option<Arc<OwnedFd>>,
    known: Mutex<BTreeSet<i32>>,
    triggers: SyncSender<Trigger>,
}

/// Starts the thread that waits for changes.
pub(super) fn start(triggers: SyncSender<Trigger>) -> io::Result<Watch> {
    let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK);
    let inotify = inotify.ok().map(Arc::new);
    let (fd, sender) = (inotify.clone(), triggers.clone());
    std::thread::Builder::new()
        .name("tailrace-watch".to_owned())
        .spawn(move || {
            loop {
                wait(fd.as_deref());
                if !pull(&sender, Trigger::Files) {
                    break;
                }
            }
        })?;
    Ok(Watch {
        inotify,
        known: Mutex::default(),
        triggers,
    })
}

impl Watch {
    /// Watches these directories, and no others. The timer covers a directory that does not exist.
    pub(super) fn follow(&self, dirs: &BTreeSet<PathBuf>) {
        let Some(fd) = &self.inotify else { return };
        let flags = WatchFlags::CREATE
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        // A directory that is watched keeps its number.
        let watched = dirs
            .iter()
            .filter_map(|dir| inotify::add_watch(fd, dir, flags).ok());
        let watched: BTreeSet<i32> = watched.collect();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for old in known.difference(&watched) {
            // Fails where the directory is gone, and the watch with it.
            let _ = inotify::remove_watch(fd, *old);
        }
        *known = watched;
    }

    /// Triggers a reload as if something had changed.
    pub(super) fn pull(&self) {
        pull(&self.triggers, Trigger::Files);
    }
}

/// Waits until something has changed and no further change follows, or until the timer fires.
fn wait(inotify: Option<&OwnedFd>) {
    let Some(fd) = inotify else {
        std::thread::sleep(LOOK_BLIND_EVERY);
        return;
    };
    if !wait_for(fd, LOOK_EVERY) {
        return;
    }
    let begin = Instant::now();
    loop {
        let mut buffer = [0_u8; 16 * 1024];
        while rustix::io::read(fd, &mut buffer).is_ok_and(|bytes| bytes > 0) {}
        if begin.elapsed() >= QUIET_MAX || !wait_for(fd, QUIET) {
            return;
        }
    }
}

/// Returns whether something can be read within `timeout`.
fn wait_for(fd: &OwnedFd, timeout: Duration) -> bool {
    let timeout = Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(timeout.subsec_nanos()),
    };
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    poll(&mut fds, Some(&timeout)).is_ok_and(|ready| ready > 0)
}
