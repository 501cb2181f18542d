//! Compression of requests, and decompression within a limit.
//!
//! A [`Compressor`] reuses its context from call to call: creating one costs as much as compressing a small request. Its
//! result is an exact allocation, because payloads are what stays in memory while in flight. Decompression never returns
//! more than the caller's limit.
//!
//! At level 1 of zstd, [`Compressor::compress_request`] uses the marks of a request where that gives the shorter payload
//! (`compress/marked.rs`). It is a frame like any other.

mod marked;

use std::io::Read;

use flate2::{Compress, Crc, FlushCompress, Status};

use crate::part::Request;
pub use marked::Choice;

/// How a payload is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// `zstd`
    Zstd,
    /// `gzip`
    Gzip,
    /// Not at all.
    None,
}

impl Compression {
    /// The value of `content-encoding` and `grpc-encoding`: `identity` for [`Compression::None`].
    pub const fn name(self) -> &'static str {
        match self {
            Compression::Zstd => "zstd",
            Compression::Gzip => "gzip",
            Compression::None => "identity",
        }
    }

    /// The compression of this name in a header.
    pub fn from_name(name: &str) -> Option<Compression> {
        [Compression::Zstd, Compression::Gzip, Compression::None]
            .into_iter()
            .find(|compression| compression.name().eq_ignore_ascii_case(name))
    }

    /// The level that is used if none is asked for.
    pub const fn default_level(self) -> i32 {
        match self {
            Compression::Zstd | Compression::Gzip => 1,
            Compression::None => 0,
        }
    }
}

/// Compresses one request after the other.
pub struct Compressor {
    context: Context,
    /// Where the compressed bytes are made.
    scratch: Vec<u8>,
}

enum Context {
    Zstd(Zstd),
    Gzip(Compress),
    None,
}

/// Both ways to make a frame. Each is created when it is first used.
struct Zstd {
    level: i32,
    libzstd: Option<zstd::bulk::Compressor<'static>>,
    marked: Option<Box<tailrace_zstd::Compressor>>,
}

/// The level for which marks are used: they take its place, and are cheaper and shorter.
const MARKED_LEVEL: i32 = 1;

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor")
            .field("compression", &self.compression())
            .finish_non_exhaustive()
    }
}

impl Compressor {
    /// A compressor; a level out of the algorithm's range becomes its nearest.
    pub fn new(compression: Compression, level: i32) -> Compressor {
        let context = match compression {
            Compression::Zstd => {
                let levels = zstd::compression_level_range();
                Context::Zstd(Zstd {
                    level: level.clamp(*levels.start(), *levels.end()),
                    libzstd: None,
                    marked: None,
                })
            }
            Compression::Gzip => {
                let level = flate2::Compression::new(level.clamp(0, 9) as u32);
                Context::Gzip(Compress::new(level, false))
            }
            Compression::None => Context::None,
        };
        Compressor {
            context,
            scratch: Vec::new(),
        }
    }

    /// What it makes.
    pub fn compression(&self) -> Compression {
        match self.context {
            Context::Zstd(_) => Compression::Zstd,
            Context::Gzip(_) => Compression::Gzip,
            Context::None => Compression::None,
        }
    }

    /// Compresses one request that an encoder made; `choice` is what was learned of that encoder's requests.
    pub fn compress_request(&mut self, request: &Request, choice: &mut Choice) -> Vec<u8> {
        if let Context::Zstd(zstd) = &mut self.context
            && zstd.level == MARKED_LEVEL
            && choice.takes_marks(request)
            && let Some(payload) = zstd.with_marks(request, choice, &mut self.scratch)
        {
            self.release();
            debug_assert!(
                decompress(Compression::Zstd, &payload, request.bytes.len())
                    .is_ok_and(|plain| plain == request.bytes),
                "the payload is the request"
            );
            return payload;
        }
        self.compress(&request.bytes)
    }

    /// Compresses bytes of any kind.
    pub fn compress(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.scratch.clear();
        match &mut self.context {
            Context::None => return bytes.to_vec(),
            Context::Gzip(context) => gzip(context, bytes, &mut self.scratch),
            Context::Zstd(zstd) => zstd.by_libzstd(bytes, &mut self.scratch),
        }
        let compressed = self.scratch.to_vec();
        self.release();
        compressed
    }

    /// Gives back what only a long request needed.
    fn release(&mut self) {
        self.scratch.clear();
        self.scratch.shrink_to(BYTES_KEPT);
        if let Context::Zstd(Zstd {
            marked: Some(marked),
            ..
        }) = &mut self.context
        {
            marked.release(BYTES_KEPT);
        }
    }
}

impl Zstd {
    fn by_libzstd(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let context = self.libzstd.get_or_insert_with(|| {
            zstd::bulk::Compressor::new(self.level).expect("zstd takes every level of its range")
        });
        out.clear();
        out.reserve(zstd::zstd_safe::compress_bound(bytes.len()));
        context
            .compress_to_buffer(bytes, out)
            .expect("zstd fails only where memory is exhausted, given room for the bound");
    }

    /// The payload of a request that marks are tried on; `None` if they do not suit it.
    fn with_marks(
        &mut self,
        request: &Request,
        choice: &mut Choice,
        scratch: &mut Vec<u8>,
    ) -> Option<Vec<u8>> {
        let mut compressor = self.marked.take().unwrap_or_default();
        let payload = compressor.compress(&request.bytes, &request.marks);
        let len = request.bytes.len();
        let payload = payload.map(|marked| {
            if !choice.compares(len, marked.len()) {
                return marked.to_vec();
            }
            self.by_libzstd(&request.bytes, scratch);
            if choice.compared(len, marked.len(), scratch.len()) {
                // Not needed for the next 127: its memory would be in addition to that of marks.
                self.libzstd = None;
                marked.to_vec()
            } else {
                scratch.clone()
            }
        });
        self.marked = Some(compressor);
        payload
    }
}

/// Memory kept for the next request.
const BYTES_KEPT: usize = 4 << 20;

/// One gzip member (RFC 1952).
fn gzip(context: &mut Compress, bytes: &[u8], out: &mut Vec<u8>) {
    // Deflate, no flags, no time, no hints, unknown system.
    out.extend_from_slice(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
    context.reset();
    loop {
        out.reserve((bytes.len() / 4).max(4096));
        let at = context.total_in() as usize;
        let status = context.compress_vec(&bytes[at..], out, FlushCompress::Finish);
        if status.expect("deflate takes every input") == Status::StreamEnd {
            break;
        }
    }
    let mut crc = Crc::new();
    crc.update(bytes);
    out.extend_from_slice(&crc.sum().to_le_bytes());
    out.extend_from_slice(&crc.amount().to_le_bytes());
}

/// Why [`decompress`] gave nothing.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct DecompressError(#[from] Cause);

impl DecompressError {
    /// The data was (or would have become) longer than the limit.
    pub fn is_too_long(&self) -> bool {
        matches!(self.0, Cause::TooLong { .. })
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Cause {
    #[error("decompressed body is longer than {max} bytes")]
    TooLong { max: usize },
    #[error("body is not valid {encoding}")]
    Broken {
        encoding: &'static str,
        #[source]
        source: std::io::Error,
    },
}

/// Undoes a compression; an error if the result would be longer than `max` bytes, found before it
/// is.
pub fn decompress(
    compression: Compression,
    bytes: &[u8],
    max: usize,
) -> Result<Vec<u8>, DecompressError> {
    let broken = |source| Cause::Broken {
        encoding: compression.name(),
        source,
    };
    match compression {
        Compression::None if bytes.len() > max => Err(Cause::TooLong { max }.into()),
        Compression::None => Ok(bytes.to_vec()),
        Compression::Gzip => read_to_limit(flate2::read::MultiGzDecoder::new(bytes), max, broken),
        Compression::Zstd => {
            // RFC 9659: a content encoding's window is at most 8 MiB, so that no header can make us
            // allocate more.
            const WINDOW_LOG_MAX: u32 = 23;
            let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes).map_err(broken)?;
            decoder.window_log_max(WINDOW_LOG_MAX).map_err(broken)?;
            read_to_limit(decoder, max, broken)
        }
    }
}

fn read_to_limit(
    reader: impl Read,
    max: usize,
    broken: impl FnOnce(std::io::Error) -> Cause,
) -> Result<Vec<u8>, DecompressError> {
    let mut out = Vec::new();
    reader
        .take(max as u64 + 1)
        .read_to_end(&mut out)
        .map_err(broken)?;
    if out.len() > max {
        return Err(Cause::TooLong { max }.into());
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
