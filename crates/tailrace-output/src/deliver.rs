//! The delivery loop, the same for every output: takes requests from a queue, sends what the [`Gate`]
//! says, and resolves each request with what became of it. It never skips one, gives up only what it
//! was told to, and reads no clock but tokio's, so that paused-time tests hold.

mod waiting;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};

use crate::gate::{Effect, Gate, Piece, Refusal, Step};
use crate::outcome::{Answered, Outcome};
use crate::search::Search;
use crate::{Encoding, Observer, Output, Payload, Request};
use waiting::Waiting;

/// A request that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// How many of its records were rejected (partial success).
    pub rejected: u64,
    /// What the server said about it, rejections or a warning.
    pub message: Option<String>,
    /// What the server answered in place of an OTLP response. A partial success may have gone unseen.
    pub oddity: Option<String>,
    /// How many attempts it took, the last one included; a part that was cut off begins anew.
    pub attempts: u64,
    /// The encoding in which it was accepted.
    pub encoding: Encoding,
    /// What the accepted attempt sent, in bytes.
    pub wire_bytes: u64,
}

/// How an output is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveConfig {
    /// Requests under way at once, at most.
    pub concurrency: usize,
    /// What becomes of requests while everything is refused.
    pub on_refused: OnRefused,
}

/// What becomes of requests while everything is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRefused {
    /// They wait, for as long as it takes.
    Hold,
    /// They are given up.
    Drop,
}

/// The checked times of a delivery.
#[derive(Clone, Debug)]
pub(crate) struct Patience {
    /// The shortest delay before another attempt.
    pub(crate) min: Duration,
    /// The longest delay.
    pub(crate) max: Duration,
    /// The longest wait a server may ask for.
    pub(crate) after_max: Duration,
    /// The time between two probes while holding.
    pub(crate) hold: Duration,
}

/// One way to send one payload once, and what all payloads sent so share.
pub(crate) trait Way: Send + Sync + 'static {
    fn attempt(&self, payload: &Payload) -> impl Future<Output = Answered> + Send;
    fn search(&self) -> &Search;
    fn patience(&self) -> &Patience;
}

/// Delivers all requests of a queue; ends when the queue is closed and every request is resolved.
/// Dropping the future stops it: what is under way is dropped unresolved, and whether it arrives is
/// unknown.
///
/// # Panics
///
/// Where an attempt panicked.
pub async fn drive<R: Request>(
    output: Arc<Output>,
    requests: UnboundedReceiver<R>,
    config: DriveConfig,
    observer: &dyn Observer,
) {
    run(output, requests, config, observer).await;
}

pub(crate) async fn run<W: Way, R: Request>(
    way: Arc<W>,
    mut requests: UnboundedReceiver<R>,
    config: DriveConfig,
    observer: &dyn Observer,
) {
    let DriveConfig {
        concurrency,
        on_refused,
    } = config;
    let gate = Gate::new(
        way.patience().clone(),
        concurrency,
        on_refused,
        way.search().round(),
    );
    let mut drive = Drive {
        way,
        gate,
        on_wire: JoinSet::new(),
        observer,
        reason: String::new(),
        waiting: Waiting::new(),
        told_at: None,
        held: false,
    };
    let mut closed = false;
    while !(closed && drive.gate.is_empty() && drive.waiting.len() == 0) {
        let now = Instant::now();
        drive.set_aside(now);
        let due = drive.waiting.due();
        match drive.gate.next(now, !requests.is_empty()) {
            Step::Send(piece) => drive.send(piece),
            Step::Take => match requests.recv().await {
                Some(request) => drive.gate.push(request, now),
                None => closed = true,
            },
            Step::Pause(delay) => drive.pause(delay),
            Step::GiveUp(piece) => piece.request.give_up(&drive.reason),
            Step::Wait { until, take } => {
                tokio::select! {
                    Some(answer) = drive.on_wire.join_next() => drive.answered(answer),
                    request = requests.recv(), if take && !closed => match request {
                        Some(request) => drive.gate.push(request, now),
                        None => closed = true,
                    },
                    () = sleep_until(until.unwrap_or(now)), if until.is_some() => {}
                    () = sleep_until(due.unwrap_or(now)), if due.is_some() => {}
                    else => debug_assert!(closed, "a wait that nothing ends"),
                }
            }
        }
        drive.look_at_gate();
    }
}

/// What is known of one output.
struct Drive<'a, W, R> {
    way: Arc<W>,
    gate: Gate<R>,
    on_wire: JoinSet<Answer<R>>,
    observer: &'a dyn Observer,
    /// What the last refusal said.
    reason: String,
    /// What is to be set aside and cannot be yet.
    waiting: Waiting<R>,
    /// When the observer was told last that there is such.
    told_at: Option<Instant>,
    /// The observer was told that the output holds.
    held: bool,
}

/// One attempt, made.
struct Answer<R> {
    piece: Piece<R>,
    encoding: Encoding,
    wire_bytes: u64,
    answered: Answered,
}

impl<W: Way, R: Request> Drive<'_, W, R> {
    fn send(&mut self, piece: Piece<R>) {
        let encoding = self.way.search().encoding(&piece.round);
        let payload = match piece.request.payload() {
            payload if payload.encoding == encoding => payload.clone(),
            _ => piece.request.recode(encoding),
        };
        debug_assert_eq!(
            payload.encoding, encoding,
            "recode gives what was asked for"
        );
        let wire_bytes = payload.bytes.len() as u64;
        self.observer.sending(wire_bytes, encoding);
        let way = Arc::clone(&self.way);
        self.on_wire.spawn(async move {
            let answered = way.attempt(&payload).await;
            Answer {
                piece,
                encoding,
                wire_bytes,
                answered,
            }
        });
    }

    fn answered(&mut self, answer: Result<Answer<R>, JoinError>) {
        let answer = match answer {
            Ok(answer) => answer,
            Err(ended) => match ended.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => return,
            },
        };
        let now = Instant::now();
        let Answer {
            mut piece,
            encoding,
            wire_bytes,
            answered,
        } = answer;
        let Answered {
            outcome,
            doubt,
            oddity,
        } = answered;
        let (refusal, reason) = match outcome {
            Outcome::Delivered { rejected, message } => {
                self.way.search().accepted(encoding);
                let delivered = Delivered {
                    rejected,
                    message,
                    oddity,
                    attempts: piece.attempts,
                    encoding,
                    wire_bytes,
                };
                self.observer.delivered(&delivered);
                self.gate.accepted(piece).deliver(&delivered);
                return;
            }
            Outcome::Retry {
                cause,
                reason,
                after,
            } => {
                let delay = self.gate.retry(piece, cause, after, now);
                self.observer.retrying(cause, &reason, delay);
                return;
            }
            Outcome::TooLarge { reason } => {
                let bytes = piece.request.payload().uncompressed_bytes;
                match self.gate.too_large(piece, now) {
                    Some(single) => piece = single,
                    None => return self.observer.cut(bytes, &reason),
                }
                (Refusal::Request, reason)
            }
            Outcome::Refused { reason } => (Refusal::Request, reason),
            Outcome::Hold { reason } => (Refusal::Other, reason),
        };
        let search = self.way.search();
        if let Some(next) = search.refused(&mut piece.round, encoding, doubt) {
            self.observer.recoding(encoding, next, &reason);
            piece.attempts += 1;
            return self.send(piece);
        }
        self.reason = reason;
        let effect = self.gate.refused(piece, refusal, now);
        self.apply(effect, now);
    }

    fn apply(&mut self, effect: Effect<R>, now: Instant) {
        match effect {
            Effect::Kept => {}
            Effect::Reject(mut piece) => {
                if let Err(problem) = piece.request.reject(&self.reason) {
                    self.waiting.push(piece.request, self.reason.clone(), now);
                    self.tell_waiting(&problem, now);
                }
            }
        }
    }

    /// Tries again to set aside what waits for it.
    fn set_aside(&mut self, now: Instant) {
        if let Some(problem) = self.waiting.retry(now) {
            self.tell_waiting(&problem, now);
        }
    }

    fn tell_waiting(&mut self, problem: &str, now: Instant) {
        self.held = true;
        let is_due = |told_at: Instant| now >= told_at + self.way.patience().hold;
        if self.told_at.is_none_or(is_due) {
            self.told_at = Some(now);
            self.observer.waiting(problem, self.waiting.len());
        }
    }

    fn pause(&mut self, delay: Duration) {
        self.held = true;
        self.observer.holding(&self.reason, delay);
    }

    fn look_at_gate(&mut self) {
        if self.held && self.gate.is_open() && self.waiting.len() == 0 {
            self.held = false;
            self.told_at = None;
            self.observer.released();
        }
    }
}

#[cfg(test)]
mod tests;
