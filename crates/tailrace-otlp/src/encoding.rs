//! The interface of encodings: how columns become requests, and how a request is cut.

use std::fmt;
use std::ops::Range;

use crate::cut::Cut;
use crate::part::{Envelope, Part, Request, Stats};

/// A format in which records are sent, with its options. An output names its encoding; everything between the query
/// and the network uses formats only through this trait.
pub trait Encoding: fmt::Debug + Send + Sync {
    /// Its name, which dead-letter entries store.
    fn name(&self) -> &'static str;

    /// An encoder for one worker. Times without a zone are `offset_s` seconds east of UTC.
    fn encoder(&self, offset_s: i32) -> Box<dyn Encoder>;

    /// Cuts some of the records of a request into a request of their own.
    ///
    /// `request` is uncompressed, `ends` are the offsets behind each of its records, and `records` is a range of them
    /// that is not empty. No record is encoded again.
    ///
    /// # Panics
    ///
    /// If the request was not made by an encoder of this encoding.
    fn cut(&self, request: &[u8], ends: &[u32], records: Range<usize>) -> Cut;

    /// Whether records carry `log.record.uid`, which costs a hash of each.
    fn has_record_uid(&self) -> bool {
        false
    }
}

/// Encodes batches into requests. Its memory is reused from call to call.
pub trait Encoder: Send {
    /// Encodes all rows of `parts` and emits requests in order, none of them empty. The records of a request are
    /// ascending over all requests; a record's rows may be cut apart only between requests.
    fn encode(
        &mut self,
        envelope: &Envelope<'_>,
        parts: &[Part<'_>],
        emit: &mut dyn FnMut(&Request),
    ) -> Stats;

    /// Releases memory between two batches: keeps at most `bytes` of each buffer.
    fn release(&mut self, bytes: usize);
}
