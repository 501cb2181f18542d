//! The delivery loop, the same for every output: attempt, then wait or recode, until the payload is
//! accepted. Takes one way to make an attempt, gives [`Delivered`]; it never gives up, never skips,
//! and reads no clock but tokio's, so that paused-time tests hold.

use std::future::Future;
use std::time::Duration;

use crate::backoff::Backoff;
use crate::outcome::{Answered, Outcome};
use crate::search::Search;
use crate::{Encoding, Observer, Payload, Recode};

/// A payload that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// How many of its records were rejected (partial success).
    pub rejected: u64,
    /// What the server said about it, rejections or a warning.
    pub message: Option<String>,
    /// How many attempts it took, the last one included.
    pub attempts: u64,
    /// The encoding in which it was accepted.
    pub encoding: Encoding,
    /// What the accepted attempt sent, in bytes.
    pub wire_bytes: u64,
}

/// The checked times of a delivery.
#[derive(Clone, Debug)]
pub(crate) struct Patience {
    /// A fresh backoff; each delivery clones it.
    pub(crate) min: Duration,
    pub(crate) max: Duration,
    /// The longest wait a server may ask for.
    pub(crate) after_max: Duration,
    /// The time between two probes while holding.
    pub(crate) hold: Duration,
}

/// One way to send one payload once.
pub(crate) trait Attempt {
    fn attempt(&self, payload: &Payload) -> impl Future<Output = Answered> + Send;
}

/// Sends `payload` until it is accepted.
pub(crate) async fn deliver<A: Attempt + Sync>(
    way: &A,
    search: &Search,
    patience: &Patience,
    payload: Payload,
    recode: &Recode<'_>,
    observer: &dyn Observer,
) -> Delivered {
    let mut backoff = Backoff::try_new(patience.min, patience.max)
        .expect("the bounds were checked when the output was made");
    let mut round = search.round();
    let mut sent = payload.clone();
    let mut attempts = 0;
    loop {
        let encoding = search.encoding(&round);
        if sent.encoding != encoding {
            sent = recode(&payload, encoding);
            debug_assert_eq!(sent.encoding, encoding, "recode gives what was asked for");
        }
        attempts += 1;
        let wire_bytes = sent.bytes.len() as u64;
        observer.sending(wire_bytes, encoding);
        let Answered { outcome, doubt } = way.attempt(&sent).await;
        let delay = match outcome {
            Outcome::Delivered { rejected, message } => {
                search.accepted(encoding);
                let delivered = Delivered {
                    rejected,
                    message,
                    attempts,
                    encoding,
                    wire_bytes,
                };
                observer.delivered(&delivered);
                return delivered;
            }
            Outcome::Retry {
                cause,
                reason,
                after,
            } => {
                let delay = backoff.next(after.map(|after| after.min(patience.after_max)));
                observer.retrying(cause, &reason, delay);
                delay
            }
            Outcome::Hold { reason } => {
                backoff.reset();
                if let Some(next) = search.refused(&mut round, encoding, doubt) {
                    observer.recoding(encoding, next, &reason);
                    continue;
                }
                round = search.round();
                let delay = backoff.spread(patience.hold);
                observer.holding(&reason, delay);
                delay
            }
        };
        tokio::time::sleep(delay).await;
    }
}

#[cfg(test)]
mod tests;
