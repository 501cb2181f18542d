//! The delivery loop, which all outputs share. It takes requests from a queue, sends what the `scheduler` selects and
//! resolves each request with its outcome. It never skips a request, gives one up only where the configuration says so,
//! and reads no clock but tokio's, so that tests can pause the time.

mod compression;
mod dead_letter;
mod observer;
mod outcome;
mod payload;
mod policy;
mod request;
mod scheduler;
mod single;
mod transport;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};

use tailrace_otlp::Compression;

pub use compression::CompressionSearch;
pub use dead_letter::{
    CrashedRecord, DeadLetterEntry, DeadLetterError, DeadLetterFile, Owner, is_at, lock,
    open_or_create, read_dead_letters,
};
pub use observer::Observer;
pub use outcome::{Answered, Delivered, Doubt, Outcome, RetryCause};
pub use payload::Payload;
pub use policy::{DriveConfig, OnRefused, RetryPolicy};
pub use request::Request;
pub use single::{Sent, SingleSender};
pub use transport::{Attempt, Transport};

use scheduler::{Delivery, Effect, Refusal, Scheduler, Step};
use waiting::Waiting;

/// Delivers all requests of a queue. Ends when the queue is closed and every request is resolved.
///
/// Dropping the future stops the delivery: requests in flight are dropped unresolved, and whether they arrive is
/// unknown.
///
/// # Panics
///
/// If an attempt panicked.
pub async fn drive<R: Request>(
    transport: Arc<dyn Transport>,
    mut requests: UnboundedReceiver<R>,
    config: DriveConfig,
    observer: &dyn Observer,
) {
    let DriveConfig {
        concurrency,
        on_refused,
    } = config;
    let scheduler = Scheduler::new(
        transport.retry_policy().clone(),
        concurrency,
        on_refused,
        transport.compression().round(),
    );
    let mut drive = Drive {
        transport,
        scheduler,
        on_wire: JoinSet::new(),
        observer,
        reason: String::new(),
        waiting: Waiting::new(),
        reported_at: None,
        held: false,
        is_searching: false,
        compared: 0,
        to_report: false,
        is_down: false,
        is_cancelled: false,
    };
    let mut closed = false;
    while !(closed && drive.scheduler.is_empty() && drive.waiting.len() == 0) {
        let now = Instant::now();
        drive.retry_dead_letters(now);
        let due = drive.waiting.due();
        match drive.scheduler.next(now, !requests.is_empty()) {
            Step::Send(delivery) => drive.send(delivery),
            Step::Take => match requests.recv().await {
                Some(request) => drive.scheduler.push(request, now),
                None => closed = true,
            },
            Step::Pause { delay, compared } => drive.pause(delay, compared),
            Step::GiveUp(delivery) => delivery.request.give_up(&drive.reason),
            Step::Wait { until, take } => {
                drive.report_compared(until, now);
                tokio::select! {
                    Some(answer) = drive.on_wire.join_next() => drive.answered(answer),
                    request = requests.recv(), if take && !closed => match request {
                        Some(request) => drive.scheduler.push(request, now),
                        None => closed = true,
                    },
                    () = sleep_until(until.unwrap_or(now)), if until.is_some() => {}
                    () = sleep_until(due.unwrap_or(now)), if due.is_some() => {}
                    else => {
                        debug_assert!(closed || drive.is_cancelled, "a wait that nothing ends");
                        if drive.is_cancelled {
                            return;
                        }
                    }
                }
            }
        }
        drive.report_release();
    }
}

/// The state of one output's delivery loop.
struct Drive<'a, R> {
    transport: Arc<dyn Transport>,
    scheduler: Scheduler<R>,
    on_wire: JoinSet<Answer<R>>,
    observer: &'a dyn Observer,
    /// The reason of the last refusal.
    reason: String,
    /// Rejected records that cannot be dead-lettered yet.
    waiting: Waiting<R>,
    /// When these were last reported to the observer.
    reported_at: Option<Instant>,
    /// The observer knows that the output holds.
    held: bool,
    /// The observer knows that something was refused.
    is_searching: bool,
    /// How many records wait to be compared, as the observer knows it.
    compared: usize,
    /// Something was refused since these were last reported.
    to_report: bool,
    /// The last answer, if there was one, was not about the request.
    is_down: bool,
    /// An attempt was cancelled: the runtime ends, and so does the loop. What is unresolved is dropped.
    is_cancelled: bool,
}

/// A finished attempt.
struct Answer<R> {
    delivery: Delivery<R>,
    compression: Compression,
    wire_bytes: u64,
    duration: Duration,
    answered: Answered,
}

impl<R: Request> Drive<'_, R> {
    fn send(&mut self, delivery: Delivery<R>) {
        if !delivery.is_suspect() {
            self.set_compared(0);
        }
        let compression = self.transport.compression().compression(&delivery.round);
        let payload = match delivery.request.payload() {
            payload if payload.compression == compression => payload.clone(),
            _ => delivery.request.recompress(compression),
        };
        debug_assert_eq!(
            payload.compression, compression,
            "a request is recompressed as asked"
        );
        let wire_bytes = payload.bytes.len() as u64;
        self.observer.sending(wire_bytes, compression);
        let transport = Arc::clone(&self.transport);
        self.on_wire.spawn(async move {
            let begin = Instant::now();
            let answered = transport.attempt(&payload).await;
            Answer {
                delivery,
                compression,
                wire_bytes,
                duration: begin.elapsed(),
                answered,
            }
        });
    }

    fn answered(&mut self, answer: Result<Answer<R>, JoinError>) {
        let answer = match answer {
            Ok(answer) => answer,
            Err(ended) => match ended.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => {
                    self.is_cancelled = true;
                    return;
                }
            },
        };
        let now = Instant::now();
        let Answer {
            mut delivery,
            compression,
            wire_bytes,
            duration,
            answered,
        } = answer;
        self.observer.attempted(duration);
        let Answered {
            outcome,
            doubt,
            oddity,
        } = answered;
        self.is_down = matches!(outcome, Outcome::Retry { .. } | Outcome::Closed { .. });
        let (refusal, reason) = match outcome {
            Outcome::Delivered { rejected, message } => {
                self.transport.compression().accepted(compression);
                let delivered = Delivered {
                    rejected,
                    message,
                    oddity,
                    attempts: delivery.attempts,
                    compression,
                    wire_bytes,
                    encoded_bytes: delivery.request.payload().uncompressed_bytes,
                };
                self.observer.delivered(&delivered);
                self.scheduler.accepted(delivery, now).deliver(&delivered);
                return;
            }
            Outcome::Retry {
                cause,
                reason,
                after,
            } => {
                let delay = self.scheduler.retry(delivery, cause, after, now);
                self.observer.retrying(cause, &reason, delay);
                return;
            }
            Outcome::Closed { reason } => {
                self.scheduler.retry(delivery, RetryCause::Write, None, now);
                self.observer.closed(&reason);
                return;
            }
            Outcome::TooLarge { reason } => {
                let bytes = delivery.request.payload().uncompressed_bytes;
                match self.scheduler.too_large(delivery, now) {
                    Some(single) => delivery = single,
                    None => return self.observer.cut(bytes, &reason),
                }
                (Refusal::Request, reason)
            }
            Outcome::Refused { reason } => (Refusal::Request, reason),
            Outcome::Hold { reason } => (Refusal::Other, reason),
        };
        let search = self.transport.compression();
        if let Some(next) = search.refused(&mut delivery.round, compression, doubt) {
            self.observer.recompressing(compression, next, &reason);
            delivery.attempts += 1;
            return self.send(delivery);
        }
        let is_first = !std::mem::replace(&mut self.is_searching, true);
        self.observer.refused(&reason, is_first);
        (self.reason, self.to_report) = (reason, true);
        let effect = self.scheduler.refused(delivery, refusal, now);
        self.apply(effect, now);
    }

    fn apply(&mut self, effect: Effect<R>, now: Instant) {
        match effect {
            Effect::Kept => {}
            Effect::Reject(mut delivery) => {
                if let Err(problem) = delivery.request.reject(&self.reason) {
                    self.waiting
                        .push(delivery.request, self.reason.clone(), now);
                    self.report_waiting(&problem, now);
                }
            }
        }
    }

    /// Tries again to dead-letter the records that wait for it. What follows may wait for the next request, so that their
    /// end is reported here.
    fn retry_dead_letters(&mut self, now: Instant) {
        if let Some(problem) = self.waiting.retry(now) {
            self.report_waiting(&problem, now);
        } else if self.held && self.waiting.len() == 0 {
            self.report_release();
        }
    }

    fn report_waiting(&mut self, problem: &str, now: Instant) {
        self.held = true;
        let is_due = |reported_at: Instant| now >= reported_at + self.transport.retry_policy().hold;
        if self.reported_at.is_none_or(is_due) {
            self.reported_at = Some(now);
            self.observer.waiting(problem, self.waiting.len());
        }
    }

    fn pause(&mut self, delay: Duration, compared: Option<usize>) {
        self.to_report = false;
        self.set_compared(compared.unwrap_or(0));
        if let Some(records) = compared {
            self.observer.comparing(&self.reason, records, delay);
            return self.release();
        }
        self.held = true;
        self.observer.holding(&self.reason, delay);
    }

    /// Reports the records that wait for more evidence while nothing is on the wire.
    fn report_compared(&mut self, until: Option<Instant>, now: Instant) {
        let Some(records) = self.scheduler.compared() else {
            return;
        };
        // In an outage it is not known whether others would be accepted.
        self.set_compared(if self.is_down { 0 } else { records });
        if self.compared > 0 && std::mem::take(&mut self.to_report) {
            let delay = until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now));
            self.observer.comparing(&self.reason, records, delay);
        }
    }

    fn set_compared(&mut self, records: usize) {
        if std::mem::replace(&mut self.compared, records) != records {
            self.observer.compared(records);
        }
    }

    fn report_release(&mut self) {
        if self.scheduler.is_open() {
            self.set_compared(0);
            if std::mem::take(&mut self.is_searching) {
                self.observer.cleared();
            }
            self.release();
        }
    }

    /// The output no longer holds, unless records wait for the dead-letter file.
    fn release(&mut self) {
        if self.held && self.waiting.len() == 0 {
            self.held = false;
            self.reported_at = None;
            self.observer.released();
        }
    }
}

#[cfg(test)]
mod tests;
