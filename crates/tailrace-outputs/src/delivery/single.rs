//! Requests that are sent one at a time, beside the records of pipelines: the agent's own logs and metrics. The caller keeps
//! the data and decides what becomes of it; nothing is queued here, and no failure costs more than one attempt. It reads no
//! clock: the caller waits.

use std::sync::Arc;
use std::time::Duration;

use tailrace_model::backoff::Backoff;
use tailrace_otlp::Compressor;

use super::compression::Round;
use super::outcome::Outcome;
use super::payload::Payload;
use super::transport::Transport;

/// Makes one attempt after the other.
pub struct SingleSender {
    transport: Arc<dyn Transport>,
    backoff: Backoff,
    /// The compressions that were refused since the last pause that was not for a compression.
    round: Round,
}

/// What came of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Sent {
    /// The server accepted it.
    Delivered {
        /// How many of its records were rejected for good.
        rejected: u64,
        /// The reason for that, or a warning.
        message: Option<String>,
    },
    /// The server may accept it later, or in another compression, which the next attempt uses.
    Later {
        /// What happened, for people.
        reason: String,
        /// How long to wait before the next attempt.
        after: Duration,
    },
    /// It is too large: a smaller one may be accepted after `after`.
    TooLarge {
        /// What happened, for people.
        reason: String,
        /// How long to wait before the next attempt.
        after: Duration,
    },
    /// The server says that the request is wrong.
    Refused {
        /// What happened, for people.
        reason: String,
        /// How long to wait before the next attempt.
        after: Duration,
    },
}

impl SingleSender {
    /// A sender that waits between attempts as the policy of the transport says.
    pub fn new(transport: Arc<dyn Transport>) -> SingleSender {
        let policy = transport.retry_policy();
        // The options are checked: the shortest delay is neither zero nor longer than the longest.
        let backoff = Backoff::try_new(policy.min, policy.max);
        let round = transport.compression().round();
        SingleSender {
            transport,
            backoff: backoff.expect("the bounds of a retry policy"),
            round,
        }
    }

    /// Makes one attempt to send an encoded request of `records` records.
    pub async fn send(&mut self, encoded: &[u8], records: u64) -> Sent {
        let search = self.transport.compression();
        let compression = search.compression(&self.round);
        let mut compressor = Compressor::new(compression, compression.default_level());
        let payload = Payload {
            bytes: compressor.compress(encoded).into(),
            compression,
            records,
            uncompressed_bytes: encoded.len() as u64,
        };
        // Its context is memory that would lie idle while the server is slow.
        drop(compressor);
        let answered = self.transport.attempt(&payload).await;
        if let Outcome::Delivered { rejected, message } = answered.outcome {
            search.accepted(compression);
            self.round = search.round();
            self.backoff.reset();
            return Sent::Delivered { rejected, message };
        }
        let next = search.refused(&mut self.round, compression, answered.doubt);
        if next.is_none() {
            self.round = search.round();
        }
        let policy = self.transport.retry_policy();
        match answered.outcome {
            Outcome::Retry { reason, after, .. } => {
                let after = match after {
                    Some(after) => self.backoff.next_after(after, policy.after_max),
                    None => self.backoff.next_delay(),
                };
                Sent::Later { reason, after }
            }
            Outcome::Refused { reason } | Outcome::Hold { reason } if next.is_some() => {
                let after = self.backoff.next_delay();
                Sent::Later { reason, after }
            }
            Outcome::Hold { reason } | Outcome::Closed { reason } => {
                let after = self.backoff.spread(policy.hold);
                Sent::Later { reason, after }
            }
            Outcome::TooLarge { reason } => {
                let after = self.backoff.next_delay();
                Sent::TooLarge { reason, after }
            }
            Outcome::Refused { reason } => {
                let after = self.backoff.next_delay();
                Sent::Refused { reason, after }
            }
            Outcome::Delivered { .. } => unreachable!("it returned above"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use tailrace_otlp::Compression;

    use super::*;
    use crate::delivery::{Answered, Attempt, CompressionSearch, Doubt, RetryCause, RetryPolicy};

    /// Answers what it is told to, and keeps the compression of each request.
    struct Scripted {
        answers: Mutex<VecDeque<Answered>>,
        seen: Mutex<Vec<Compression>>,
        search: CompressionSearch,
        policy: RetryPolicy,
    }

    impl Transport for Scripted {
        fn attempt<'a>(&'a self, payload: &'a Payload) -> Attempt<'a> {
            self.seen.lock().unwrap().push(payload.compression);
            let answer = self.answers.lock().unwrap().pop_front().unwrap();
            Box::pin(std::future::ready(answer))
        }

        fn compression(&self) -> &CompressionSearch {
            &self.search
        }

        fn retry_policy(&self) -> &RetryPolicy {
            &self.policy
        }
    }

    fn refused(doubt: Doubt) -> Answered {
        let reason = "wrong".to_owned();
        Answered {
            doubt,
            ..Outcome::Refused { reason }.into()
        }
    }

    fn down(after: Option<Duration>) -> Answered {
        let (cause, reason) = (RetryCause::Connect, "down".to_owned());
        let outcome = Outcome::Retry {
            cause,
            reason,
            after,
        };
        outcome.into()
    }

    fn accepted() -> Answered {
        let outcome = Outcome::Delivered {
            rejected: 1,
            message: None,
        };
        outcome.into()
    }

    const MIN: Duration = Duration::from_secs(1);
    const MAX: Duration = Duration::from_secs(8);

    async fn sent(answers: Vec<Answered>) -> (Vec<Sent>, Vec<Compression>) {
        let count = answers.len();
        let transport = Arc::new(Scripted {
            answers: Mutex::new(answers.into()),
            seen: Mutex::default(),
            search: CompressionSearch::auto(),
            policy: RetryPolicy::between(MIN, MAX),
        });
        let mut sender = SingleSender::new(Arc::clone(&transport) as Arc<dyn Transport>);
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(sender.send(b"request", 3).await);
        }
        let seen = transport.seen.lock().unwrap().clone();
        (all, seen)
    }

    #[tokio::test]
    async fn a_compression_that_is_refused_costs_one_attempt_for_each_pause() {
        let answers = vec![refused(Doubt::Possible), accepted(), accepted()];
        let (sent, seen) = sent(answers).await;
        assert!(matches!(&sent[0], Sent::Later { after, .. } if *after >= MIN));
        let delivered = Sent::Delivered {
            rejected: 1,
            message: None,
        };
        assert_eq!(sent[1..], [delivered.clone(), delivered]);
        let [zstd, gzip] = [Compression::Zstd, Compression::Gzip];
        assert_eq!(seen, [zstd, gzip, gzip]);
    }

    #[tokio::test]
    async fn what_is_refused_in_every_compression_is_refused() {
        let (sent, seen) = sent(vec![refused(Doubt::Possible); 4]).await;
        assert!(matches!(&sent[1], Sent::Later { .. }));
        assert!(matches!(&sent[2], Sent::Refused { .. }));
        assert_eq!(seen[0], seen[3], "the search begins again");
    }

    #[tokio::test]
    async fn pauses_grow_and_respect_what_the_server_asks_for() {
        let asked = Duration::from_secs(100);
        let (sent, _) = sent(vec![down(None), down(None), down(None), down(Some(asked))]).await;
        let after = |sent: &Sent| match sent {
            Sent::Later { after, .. } => *after,
            other => panic!("{other:?}"),
        };
        assert!(after(&sent[2]) > after(&sent[0]) && after(&sent[2]) <= MAX);
        assert!(after(&sent[3]) >= asked);
    }
}
