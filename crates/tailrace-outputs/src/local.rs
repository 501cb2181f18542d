//! What outputs on this machine share. A payload is delivered once the operating system has it; for a file, once it is on
//! disk.

use std::time::Duration;

use tailrace_otlp::Compression;

use crate::delivery::{CompressionSearch, Outcome, RetryCause, RetryPolicy};

/// The delays between attempts to write.
pub(crate) static POLICY: RetryPolicy =
    RetryPolicy::between(Duration::from_secs(1), Duration::from_secs(30));

/// They take bytes as they are.
pub(crate) static UNCOMPRESSED: CompressionSearch = CompressionSearch::fixed(Compression::None);

/// What is delivered when all of it was written.
pub(crate) const WRITTEN: Outcome = Outcome::Delivered {
    rejected: 0,
    message: None,
};

/// A write that failed is repeated, whatever the reason: to take another payload first would change their order.
pub(crate) fn failed(what: &str, error: &std::io::Error) -> Outcome {
    Outcome::Retry {
        cause: RetryCause::Write,
        reason: format!("cannot write to {what}: {error}"),
        after: None,
    }
}
