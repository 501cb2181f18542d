//! Bytes to records: lines, CRI and docker envelopes, partial joins, multi-line records, size limits.
//!
//! A [`Framer`] reads the bytes of one source in order, cut anywhere, and appends to [`Frames`]: records as byte
//! ranges, the pieces of the source each record is made of, and the spans that were skipped. Every byte of the
//! source ends up in exactly one piece or skip, wherever the cuts were, and what is held back for a line or a chain
//! is bounded. Never does I/O, never reads a clock, never looks for JSON inside a record, never fails: what it
//! cannot read stays a raw record.
//!
//! ```
//! use tailrace_frame::{Config, Format, Framer, Frames};
//!
//! let config = Config { format: Format::Cri, ..Config::default() };
//! let mut framer = Framer::new(&config, 0, false);
//! let mut frames = Frames::default();
//! let chunk = b"2026-01-02T03:04:05Z stdout P hello, \n2026-01-02T03:04:06Z stdout F world\n";
//! framer.push(chunk, 0, 0, &mut frames);
//! assert_eq!(frames.content(&frames.records[0], chunk), b"hello, world");
//! ```

mod config;
mod framer;
mod frames;
// What the framer is made of.
mod chain;
mod cri;
mod docker;
mod multiline;
mod stamp;
mod text;

pub use config::{Config, Content, Format};
pub use framer::{ENVELOPE_BYTES_MAX, Framer};
pub use frames::{Flags, Frames, Piece, Record, SIDE, Skip, SkipReason, Stats, Stream};
pub use multiline::{Multiline, Preset};
