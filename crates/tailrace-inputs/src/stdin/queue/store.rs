//! The segments of one queue, shared by the thread that writes them and the one that reads them.
//!
//! Takes whole segments and says which are acked, gives them in order; keeps the exact count of the bytes that its
//! files have. Never more than `bytes_max`: who writes asks for room first. Damaged segments stay, under another
//! name, until their room is wanted. Never looks inside a line.

use std::collections::{HashSet, VecDeque};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use super::segment::{self, Around, Content, Damage, HEADER_BYTES, Named, SegmentId};
use crate::error::{Error, Kind};
use crate::event::ProblemKind;

/// The files of a queue.
#[derive(Debug)]
pub(crate) struct Store {
    dir: PathBuf,
    bytes_max: u64,
    state: Mutex<State>,
    changed: Condvar,
}

/// One segment on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) id: SegmentId,
    /// Size of its file.
    pub(crate) file_bytes: u64,
    /// When it was written.
    pub(crate) since: Instant,
}

#[derive(Debug, Default)]
struct State {
    /// Not given to the reader yet, oldest first.
    unread: VecDeque<Segment>,
    /// Files of all segments, quarantined ones included.
    used_bytes: u64,
    quarantined: VecDeque<(SegmentId, u64)>,
    /// Segments given to the reader that are still there.
    read: usize,
    /// The stream ended: no further segment comes.
    ended: bool,
    /// Nobody shall wait for room any more.
    is_closed: bool,
    /// What is wrong with the disk or the stream, not reported yet.
    problems: Vec<(ProblemKind, String)>,
    /// The bytes that could not be written at the end.
    lost_bytes: u64,
    /// Why the last segment could not be written, until one was.
    refusal: Option<String>,
}

impl Segment {
    /// How many bytes of the stream it should hold.
    pub(crate) fn bytes(&self) -> u64 {
        self.file_bytes.saturating_sub(HEADER_BYTES)
    }

    /// The offset behind its last byte.
    pub(crate) fn end(&self) -> u64 {
        self.id.offset.saturating_add(self.bytes())
    }
}

impl Store {
    /// Opens the directory, making it if need be, with what an earlier run left.
    pub(crate) fn open(dir: &Path, bytes_max: u64) -> Result<Self, Error> {
        let failed = |source| Kind::Queue {
            path: dir.to_owned(),
            source,
        };
        // The directory of all queues, and that of this one.
        for dir in dir.parent().into_iter().chain([dir]) {
            tailrace_files::create_dir(dir).map_err(failed)?;
        }
        let mut state = State::default();
        for found in list(dir).map_err(failed)? {
            match found.named {
                Named::Segment(id) => state.unread.push_back(Segment {
                    id,
                    file_bytes: found.bytes,
                    since: found.since,
                }),
                Named::Quarantined(id) => state.quarantined.push_back((id, found.bytes)),
                Named::Temporary => {
                    let _ = fs::remove_file(&found.path);
                    continue;
                }
            }
            state.used_bytes += found.bytes;
        }
        Ok(Self {
            dir: dir.to_owned(),
            bytes_max,
            state: Mutex::new(state),
            changed: Condvar::new(),
        })
    }

    /// A number for a new stream: later than those of all segments.
    pub(crate) fn new_stream(&self) -> u64 {
        let state = self.lock();
        let segments = state.unread.iter().map(|segment| segment.id);
        let ids = segments.chain(state.quarantined.iter().map(|(id, _)| *id));
        let last = ids.map(|id| id.stream).max();
        let since = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let now = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        now.max(last.map_or(1, |last| last.saturating_add(1)))
    }

    /// The streams of which there are segments.
    pub(crate) fn streams(&self) -> HashSet<u64> {
        let state = self.lock();
        state.unread.iter().map(|s| s.id.stream).collect()
    }

    // === for the writer ===

    /// How many more bytes a segment that has so many can hold. Quarantined ones make room first.
    pub(crate) fn room(&self, bytes: usize) -> usize {
        let mut state = self.lock();
        let wanted = HEADER_BYTES + bytes as u64;
        while state.used_bytes + wanted >= self.bytes_max {
            let Some((id, file_bytes)) = state.quarantined.pop_front() else {
                break;
            };
            let name = id.quarantined_name();
            if fs::remove_file(self.dir.join(&name)).is_err() {
                // It still takes its room.
                state.quarantined.push_front((id, file_bytes));
                break;
            }
            state.used_bytes -= file_bytes;
            let message = format!("the damaged segment {name} is deleted to make room");
            state.problems.push((ProblemKind::Notice, message));
        }
        let room = self.bytes_max.saturating_sub(state.used_bytes + wanted);
        usize::try_from(room).unwrap_or(usize::MAX)
    }

    /// Whether there is no segment whose end would make room.
    pub(crate) fn is_empty(&self) -> bool {
        let state = self.lock();
        state.unread.is_empty() && state.read == 0
    }

    /// Waits until a segment that has so many bytes can have more, the store is closed, or `timeout` has passed.
    pub(crate) fn wait_for_room(&self, bytes: usize, timeout: Duration) {
        let state = self.lock();
        let wanted = HEADER_BYTES + bytes as u64;
        if state.used_bytes + wanted >= self.bytes_max && !state.is_closed {
            let _ = self.changed.wait_timeout(state, timeout);
        }
    }

    /// Ends [`Self::wait_for_room`] for good.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Writes a segment and gives it to the reader.
    pub(crate) fn push(&self, id: SegmentId, around: Around, bytes: &[u8]) -> std::io::Result<()> {
        let write = || segment::write(&self.dir, id, around, bytes);
        let file_bytes = write().or_else(|error| {
            self.make_again(error)?;
            write()
        })?;
        let mut state = self.lock();
        state.used_bytes += file_bytes;
        state.unread.push_back(Segment {
            id,
            file_bytes,
            since: Instant::now(),
        });
        Ok(())
    }

    /// Makes the directories that somebody removed, but for the data directory: whoever makes that locks it.
    fn make_again(&self, error: std::io::Error) -> std::io::Result<()> {
        let all = self.dir.parent().into_iter().chain([&*self.dir]);
        let data_dir = self.dir.ancestors().nth(2);
        if error.kind() != ErrorKind::NotFound || !data_dir.is_some_and(Path::is_dir) {
            return Err(error);
        }
        all.into_iter().try_for_each(tailrace_files::create_dir)
    }

    /// No further segment comes; so many bytes could not be written.
    pub(crate) fn end(&self, lost_bytes: u64) {
        let mut state = self.lock();
        state.ended = true;
        state.lost_bytes = lost_bytes;
    }

    /// Whether segments can be written: why not, or `None`.
    pub(crate) fn set_refusal(&self, refusal: Option<String>) {
        self.lock().refusal = refusal;
    }

    pub(crate) fn problem(&self, kind: ProblemKind, message: String) {
        self.lock().problems.push((kind, message));
    }

    // === for the reader ===

    /// The directory, and why no segment can be written there now.
    pub(crate) fn refusal(&self) -> Option<(PathBuf, String)> {
        let refusal = self.lock().refusal.clone()?;
        Some((self.dir.clone(), refusal))
    }

    /// The next segment to read.
    pub(crate) fn next(&self) -> Option<Segment> {
        let mut state = self.lock();
        let segment = state.unread.pop_front()?;
        state.read += 1;
        Some(segment)
    }

    /// Where the next segment to read begins, and when it was written.
    pub(crate) fn peek(&self) -> Option<Segment> {
        self.lock().unread.front().copied()
    }

    /// The segments that are not read yet.
    pub(crate) fn unread(&self) -> Vec<Segment> {
        self.lock().unread.iter().copied().collect()
    }

    /// Whether the file of a segment is on the disk, as far as can be told.
    pub(crate) fn is_there(&self, segment: &Segment) -> bool {
        let found = self.dir.join(segment.id.name()).symlink_metadata();
        !found.is_err_and(|error| error.kind() == ErrorKind::NotFound)
    }

    /// Bytes in segments that are not read yet.
    pub(crate) fn unread_bytes(&self) -> u64 {
        self.lock().unread.iter().map(Segment::bytes).sum()
    }

    /// Whether no further segment comes.
    pub(crate) fn has_ended(&self) -> bool {
        let state = self.lock();
        state.ended && state.unread.is_empty()
    }

    /// Reads and checks a segment.
    pub(crate) fn load(&self, segment: &Segment) -> Result<Content, Damage> {
        segment::read(&self.dir, segment.id)
    }

    /// Deletes a segment that was read and is acked.
    pub(crate) fn remove(&self, segment: &Segment) {
        let removed = fs::remove_file(self.dir.join(segment.id.name()));
        let mut state = self.lock();
        state.read -= 1;
        match removed {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let name = segment.id.name();
                let message = format!(
                    "the acknowledged segment {name} cannot be deleted: {error}; the next start does it"
                );
                state.problems.push((ProblemKind::Notice, message));
            }
            _ => state.used_bytes -= segment.file_bytes,
        }
        self.changed.notify_all();
    }

    /// Puts a segment that does not check aside.
    pub(crate) fn quarantine(&self, segment: &Segment) -> std::io::Result<()> {
        let id = segment.id;
        let (from, to) = (id.name(), id.quarantined_name());
        let renamed = fs::rename(self.dir.join(from), self.dir.join(to));
        let mut state = self.lock();
        state.read -= 1;
        if renamed.is_ok() {
            state.quarantined.push_back((id, segment.file_bytes));
        }
        self.changed.notify_all();
        renamed
    }

    /// Whether a segment that began here was put aside, so that it is known to be lost.
    pub(crate) fn is_quarantined(&self, id: SegmentId) -> bool {
        let state = self.lock();
        state.quarantined.iter().any(|(known, _)| *known == id)
    }

    /// What is wrong, reported once.
    pub(crate) fn take_problems(&self) -> Vec<(ProblemKind, String)> {
        std::mem::take(&mut self.lock().problems)
    }

    /// The bytes that could not be written at the end, reported once.
    pub(crate) fn take_lost_bytes(&self) -> u64 {
        std::mem::take(&mut self.lock().lost_bytes)
    }

    /// Segments that nobody has read and that are not on the disk any more; they are forgotten.
    pub(crate) fn take_deleted(&self) -> Vec<Segment> {
        let mut deleted = Vec::new();
        self.lock().unread.retain(|segment| {
            let is_there = self.is_there(segment);
            if !is_there {
                deleted.push(*segment);
            }
            is_there
        });
        deleted
    }

    /// Bytes that all files have.
    #[cfg(test)]
    pub(crate) fn used_bytes(&self) -> u64 {
        self.lock().used_bytes
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file of a queue's directory.
#[derive(Debug)]
pub(crate) struct ListedFile {
    pub(crate) path: PathBuf,
    pub(crate) named: Named,
    pub(crate) bytes: u64,
    since: Instant,
}

/// The files of a queue, in the order of their ids; others are left out.
pub(crate) fn list(dir: &Path) -> std::io::Result<Vec<ListedFile>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(named) = name.to_str().and_then(Named::of) else {
            continue;
        };
        // Acked and deleted meanwhile.
        let Ok(meta) = entry.metadata() else { continue };
        let age = meta.modified().ok().and_then(|time| time.elapsed().ok());
        let now = Instant::now();
        found.push(ListedFile {
            path: entry.path(),
            named,
            bytes: meta.len(),
            since: now.checked_sub(age.unwrap_or_default()).unwrap_or(now),
        });
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}
