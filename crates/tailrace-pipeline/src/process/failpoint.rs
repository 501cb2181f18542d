//! Faults on purpose, for tests of the whole agent: a worker panics, or the process aborts, when it works on a record
//! that holds a text. The texts come from the environment ([`PANIC`], [`ABORT`]); without them nothing is looked for.

use std::ffi::OsString;

use tracing::warn;

use crate::input::input_queue::Framed;

/// A record that holds the value of this variable makes a worker panic.
pub(crate) const PANIC: &str = "TAILRACE_FAILPOINT_PANIC";
/// A record that holds the value of this variable makes the process abort.
pub(crate) const ABORT: &str = "TAILRACE_FAILPOINT_ABORT";

/// The texts to look for.
#[derive(Debug, Default)]
pub(crate) struct Failpoints {
    pub(crate) panic: Option<Vec<u8>>,
    pub(crate) abort: Option<Vec<u8>>,
}

impl Failpoints {
    /// As the environment says; what is set is warned of.
    pub(crate) fn from(get: impl Fn(&str) -> Option<OsString>) -> Self {
        let read = |name| {
            let text = get(name).filter(|text| !text.is_empty())?;
            warn!(
                name,
                "a failpoint is set: records that hold its text are made to fail"
            );
            Some(text.into_encoded_bytes())
        };
        Self {
            panic: read(PANIC),
            abort: read(ABORT),
        }
    }

    /// Fails if a record of the batch holds one of the texts.
    pub(crate) fn look_at(&self, batch: &Framed) {
        if self.panic.is_none() && self.abort.is_none() {
            return;
        }
        for record in 0..batch.frames.records.len() {
            let line = batch.line(record);
            let holds = |text: &Option<Vec<u8>>| {
                let text = text.as_deref()?;
                line.windows(text.len()).find(|part| *part == text)
            };
            if holds(&self.abort).is_some() {
                std::process::abort();
            }
            assert!(
                holds(&self.panic).is_none(),
                "a record holds the failpoint's text"
            );
        }
    }
}
