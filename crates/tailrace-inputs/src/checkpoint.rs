//! How far every file is safely delivered, on disk: `checkpoint.json` in the data directory, and beside
//! it `checkpoint.journal`, what changed since.
//!
//! Takes watermarks from the pipelines, gives resume entries at the next start. Never moves a
//! watermark by itself and never holds a log byte: files are known by device, inode, birth time and
//! keyed hashes.
//!
//! Why a restart loses nothing. A watermark is the lowest byte of a file that some record not yet
//! acked stands in; the pipeline moves it only when everything below is delivered, rejected or
//! filtered. [`PipelineState::set`] refuses to move it back. A whole state is written beside the old
//! file, synced, renamed into place and the directory synced; after that only changes are appended to the
//! journal, each a line with a checksum, synced, and each naming the whole state it belongs to. So at any
//! instant the disk holds one whole state and a prefix of what changed since. All such states are true: an
//! older watermark means that bytes are read again, never that they are left out. A file that does not
//! match its checksum is put aside and the previous state, with its own journal, is used; if there is none,
//! files are read from byte 0 and a warning says so. So every failure ends in repeats, none in loss.
//!
//! Format, version 2: `{"version":2,"checksum":"<xxh3-64 of version and body>","body":{...}}`, and lines
//! `{"checksum":"<xxh3-64 of the body>","body":{"base":"<checksum of the whole state>",...}}`. Version 1 had
//! no journal, no birth times and no tails; builds before this one wrote no times of change, no records that
//! begin in one file and end in the next, and no path that a rotated file had before. Unknown fields in the body are ignored, so that a later build
//! can add some; the path is text in which `%` and bytes that are not UTF-8 are `%XX`.

mod gone;
mod load;
mod path_text;
mod state;
mod store;
mod watermarks;
mod wire;

pub use load::{Loaded, Origin};
pub use state::{Backwards, Checkpoint, FileState, PipelineState, Rest};
pub use store::Store;
pub use watermarks::{Counts, Watermark};

#[cfg(test)]
mod tests;
