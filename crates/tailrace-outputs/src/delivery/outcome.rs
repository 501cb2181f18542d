//! The outcome of one attempt. Every attempt has exactly one [`Outcome`]; there is no undecided state.

use std::time::Duration;

use tailrace_otlp::Compression;

/// The outcome of one attempt to send one request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// The other side accepted it.
    Delivered {
        /// How many of its records were rejected for good (partial success). Never more than the
        /// request has. They must not be sent again (OTLP specification, Partial Success).
        rejected: u64,
        /// The message of the server: the reason for the rejections, or a warning.
        message: Option<String>,
    },
    /// The other side may accept the same request later.
    Retry {
        /// The kind of failure: a closed set, for metrics.
        cause: RetryCause,
        /// What happened, for people.
        reason: String,
        /// The least time to wait, if the server named one, not capped.
        after: Option<Duration>,
    },
    /// The request is too large for the other side: smaller ones may be accepted.
    TooLarge {
        /// What happened, for people.
        reason: String,
    },
    /// The other side says that the request is wrong. The scheduler requires evidence for that before it rejects a
    /// record.
    Refused {
        /// What happened and what to look at, for people.
        reason: String,
    },
    /// The other side refuses and blames something other than the request, or the answer cannot be
    /// understood. It is unknown whether the request, the configuration or the server is at fault, so
    /// nothing is skipped.
    Hold {
        /// What happened and what to look at, for people.
        reason: String,
    },
    /// The other side has gone, and this process cannot reach it again.
    Closed {
        /// What happened, for people.
        reason: String,
    },
}

impl Outcome {
    /// The outcome of an attempt without a complete answer within `timeout`.
    pub(crate) fn timeout(timeout: Duration) -> Outcome {
        Outcome::Retry {
            cause: RetryCause::Timeout,
            reason: format!("no complete answer within {timeout:?}"),
            after: None,
        }
    }
}

/// A request that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// How many of its records were rejected (partial success).
    pub rejected: u64,
    /// The message of the server about rejections, or a warning.
    pub message: Option<String>,
    /// What the server answered instead of an OTLP response. A partial success may have gone unnoticed.
    pub oddity: Option<String>,
    /// How many attempts it took, including the last one. The count of a part starts at zero when it is cut off.
    pub attempts: u64,
    /// The compression in which it was accepted.
    pub compression: Compression,
    /// What the accepted attempt sent, in bytes.
    pub wire_bytes: u64,
    /// The same before compression.
    pub encoded_bytes: u64,
}

/// Why an attempt is to be retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RetryCause {
    /// The server asked for less: 429, or RESOURCE_EXHAUSTED with a time to wait.
    Throttled,
    /// The server said that it cannot now: 408, 502, 503, 504 and the retryable gRPC codes.
    Unavailable,
    /// No connection could be made: name, network, TLS.
    Connect,
    /// No complete answer within the time for one attempt.
    Timeout,
    /// The connection broke before the answer was complete.
    Transport,
    /// A local file could not be written.
    Write,
}

impl RetryCause {
    /// Every cause, for metrics that have each label from the start.
    pub const ALL: [RetryCause; 6] = [
        RetryCause::Throttled,
        RetryCause::Unavailable,
        RetryCause::Connect,
        RetryCause::Timeout,
        RetryCause::Transport,
        RetryCause::Write,
    ];

    /// The value of the metric label `cause`.
    pub const fn as_str(self) -> &'static str {
        match self {
            RetryCause::Throttled => "throttled",
            RetryCause::Unavailable => "unavailable",
            RetryCause::Connect => "connect",
            RetryCause::Timeout => "timeout",
            RetryCause::Transport => "transport",
            RetryCause::Write => "write",
        }
    }
}

/// An outcome, and whether the compression of the request may be the cause of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The outcome.
    pub outcome: Outcome,
    /// Whether the compression may be the cause.
    pub doubt: Doubt,
    /// What the server sent with an acceptance instead of an OTLP response, for people.
    pub oddity: Option<String>,
}

/// How far the compression is under suspicion (D12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Not at all.
    None,
    /// Servers give such an answer to a compression that they do not know, among other things.
    Possible,
    /// The answer says so: 415, or a message that names the compression.
    Named,
}

impl From<Outcome> for Answered {
    fn from(outcome: Outcome) -> Answered {
        Answered {
            outcome,
            doubt: Doubt::None,
            oddity: None,
        }
    }
}
