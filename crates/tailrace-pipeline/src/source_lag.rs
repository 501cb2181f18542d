//! How far a source is read and acknowledged, for whoever looks at a running agent.

use std::path::PathBuf;

/// How far a source is read and acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLag {
    /// Path of the file; empty for inputs that are not files.
    pub path: PathBuf,
    /// Last known size in bytes.
    pub size: u64,
    /// Bytes read.
    pub read_to: u64,
    /// The lowest byte that some output has not acknowledged.
    pub watermark: u64,
}

impl SourceLag {
    /// Bytes that are not acknowledged by every output, read or not.
    pub fn behind(&self) -> u64 {
        self.size.max(self.read_to).saturating_sub(self.watermark)
    }
}
