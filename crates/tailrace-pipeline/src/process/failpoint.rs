//! Faults on purpose, for tests of the whole agent: a worker panics, or the process aborts, when it works on a record
//! that holds a text; or what was made of a number of batches is held, as a stage with windows of time will hold it. They
//! come from the environment ([`PANIC`], [`ABORT`], [`HOLD`]); without it nothing is looked for, and nothing held.

use std::ffi::OsString;

use tracing::warn;

use crate::input::input_queue::Framed;

/// A record that holds the value of this variable makes a worker panic.
pub(crate) const PANIC: &str = "TAILRACE_FAILPOINT_PANIC";
/// A record that holds the value of this variable makes the process abort.
pub(crate) const ABORT: &str = "TAILRACE_FAILPOINT_ABORT";

/// What was made of so many batches is held until another one comes.
pub(crate) const HOLD: &str = "TAILRACE_FAILPOINT_HOLD";

/// What to do on purpose.
#[derive(Debug, Default)]
pub(crate) struct Failpoints {
    pub(crate) panic: Option<Vec<u8>>,
    pub(crate) abort: Option<Vec<u8>>,
    /// How many batches are held.
    pub(crate) hold: Option<usize>,
}

impl Failpoints {
    /// As the environment says; what is set is warned of.
    pub(crate) fn from(get: impl Fn(&str) -> Option<OsString>) -> Self {
        let read = |name| {
            let text = get(name).filter(|text| !text.is_empty())?;
            warn!(
                name,
                "a failpoint is set: records are made to fail, or held"
            );
            Some(text.into_encoded_bytes())
        };
        let hold = read(HOLD).and_then(|text| String::from_utf8(text).ok()?.parse().ok());
        Self {
            panic: read(PANIC),
            abort: read(ABORT),
            hold,
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
