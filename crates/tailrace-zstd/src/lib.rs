//! Records with marks to standard zstd frames (RFC 8878).
//!
//! An encoder knows where the values of a record are and to which column each belongs. It says so in [`Marks`], and a
//! [`Compressor`] looks values up a field at a time, where a general compressor hashes every few bytes. The result is
//! an ordinary frame, which every decoder reads.
//!
//! Data flow: [`Marks`] -> `matcher` (what of a request repeats, helped by what `columns` learned) -> `frame` (blocks)
//! -> `entropy` (their bytes, by `huffman`, `sequences`, `fse` and `bits`). No I/O, no clock, no allocation per record.

mod bits;
mod columns;
mod compare;
mod entropy;
mod frame;
mod fse;
mod huffman;
mod marks;
mod matcher;
mod sequences;

pub use marks::{Column, Mark, Marks};

use frame::Writer;
use matcher::Matcher;

/// Longer requests are not compressed here: RFC 9659 grants a content encoding a window of 8 MiB, and ours is the
/// whole request.
pub const REQUEST_MAX: usize = 8 << 20;

/// Compresses one request after the other. Takes about 1 MiB of memory, the frame apart.
pub struct Compressor {
    matcher: Matcher,
    writer: Writer,
}

impl Default for Compressor {
    fn default() -> Compressor {
        Compressor::new()
    }
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}

impl Compressor {
    /// One that has learned nothing.
    pub fn new() -> Compressor {
        Compressor {
            matcher: Matcher::new(),
            writer: Writer::new(),
        }
    }

    /// Compresses a request with the help of its marks; `None` if it is longer than [`REQUEST_MAX`] or has a
    /// value of 64 KiB.
    ///
    /// Any marks give a frame of this content. Right ones give a short one.
    pub fn compress(&mut self, request: &[u8], marks: &Marks) -> Option<&[u8]> {
        if request.len() > REQUEST_MAX || marks.has_huge() {
            return None;
        }
        self.writer.start(request.len() as u32);
        if request.len() > matcher::FIRST {
            self.matcher.search(request, marks, &mut self.writer);
        }
        self.writer.finish(request);
        Some(self.writer.frame())
    }

    /// Keeps at most so much memory for frames.
    pub fn release(&mut self, bytes: usize) {
        self.writer.release(bytes);
    }
}
