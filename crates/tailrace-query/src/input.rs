//! The bytes of a file or of standard input, decompressed if they are gzip or zstd.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, bail};
use flate2::bufread::MultiGzDecoder;

use crate::store::object::Object;

const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

/// Where lines come from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// A file.
    File(PathBuf),
    /// An object of a store.
    Object(Arc<Object>),
    /// Standard input, which can be read once.
    Stdin,
}

impl Input {
    /// What it is called in messages.
    pub fn name(&self) -> String {
        match self {
            Input::File(path) => path.display().to_string(),
            Input::Object(object) => object.name(),
            Input::Stdin => "standard input".to_owned(),
        }
    }

    /// Whether its bytes are gone once they are read: standard input, or a pipe.
    pub(crate) fn is_stream(&self) -> bool {
        match self {
            Input::File(path) => std::fs::metadata(path).is_ok_and(|meta| !meta.is_file()),
            Input::Object(_) => false,
            Input::Stdin => true,
        }
    }

    /// Device and inode of a file.
    pub(crate) fn identity(&self) -> Option<(u64, u64)> {
        let path = match self {
            Input::File(path) => path.clone(),
            Input::Object(object) => object.path()?,
            Input::Stdin => return None,
        };
        let meta = std::fs::metadata(path).ok().filter(|meta| meta.is_file());
        meta.map(|meta| (meta.dev(), meta.ino()))
    }

    /// Opens it.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is a directory.
    pub fn open(&self) -> anyhow::Result<Lines> {
        match self {
            Input::File(path) => open(Some(path), self.name()),
            Input::Object(object) => decompressed(Box::new(object.open()?), self.name()),
            Input::Stdin => open(None, self.name()),
        }
    }
}

/// The bytes of a source.
pub struct Lines {
    bytes: Box<dyn Read + Send>,
    name: String,
    is_compressed: bool,
    /// Bytes read before decompression, and not yet taken.
    file_bytes: Arc<AtomicU64>,
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

/// Opens a file, called `name` in messages; `None` is standard input.
///
/// # Errors
///
/// It cannot be read, or is no file.
pub fn open(path: Option<&Path>, name: String) -> anyhow::Result<Lines> {
    let raw: Box<dyn Read + Send> = match path {
        Some(path) => {
            let file = File::open(path).with_context(|| format!("{name}: cannot be read"))?;
            let meta = file.metadata().with_context(|| name.clone())?;
            if meta.is_dir() {
                bail!("{name}: is a directory, not a file");
            }
            Box::new(file)
        }
        None => Box::new(io::stdin()),
    };
    decompressed(raw, name)
}

fn decompressed(raw: Box<dyn Read + Send>, name: String) -> anyhow::Result<Lines> {
    let file_bytes = Arc::<AtomicU64>::default();
    let mut raw = BufReader::new(Counted {
        raw,
        bytes: Arc::clone(&file_bytes),
    });
    let head = raw
        .fill_buf()
        .with_context(|| format!("{name}: cannot be read"))?;
    let (is_gzip, is_zstd) = (head.starts_with(GZIP), head.starts_with(ZSTD));
    let bytes: Box<dyn Read + Send> = if is_gzip {
        Box::new(MultiGzDecoder::new(raw))
    } else if is_zstd {
        let decoder = zstd::stream::read::Decoder::with_buffer(raw);
        Box::new(decoder.with_context(|| format!("{name}: cannot be decompressed"))?)
    } else {
        Box::new(raw)
    };
    Ok(Lines {
        bytes,
        name,
        is_compressed: is_gzip || is_zstd,
        file_bytes,
    })
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lines")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Lines {
    /// Reads the next bytes; 0 is the end.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is damaged.
    pub fn read(&mut self, buffer: &mut [u8]) -> anyhow::Result<usize> {
        loop {
            match self.bytes.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other.with_context(|| format!("{}: cannot be read", self.name)),
            }
        }
    }

    /// Reads until the buffer is full or the end is reached; gives how many bytes there are.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    pub(crate) fn fill(&mut self, buffer: &mut [u8]) -> anyhow::Result<usize> {
        let mut at = 0;
        while at < buffer.len() {
            match self.read(&mut buffer[at..])? {
                0 => break,
                count => at += count,
            }
        }
        Ok(at)
    }

    /// The bytes read before decompression since the last call.
    pub(crate) fn take_file_bytes(&mut self) -> u64 {
        self.file_bytes.swap(0, Ordering::Relaxed)
    }

    pub(crate) fn is_compressed(&self) -> bool {
        self.is_compressed
    }
}
