//! What the collector does wrong: the kinds of faults, and the mood that draws an answer from the
//! present one. Plain decisions; it never touches a socket.

use std::time::Duration;

use super::record::Identity;
use super::rng::Rng;
use tailrace_testkit::Answer;

/// A failure of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It does not.
    None,
    /// This HTTP status for most requests.
    Status(u16),
    /// 429 with `Retry-After: 1`.
    RetryAfter,
    /// 200 with a web page.
    Html,
    /// The connection is reset in place of an answer.
    Reset,
    /// The connection is closed in place of an answer.
    Close,
    /// Accepted, but the answer breaks off in the middle.
    Half,
    /// The last records of a request are rejected by a partial success.
    Partial,
    /// Answers come late, but in time.
    Delay,
    /// Accepted, but the answer comes after the agent has given up waiting.
    Silence,
    /// Bodies are read at 200 kB/s.
    Slow,
    /// Nobody listens.
    Refused,
    /// No answer at all, and nothing is taken.
    Stall,
}

/// How long an agent under torture waits for an answer.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(4);

impl Fault {
    /// Every fault, in the order of the matrix.
    pub const ALL: [Fault; 22] = [
        Fault::None,
        Fault::Status(429),
        Fault::RetryAfter,
        Fault::Status(503),
        Fault::Status(502),
        Fault::Status(504),
        Fault::Status(408),
        Fault::Reset,
        Fault::Close,
        Fault::Half,
        Fault::Delay,
        Fault::Silence,
        Fault::Slow,
        Fault::Refused,
        Fault::Partial,
        Fault::Status(400),
        Fault::Status(401),
        Fault::Status(403),
        Fault::Status(404),
        Fault::Status(413),
        Fault::Status(500),
        Fault::Html,
    ];

    /// Its name in tables.
    pub fn name(self) -> String {
        match self {
            Fault::None => "healthy".to_owned(),
            Fault::Status(code) => code.to_string(),
            Fault::RetryAfter => "429, Retry-After".to_owned(),
            Fault::Html => "a web page".to_owned(),
            Fault::Reset => "reset".to_owned(),
            Fault::Close => "closed".to_owned(),
            Fault::Half => "half response".to_owned(),
            Fault::Partial => "partial success".to_owned(),
            Fault::Delay => "delay".to_owned(),
            Fault::Silence => "answer too late".to_owned(),
            Fault::Slow => "slow reads".to_owned(),
            Fault::Refused => "refused connections".to_owned(),
            Fault::Stall => "stalled".to_owned(),
        }
    }

    /// True for what makes a careful agent wait for long, and others throw data away.
    pub fn is_hold(self) -> bool {
        let waits = [400, 401, 403, 404, 408, 413, 500];
        self == Fault::Html || waits.iter().any(|code| self == Fault::Status(*code))
    }
}

/// What is answered now.
pub(crate) struct Mood {
    pub(crate) fault: Fault,
    /// Bytes a second that are read of all bodies together, where that is bounded.
    pub(crate) bytes_per_second: Option<u64>,
    /// A request with such a record is answered 400.
    pub(crate) poison: Option<fn(&Identity) -> bool>,
    /// So many of 100 requests meet the fault; the others do not, so that things go on.
    pub(crate) percent: u64,
    rng: Rng,
}

/// What becomes of a request that was decoded.
pub(crate) struct Decision {
    pub(crate) answer: Answer,
    /// How many of its last records are rejected.
    pub(crate) rejected: usize,
    /// False: none of its records is taken.
    pub(crate) takes: bool,
    /// True when the agent may not see the answer.
    pub(crate) doubtful: bool,
}

impl Mood {
    pub(crate) fn new(seed: u64) -> Mood {
        Mood {
            fault: Fault::None,
            bytes_per_second: None,
            poison: None,
            percent: 80,
            rng: Rng::fork(seed, 1),
        }
    }

    /// An answer that needs no look at the records.
    pub(crate) fn refuses(&mut self) -> Option<Answer> {
        if !self.rng.chance(self.percent) {
            return None;
        }
        match self.fault {
            Fault::Status(status) => Some(Answer::status(status).message("a scripted fault")),
            Fault::RetryAfter => Some(Answer::status(429).header("retry-after", "1")),
            Fault::Html => Some(Answer::html()),
            Fault::Reset => Some(Answer::reset()),
            Fault::Close => Some(Answer::close()),
            Fault::Stall => Some(Answer::status(503).delayed(TIMEOUT * 2)),
            _ => None,
        }
    }

    pub(crate) fn accepts(&mut self, records: &[Identity]) -> Decision {
        let mut decision = Decision {
            answer: Answer::ok(),
            rejected: 0,
            takes: true,
            doubtful: false,
        };
        if let Some(poison) = self.poison
            && records.iter().any(poison)
        {
            decision.answer = Answer::status(400).message("a record cannot be taken");
            decision.takes = false;
            return decision;
        }
        if !self.rng.chance(self.percent) {
            return decision;
        }
        match self.fault {
            Fault::Half => {
                // A success of no bytes cannot break off.
                decision.answer = Answer::cut().body(vec![0x0a, 0x00]);
                decision.doubtful = true;
            }
            Fault::Silence => {
                decision.answer = Answer::ok().delayed(TIMEOUT + Duration::from_secs(1));
                decision.doubtful = true;
            }
            Fault::Delay => decision.answer = Answer::ok().delayed(self.rng.millis(50, 1000)),
            Fault::Partial if !records.is_empty() => {
                decision.rejected = 1 + usize::from(records.len() > 10) * 2;
                let rejected = i64::try_from(decision.rejected).unwrap_or(1);
                decision.answer = Answer::partial(rejected, "a scripted rejection");
            }
            _ => {}
        }
        decision
    }

    pub(crate) fn pause(&self, bytes: usize) -> Duration {
        let bytes_per_second = match (self.fault, self.bytes_per_second) {
            (Fault::Slow, _) => 200_000,
            (_, Some(bytes_per_second)) => bytes_per_second,
            _ => return Duration::ZERO,
        };
        Duration::from_nanos(bytes as u64 * 1_000_000_000 / bytes_per_second)
    }
}
