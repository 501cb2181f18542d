//! The rest of a record that began in an earlier source.
//!
//! Takes what the caller knows of it, says where it ends. Never knows why the beginning is missing.

use super::Framer;
use crate::Stream;

impl Framer {
    /// The first record of a stream began in an earlier source, which cannot be read: what is here of it is a truncated
    /// record, or skipped if the whole one was acknowledged. If [`Framer::continue_from`] brings its beginning after all, it is
    /// a record like any other.
    pub fn begin_within(&mut self, stream: Stream, is_acked: bool) {
        self.chains.begin_within(stream, is_acked);
    }

    /// For each stream where in this source a record ends that consists of partial lines and began in an earlier one;
    /// [`u64::MAX`] as long as it has not ended. Where lines are joined nothing is known of it.
    pub fn rest_ends(&self) -> [Option<u64>; 3] {
        match self.joins {
            Some(_) => [None; 3],
            None => self.chains.rest_ends(),
        }
    }
}
