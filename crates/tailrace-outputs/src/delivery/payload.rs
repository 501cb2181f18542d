//! The bytes of one request and their compression. This module never looks inside them.

use bytes::Bytes;
use tailrace_otlp::Compression;

/// One request as it goes over the wire.
#[derive(Clone, Debug)]
pub struct Payload {
    /// The request, compressed as `compression` says. Clones share the bytes.
    pub bytes: Bytes,
    /// How `bytes` are compressed.
    pub compression: Compression,
    /// How many log records (or lines) it holds.
    pub records: u64,
    /// The size before compression, in bytes.
    pub uncompressed_bytes: u64,
}
