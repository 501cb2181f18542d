//! Who decides in place of a script: for runs of millions of records, of which the collector itself
//! keeps nothing. Only OTLP over HTTP.

use std::time::Duration;

use super::answer::Answer;
use super::request::Record;

/// Answers every request of a [`crate::Collector`] made by [`crate::Collector::judged`].
pub trait Judge: Send + Sync + 'static {
    /// An answer for which the request need not be decoded: none of its records is taken. `None`: let
    /// me see the records.
    fn refuses(&self) -> Option<Answer>;

    /// Takes the records of a request that decodes, and says what is answered. What an answer that is
    /// no success means for the records is the judge's own affair.
    fn accept(&self, records: &[Record]) -> Answer;

    /// How long to wait before the next read after `bytes` of a request body.
    fn pause(&self, bytes: usize) -> Duration;
}
