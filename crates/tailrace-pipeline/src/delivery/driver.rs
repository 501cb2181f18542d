//! What all requests of one output share: it reports in metrics and in the own log what happens to them. Sends nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tailrace_otlp::{Compression, Encoding};
use tailrace_outputs::delivery::{Delivered, Observer, RetryCause};
use tokio::sync::{Notify, watch};
use tracing::{debug, error, info, warn};

use crate::delivery::dead_letters::DeadLetterQueue;
use crate::delivery::encoding::{EncodingPlan, SharedCompression};
use crate::delivery::metrics::OutputMetrics;
use crate::delivery::standing::Standing;
use crate::health::Stage;
use crate::reasons::{Met, ReasonKind, Reasons};
use crate::wake::Readers;

/// How often panics are logged.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// What all requests of one output share.
pub(crate) struct Driver {
    pub(crate) pipeline: String,
    pub(crate) name: String,
    pub(crate) metrics: OutputMetrics,
    pub(crate) waiting: Arc<Readers>,
    pub(crate) dead_letters: Arc<DeadLetterQueue>,
    /// When records that could not be processed were logged.
    pub(crate) crash_log: LogLimit,
    /// How its requests are encoded, and so cut.
    pub(crate) encoding: Arc<dyn Encoding>,
    compression: Arc<SharedCompression>,
    /// Each LogRecord of its requests is a record of its own.
    pub(crate) is_one_to_one: bool,
    /// The server refuses everything.
    held: AtomicBool,
    pub(crate) standing: Standing,
    reasons: Arc<Reasons>,
    /// The last answer was none that a request can be resolved with.
    failing: watch::Sender<bool>,
    /// Notified when the other side has gone for good.
    pub(crate) closed: Notify,
}

/// When panics were logged last, and how many records were not named since.
#[derive(Debug, Default)]
pub(crate) struct LogLimit(Mutex<(Option<Instant>, u64)>);

impl LogLimit {
    /// How many records to report now, those not reported before among them; `None` if it is too early.
    pub(crate) fn due(&self, records: u64) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.1 += records;
        let is_due = state.0.is_none_or(|at| at.elapsed() >= LOG_EVERY);
        is_due.then(|| {
            state.0 = Some(Instant::now());
            std::mem::take(&mut state.1)
        })
    }
}

impl Driver {
    pub(crate) fn new(
        (pipeline, name): (String, String),
        (encoding, is_one_to_one): (&EncodingPlan, bool),
        metrics: OutputMetrics,
        waiting: &Arc<Readers>,
        dead_letters: &Arc<DeadLetterQueue>,
        reasons: &Arc<Reasons>,
    ) -> Self {
        Self {
            pipeline,
            name,
            metrics,
            waiting: Arc::clone(waiting),
            dead_letters: Arc::clone(dead_letters),
            crash_log: LogLimit::default(),
            encoding: Arc::clone(&encoding.encoding),
            compression: Arc::clone(&encoding.compression),
            is_one_to_one,
            held: AtomicBool::new(false),
            standing: Standing::default(),
            reasons: Arc::clone(reasons),
            failing: watch::Sender::new(false),
            closed: Notify::new(),
        }
    }

    /// Ready when an attempt has failed and the next one will be later.
    pub(crate) async fn fails(&self) {
        // The sender is ours: it cannot be gone.
        let _ = self.failing.subscribe().wait_for(|&fails| fails).await;
    }

    /// Whether the last attempt has failed.
    pub(crate) fn is_failing(&self) -> bool {
        *self.failing.borrow()
    }

    /// Notes a reason about this output, which concerns so many records or requests.
    pub(crate) fn note(&self, kind: ReasonKind, reason: &str, count: u64) {
        self.reasons.note(Met {
            pipeline: &self.pipeline,
            stage: Stage::Output,
            kind,
            subject: &self.name,
            reason,
            count,
        });
    }

    /// Takes back what it reported in metrics, after its end.
    pub(crate) fn forget(&self) {
        self.metrics.failures.compared(0);
        if self.held.swap(false, Ordering::Relaxed) {
            self.metrics.holding.dec();
        }
    }

    /// An attempt failed, for this reason, which the last error says; the next one begins after `delay`, if that is known.
    fn fail(&self, reason: &str, delay: Option<Duration>) {
        self.standing.failed(reason);
        let failures = &self.metrics.failures;
        failures.failed(reason, delay, SystemTime::now());
    }

    /// Something is held back, for this reason.
    fn hold(&self, reason: &str, delay: Option<Duration>) {
        self.fail(reason, delay);
        self.failing.send_replace(true);
        if !self.held.swap(true, Ordering::Relaxed) {
            self.metrics.holding.inc();
        }
    }
}

impl Observer for Driver {
    fn attempted(&self, duration: Duration) {
        self.metrics.duration.observe(duration.as_secs_f64());
    }

    fn retrying(&self, cause: RetryCause, reason: &str, delay: Duration) {
        self.fail(reason, Some(delay));
        self.note(ReasonKind::Retry, reason, 1);
        self.failing.send_replace(true);
        self.metrics.retried(cause.as_str());
        warn!(
            pipeline = self.pipeline,
            output = self.name,
            cause = cause.as_str(),
            reason,
            delay_ms = delay.as_millis() as u64,
            "a request could not be delivered and will be sent again"
        );
    }

    fn closed(&self, reason: &str) {
        self.fail(reason, None);
        self.note(ReasonKind::Retry, reason, 1);
        self.failing.send_replace(true);
        error!(
            pipeline = self.pipeline,
            output = self.name,
            reason,
            "an output has gone: the agent ends, and its next start continues from what was written"
        );
        self.closed.notify_one();
    }

    fn refused(&self, reason: &str, is_first: bool) {
        self.fail(reason, None);
        self.note(ReasonKind::Refused, reason, 1);
        if is_first {
            warn!(
                pipeline = self.pipeline,
                output = self.name,
                reason,
                "the server refuses a request: its parts are sent one after the other to find the records at fault"
            );
        }
    }

    fn cleared(&self) {
        self.standing.cleared();
    }

    fn compared(&self, records: usize) {
        self.metrics.failures.compared(records as u64);
    }

    fn waiting(&self, problem: &str, records: usize) {
        self.note(ReasonKind::Refused, problem, 1);
        self.hold(problem, None);
        error!(
            pipeline = self.pipeline,
            output = self.name,
            records,
            reason = problem,
            "records that the server refuses cannot be set aside and wait; others go on as long as limits.replay and \
             queue.max_bytes allow"
        );
    }

    fn holding(&self, reason: &str, delay: Duration) {
        self.hold(reason, Some(delay));
        error!(
            pipeline = self.pipeline,
            output = self.name,
            reason,
            next_probe_ms = delay.as_millis() as u64,
            "the server refuses this output; it holds and nothing is skipped: \
             check the endpoint and its credentials"
        );
    }

    fn comparing(&self, reason: &str, records: usize, delay: Duration) {
        self.fail(reason, Some(delay));
        warn!(
            pipeline = self.pipeline,
            output = self.name,
            reason,
            records,
            next_probe_ms = delay.as_millis() as u64,
            "the server refuses these records and accepts others; they wait until it has accepted a few more, and are \
             then stored in the dead-letter file"
        );
    }

    fn released(&self) {
        if self.held.swap(false, Ordering::Relaxed) {
            self.metrics.holding.dec();
            info!(
                pipeline = self.pipeline,
                output = self.name,
                "the output holds no longer: what was refused before is accepted or set aside"
            );
        }
    }

    fn cut(&self, bytes: u64, reason: &str) {
        info!(
            pipeline = self.pipeline,
            output = self.name,
            bytes,
            reason,
            "a request was too large for the server and goes out in two; later ones are cut before"
        );
    }

    fn recompressing(&self, from: Compression, to: Compression, reason: &str) {
        info!(
            pipeline = self.pipeline,
            output = self.name,
            from = from.name(),
            to = to.name(),
            reason,
            "the server may not know this compression; trying another"
        );
    }

    fn delivered(&self, delivered: &Delivered) {
        if delivered.compression != self.compression.get() {
            self.compression.set(delivered.compression);
        }
        self.failing.send_replace(false);
        self.standing.accepted(Instant::now());
        self.metrics.failures.succeeded();
        self.metrics.requests.inc();
        if let Some(oddity) = &delivered.oddity
            && self.metrics.odd_responses.inc() == 0
        {
            warn!(
                pipeline = self.pipeline,
                output = self.name,
                answer = oddity,
                "the server accepts requests with an answer that is no OTLP response in protobuf; it may not say \
                 which records it rejects. This is reported once, and counted in \
                 tailrace_output_odd_responses_total"
            );
        }
        self.metrics.payload_bytes.inc_by(delivered.wire_bytes);
        self.metrics.encoded_bytes.inc_by(delivered.encoded_bytes);
        debug!(
            pipeline = self.pipeline,
            output = self.name,
            bytes = delivered.wire_bytes,
            attempts = delivered.attempts,
            "request delivered"
        );
    }
}
