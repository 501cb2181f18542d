//! What follows the columns of a LogRecord: the attributes that its source has and that we add.
//!
//! Records differ in few ways here, so that each combination is encoded once for a source. The encoded attributes are
//! copied from the source's facts and from [`Extras`]. A uid is no part of it: each record has its own.

use super::extras::Extras;
use crate::part::{Envelope, Part};
use crate::value::SourceFacts;

/// The tails of one source's records.
#[derive(Debug, Default)]
pub(super) struct Tails {
    /// By [`combination`].
    tails: [Vec<u8>; COMBINATIONS],
    /// Which of them are encoded, as bits.
    known: u32,
}

/// Streams, times three marks that are there or not.
const COMBINATIONS: usize = 3 << 3;

impl Tails {
    /// Before the first record of another source.
    pub(super) fn clear(&mut self) {
        self.known = 0;
    }

    /// The tail of a row's record.
    #[inline]
    pub(super) fn of(&mut self, facts: &SourceFacts, extras: &Extras, combination: usize) -> &[u8] {
        if self.known >> combination & 1 == 0 {
            self.encode(facts, extras, combination);
        }
        &self.tails[combination]
    }

    #[inline(never)]
    fn encode(&mut self, facts: &SourceFacts, extras: &Extras, combination: usize) {
        self.known |= 1 << combination;
        let tail = &mut self.tails[combination];
        tail.clear();
        tail.extend_from_slice(&facts.attributes);
        let [malformed, truncated, failed] = [0, 1, 2].map(|bit| combination >> bit & 1 == 1);
        for extra in extras.chosen(
            (combination >> 3) as u8,
            false,
            malformed,
            truncated,
            failed,
        ) {
            tail.extend_from_slice(extra.encoded);
        }
    }
}

/// Which attributes we add to a row's record, as a number below [`COMBINATIONS`].
#[inline]
pub(super) fn combination(
    envelope: &Envelope<'_>,
    part: &Part<'_>,
    row: usize,
    record: usize,
    with_stream: bool,
) -> usize {
    let stream = match envelope.streams.get(record) {
        Some(stream @ 1..=2) if with_stream => usize::from(*stream),
        _ => 0,
    };
    stream << 3
        | usize::from(envelope.is_malformed(record))
        | usize::from(envelope.is_truncated(record)) << 1
        | usize::from(part.has_failed(row)) << 2
}
