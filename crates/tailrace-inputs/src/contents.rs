//! All bytes of a file or of standard input, once: decompressed if they begin as gzip or zstd do.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

/// Bytes that are read to their end once, as a command reads them that does not follow files.
pub struct Contents {
    bytes: Box<dyn Read + Send>,
    is_compressed: bool,
    /// Bytes read before decompression, and not yet taken.
    stored_bytes: Arc<AtomicU64>,
}

/// Counts the bytes that are read.
struct Counted {
    raw: Box<dyn Read + Send>,
    bytes: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.raw.read(buffer)?;
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
        let mut raw = BufReader::new(Counted {
            raw,
            bytes: Arc::clone(&stored_bytes),
        });
        let head = raw.fill_buf()?;
        let (is_gzip, is_zstd) = (head.starts_with(GZIP), head.starts_with(ZSTD));
        let bytes: Box<dyn Read + Send> = if is_gzip {
            Box::new(MultiGzDecoder::new(raw))
        } else if is_zstd {
            Box::new(zstd::stream::read::Decoder::with_buffer(raw)?)
        } else {
            Box::new(raw)
        };
        Ok(Contents {
            bytes,
            is_compressed: is_gzip || is_zstd,
            stored_bytes,
        })
    }

    /// Whether the bytes are decompressed.
    pub fn is_compressed(&self) -> bool {
        self.is_compressed
    }

    /// The bytes read before decompression since the last call.
    pub fn take_stored_bytes(&mut self) -> u64 {
        self.stored_bytes.swap(0, Ordering::Relaxed)
    }

    /// Reads until the buffer is full or the end is reached; gives how many bytes there are.
    ///
    /// # Errors
    ///
    /// They cannot be read, or are damaged.
    pub fn fill(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut at = 0;
        while at < buffer.len() {
            match self.read(&mut buffer[at..])? {
                0 => break,
                count => at += count,
            }
        }
        Ok(at)
    }
}

impl Read for Contents {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.bytes.read(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }
}

impl std::fmt::Debug for Contents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contents")
            .field("is_compressed", &self.is_compressed)
            .finish_non_exhaustive()
    }
}
