//! Reads a file a second time, behind its follower, for an output that could not keep up.
//!
//! Takes a handle of the file, gives bytes that are certain to be those that the follower read: what
//! was before them is compared with each read, in the same system call, and what the file begins with after it,
//! so that a file that was truncated and written again is noticed. Holds the file on the disk, deleted or not, until it is
//! dropped. Knows nothing of names, and never reads beyond the limit it was given.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::MetadataExt;

use rustix::io::Errno;

use crate::chunk::ChunkBuffer;
use crate::identity::{
    FINGERPRINT_BYTES_MAX, TAIL_BYTES_MAX, ends_in_line, read_full_at, read_head,
};

/// A file that is read again.
#[derive(Debug)]
pub struct Reread {
    handle: File,
    /// Bytes that the file has at `probe_at` as long as it is the same.
    probe: Vec<u8>,
    probe_at: u64,
    /// What the file began with.
    head: Vec<u8>,
    /// The next byte to read.
    offset: u64,
}

impl Reread {
    /// The file as it is now, which will be read from `offset` or later. At least the bytes before that
    /// are taken as its mark, or its first ones.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn new(handle: File, offset: u64) -> io::Result<Self> {
        let mut head = vec![0; FINGERPRINT_BYTES_MAX];
        let bytes = read_full_at(&handle, &mut head, 0)?;
        head.truncate(bytes);
        let probe_at = offset.saturating_sub(TAIL_BYTES_MAX as u64);
        let mut probe = vec![0; TAIL_BYTES_MAX];
        let bytes = read_full_at(&handle, &mut probe, probe_at)?;
        probe.truncate(bytes);
        Ok(Self {
            handle,
            probe,
            probe_at,
            head,
            offset,
        })
    }

    /// Begins to read at `offset`. Gives whether the byte before is something else than a newline; `None` if
    /// the file is not what it was.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn seek(&mut self, offset: u64) -> io::Result<Option<bool>> {
        let start = offset.saturating_sub(TAIL_BYTES_MAX as u64);
        let mut before = vec![0; usize::try_from(offset - start).unwrap_or(0)];
        let got = read_full_at(&self.handle, &mut before, start)?;
        // Afterwards: what was read before was then of the same content.
        let mut probe = vec![0; self.probe.len()];
        let probed = read_full_at(&self.handle, &mut probe, self.probe_at)?;
        let is_same = probed == probe.len() && probe == self.probe && self.head_holds()?;
        if got < before.len() || !is_same {
            return Ok(None);
        }
        self.offset = offset;
        let mid_line = ends_in_line(&before, false);
        if offset > 0 {
            (self.probe, self.probe_at) = (before, start);
        }
        Ok(Some(mid_line))
    }

    /// Whether the file begins as it did: a content may end in the same bytes as the one before it.
    fn head_holds(&self) -> io::Result<bool> {
        let mut head = [0; FINGERPRINT_BYTES_MAX];
        let head = &mut head[..self.head.len()];
        Ok(read_full_at(&self.handle, head, 0)? == head.len() && *head == *self.head)
    }

    /// What the file begins with, up to the offset, but no more than is worth a look for the end of a record that began in
    /// the file before it.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn head(&self) -> io::Result<Vec<u8>> {
        read_head(&self.handle, self.offset)
    }

    /// The next byte to read.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Appends up to `want` bytes to `buffer`, at least one. `None` if the file is not what it was, or shorter.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(&mut self, buffer: &mut ChunkBuffer, want: usize) -> io::Result<Option<usize>> {
        let start = buffer.len();
        let before = usize::try_from(self.offset.saturating_sub(self.probe_at)).unwrap_or(0);
        let mut tail = vec![0; before];
        let room = buffer.room(want);
        let got = loop {
            let mut parts = [IoSliceMut::new(&mut tail), IoSliceMut::new(room)];
            match rustix::io::preadv(&self.handle, &mut parts, self.probe_at) {
                Err(Errno::INTR) => {}
                other => break other?,
            }
        };
        let Some(bytes) = got.checked_sub(before).filter(|&bytes| bytes > 0) else {
            return Ok(None);
        };
        // At the start of the file it is the first bytes that are known.
        let known = if before == 0 { &room[..bytes] } else { &tail };
        let compared = known.len().min(self.probe.len());
        if known[..compared] != self.probe[..compared] || !self.head_holds()? {
            return Ok(None);
        }
        buffer.fill(bytes);
        self.offset += bytes as u64;
        let data = &buffer[start..];
        tail.extend_from_slice(&data[data.len().saturating_sub(TAIL_BYTES_MAX)..]);
        let excess = tail.len().saturating_sub(TAIL_BYTES_MAX);
        tail.drain(..excess);
        self.probe_at = self.offset - tail.len() as u64;
        self.probe = tail;
        Ok(Some(bytes))
    }

    /// What a file that has no name any more keeps on the disk for this reader alone, in bytes; `None` while
    /// it has a name.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub fn held_bytes(&self) -> io::Result<Option<u64>> {
        let meta = self.handle.metadata()?;
        Ok((meta.nlink() == 0).then(|| meta.len().saturating_sub(self.offset)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(file: &mut Reread, want: usize) -> Option<Vec<u8>> {
        let mut buffer = ChunkBuffer::default();
        file.read(&mut buffer, want).unwrap()?;
        Some(buffer.to_vec())
    }

    #[test]
    fn it_reads_on_in_a_deleted_file_and_from_the_middle_of_a_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        std::fs::write(&path, b"one\ntwo\nthree\n").unwrap();
        let mut file = Reread::new(File::open(&path).unwrap(), 4).unwrap();
        assert_eq!(file.held_bytes().unwrap(), None);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(file.held_bytes().unwrap(), Some(10));
        assert_eq!(file.seek(4).unwrap(), Some(false));
        assert_eq!(read(&mut file, 6).as_deref(), Some(&b"two\nth"[..]));
        assert_eq!(read(&mut file, 99).as_deref(), Some(&b"ree\n"[..]));
        assert_eq!(file.held_bytes().unwrap(), Some(0));
        assert_eq!(file.seek(6).unwrap(), Some(true));
    }

    #[test]
    fn a_content_that_ends_alike_is_another_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        let tail = "t".repeat(300);
        std::fs::write(&path, format!("old {tail}\nmore\n")).unwrap();
        let mut file = Reread::new(File::open(&path).unwrap(), 305).unwrap();
        assert_eq!(file.seek(305).unwrap(), Some(false));
        std::fs::write(&path, format!("new {tail}\nmore and more\n")).unwrap();
        assert_eq!(read(&mut file, 99), None);
        assert_eq!(file.seek(305).unwrap(), None);
    }

    #[test]
    fn a_file_that_was_written_again_is_never_taken_for_what_it_was() {
        let dir = tempfile::tempdir().unwrap();
        for offset in [0, 4] {
            for seek_before in [true, false] {
                let path = dir.path().join("a.log");
                std::fs::write(&path, b"one\ntwo\nthree\n").unwrap();
                let mut file = Reread::new(File::open(&path).unwrap(), offset).unwrap();
                if seek_before {
                    assert_eq!(file.seek(offset).unwrap(), Some(false));
                }
                let mut again = File::create(&path).unwrap();
                again.write_all(b"six\nten\neleven and more\n").unwrap();
                if seek_before {
                    assert_eq!(read(&mut file, 4), None);
                } else {
                    assert_eq!(file.seek(offset).unwrap(), None);
                }
            }
        }
    }
}
