//! A compressed copy that stands in for a log file that is gone.
//!
//! It is one [`CompressedFile`], opened when it is first read, and the state of decompressing it. It reads the bytes of the
//! original from any offset; it knows nothing of other files and decides nothing about them.

use std::fs;
use std::io;
use std::sync::Arc;

use crate::file::compressed_file::{CompressedFile, CopyId};
use crate::file::gzip::{GzipReader, Original};
use crate::file::roots::Roots;
use crate::identity::{FingerprintKey, Tail, head_bytes};

/// What stands in for a file that is gone.
#[derive(Debug)]
pub(crate) struct CompressedCopy {
    pub(crate) file: CompressedFile,
    /// Whether it holds what was read beneath the roots: then it may have been moved elsewhere with it.
    is_known: bool,
    pub(crate) original: Original,
    /// Whether the size is what the file itself states, and not what was found in it.
    pub(crate) size_is_reported: bool,
    /// Open from the first read on.
    reader: Option<GzipReader>,
    /// All of it was read.
    is_at_end: bool,
}

impl CompressedCopy {
    /// A compressed file that is read from its first byte.
    pub(crate) fn whole(file: CompressedFile, size: u64) -> Self {
        Self {
            file,
            is_known: false,
            original: Original {
                size,
                mid_line: false,
            },
            size_is_reported: true,
            reader: None,
            is_at_end: false,
        }
    }

    pub(crate) fn copy_id(&self) -> CopyId {
        self.file.id()
    }

    pub(crate) fn open(&mut self, roots: &Roots) -> io::Result<Arc<fs::File>> {
        let is_known = self.is_known;
        self.file.open(|path| {
            if is_known {
                roots.open_moved(path)
            } else {
                roots.open_beneath(path)
            }
        })
    }

    /// How large the original is at most, as far as it was read and that is known.
    pub(crate) fn bytes_max(&self) -> Option<u64> {
        self.reader.as_ref().map(GzipReader::bytes_max)
    }

    /// What the original begins with, before an offset.
    pub(crate) fn head(&mut self, offset: u64, roots: &Roots) -> io::Result<Vec<u8>> {
        let mut head = vec![0; head_bytes(offset)];
        let mut reader = GzipReader::new(self.open(roots)?, 0)?;
        let bytes = reader.read_full(&mut head)?;
        head.truncate(bytes);
        Ok(head)
    }

    /// Reads on at an offset, where the reads before it ended. Returns the number of bytes and the tail after them; `None`
    /// once all of it was read.
    pub(crate) fn read(
        &mut self,
        room: &mut [u8],
        offset: u64,
        key: FingerprintKey,
        roots: &Roots,
    ) -> io::Result<Option<(usize, Tail)>> {
        if self.is_at_end {
            return Ok(None);
        }
        if self.reader.is_none() {
            let file = self.open(roots)?;
            self.reader = Some(GzipReader::new(file, offset)?);
        }
        let Some(reader) = &mut self.reader else {
            return Ok(None);
        };
        let bytes = reader.read(room)?;
        let tail = key.tail(reader.last(), offset + bytes as u64);
        if bytes == 0 {
            // It may have to wait until the next file continues, and needs no descriptor for that.
            (self.reader, self.is_at_end) = (None, true);
        }
        Ok(Some((bytes, tail)))
    }

    /// The compressed file as a copy of a known one, of which nothing was compared yet.
    pub(crate) fn of(file: CompressedFile, is_known: bool) -> Self {
        let original = Original {
            size: 0,
            mid_line: false,
        };
        Self {
            file,
            is_known,
            original,
            size_is_reported: false,
            reader: None,
            is_at_end: false,
        }
    }
}
