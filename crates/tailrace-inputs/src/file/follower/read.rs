//! A file's turn: open it, make sure it is what it was, read a slice, or see that it is over.
//!
//! Takes slots from the ready queue, gives chunks and the events of a file's life. Never waits: an
//! error makes the file wait its own backoff while the others go on.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::Follower;
use super::gaps::before_content_of;
use crate::chunk::ChunkBuffer;
use crate::event::{FileEvent, LossReason, ProblemKind};
use crate::file::growth::Growth;
use crate::file::tracked::{File, Open, Slice, Stat, Turn};
use crate::identity::FileId;

/// About how many events one read gives, so that a caller with many files gets to act on them.
const EVENTS_MAX: usize = 1024;
/// How many turns one read takes: most may be of files that wait for others, and give none.
const TURNS_MAX: usize = 4096;
/// How many files are remembered that ended.
const ENDED_IDS_MAX: usize = 1024;
const BACKOFF_MIN: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(30);

impl Follower {
    /// Gives every ready file its turn, until `bytes_max` bytes are read.
    pub(super) fn read_ready(
        &mut self,
        buffer: &mut ChunkBuffer,
        bytes_max: usize,
        events: &mut Vec<FileEvent>,
    ) {
        let end = buffer.len() + bytes_max;
        let enough = events.len() + EVENTS_MAX;
        let mut heads = 0;
        for _ in 0..TURNS_MAX {
            if buffer.len() + heads >= end || events.len() >= enough {
                break;
            }
            self.await_older();
            let Some(mut slot) = self.ready.pop_front() else {
                break;
            };
            if let Some(older) = self.unreported_before(slot) {
                self.ready.push_front(slot);
                slot = older;
            }
            match &mut self.files[slot as usize] {
                Some(file) => file.turn = Turn::None,
                None => continue,
            }
            // Events about names come before what follows from them.
            events.append(&mut self.pending);
            let (bytes_max, reported) = (end - buffer.len() - heads, events.len());
            let again = match self.serve(slot, buffer, bytes_max, events) {
                Ok(again) => {
                    self.recovered(slot);
                    again
                }
                Err(error) => self.failed(slot, &error),
            };
            heads += events[reported..].iter().map(head_bytes).sum::<usize>();
            let file = self.files[slot as usize].as_mut();
            match file.filter(|file| again && file.goes_first() && !file.is_queued()) {
                Some(file) => {
                    file.turn = Turn::Changed;
                    self.ready.push_front(slot);
                }
                None if again => self.mark_ready(slot),
                None => {}
            }
        }
        events.append(&mut self.pending);
    }

    /// One turn. True if the file wants another one at once.
    fn serve(
        &mut self,
        slot: u32,
        buffer: &mut ChunkBuffer,
        bytes_max: usize,
        events: &mut Vec<FileEvent>,
    ) -> io::Result<bool> {
        let file = self.files[slot as usize].as_ref();
        if file.is_some_and(|file| file.is_copied()) {
            return self.serve_copy(slot, buffer, bytes_max, events);
        }
        let stat = match self.arrive(slot, events)? {
            Ok(stat) => stat,
            Err(again) => return Ok(again),
        };
        let waits = self.has_to_wait(slot);
        let Some(file) = &mut self.files[slot as usize] else {
            return Ok(false);
        };
        if stat.size == file.offset || file.paused || waits {
            if file.is_read_ahead && !file.paused && !waits {
                let offset = file.offset;
                self.report_continuation(slot, offset, events);
            }
            return self.look(slot, stat, events);
        }
        if !self.pass_hole(slot, stat.size, events)? {
            return Ok(self.replaced(slot, events));
        }
        let Some(file) = &mut self.files[slot as usize] else {
            return Ok(false);
        };
        let key = self.config.fingerprint_key;
        let slice_max = self.config.slice_bytes_max.max(1).min(bytes_max);
        let unread = usize::try_from(stat.size - file.offset).unwrap_or(usize::MAX);
        let (start, offset) = (buffer.len(), file.offset);
        let bytes = match file.read(buffer, unread.min(slice_max), unread > slice_max, key)? {
            Slice::Bytes(bytes) => bytes,
            Slice::Replaced => return Ok(self.replaced(slot, events)),
            Slice::Cut => {
                // Before it was read it was what it had been: so much is lost.
                note_size(file, stat.size, events);
                return Ok(self.replaced(slot, events));
            }
        };
        note_size(file, stat.size, events);
        let more = bytes > 0 && file.offset < file.size;
        if bytes > 0 {
            file.was_active();
            self.give_chunk(slot, offset, start..start + bytes, events);
        }
        Ok(more || self.rest(slot, events))
    }

    /// Opens the file of a turn, and makes sure that it is the one that is known. Where the turn ends with that, whether the
    /// file wants another one at once.
    pub(super) fn arrive(
        &mut self,
        slot: u32,
        events: &mut Vec<FileEvent>,
    ) -> io::Result<Result<Stat, bool>> {
        let Some(file) = &mut self.files[slot as usize] else {
            return Ok(Err(false));
        };
        if !file.is_open() {
            // Before it is open itself, or it could be the one that is closed.
            self.make_room_for_one();
            let Some(file) = &mut self.files[slot as usize] else {
                return Ok(Err(false));
            };
            match file.open(&self.roots)? {
                Open::Done => self.open_files += 1,
                Open::Stale(names) => return Ok(Err(self.not_there(slot, &names, events))),
                Open::Outside(target) => {
                    self.leave_out(slot, &target, events);
                    return Ok(Err(false));
                }
            }
        }
        Ok(match self.make_sure(slot, events)? {
            Some(stat) => Ok(stat),
            None => Err(self.replaced(slot, events)),
        })
    }

    /// Tells of bytes that were read.
    pub(super) fn give_chunk(
        &mut self,
        slot: u32,
        offset: u64,
        bytes: Range<usize>,
        events: &mut Vec<FileEvent>,
    ) {
        let Some(file) = &mut self.files[slot as usize] else {
            return;
        };
        if !file.chunked {
            self.report_continuation(slot, offset, events);
        }
        if let Some(file) = &self.files[slot as usize] {
            push_chunk(events, file, offset, bytes);
        }
    }

    /// A file has its turn after those that had its path before it. Nothing of it is read yet but what an earlier run read.
    pub(super) fn report_continuation(
        &mut self,
        slot: u32,
        offset: u64,
        events: &mut Vec<FileEvent>,
    ) {
        if let Some(file) = &mut self.files[slot as usize] {
            (file.is_read_ahead, file.chunked) = (false, true);
        }
        let Some(earlier) = self.goes_on(slot) else {
            return;
        };
        let Some(file) = &mut self.files[slot as usize] else {
            return;
        };
        // Where it is not known which file is the older one, nothing is taken as acked.
        if offset > 0 && file.created_at == 0 {
            return;
        }
        let source = file.source;
        let Ok(head) = file.head(offset, &self.roots) else {
            return;
        };
        events.push(FileEvent::Continues {
            source,
            earlier,
            head,
        });
    }

    /// Sees to it that an open file is the one that is known, and reported as open. `None` if it is
    /// another one, or shorter than what was read.
    fn make_sure(&mut self, slot: u32, events: &mut Vec<FileEvent>) -> io::Result<Option<Stat>> {
        let key = self.config.fingerprint_key;
        let Some(file) = &mut self.files[slot as usize] else {
            return Ok(None);
        };
        let mut stat = file.stat()?;
        if stat.is_inode_reused {
            return Ok(None);
        }
        if file.skip.is_some() && !file.verified {
            file.offset = stat.size;
        }
        if stat.size < file.offset {
            return Ok(None);
        }
        if !file.verified {
            let Some(mid_line) = file.verify(key)? else {
                return Ok(None);
            };
            // It was compared just now.
            stat.touched = false;
            self.report_opened(slot, stat.size, mid_line, events);
        } else if !file.is_reported && stat.size > file.offset {
            // Bytes of another content are nothing that this one grew by.
            if !file.content_holds(key)? {
                return Ok(None);
            }
            self.come_back(slot, stat.size, events);
        }
        Ok(Some(stat))
    }

    /// A turn without reading: there is nothing new, or the caller wants nothing.
    pub(super) fn look(
        &mut self,
        slot: u32,
        stat: Stat,
        events: &mut Vec<FileEvent>,
    ) -> io::Result<bool> {
        let key = self.config.fingerprint_key;
        let Some(file) = &mut self.files[slot as usize] else {
            return Ok(false);
        };
        if stat.touched && !file.content_holds(key)? {
            return Ok(self.replaced(slot, events));
        }
        if stat.size > file.size {
            match file.identify(key)? {
                None => return Ok(self.replaced(slot, events)),
                Some(true) => report_identified(file, events),
                Some(false) => {}
            }
        } else if stat.touched && stat.size == file.offset && file.is_reported {
            // Another mode or name: at the next start it is known by the time of that.
            report_identified(file, events);
        }
        note_size(file, stat.size, events);
        let is_held = file.paused || file.unread() > 0 || file.is_read_ahead;
        Ok(!is_held && self.rest(slot, events))
    }

    /// There is nothing to read now: when to look again, and whether that was the end.
    fn rest(&mut self, slot: u32, events: &mut Vec<FileEvent>) -> bool {
        self.release(slot);
        let (linger, idle_close) = (self.config.linger, self.config.idle_close);
        let Some(file) = &mut self.files[slot as usize] else {
            return false;
        };
        let now = Instant::now();
        let quiet = now.saturating_duration_since(file.active());
        let is_deleted = file.is_deleted();
        if is_deleted || !file.is_wanted() {
            if quiet < linger {
                let due = file.active() + linger;
                self.set_due(slot, due);
            } else if !is_deleted && self.goes_on_later(slot) {
                self.close(slot);
                self.set_due(slot, now + idle_close);
                return false;
            } else if !is_deleted {
                self.finish_renamed(slot, events);
                return false;
            } else if self.look_for(slot) || self.continue_from_copy(slot) {
                return true;
            } else {
                self.report_missed(slot, events);
                self.end(slot, LossReason::Vanished, events);
                return false;
            }
        } else if file.is_open() {
            if quiet >= idle_close {
                self.close_for_idleness(slot);
                return false;
            }
            let due = file.active() + idle_close;
            self.set_due(slot, due);
        }
        if let Some(file) = &mut self.files[slot as usize]
            && file.is_open()
            && !file.idle_queued
        {
            file.idle_queued = true;
            self.idle.push_back(slot);
        }
        false
    }

    /// A link that may not be followed.
    fn leave_out(&mut self, slot: u32, target: &Path, events: &mut Vec<FileEvent>) {
        let Some(file) = &mut self.files[slot as usize] else {
            return;
        };
        file.size = file.offset;
        // Its end withdraws what was reported about its path; this stays reported.
        let path = std::mem::replace(&mut file.path, Path::new("").into());
        self.end(slot, LossReason::Vanished, events);
        let message = format!(
            "leads to {}, outside the directories of `include`, and is not followed; if it may be, add its \
             directory to `follow_roots`",
            target.display()
        );
        self.lasting_problem(&path, message);
    }

    /// No name led to the file when it was to be opened.
    fn not_there(&mut self, slot: u32, stale: &[Arc<Path>], events: &mut Vec<FileEvent>) -> bool {
        for name in stale {
            self.detach(name);
            // Another file may have it by now.
            if self.discovery.wants(name) {
                self.appeared(name, true);
            }
        }
        self.resolve_nameless();
        events.append(&mut self.pending);
        let Some(file) = &self.files[slot as usize] else {
            return false;
        };
        if file.names.is_empty() {
            self.rest(slot, events)
        } else {
            true
        }
    }

    /// The content is another one than before: the old generation ends, a new one begins at 0. But
    /// where it may be another file that got the inode of a deleted one, and no name of it belongs to
    /// the globs, it is none of ours.
    fn replaced(&mut self, slot: u32, events: &mut Vec<FileEvent>) -> bool {
        let source = self.new_source();
        let Some(inode) = self.files[slot as usize].as_ref().map(|file| file.inode) else {
            return false;
        };
        let generation = self.next_generation(inode);
        let Some(file) = &mut self.files[slot as usize] else {
            return false;
        };
        if !file.is_wanted() && file.alien {
            self.end(slot, LossReason::Vanished, events);
            return false;
        }
        report_truncated(file, events);
        report_end(file, LossReason::Truncated, true, events);
        let before = before_content_of(file.created_at);
        let origin = Arc::clone(&file.origin);
        self.by_source.remove(&file.source);
        if file.is_reported {
            self.ended.insert(file.source, (file.inode, file.offset));
            self.generations.hold(file.inode, file.generation);
        }
        let id = file.id();
        file.has_copy = false;
        file.begin_again(source, generation);
        file.was_active();
        self.by_source.insert(source, slot);
        self.note_ended(id);
        self.note_gap(&origin, before);
        true
    }

    /// A compressed file may turn up that was made of it.
    pub(super) fn note_ended(&mut self, id: FileId) {
        self.ended_ids.push_back(id);
        if self.ended_ids.len() > ENDED_IDS_MAX {
            self.ended_ids.pop_front();
        }
    }

    /// The file is gone for good: its slot is free.
    pub(super) fn end(&mut self, slot: u32, reason: LossReason, events: &mut Vec<FileEvent>) {
        let is_cut = self.is_before_gap(slot);
        self.leave_rotation_chain(slot);
        self.note_gap_of(slot, reason);
        let file = self.files[slot as usize].as_deref();
        let is_kept = |file: &File| file.is_deleted() && file.is_reported && file.is_open();
        if file.is_some_and(is_kept) && reason == LossReason::Vanished {
            self.keep_unacked(slot);
        }
        self.close(slot);
        let Some(file) = self.files[slot as usize].take() else {
            return;
        };
        if file.is_queued() {
            // The slot may be another file's before its turn comes.
            self.ready.retain(|waits| *waits != slot);
        }
        report_end(&file, reason, is_cut, events);
        if !file.has_copy && !file.is_copied() {
            self.note_ended(file.id());
        }
        if file.is_reported {
            self.ended.insert(file.source, (file.inode, file.offset));
            self.generations.hold(file.inode, file.generation);
        }
        if file.holds_generation {
            self.generations.let_go(file.inode);
        }
        if self.by_inode.get(&file.inode) == Some(&slot) {
            self.by_inode.remove(&file.inode);
        }
        self.by_source.remove(&file.source);
        for name in &file.names {
            self.by_path.remove(name);
        }
        self.problems.remove(&*file.path);
        self.linked.remove(&slot);
        self.free.push(slot);
    }

    /// A file renamed out of the globs is read and quiet: its source ends, it is still looked after.
    fn finish_renamed(&mut self, slot: u32, events: &mut Vec<FileEvent>) {
        let file = self.files[slot as usize].as_ref();
        if file.is_some_and(|file| file.is_reported && file.is_open()) {
            self.keep_unacked(slot);
        }
        self.close(slot);
        if let Some(file) = &mut self.files[slot as usize]
            && file.is_reported
        {
            file.flushed = true;
            self.finish_source(slot, events);
        }
    }

    /// The source of a file ends, the file is still looked after.
    pub(super) fn finish_source(&mut self, slot: u32, events: &mut Vec<FileEvent>) {
        let is_cut = self.is_before_gap(slot);
        let Some(file) = &mut self.files[slot as usize] else {
            return;
        };
        events.push(FileEvent::Finished {
            source: file.source,
            is_cut,
        });
        file.is_reported = false;
        file.paused = false;
        let is_queued = file.is_queued();
        self.ended.insert(file.source, (file.inode, file.offset));
        self.generations.hold(file.inode, file.generation);
        self.by_source.remove(&file.source);
        if is_queued {
            self.look_again_at(slot);
        }
    }

    /// A finished file grew: it goes on as a new source of the same generation.
    fn come_back(&mut self, slot: u32, size: u64, events: &mut Vec<FileEvent>) {
        let source = self.new_source();
        if let Some(file) = &mut self.files[slot as usize] {
            file.source = source;
            // A file that was put to rest goes on where it was, in the middle of its life.
            file.chunked = !file.flushed;
            file.was_active();
            self.by_source.insert(source, slot);
        }
        self.report_opened(slot, size, false, events);
    }

    /// The same for a file that is read from its compressed copy: nothing is compared, that was done.
    pub(super) fn report_copy(
        &mut self,
        slot: u32,
        size: u64,
        mid_line: bool,
        events: &mut Vec<FileEvent>,
    ) {
        let Some(file) = &mut self.files[slot as usize] else {
            return;
        };
        if file.is_reported {
            note_size(file, size, events);
        } else {
            self.report_opened(slot, size, mid_line, events);
        }
    }

    fn report_opened(&mut self, slot: u32, size: u64, mid_line: bool, events: &mut Vec<FileEvent>) {
        let Some(file) = &mut self.files[slot as usize] else {
            return;
        };
        if file.is_reported && (file.chunked || !mid_line) {
            return;
        }
        self.push_opened(slot, size, mid_line, events);
    }

    /// Tells anew of a file that has had no chunk, behind whose first bytes reading begins.
    pub(super) fn report_opened_again(
        &mut self,
        slot: u32,
        size: u64,
        events: &mut Vec<FileEvent>,
    ) {
        self.push_opened(slot, size, false, events);
    }

    fn push_opened(&mut self, slot: u32, size: u64, mid_line: bool, events: &mut Vec<FileEvent>) {
        let Some(names) = self.reported_names(slot) else {
            return;
        };
        let Some(file) = &mut self.files[slot as usize] else {
            return;
        };
        if size < file.size {
            report_lost(file, file.size - size, LossReason::Truncated, events);
        }
        file.pace().growth.look(Instant::now(), 0);
        file.size = size;
        file.paused |= self.config.opens_paused && !file.is_reported;
        file.is_reported = true;
        file.listed = true;
        events.push(FileEvent::Opened {
            source: file.source,
            id: file.id(),
            generation: file.generation,
            path: names.path,
            origin: names.origin,
            offset: file.offset,
            mid_line,
            size,
        });
        if let Some(target) = names.target {
            let source = file.source;
            events.push(FileEvent::Linked { source, target });
        }
        if let Some(reason) = file.skip.take()
            && file.offset > 0
        {
            events.push(FileEvent::Skipped {
                source: file.source,
                bytes: file.offset,
                reason,
            });
        }
    }

    pub(super) fn close_for_idleness(&mut self, slot: u32) {
        self.close(slot);
        if let Some(file) = &mut self.files[slot as usize]
            && file.is_dormant()
        {
            // It is looked at again when it changes.
            if let Some(pace) = file.pace_if_any() {
                pace.due = None;
            }
            self.dormant.push(file.source);
        }
    }

    pub(super) fn close(&mut self, slot: u32) {
        if let Some(file) = &mut self.files[slot as usize]
            && file.is_open()
        {
            file.close(self.discovery.watcher.fetch());
            self.open_files -= 1;
        }
    }

    fn make_room_for_one(&mut self) {
        while self.open_files >= self.config.open_files_max.max(1) {
            if !self.close_idle() {
                break;
            }
        }
    }

    /// Closes the file that has been idle for longest. False if there is none that could be opened
    /// again.
    pub(super) fn close_idle(&mut self) -> bool {
        while let Some(slot) = self.idle.pop_front() {
            let Some(file) = &mut self.files[slot as usize] else {
                continue;
            };
            file.idle_queued = false;
            if file.is_open() && !file.is_queued() && !file.names.is_empty() && file.unread() == 0 {
                self.close_for_idleness(slot);
                return true;
            }
        }
        false
    }

    pub(super) fn recovered(&mut self, slot: u32) {
        if let Some(file) = &mut self.files[slot as usize]
            && let Some(pace) = file.pace_if_any()
            && pace.backoff > Duration::ZERO
        {
            pace.backoff = Duration::ZERO;
            self.problems.remove(&*file.path);
        }
    }

    pub(super) fn failed(&mut self, slot: u32, error: &io::Error) -> bool {
        let exhausted = matches!(
            Errno::from_io_error(error),
            Some(Errno::MFILE | Errno::NFILE)
        );
        if exhausted && self.close_idle() {
            return true;
        }
        let Some(file) = &mut self.files[slot as usize] else {
            return false;
        };
        let pace = file.pace();
        pace.backoff = (pace.backoff * 2).clamp(BACKOFF_MIN, BACKOFF_MAX);
        let (due, path) = (Instant::now() + pace.backoff, file.path.clone());
        if !file.names.is_empty() {
            self.close(slot);
        }
        self.set_due(slot, due);
        self.release(slot);
        let message = match error.kind() {
            io::ErrorKind::PermissionDenied => {
                self.denied.insert(path.to_path_buf());
                super::access::what_to_do(&path, error)
            }
            _ => {
                let message = format!("cannot be read: {error}; it is tried again");
                self.problem_of(ProblemKind::Read, &path, message.clone());
                message
            }
        };
        self.lasting_problem(&path, message);
        false
    }

    pub(super) fn set_due(&mut self, slot: u32, due: Instant) {
        if let Some(file) = &mut self.files[slot as usize] {
            let pace = file.pace();
            pace.due = Some(due);
            if pace.timer.is_none_or(|timer| due < timer) {
                pace.timer = Some(due);
                self.timers.set(due, slot);
            }
        }
    }
}

fn note_size(file: &mut File, size: u64, events: &mut Vec<FileEvent>) {
    let grown = size.saturating_sub(file.size);
    file.pace().growth.look(Instant::now(), grown);
    if size < file.size {
        // Cut, but not below what was read: only unread bytes are gone.
        report_lost(file, file.size - size, LossReason::Truncated, events);
    }
    if size != file.size {
        file.size = size;
        file.was_active();
        if file.is_reported {
            events.push(FileEvent::Grown {
                source: file.source,
                size,
            });
        }
    }
}

fn report_identified(file: &File, events: &mut Vec<FileEvent>) {
    events.push(FileEvent::Identified {
        source: file.source,
        id: file.id(),
    });
}

/// What was written to a file between the last look and its end is not known to have been there. Of one that no look
/// of this run has seen, when it changed last before is known.
fn report_truncated(file: &File, events: &mut Vec<FileEvent>) {
    let is_other_file = file.alien && file.created_at != 0;
    if file.listed && !is_other_file {
        let seen = |growth: &Growth| growth.unseen(Instant::now());
        let (unseen, bytes_max) = file.growth().map_or((None, None), seen);
        events.push(FileEvent::Truncated {
            path: file.path.to_path_buf(),
            unseen,
            bytes_max,
        });
    }
}

/// `is_before_gap`: what stood behind it is lost.
fn report_end(file: &File, reason: LossReason, is_before_gap: bool, events: &mut Vec<FileEvent>) {
    report_lost(file, file.unread(), reason, events);
    if file.is_reported {
        events.push(FileEvent::Finished {
            source: file.source,
            // Nobody knows what stood there last of what was replaced, or cannot be decompressed.
            is_cut: file.unread() > 0 || reason != LossReason::Vanished || is_before_gap,
        });
    }
    if file.listed {
        events.push(FileEvent::Forgotten {
            id: file.id(),
            generation: file.generation,
            path: file.path.to_path_buf(),
        });
    }
}

fn report_lost(file: &File, bytes: u64, reason: LossReason, events: &mut Vec<FileEvent>) {
    if bytes > 0 {
        events.push(FileEvent::Lost {
            source: file.is_reported.then_some(file.source),
            path: file.path.to_path_buf(),
            bytes,
            reason,
        });
    }
}

fn head_bytes(event: &FileEvent) -> usize {
    match event {
        FileEvent::Continues { head, .. } => head.len(),
        _ => 0,
    }
}

/// Adds a chunk, or makes the last one longer if this one continues it in file and buffer.
fn push_chunk(events: &mut Vec<FileEvent>, file: &File, offset: u64, bytes: Range<usize>) {
    let Range { start, end } = bytes;
    if let Some(FileEvent::Chunk {
        source: last,
        offset: last_offset,
        start: last_start,
        end: last_end,
        id,
    }) = events.last_mut()
        && *last == file.source
        && *last_end == start
        && *last_offset + (*last_end - *last_start) as u64 == offset
    {
        *last_end = end;
        *id = file.id();
        return;
    }
    events.push(FileEvent::Chunk {
        source: file.source,
        offset,
        start,
        end,
        id: file.id(),
    });
}
