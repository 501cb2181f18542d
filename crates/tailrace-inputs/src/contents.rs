//! All bytes of a file or of standard input, once: decompressed if they begin as gzip or zstd do.
//!
//! Of a file that is damaged, or ends too early, all is given that could be decompressed before; then comes an error that says where
//! the damage is.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::gzip_members::GzipMembers;

const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
/// What follows the first byte, 0x50 to 0x5f, of a frame of zstd that is to be skipped: pzstd(1) begins with one.
const ZSTD_SKIPPED: &[u8] = b"\x2a\x4d\x18";

/// Bytes that are read to their end once, as a command reads them that does not follow files.
pub struct Contents {
    bytes: Box<dyn Read + Send>,
    /// What the bytes were compressed with.
    compressed: Option<Compressed>,
    /// Bytes read before decompression, and not yet taken.
    stored_bytes: Arc<AtomicU64>,
    /// What comes after the bytes that were given last.
    error: Option<io::Error>,
}

/// How far a compressed file was read.
#[derive(Debug)]
struct Compressed {
    /// The command that decompresses it.
    command: &'static str,
    /// Bytes that were decompressed.
    used: Arc<AtomicU64>,
    /// And what they became.
    given: u64,
    /// The bytes before decompression could not be read.
    is_unreadable: Arc<AtomicBool>,
}

impl Compressed {
    /// An error with the place where it is.
    fn located(&self, error: &io::Error) -> io::Error {
        let Compressed { command, given, .. } = self;
        let used = self.used.load(Ordering::Relaxed);
        if self.is_unreadable.load(Ordering::Relaxed) {
            let text = format!(
                "it cannot be read further, from byte {used} on ({error}): the {given} bytes before that were decompressed and read. Try again"
            );
            return io::Error::new(error.kind(), text);
        }
        if error.to_string().contains("too much memory") {
            // What its decoder says of a window of more than 128 MiB.
            let text = format!(
                "it was compressed with a window of more than 128 MiB, which is not decompressed here: `{command} -dc --long=31 FILE | ... -` is"
            );
            return io::Error::new(error.kind(), text);
        }
        let what = match error.kind() {
            ErrorKind::UnexpectedEof => "the file ends too early",
            _ => "the file is damaged",
        };
        let text = format!(
            "{what}, at byte {used} ({error}): the {given} bytes before that were decompressed and read. Fetch the file again, or read what is left of it from a pipe: `{command} -dc FILE | ... -`"
        );
        io::Error::new(error.kind(), text)
    }
}

/// Counts the bytes that are used of a buffer.
struct Used<R> {
    raw: R,
    bytes: Arc<AtomicU64>,
}

impl<R: BufRead> Read for Used<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.raw.read(buffer)?;
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Used<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.raw.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        self.raw.consume(count);
    }
}

/// Counts the bytes that are read.
struct Counted {
    raw: Box<dyn Read + Send>,
    bytes: Arc<AtomicU64>,
    is_unreadable: Arc<AtomicBool>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.raw.read(buffer);
        let is_error = |error: &io::Error| error.kind() != ErrorKind::Interrupted;
        if read.as_ref().is_err_and(is_error) {
            self.is_unreadable.store(true, Ordering::Relaxed);
        }
        let count = read?;
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

impl Contents {
    /// Opens a file; `None` is standard input.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is a directory.
    pub fn open(path: Option<&Path>) -> io::Result<Contents> {
        let Some(path) = path else {
            return Contents::of(Box::new(io::stdin()));
        };
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            let message = "it is a directory, not a file";
            return Err(io::Error::new(ErrorKind::IsADirectory, message));
        }
        Contents::of(Box::new(file))
    }

    /// The bytes that a reader gives.
    ///
    /// # Errors
    ///
    /// Its beginning cannot be read.
    pub fn of(raw: Box<dyn Read + Send>) -> io::Result<Contents> {
        let stored_bytes = Arc::<AtomicU64>::default();
        let is_unreadable = Arc::<AtomicBool>::default();
        let mut raw = BufReader::new(Counted {
            raw,
            bytes: Arc::clone(&stored_bytes),
            is_unreadable: Arc::clone(&is_unreadable),
        });
        let head = raw.fill_buf()?;
        let is_gzip = head.starts_with(GZIP);
        let is_skipped = matches!(head, [0x50..=0x5f, rest @ ..] if rest.starts_with(ZSTD_SKIPPED));
        let is_zstd = is_skipped || head.starts_with(ZSTD);
        let used = Arc::<AtomicU64>::default();
        let bytes = Arc::clone(&used);
        let (bytes, command): (Box<dyn Read + Send>, _) = if is_gzip {
            (Box::new(GzipMembers::new(Used { raw, bytes })), "gzip")
        } else if is_zstd {
            let raw = Used { raw, bytes };
            let decoder = zstd::stream::read::Decoder::with_buffer(raw)?;
            (Box::new(decoder), "zstd")
        } else {
            (Box::new(raw), "")
        };
        Ok(Contents {
            bytes,
            compressed: (is_gzip || is_zstd).then_some(Compressed {
                command,
                used,
                given: 0,
                is_unreadable,
            }),
            stored_bytes,
            error: None,
        })
    }

    /// Whether the bytes are decompressed.
    pub fn is_compressed(&self) -> bool {
        self.compressed.is_some()
    }

    /// The bytes read before decompression since the last call.
    pub fn take_stored_bytes(&mut self) -> u64 {
        self.stored_bytes.swap(0, Ordering::Relaxed)
    }

    /// Reads until the buffer is full or the end is reached; gives how many bytes there are.
    ///
    /// # Errors
    ///
    /// They cannot be read, or are damaged, from the first one on. Those before are given first.
    pub fn fill(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut at = 0;
        while at < buffer.len() {
            match self.read(&mut buffer[at..]) {
                Ok(0) => break,
                Ok(count) => at += count,
                Err(error) if at == 0 => return Err(error),
                Err(error) => {
                    // What was read before is not lost.
                    self.error = Some(error);
                    break;
                }
            }
        }
        Ok(at)
    }
}

impl Read for Contents {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        loop {
            match (self.bytes.read(buffer), &mut self.compressed) {
                (Err(error), _) if error.kind() == ErrorKind::Interrupted => {}
                (Err(error), Some(compressed)) => return Err(compressed.located(&error)),
                (Ok(count), Some(compressed)) => {
                    compressed.given += count as u64;
                    return Ok(count);
                }
                (other, None) => return other,
            }
        }
    }
}

impl std::fmt::Debug for Contents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contents")
            .field("compressed", &self.compressed)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::read::GzEncoder;

    /// What is said of these bytes, after which comes an error of the reader, or none.
    fn said(bytes: &[u8], error: Option<ErrorKind>) -> String {
        struct Fails(Option<ErrorKind>);
        impl Read for Fails {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                match self.0 {
                    Some(kind) => Err(io::Error::new(kind, "reset")),
                    None => Ok(0),
                }
            }
        }
        let raw = io::Cursor::new(bytes.to_vec()).chain(Fails(error));
        let mut contents = Contents::of(Box::new(raw)).unwrap();
        let read = contents.read_to_end(&mut Vec::new());
        read.unwrap_err().to_string()
    }

    #[test]
    fn a_frame_that_is_skipped_may_come_first() {
        let text = b"{\"n\":1}\n";
        for first in [0x50, 0x5f] {
            let skipped = [&[first], ZSTD_SKIPPED, &[4, 0, 0, 0], &[1, 2, 3, 4]].concat();
            let frame = zstd::bulk::compress(text, 1).unwrap();
            let bytes = [skipped, frame].concat();
            let mut contents = Contents::of(Box::new(io::Cursor::new(bytes))).unwrap();
            let mut read = Vec::new();
            contents.read_to_end(&mut read).unwrap();
            assert_eq!(read, text);
        }
    }

    #[test]
    fn a_reader_that_fails_is_no_damage() {
        let mut file = Vec::new();
        let text: Vec<u8> = (0..50_000_u32)
            .flat_map(|n| n.to_string().into_bytes())
            .collect();
        let mut encoder = GzEncoder::new(&text[..], Compression::fast());
        encoder.read_to_end(&mut file).unwrap();
        let half = &file[..file.len() / 2];
        for kind in [
            ErrorKind::Other,
            ErrorKind::UnexpectedEof,
            ErrorKind::TimedOut,
        ] {
            let said = said(half, Some(kind));
            assert!(
                said.starts_with("it cannot be read further, from byte "),
                "{said}"
            );
        }
        assert!(said(half, None).starts_with("the file ends too early, at byte "));
        let mut damaged = file.clone();
        damaged[file.len() / 2..][..64].fill(0xff);
        assert!(said(&damaged, None).starts_with("the file is damaged, at byte "));
        file.extend(b"rest");
        let end = file.len() - 4;
        let said = said(&file, None);
        let begin = format!("the file is damaged, at byte {end} (bytes follow that are no gzip)");
        assert!(said.starts_with(&begin), "{said}");
    }
}
