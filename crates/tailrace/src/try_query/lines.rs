//! The bytes to try a query on: a file or standard input, decompressed if they are gzip or zstd.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, anyhow};
use flate2::bufread::MultiGzDecoder;

use crate::printed;

const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

/// The bytes of a source, and what it is called.
pub(super) struct Lines {
    bytes: Box<dyn Read>,
    name: String,
}

/// Opens a file; `None` is standard input.
///
/// # Errors
///
/// It cannot be read, or is no file.
pub(super) fn open(path: Option<&Path>) -> anyhow::Result<Lines> {
    let name = path.map_or_else(|| "standard input".to_owned(), printed::path);
    let raw: Box<dyn Read> = match path {
        Some(path) => {
            let file = File::open(path).with_context(|| format!("{name}: cannot be read"))?;
            let meta = file.metadata().with_context(|| name.clone())?;
            if meta.is_dir() {
                return Err(anyhow!("{name}: is a directory, not a file"));
            }
            Box::new(file)
        }
        None => Box::new(io::stdin()),
    };
    let mut raw = BufReader::new(raw);
    let head = raw
        .fill_buf()
        .with_context(|| format!("{name}: cannot be read"))?;
    let (is_gzip, is_zstd) = (head.starts_with(GZIP), head.starts_with(ZSTD));
    let bytes: Box<dyn Read> = if is_gzip {
        Box::new(MultiGzDecoder::new(raw))
    } else if is_zstd {
        let decoder = zstd::stream::read::Decoder::with_buffer(raw);
        Box::new(decoder.with_context(|| format!("{name}: cannot be decompressed"))?)
    } else {
        Box::new(raw)
    };
    Ok(Lines { bytes, name })
}

impl Lines {
    /// Reads the next bytes; 0 is the end.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is damaged.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> anyhow::Result<usize> {
        loop {
            match self.bytes.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other.with_context(|| format!("{}: cannot be read", self.name)),
            }
        }
    }
}
