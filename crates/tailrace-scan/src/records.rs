//! What a scanner is given: buffers and the ranges of records in them.
//!
//! Plain structs that the caller fills in. Records may overlap, stand in any order and lie in any buffer; a range
//! that does not exist is an empty record.

use bytes::Bytes;

use crate::newline_search::Searched;

/// Flag: plain text, never JSON and not malformed.
pub const TEXT: u8 = 1;
/// Flag: a record that does not start with `{` is plain text, not malformed.
pub const TEXT_ALLOWED: u8 = 2;
/// Flag: the record was cut at the size limit.
pub const TRUNCATED: u8 = 4;
/// Flag: a line whose envelope was broken, kept raw: malformed.
pub const BROKEN: u8 = 8;

/// One record: a range of a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Index into [`Records::buffers`].
    pub buffer: u32,
    /// First byte.
    pub start: u32,
    /// The byte after the last one, line ending excluded.
    pub end: u32,
    /// [`TEXT`], [`TEXT_ALLOWED`], [`TRUNCATED`], [`BROKEN`].
    pub flags: u8,
}

/// The records of one batch.
#[derive(Clone, Copy, Debug)]
pub struct Records<'a> {
    /// The memory that records lie in. String values of the scanned columns are views of it, without a copy.
    pub buffers: &'a [Bytes],
    /// The records; row `i` of every column is record `i`.
    pub records: &'a [Record],
    /// Empty, or per record the time its envelope (CRI, docker) carries in nanoseconds since the Unix epoch, 0 for none.
    pub times: &'a [i64],
    /// Empty, or per record 1 for stdout, 2 for stderr, else none.
    pub streams: &'a [u8],
    /// When the batch was read, nanoseconds since the Unix epoch.
    pub observed_ns: i64,
    /// What a newline search over the first buffer found, if there was one. That of another buffer is not used.
    pub searched: Option<&'a Searched>,
}
