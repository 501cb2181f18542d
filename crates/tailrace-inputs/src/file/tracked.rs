//! One followed file: its identity, how far it was read, and the reads themselves.
//!
//! Takes a caller's buffer, gives bytes that are certain to continue what was read before. Knows
//! nothing of other files, of globs or of events.
//!
//! Certainty comes from the *tail*, a hash of the last bytes before the offset, and the *head*, the fingerprint.
//! Every read begins a tail's length earlier, in the same system call, and is thrown away if the tail is not
//! what it was: then the content was replaced (truncated and written again), however large the file is now.
//! After the read the head is compared, for a content may end in the same bytes as the one before it; and the
//! tail once more if the file was changed while it was read. So a replaced file is never read from the middle.
//! Two contents in one inode are taken for one only if the later one is at least as large as what was read, and
//! both its head and the bytes before the offset are those of the earlier one.

use std::fs;
use std::io::{self, IoSliceMut};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use memchr::memrchr;
use rustix::fs::SeekFrom;
use rustix::io::Errno;

use crate::chunk::ChunkBuffer;
use crate::event::{SkipReason, SourceId};
use crate::file::closed::Closed;
use crate::file::compressed_copy::CompressedCopy;
use crate::file::growth::Growth;
use crate::file::pace::{Moment, Pace};
use crate::file::roots::{Opened, Roots};
use crate::identity::{
    FINGERPRINT_BYTES_MAX, FileId, Fingerprint, FingerprintKey, Inode, TAIL_BYTES_MAX, Tail,
    ends_in_line, read_full_at, read_head,
};
use crate::meta::Meta;

/// A file that is being followed: one inode, its current generation.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) inode: Inode,
    pub(crate) source: SourceId,
    /// Its first source: stands for the file in whatever generation.
    pub(crate) number: SourceId,
    /// The path of the input that it has or had: files of one path are read one after the other.
    pub(crate) origin: Arc<Path>,
    /// Whether a younger file of the same path waits for the end of this one.
    pub(crate) awaited: bool,
    pub(crate) generation: u32,
    pub(crate) fingerprint: Fingerprint,
    /// Every name known to lead to it now. Empty: deleted, or moved out of sight.
    pub(crate) names: Vec<Arc<Path>>,
    /// The name last reported.
    pub(crate) path: Arc<Path>,
    /// The next byte to read. At most `size`, except between a truncation and its discovery.
    pub(crate) offset: u64,
    /// The largest size seen of this generation.
    pub(crate) size: u64,
    /// Whether the fingerprint was compared with the disk since this file was found.
    pub(crate) verified: bool,
    /// Whether `Opened` was sent and `Finished` was not.
    pub(crate) is_reported: bool,
    /// Whether the caller may hold a checkpoint entry for this generation.
    pub(crate) listed: bool,
    /// Whether a chunk was sent since `Opened`.
    pub(crate) chunked: bool,
    /// How many turns in a row ended within a line.
    pub(crate) unended_turns: u8,
    /// Whether an earlier run read it further than a file before it, in which a record may begin that ends here.
    pub(crate) is_read_ahead: bool,
    /// Whether an unterminated last line before `offset` was already given away by a `Finished`.
    pub(crate) flushed: bool,
    /// What to do with the content found at the first start.
    pub(crate) skip: Option<SkipReason>,
    reach: Reach,
    /// Whether the caller wants no bytes now.
    pub(crate) paused: bool,
    pub(crate) turn: Turn,
    /// Whether it stands in the queue of idle open files.
    pub(crate) idle_queued: bool,
    /// When it was last seen to change, for the linger and idle times.
    active: Moment,
    /// When it is looked at again, and how it grew; nothing of most idle files.
    pace: Option<Box<Pace>>,
    /// When the inode was made; 0 where the filesystem does not know it.
    pub(crate) created_at: u64,
    /// Whether the open file cannot be shown to be the one that was known: its inode may have been
    /// given to another file.
    pub(crate) alien: bool,
    /// Whether its generation of its inode is held until it ends, because another file may get the inode.
    pub(crate) holds_generation: bool,
    /// Whether a compressed copy was found that is not read, because this file is.
    pub(crate) has_copy: bool,
    /// The rescan that last saw it.
    pub(crate) tick: u32,
    /// [`Meta::changed`] when it was last looked at.
    changed: u64,
    /// The size when it was last looked at.
    looked_size: u64,
    /// At `offset` once it is verified; before, where an earlier run stopped to read.
    pub(crate) tail: Tail,
    /// Of the first bytes before `offset`; the fingerprint may cover more.
    read_head: Fingerprint,
    medium: Medium,
}

/// Whether a file stands in the ready queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    None,
    /// It does, and was looked at since something happened to it.
    Known,
    /// It does, and may be other than it is known.
    Changed,
}

/// What leads to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// A name that belongs to the globs, or a link that does.
    Wanted,
    /// Names outside the globs only: it was renamed.
    Renamed,
    /// Nothing: it was deleted, or moved out of sight.
    Deleted { was_wanted: bool },
}

/// What the bytes of a file are read from.
#[derive(Debug)]
enum Medium {
    /// Nothing now: it is opened by one of its names when it is to be read.
    Closed(Closed),
    /// The file itself.
    Open(fs::File),
    /// A compressed copy: the file itself is gone.
    Copy(Box<CompressedCopy>),
}

/// So many turns of a file may follow each other until its line ends.
pub(crate) const UNENDED_TURNS_MAX: u8 = 16;

/// What became of opening a file by its names.
#[derive(Debug)]
pub(crate) enum Open {
    /// It is open.
    Done,
    /// These names lead to nothing or to another file.
    Stale(Vec<Arc<Path>>),
    /// A link leads to here, outside the roots.
    Outside(PathBuf),
}

/// What a read gave.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Slice {
    /// So many bytes were appended.
    Bytes(usize),
    /// The file is not what it was: nothing was appended.
    Replaced,
    /// It was cut and written again while it was read: nothing was appended, for it may be of both contents.
    Cut,
}

/// Size, and whether anything was changed since the last look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stat {
    pub(crate) size: u64,
    pub(crate) touched: bool,
    /// Another file has the inode now.
    pub(crate) is_inode_reused: bool,
}

impl File {
    /// A file found on disk, to be read from its first byte.
    pub(crate) fn new(inode: Inode, source: SourceId, generation: u32, path: Arc<Path>) -> Self {
        Self {
            inode,
            source,
            number: source,
            origin: Arc::clone(&path),
            awaited: false,
            generation,
            fingerprint: Fingerprint::default(),
            names: Vec::new(),
            path,
            offset: 0,
            size: 0,
            verified: false,
            is_reported: false,
            listed: false,
            chunked: false,
            unended_turns: 0,
            is_read_ahead: false,
            flushed: false,
            skip: None,
            reach: Reach::Wanted,
            paused: false,
            turn: Turn::None,
            idle_queued: false,
            active: Moment::now(),
            pace: None,
            created_at: 0,
            alien: false,
            holds_generation: false,
            has_copy: false,
            tick: 0,
            changed: 0,
            looked_size: 0,
            tail: Tail::default(),
            read_head: Fingerprint::default(),
            medium: Medium::Closed(Closed::default()),
        }
    }

    pub(crate) fn id(&self) -> FileId {
        FileId {
            device: self.inode.device,
            inode: self.inode.inode,
            created_at: self.created_at,
            fingerprint: self.fingerprint,
            tail: self.tail,
            changed: self.changed,
        }
    }

    /// What shows whether other bytes are a copy of this file: its identity, and its size where it can be known. Of a file
    /// that went while it was closed nobody knows how it had grown.
    pub(crate) fn as_copied(&self, key: FingerprintKey) -> Option<(FileId, Option<u64>)> {
        let Medium::Open(handle) = &self.medium else {
            let size = (!self.is_deleted()).then_some(self.size);
            return (self.fingerprint.bytes > 0).then_some((self.id(), size));
        };
        let size = Meta::of_file(handle).ok()?.bytes;
        let mut room = [0; FINGERPRINT_BYTES_MAX];
        let head = usize::try_from(size).unwrap_or(usize::MAX).min(room.len());
        let bytes = read_full_at(handle, &mut room[..head], 0).ok()?;
        let fingerprint = key.fingerprint(&room[..bytes]);
        let mut room = [0; TAIL_BYTES_MAX];
        let tail = self.tail_at(size, &mut room, key).ok()??;
        let id = FileId {
            fingerprint,
            tail,
            ..self.id()
        };
        (bytes > 0).then_some((id, Some(size)))
    }

    /// Goes on where an earlier run stopped with the file of this identity.
    pub(crate) fn go_on(&mut self, id: FileId, generation: u32, offset: u64, size: u64) {
        self.generation = generation;
        self.fingerprint = id.fingerprint;
        self.tail = id.tail;
        self.offset = offset;
        self.size = size.max(offset);
        self.listed = true;
        self.skip = None;
    }

    /// Whether it is to be read on before others have their turn: what is held of its line is memory, and so it would be
    /// of each of them. But a line may have no end.
    pub(crate) fn goes_first(&self) -> bool {
        (1..UNENDED_TURNS_MAX).contains(&self.unended_turns)
    }

    pub(crate) fn unread(&self) -> u64 {
        self.size.saturating_sub(self.offset)
    }

    /// Whether it is closed and all of it was read, up to the end of a line.
    pub(crate) fn is_dormant(&self) -> bool {
        let is_read = self.is_reported && self.unread() == 0 && self.unended_turns == 0;
        let is_plain = self.reach == Reach::Wanted && !self.is_copied() && !self.alien;
        is_read
            && is_plain
            && !self.is_open()
            && !self.is_queued()
            && !self.paused
            && !self.is_read_ahead
    }

    /// It was seen to change.
    pub(crate) fn was_active(&mut self) {
        self.active = Moment::now();
    }

    /// When it was last seen to change.
    pub(crate) fn active(&self) -> Instant {
        self.active.instant()
    }

    pub(crate) fn pace(&mut self) -> &mut Pace {
        self.pace.get_or_insert_default()
    }

    /// How it was seen to grow, if that is known.
    pub(crate) fn growth(&self) -> Option<&Growth> {
        self.pace.as_deref().map(|pace| &pace.growth)
    }

    pub(crate) fn pace_if_any(&mut self) -> Option<&mut Pace> {
        self.pace.as_deref_mut()
    }

    /// Nothing is to be done for it until it changes: what a file takes that is active is given back.
    pub(crate) fn be_idle(&mut self) {
        let is_of_use = |pace: &Pace| pace.due.is_some() || !pace.growth.is_unknown();
        if !self.pace.as_deref().is_some_and(is_of_use) {
            self.pace = None;
        }
    }

    /// Whether nothing leads to it any more.
    pub(crate) fn is_deleted(&self) -> bool {
        matches!(self.reach, Reach::Deleted { .. })
    }

    /// Whether one of its names belongs to the globs, or did when it lost its last one.
    pub(crate) fn is_wanted(&self) -> bool {
        match self.reach {
            Reach::Wanted => true,
            Reach::Renamed => false,
            Reach::Deleted { was_wanted } => was_wanted,
        }
    }

    /// It has names, of which one belongs to the globs or none does.
    pub(crate) fn is_reached(&mut self, is_wanted: bool) {
        self.reach = if is_wanted {
            Reach::Wanted
        } else {
            Reach::Renamed
        };
    }

    /// Nothing leads to it any more.
    pub(crate) fn is_gone(&mut self) {
        self.reach = Reach::Deleted {
            was_wanted: self.is_wanted(),
        };
    }

    /// Whether it is read from a compressed copy.
    pub(crate) fn is_copied(&self) -> bool {
        self.copy().is_some()
    }

    pub(crate) fn copy(&self) -> Option<&CompressedCopy> {
        match &self.medium {
            Medium::Copy(copy) => Some(copy),
            Medium::Closed(_) | Medium::Open(_) => None,
        }
    }

    pub(crate) fn copy_mut(&mut self) -> Option<&mut CompressedCopy> {
        match &mut self.medium {
            Medium::Copy(copy) => Some(copy),
            Medium::Closed(_) | Medium::Open(_) => None,
        }
    }

    /// It is read from a compressed copy from now on.
    pub(crate) fn read_from(&mut self, copy: CompressedCopy) {
        self.medium = Medium::Copy(Box::new(copy));
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self.medium, Medium::Open(_))
    }

    /// Another handle of the open file itself.
    pub(crate) fn duplicate(&self) -> Option<fs::File> {
        self.handle().ok()?.try_clone().ok()
    }

    /// Changes from the number `since` on are of later. It may have grown since it was looked at.
    pub(crate) fn close(&mut self, since: u64) {
        if let Some(handle) = self.give_handle() {
            let is_grown = Meta::of_file(&handle).is_ok_and(|meta| meta.bytes > self.offset);
            self.medium = Medium::Closed(Closed::new(since, is_grown));
        }
    }

    /// What is known since it was closed, if it is.
    pub(crate) fn closed(&mut self) -> Option<&mut Closed> {
        match &mut self.medium {
            Medium::Closed(closed) => Some(closed),
            Medium::Open(_) | Medium::Copy(_) => None,
        }
    }

    /// Whether it was written to since it was looked at, and nobody knows how much.
    pub(crate) fn has_unseen(&self) -> bool {
        let is_written = matches!(&self.medium, Medium::Closed(closed) if closed.is_written());
        is_written && self.unread() == 0
    }

    /// The handle itself, which this file then has no more.
    pub(crate) fn give_handle(&mut self) -> Option<fs::File> {
        match std::mem::replace(&mut self.medium, Medium::Closed(Closed::default())) {
            Medium::Open(handle) => Some(handle),
            other => {
                self.medium = other;
                None
            }
        }
    }

    pub(crate) fn replace_handle(&mut self, handle: fs::File) {
        self.medium = Medium::Open(handle);
    }

    /// The same inode with new content: everything known about the old one is forgotten.
    pub(crate) fn begin_again(&mut self, source: SourceId, generation: u32) {
        self.source = source;
        self.generation = generation;
        self.fingerprint = Fingerprint::default();
        self.offset = 0;
        self.size = 0;
        self.tail = Tail::default();
        self.read_head = Fingerprint::default();
        self.verified = false;
        self.is_reported = false;
        self.listed = false;
        self.chunked = false;
        (self.is_read_ahead, self.unended_turns) = (false, 0);
        self.flushed = false;
        self.skip = None;
        // A pause was about the old source.
        self.paused = false;
    }

    /// Whether it stands in the ready queue.
    pub(crate) fn is_queued(&self) -> bool {
        self.turn != Turn::None
    }

    /// Whether a `stat` of one of its names shows anything new.
    pub(crate) fn differs(&self, meta: &Meta) -> bool {
        meta.bytes != self.offset || meta.changed != self.changed
    }

    /// Remembers the time of change of a file that is taken as read without opening it.
    pub(crate) fn note_changed(&mut self, meta: &Meta) {
        self.changed = meta.changed;
    }

    /// Opens it by one of its names. Never blocks, and never keeps a file that is not this one, or that lies
    /// outside the roots: but one that was read beneath them may have been moved away since, if no link leads there: the
    /// roots may be others now.
    pub(crate) fn open(&mut self, roots: &Roots) -> io::Result<Open> {
        let mut stale = Vec::new();
        for name in &self.names {
            // A stat first: opening a pipe or a device could have an effect on its other users.
            match Meta::of_target(name) {
                Ok(meta) if meta.is_file() && self.is(&meta) => {}
                Ok(_) => {
                    stale.push(name.clone());
                    continue;
                }
                Err(e) if is_absent(&e) => {
                    stale.push(name.clone());
                    continue;
                }
                Err(e) => return Err(e),
            }
            let handle = match roots.open(name) {
                Ok(Opened::Beneath(handle)) => handle,
                Ok(Opened::Outside(_)) if self.listed && !self.is_linked() => {
                    match roots.open_moved(name) {
                        Ok(handle) => handle,
                        Err(_) => continue,
                    }
                }
                Ok(Opened::Outside(target)) => return Ok(Open::Outside(target)),
                Err(e) if is_absent(&e) => {
                    stale.push(name.clone());
                    continue;
                }
                Err(e) => return Err(e),
            };
            let meta = Meta::of_file(&handle)?;
            if self.is(&meta) {
                self.medium = Medium::Open(handle);
                return Ok(Open::Done);
            }
            stale.push(name.clone());
        }
        Ok(Open::Stale(stale))
    }

    /// Whether one of its names is a link. Looks at each.
    fn is_linked(&self) -> bool {
        let is_link = |name: &Arc<Path>| Meta::of_name(name).is_ok_and(|meta| meta.is_link());
        self.names.iter().any(is_link)
    }

    /// Whether this is of the same file, and not of another one that has its inode now.
    pub(crate) fn is(&self, meta: &Meta) -> bool {
        meta.is_of(self.inode, self.created_at)
    }

    /// The size now, of the open file.
    pub(crate) fn stat(&mut self) -> io::Result<Stat> {
        let meta = Meta::of_file(self.handle()?)?;
        let touched = self.changed != 0 && meta.changed != self.changed;
        (self.changed, self.looked_size) = (meta.changed, meta.bytes);
        let created_at = meta.created_at;
        self.alien = created_at == 0 || created_at != self.created_at;
        let is_inode_reused = self.created_at != 0 && created_at != 0 && self.alien;
        self.created_at = created_at;
        Ok(Stat {
            size: meta.bytes,
            touched,
            is_inode_reused,
        })
    }

    /// Takes note of what was written since it was last looked at.
    pub(crate) fn refresh_size(&mut self) {
        if let Ok(meta) = self.handle().and_then(Meta::of_file) {
            self.size = self.size.max(meta.bytes);
        }
    }

    /// Compares the first bytes with the fingerprint and takes it anew over as many as there are; compares
    /// the bytes last read by an earlier run; then takes the tail before `offset`. `None` if this is not the file that was known, else
    /// whether the offset is in the middle of a line.
    pub(crate) fn verify(&mut self, key: FingerprintKey) -> io::Result<Option<bool>> {
        let mut head = [0; FINGERPRINT_BYTES_MAX];
        let bytes = read_full_at(self.handle()?, &mut head, 0)?;
        if !key.matches(&head[..bytes], self.fingerprint) {
            return Ok(None);
        }
        let mut tail = [0; TAIL_BYTES_MAX];
        if self.tail_at(self.tail.offset, &mut tail, key)? != Some(self.tail) {
            return Ok(None);
        }
        self.fingerprint = key.fingerprint(&head[..bytes]);
        let Some(here) = self.tail_at(self.offset, &mut tail, key)? else {
            return Ok(None);
        };
        self.tail = here;
        self.read_head = key.fingerprint(before(self.offset, &head[..bytes]));
        self.verified = true;
        let mid_line = ends_in_line(&tail[..here.bytes()], false);
        Ok(Some(mid_line && !self.flushed))
    }

    /// The tail at an offset, `None` if the file is shorter. Its bytes are in `room` then.
    fn tail_at(
        &self,
        offset: u64,
        room: &mut [u8; TAIL_BYTES_MAX],
        key: FingerprintKey,
    ) -> io::Result<Option<Tail>> {
        let want = Tail { offset, hash: 0 }.bytes();
        let got = read_full_at(self.handle()?, &mut room[..want], offset - want as u64)?;
        if got < want {
            return Ok(None);
        }
        Ok(Some(key.tail(&room[..want], offset)))
    }

    /// Where the first bytes are that were written: `size` if there are none, 0 if that is not known.
    pub(crate) fn hole_end(&self, size: u64) -> io::Result<u64> {
        match rustix::fs::seek(self.handle()?, SeekFrom::Data(0)) {
            Ok(end) => Ok(end.min(size)),
            Err(Errno::NXIO) => {
                // A filesystem may say so of bytes that it has not written yet.
                let mut bytes = [0; FINGERPRINT_BYTES_MAX];
                let got = read_full_at(self.handle()?, &mut bytes, 0)?;
                let is_hole = bytes[..got].iter().all(|byte| *byte == 0);
                Ok(if is_hole { size } else { 0 })
            }
            // The filesystem knows no holes.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Moves the offset without reading. False if the file does not begin with what is known of it, or is shorter.
    pub(crate) fn skip_to(&mut self, offset: u64, key: FingerprintKey) -> io::Result<bool> {
        let from = std::mem::replace(&mut self.offset, offset);
        let verified = self.verify(key);
        if !matches!(verified, Ok(Some(_))) {
            self.offset = from;
        }
        Ok(verified?.is_some())
    }

    /// Whether the file is still what was read: its head and its tail.
    pub(crate) fn content_holds(&self, key: FingerprintKey) -> io::Result<bool> {
        let mut bytes = [0; FINGERPRINT_BYTES_MAX];
        let head = &mut bytes[..self.known_head().bytes as usize];
        let got = read_full_at(self.handle()?, head, 0)?;
        Ok(key.matches(&head[..got], self.known_head()) && self.tail_holds(key)?)
    }

    /// What the content has to begin with: what was read of it, or what was seen where nothing was read yet. Bytes
    /// that were seen and not read may be cut off.
    fn known_head(&self) -> Fingerprint {
        match self.offset {
            0 => self.fingerprint,
            _ => self.read_head,
        }
    }

    fn tail_holds(&self, key: FingerprintKey) -> io::Result<bool> {
        let tail = self.tail_at(self.offset, &mut [0; TAIL_BYTES_MAX], key)?;
        Ok(tail == Some(self.tail))
    }

    /// Appends up to `want` bytes at the offset to `buffer` and moves the offset. If they are only a part of what is there,
    /// it ends where a line ends, if one does.
    pub(crate) fn read(
        &mut self,
        buffer: &mut ChunkBuffer,
        want: usize,
        is_part: bool,
        key: FingerprintKey,
    ) -> io::Result<Slice> {
        let result = self.read_into(buffer.room(want), is_part, key);
        if let Ok(Slice::Bytes(bytes)) = result {
            buffer.fill(bytes);
        }
        result
    }

    fn read_into(
        &mut self,
        room: &mut [u8],
        is_part: bool,
        key: FingerprintKey,
    ) -> io::Result<Slice> {
        let mut before = [0; TAIL_BYTES_MAX];
        let tail = self.tail.bytes();
        let got = loop {
            let mut parts = [IoSliceMut::new(&mut before[..tail]), IoSliceMut::new(room)];
            match rustix::io::preadv(self.handle()?, &mut parts, self.offset - tail as u64) {
                Err(Errno::INTR) => {}
                other => break other?,
            }
        };
        if got < tail || key.tail(&before[..tail], self.offset) != self.tail {
            return Ok(Slice::Replaced);
        }
        let mut data = &room[..got - tail];
        // What is read from the first byte on is its own head; all else is compared with the file's.
        let is_head = self.offset == 0 && data.len() >= self.fingerprint.bytes as usize;
        if is_head && self.identify_by(data, key).is_none() {
            return Ok(Slice::Replaced);
        }
        let last_end = memrchr(b'\n', data).map(|newline| newline + 1);
        if is_part && let Some(end) = last_end {
            // What would only be held until its line ends is read again instead.
            data = &data[..end];
        }
        let read_to = self.offset + data.len() as u64;
        match self.look_again(read_to, key)? {
            Slice::Bytes(_) => {}
            other => return Ok(other),
        }
        self.unended_turns = match last_end {
            Some(end) if end == data.len() => 0,
            _ => self.unended_turns.saturating_add(1),
        };
        self.tail = tail_after(&before[..tail], data, read_to, key);
        self.offset = read_to;
        Ok(Slice::Bytes(data.len()))
    }

    /// Whether what was just read up to `read_to` is of the content that is known, and all of it: the file may have
    /// been cut and written again before it was read, or while it was. A read goes from front to back, so its last
    /// bytes are of the later content: if there are no such bytes now, all of it was there before the cut.
    fn look_again(&mut self, read_to: u64, key: FingerprintKey) -> io::Result<Slice> {
        #[cfg(test)]
        crate::file::follower::tests::between_looks();
        let meta = Meta::of_file(self.handle()?)?;
        if meta.bytes < read_to {
            return Ok(Slice::Bytes(0));
        }
        // Where nothing has changed since the `stat` before the read, the cut was before that.
        let is_same = (meta.changed, meta.bytes) == (self.changed, self.looked_size);
        let mut head = [0; FINGERPRINT_BYTES_MAX];
        let bytes = read_full_at(self.handle()?, &mut head, 0)?;
        let holds = self.identify_by(&head[..bytes], key).is_some();
        if holds && (self.read_head.bytes as usize) < FINGERPRINT_BYTES_MAX {
            self.read_head = key.fingerprint(before(read_to, &head[..bytes]));
        }
        Ok(if holds && (is_same || self.tail_holds(key)?) {
            Slice::Bytes(0)
        } else if is_same {
            Slice::Replaced
        } else {
            Slice::Cut
        })
    }

    /// Makes the fingerprint cover as many bytes as there are now. `None` if the bytes it covered are
    /// no longer those, else whether it covers more.
    pub(crate) fn identify(&mut self, key: FingerprintKey) -> io::Result<Option<bool>> {
        if self.read_head.bytes as usize == FINGERPRINT_BYTES_MAX {
            // It was compared just now.
            return Ok(Some(false));
        }
        let mut head = [0; FINGERPRINT_BYTES_MAX];
        let bytes = read_full_at(self.handle()?, &mut head, 0)?;
        Ok(self.identify_by(&head[..bytes], key))
    }

    fn identify_by(&mut self, head: &[u8], key: FingerprintKey) -> Option<bool> {
        if !key.matches(head, self.known_head()) {
            return None;
        }
        let known = self.fingerprint.bytes;
        if (self.read_head.bytes as usize) < FINGERPRINT_BYTES_MAX {
            self.fingerprint = key.fingerprint(head);
        }
        Some(self.fingerprint.bytes > known)
    }

    /// What the content begins with, before an offset.
    pub(crate) fn head(&mut self, offset: u64, roots: &Roots) -> io::Result<Vec<u8>> {
        match &mut self.medium {
            Medium::Copy(copy) => copy.head(offset, roots),
            _ => read_head(self.handle()?, offset),
        }
    }

    /// Reads its compressed copy on at the offset, without moving that. The tail is then that after what was read.
    pub(crate) fn read_copy(
        &mut self,
        room: &mut [u8],
        key: FingerprintKey,
        roots: &Roots,
    ) -> io::Result<usize> {
        let offset = self.offset;
        let Some(copy) = self.copy_mut() else {
            return Ok(0);
        };
        let Some((bytes, tail)) = copy.read(room, offset, key, roots)? else {
            return Ok(0);
        };
        self.tail = tail;
        Ok(bytes)
    }

    /// The path the kernel knows for the open file; `None` where it has none.
    pub(crate) fn kernel_path(&self) -> Option<PathBuf> {
        let handle = self.handle().ok()?;
        if Meta::of_file(handle).ok()?.links == 0 {
            return None;
        }
        let path = fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd())).ok()?;
        let meta = Meta::of_name(&path).ok()?;
        (meta.inode == self.inode).then_some(path)
    }

    fn handle(&self) -> io::Result<&fs::File> {
        match &self.medium {
            Medium::Open(handle) => Ok(handle),
            Medium::Closed(_) | Medium::Copy(_) => Err(io::Error::other("the file is not open")),
        }
    }
}

/// The tail behind `data`, which followed `before` and ends at `offset`.
fn tail_after(before: &[u8], data: &[u8], offset: u64, key: FingerprintKey) -> Tail {
    if data.len() >= TAIL_BYTES_MAX {
        return key.tail(&data[data.len() - TAIL_BYTES_MAX..], offset);
    }
    let mut joined = [0; 2 * TAIL_BYTES_MAX];
    let end = before.len() + data.len();
    joined[..before.len()].copy_from_slice(before);
    joined[before.len()..end].copy_from_slice(data);
    key.tail(&joined[end.saturating_sub(TAIL_BYTES_MAX)..end], offset)
}

/// The bytes of a head that stand before an offset.
fn before(offset: u64, head: &[u8]) -> &[u8] {
    &head[..usize::try_from(offset).map_or(head.len(), |end| end.min(head.len()))]
}

/// Whether an error means that there is no such name.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::NOENT | Errno::NOTDIR)
    )
}
