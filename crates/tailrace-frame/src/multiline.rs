//! Multi-line records: which line of plain text continues the one before it.
//!
//! Works on the records of a source, one for each line, after envelopes and partial lines were handled, and joins
//! them with `\n`, per stream. Most lines never join and must cost little: a table over their first byte (for some
//! presets the last one, too) tells whether anything has to be looked at more closely.
//!
//! What is decided here and why:
//!
//! - A blank line is no record, in a join neither: it is skipped as everywhere and does not end the join.
//! - The first line of a trace begins a record, even after the line of a logger that announces it: nothing in it
//!   tells the two cases apart. Who wants them in one record gives `start`.
//! - What does not fit a join that has reached a limit begins a record of its own: no line is lost.
//! - A JSON object and a line without the envelope of its source are records of their own. Where records begin at an
//!   expression, a line with an object's first brace and not its last continues the text before it.

pub(crate) mod join;
mod preset;
mod start;

use std::sync::Arc;

use regex::bytes::Regex;

pub use preset::Preset;

use preset::{Presets, Traces};
use start::Start;

/// Which lines are joined. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multiline(Arc<Rules>);

#[derive(Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one of it for each input"
)]
enum Rules {
    Presets(Presets),
    Start(Start),
}

impl Multiline {
    /// Stack traces of these languages are joined.
    pub fn presets(presets: &[Preset]) -> Multiline {
        Multiline(Arc::new(Rules::Presets(Presets::new(presets))))
    }

    /// A record begins at each line in which `start` is found; every other line continues the one before it.
    pub fn start(start: Regex) -> Multiline {
        Multiline(Arc::new(Rules::Start(Start::new(start))))
    }

    /// Whether `line` continues the lines before it in its stream, of which `traces` tells; `before` is the record
    /// that it would be added to.
    fn continues(&self, traces: &mut Traces, line: &[u8], before: &[u8]) -> bool {
        match &*self.0 {
            Rules::Presets(presets) => presets.continues(traces, line, before),
            Rules::Start(start) => !start.begins(line),
        }
    }

    /// Whether `line`, which begins as a JSON object and is none, continues a text before it.
    fn joins_what_is_no_object(&self, line: &[u8]) -> bool {
        match &*self.0 {
            Rules::Presets(_) => false,
            Rules::Start(start) => !start.begins(line),
        }
    }
}
