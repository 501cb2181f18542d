//! The structural index of a run of records: where a record's structural characters outside strings are.
//!
//! For each record of a buffer: the offsets of `{ } [ ] : ,` outside strings, and an [`Outline`]. Never looks at what
//! stands between, never reads past the buffer's end, lets no record decide anything about its neighbours.
//!
//! What it computes, byte by byte:
//!
//! ```text
//! for record in records:
//!     escaped = in_string = false
//!     for (i, byte) in record:
//!         if not escaped and byte == '"': in_string = !in_string
//!         if not in_string and byte in "{}[]:,": structurals.push(i)
//!         escaped = not escaped and byte == '\'
//!     unclosed = in_string
//! ```
//!
//! A backslash escapes the byte after it wherever it stands, also outside strings, where it is an error anyway: the
//! rule is the same for every record and every instruction set. How 64 bytes are done at once:
//!
//! 1. *Escaped quotes.* A quote is escaped if an odd run of backslashes ends before it. Runs that start on odd offsets
//!    are added to the backslash mask: the carry ends up after the run, on an even or odd offset, which tells the
//!    parity of its length. The carry out of the block is carried over.
//! 2. *In-string.* The xor of all quote bits at or below an offset, by one carry-less multiplication with all ones (or
//!    six shifts and xors), and the state the last block ended with.
//! 3. *Borders.* Blocks follow each other whatever records they belong to; where a block holds a border each record's part
//!    of it is done by itself, with nothing carried over. At a buffer's end the last bytes are copied into a block of spaces.
//! 4. *Bits to offsets.* More at a time than there are, without a branch for each; what is written beyond the count is
//!    overwritten by the next block.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod block;
mod build;
mod dispatch;
#[cfg(target_arch = "aarch64")]
mod neon;
mod probe;
mod scalar;

pub(crate) use build::{Index, Outline, escaped};
pub(crate) use dispatch::Indexer;
pub(crate) use probe::{PROBE_BYTES, Probe, STRING_BYTES, StringMasks, Task, TokenMasks};

#[cfg(test)]
mod tests;
