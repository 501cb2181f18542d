//! How the lines of a source are read, and the limits of a record.

use crate::multiline::Multiline;

/// How the lines of a source are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Each line is a JSON object.
    Json,
    /// Each line is plain text.
    Raw,
    /// Each line is `<RFC 3339 time> stdout|stderr P|F[:tags] <payload>`, as containerd and CRI-O write them; the
    /// payloads of partial lines (P) are joined per stream up to the next full line (F).
    Cri,
    /// Each line is an object of docker's json-file driver, `{"log":"...\n","stream":"stdout","time":"..."}`; pieces
    /// are joined per stream until `log` ends in a newline.
    Docker,
    /// CRI or docker, decided by the first line that has one of the two envelopes; lines before it are broken ones.
    Container,
    /// Decided by the first line that is not blank, for the whole source: CRI, docker, else lines of JSON and text in
    /// any mixture.
    Auto,
}

/// What the lines of a container carry, behind their envelope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// JSON objects and text in any mixture.
    #[default]
    Any,
    /// JSON objects; any other line is malformed.
    Json,
    /// Text, never looked into.
    Raw,
}

/// What a [`Framer`](crate::Framer) needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How lines are read. Default: `Auto`.
    pub format: Format,
    /// What lines with an envelope carry; of other formats the format says it. Default: `Any`.
    pub content: Content,
    /// The longest record in bytes, line ending and envelope not counted; a longer one is truncated to this, at a
    /// character's start. Default: 1 MiB.
    pub record_bytes_max: usize,
    /// How many bytes of the source a chain of partial lines may span, the lines of other streams between them
    /// included. Past it the chain is given out as it is, truncated, and later parts become a record of their own:
    /// an unfinished chain holds back the watermark, so this must be less than what may be read beyond it.
    /// Default: 8 MiB.
    pub chain_span_max: u64,
    /// Which records continue the one before them; such a join is bounded like a record and like a chain. Default:
    /// none.
    pub multiline: Option<Multiline>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            format: Format::Auto,
            content: Content::Any,
            record_bytes_max: 1 << 20,
            chain_span_max: 8 << 20,
            multiline: None,
        }
    }
}
