//! All of one file, part by part, while others may write to it.
//!
//! It gives what the file had when it was opened, and of its last line or CSV record what was written since, so that it ends. What is not the
//! file that was asked for any more is an error: one that became shorter, and one that was written again, whose rows would be those of two files.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bytes::Bytes;

use crate::csv_head::delimiter_of;
use crate::csv_quotes::Quotes;
use crate::kind::is_csv;

/// What is read at a time.
pub(super) const READ_BYTES: u64 = 256 << 10;
/// So many of the bytes that were given are read again with the next part.
const AGAIN_BYTES: usize = 256;

/// A file that is being read.
pub(super) struct Whole {
    file: File,
    /// What it had when it was opened.
    size: u64,
    /// What was given of it.
    at: u64,
    /// The last bytes before `at`.
    last: Vec<u8>,
    /// Those of a CSV file before `at`: a line end within them ends no record. `None` of other files.
    quotes: Option<Quotes>,
}

impl Whole {
    pub(super) fn new(file: File, path: &Path, size: u64) -> Result<Whole> {
        let name = String::from_utf8_lossy(path.as_os_str().as_bytes());
        let mut quotes = None;
        if is_csv(&name) {
            let mut head = Vec::new();
            (&file).take(READ_BYTES).read_to_end(&mut head)?;
            quotes = Some(Quotes::new(delimiter_of(&name, &head)));
        }
        Ok(Whole {
            file,
            size,
            at: 0,
            last: Vec::new(),
            quotes,
        })
    }

    /// The next part; an empty one is the end.
    pub(super) fn next(&mut self) -> Result<Bytes> {
        if self.file.metadata()?.len() < self.size.max(self.at) {
            return Err(shorter());
        }
        let is_within = self.at < self.size;
        let want = match is_within {
            true => (self.size - self.at).min(READ_BYTES),
            false if self.is_at_end() => 0,
            false => READ_BYTES,
        };
        let before = self.last.len();
        let mut bytes = self.read(self.at - before as u64, before as u64 + want)?;
        if bytes.len() < before || is_within && ((bytes.len() - before) as u64) < want {
            return Err(shorter());
        }
        if bytes[..before] != self.last {
            return Err(Error::other("was changed while it was read"));
        }
        if is_within {
            if let Some(quotes) = &mut self.quotes {
                quotes.add(&bytes[before..]);
            }
        } else if let Some(end) = self.end_of_record(&bytes[before..]) {
            bytes.truncate(before + end);
        }
        if bytes.len() == before {
            self.check_closed()?;
        }
        self.at += (bytes.len() - before) as u64;
        self.last = bytes[bytes.len().saturating_sub(AGAIN_BYTES)..].to_vec();
        Ok(Bytes::from(bytes).slice(before..))
    }

    fn read(&self, at: u64, len: u64) -> Result<Vec<u8>> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(at))?;
        // Reading to an end clears no memory.
        let mut bytes = Vec::with_capacity(len as usize);
        file.take(len).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Whether what was given ends as a line or a record does.
    fn is_at_end(&self) -> bool {
        let unclosed = self.quotes.as_ref().and_then(Quotes::unclosed_line);
        self.last.last().is_none_or(|byte| *byte == b'\n') && unclosed.is_none()
    }

    /// Behind the first line or record of the next bytes.
    fn end_of_record(&mut self, bytes: &[u8]) -> Option<usize> {
        match &mut self.quotes {
            Some(quotes) => quotes.end_of_record(bytes),
            None => memchr::memchr(b'\n', bytes).map(|at| at + 1),
        }
    }

    /// Checks that no value of the file was cut off, as those are that others write in pieces.
    fn check_closed(&self) -> Result<()> {
        match self.quotes.as_ref().and_then(Quotes::unclosed_line) {
            Some(line) => Err(Error::other(Quotes::not_closed(line))),
            None => Ok(()),
        }
    }
}

fn shorter() -> Error {
    Error::new(ErrorKind::UnexpectedEof, "became shorter while it was read")
}
