//! What is sent: the bytes of one request and how they are encoded. It never looks inside them.

use bytes::Bytes;

/// One request as it goes over the wire.
#[derive(Clone, Debug)]
pub struct Payload {
    /// The request, encoded as `encoding` says. Clones share the bytes.
    pub bytes: Bytes,
    /// How `bytes` are compressed.
    pub encoding: Encoding,
    /// How many log records (or lines) it holds.
    pub records: u64,
    /// The size before compression, in bytes.
    pub uncompressed_bytes: u64,
}

/// A content encoding of OTLP requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Zstandard (RFC 8878).
    Zstd,
    /// gzip (RFC 1952), which every OTLP server must take.
    Gzip,
    /// As it is.
    Identity,
}

impl Encoding {
    /// The name in `content-encoding` and `grpc-encoding`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Encoding::Zstd => "zstd",
            Encoding::Gzip => "gzip",
            Encoding::Identity => "identity",
        }
    }
}
