//! The observer of an output: the delivery loop reports its steps to it, for metrics, own logs and health. The calls come
//! from the sending task and must not block.

use std::time::Duration;

use tailrace_otlp::Compression;

use super::outcome::{Delivered, RetryCause};

/// Receives a report of each step of an output. Every method does nothing unless it is overridden.
pub trait Observer: Send + Sync {
    /// An attempt begins: `bytes` go over the wire, compressed with `compression`.
    fn sending(&self, bytes: u64, compression: Compression) {
        let _ = (bytes, compression);
    }

    /// An attempt ended after this time, whatever came of it.
    fn attempted(&self, duration: Duration) {
        let _ = duration;
    }

    /// An attempt failed in a way that may pass; the next one begins after `delay`.
    fn retrying(&self, cause: RetryCause, reason: &str, delay: Duration) {
        let _ = (cause, reason, delay);
    }

    /// The other side has gone, and this process cannot reach it again. Attempts continue for as long as the loop runs.
    fn closed(&self, reason: &str) {
        let _ = reason;
    }

    /// A request, or a part of one, was refused. `is_first`: nothing was under suspicion before. What follows is a search
    /// for what is at fault, which ends with [`Observer::cleared`].
    fn refused(&self, reason: &str, is_first: bool) {
        let _ = (reason, is_first);
    }

    /// Nothing is under suspicion any more.
    fn cleared(&self) {}

    /// So many single records were refused and wait to be compared with more. Everything else is accepted, or there is
    /// nothing else.
    fn compared(&self, records: usize) {
        let _ = records;
    }

    /// A request was refused and nothing shows that others would be accepted: the output holds, and
    /// probes again after `delay`.
    fn holding(&self, reason: &str, delay: Duration) {
        let _ = (reason, delay);
    }

    /// Everything but `records` single records is accepted, and these are refused. They wait until more is accepted to
    /// compare them with; they are probed again after `delay`.
    fn comparing(&self, reason: &str, records: usize, delay: Duration) {
        let _ = (reason, records, delay);
    }

    /// `records` rejected records cannot be written to the dead-letter file because of `problem`, and wait.
    fn waiting(&self, problem: &str, records: usize) {
        let _ = (problem, records);
    }

    /// The output no longer holds: what was refused before is accepted, rejected, given up or
    /// compared.
    fn released(&self) {}

    /// A request was too large and is sent again in two halves.
    fn cut(&self, bytes: u64, reason: &str) {
        let _ = (bytes, reason);
    }

    /// The request was refused in the compression `from` and is sent again at once in `to`.
    fn recompressing(&self, from: Compression, to: Compression, reason: &str) {
        let _ = (from, to, reason);
    }

    /// A request, or a part of one, was accepted.
    fn delivered(&self, delivered: &Delivered) {
        let _ = delivered;
    }
}

/// An observer that ignores every report.
impl Observer for () {}
