//! Copies a record that made a worker panic, or the process die, out of its batch.

use tailrace_frame::Stream;
use tailrace_outputs::delivery::CrashedRecord;

use crate::delivery::crashed::{Cause, Crashed};
use crate::delivery::dead_letters::rfc3339;
use crate::input::input_queue::Framed;
use crate::process::contain::Panic;
use crate::process::in_progress::DEATHS_MAX;

impl Crashed {
    /// A record of a batch that panics.
    pub(crate) fn panicked(batch: &Framed, record: u32, panic: &Panic) -> Self {
        let reason = format!("{} at {}", panic.text, panic.at);
        let logged = format!("a panic at {}", panic.at);
        Self::of(batch, record, Cause::Panic, (reason, logged))
    }

    /// A record of a batch at which the process died.
    pub(crate) fn aborted(batch: &Framed, record: u32) -> Self {
        let reason = format!("the process died {DEATHS_MAX} times while it worked on this record");
        Self::of(batch, record, Cause::Abort, (reason.clone(), reason))
    }

    /// Copies a record out of a batch; `record` is its number there.
    fn of(batch: &Framed, record: u32, cause: Cause, (reason, logged): (String, String)) -> Self {
        let framed = &batch.frames.records[record as usize];
        let line = CrashedRecord {
            line: batch.line(record as usize).to_vec(),
            time: (framed.time_ns != 0).then(|| rfc3339(framed.time_ns)),
            stream: match framed.stream {
                Stream::None => None,
                Stream::Stdout => Some("stdout".to_owned()),
                Stream::Stderr => Some("stderr".to_owned()),
            },
        };
        Self {
            record,
            cause,
            reason,
            logged,
            line,
        }
    }
}
