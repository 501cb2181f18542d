//! Who is told what happens while a payload is on its way: metrics, own logs, health. The calls come
//! from the sending task and must not block.

use std::time::Duration;

use crate::{Delivered, Encoding, RetryCause};

/// Told of each step of a delivery. Every method does nothing unless it is overridden.
pub trait Observer: Send + Sync {
    /// An attempt begins; `bytes` go over the wire in `encoding`.
    fn sending(&self, bytes: u64, encoding: Encoding) {
        let _ = (bytes, encoding);
    }

    /// An attempt failed in a way that may pass; the next one begins after `delay`.
    fn retrying(&self, cause: RetryCause, reason: &str, delay: Duration) {
        let _ = (cause, reason, delay);
    }

    /// The request was refused: the output holds, and probes with it again after `delay`.
    fn holding(&self, reason: &str, delay: Duration) {
        let _ = (reason, delay);
    }

    /// The request was refused as `from` and goes out again at once as `to`.
    fn recoding(&self, from: Encoding, to: Encoding, reason: &str) {
        let _ = (from, to, reason);
    }

    /// The request was accepted; what was held or retried before is over.
    fn delivered(&self, delivered: &Delivered) {
        let _ = delivered;
    }
}

/// Nobody listens.
impl Observer for () {}
