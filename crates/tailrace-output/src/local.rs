//! Outputs on this machine: standard output, a file, nothing. They take lines (NDJSON) ready to
//! write; a payload counts as delivered once the operating system has it (a file: once it is on disk).

mod discard;
mod file;
mod stdout;

pub use discard::DiscardOutput;
pub use file::FileOutput;
pub use stdout::StdoutOutput;

use std::time::Duration;

use crate::deliver::Patience;
use crate::outcome::{Outcome, RetryCause};

/// Between two tries to write.
pub(crate) const PATIENCE: Patience = Patience {
    min: Duration::from_secs(1),
    max: Duration::from_secs(30),
    after_max: Duration::ZERO,
    hold: Duration::from_secs(30),
};

/// What is delivered when all of it was written.
const WRITTEN: Outcome = Outcome::Delivered {
    rejected: 0,
    message: None,
};

/// A write that failed is repeated, whatever the reason: to take another payload first would change their order.
fn failed(what: &str, error: &std::io::Error) -> Outcome {
    Outcome::Retry {
        cause: RetryCause::Write,
        reason: format!("cannot write to {what}: {error}"),
        after: None,
    }
}
