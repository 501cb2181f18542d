//! Starts an output and hands it the requests of the workers; says in metrics and in the own log what
//! happens to them. Never looks into a payload.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tailrace_otlp::{Compression, Encoding};
use tailrace_outputs::Opened;
use tailrace_outputs::delivery::{Delivered, Observer, RetryCause};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tracing::{debug, error, info, warn};

use crate::crashed::{self, Crashed, CrashedBatch, LogLimit};
use crate::dead_letters::DeadLetterQueue;
use crate::delivery::Ticket;
use crate::encoding::{EncodedRequest, EncodingPlan, SharedCompression};
use crate::metrics::OutputMetrics;
use crate::pipeline::BuildContext;
use crate::request::RequestPart;
use crate::wake::Readers;

/// A request to submit.
pub(crate) type Ready = (EncodedRequest, Ticket);

/// The workers' end of an output.
pub(crate) struct OutputHandle {
    sender: Mutex<Option<Senders>>,
    driver: Arc<Driver>,
    requests: AtomicU64,
    /// Notified once: what is not resolved is dropped.
    abandoned: Arc<Notify>,
}

/// Where requests go, and records that have none because they could not be processed.
#[derive(Clone)]
struct Senders {
    requests: mpsc::UnboundedSender<RequestPart>,
    crashed: mpsc::UnboundedSender<CrashedBatch>,
}

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
    /// The server refuses everything.
    held: AtomicBool,
    /// The answer to the last attempt, if it failed.
    said: Mutex<Option<String>>,
    /// The last answer was none that a request can be resolved with.
    failing: watch::Sender<bool>,
}

impl OutputHandle {
    /// Starts to drive an output; the task ends when the handle is closed and all is resolved, or it is
    /// abandoned.
    pub(crate) fn start(
        pipeline: &str,
        (name, open): (String, Opened),
        encoding: &EncodingPlan,
        metrics: OutputMetrics,
        waiting: &Arc<Readers>,
        dead_letters: &Arc<DeadLetterQueue>,
        around: &BuildContext<'_>,
    ) -> (Self, JoinHandle<()>) {
        let Opened { transport, drive } = open;
        let driver = Arc::new(Driver {
            pipeline: pipeline.to_owned(),
            name,
            metrics,
            waiting: Arc::clone(waiting),
            dead_letters: Arc::clone(dead_letters),
            crash_log: LogLimit::default(),
            encoding: Arc::clone(&encoding.encoding),
            compression: Arc::clone(&encoding.compression),
            held: AtomicBool::new(false),
            said: Mutex::default(),
            failing: watch::Sender::new(false),
        });
        let (requests, receiver) = unbounded();
        let (crashed, of_crashed) = unbounded();
        let (faults, watch) = (around.faults.clone(), Arc::clone(&driver));
        let abandoned = Arc::new(Notify::new());
        let abandon = Arc::clone(&abandoned);
        let task = around.runtime.spawn(async move {
            // Aborted with this task: what is not resolved by then is a nack.
            let mut driving = JoinSet::new();
            driving.spawn(async move {
                tailrace_outputs::delivery::drive(transport, receiver, drive, &*watch).await;
            });
            driving.spawn(crashed::run(of_crashed));
            loop {
                tokio::select! {
                    ended = driving.join_next() => match ended {
                        Some(ended) => faults.check(ended),
                        None => break,
                    },
                    () = abandon.notified() => driving.shutdown().await,
                }
            }
        });
        let handle = Self {
            sender: Mutex::new(Some(Senders { requests, crashed })),
            driver,
            requests: AtomicU64::new(0),
            abandoned,
        };
        (handle, task)
    }

    /// Hands a request over. After [`Self::close`] it is dropped, which is a nack.
    pub(crate) fn submit(&self, request: EncodedRequest, ticket: Ticket) {
        if let Some(senders) = self.senders() {
            self.driver.metrics.in_flight.inc();
            let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
            let request = RequestPart::whole(&self.driver, number, request, ticket);
            // Nobody takes it any more: it is dropped, which is a nack.
            drop(senders.requests.send(request));
        }
    }

    /// Hands records over that could not be processed. After [`Self::close`] they are dropped, which is a nack.
    pub(crate) fn dead_letter(&self, records: &Arc<Vec<Crashed>>, ticket: Ticket) {
        if let Some(senders) = self.senders() {
            let batch = CrashedBatch::new(&self.driver, records, ticket);
            drop(senders.crashed.send(batch));
        }
    }

    fn senders(&self) -> Option<Senders> {
        let senders = self.sender.lock();
        senders.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// No request will come any more.
    pub(crate) fn close(&self) {
        self.sender
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }

    /// Ready when an attempt has failed and the next one will be later.
    pub(crate) async fn fails(&self) {
        // The sender is ours: it cannot be gone.
        let _ = self
            .driver
            .failing
            .subscribe()
            .wait_for(|&fails| fails)
            .await;
    }

    /// Whether the last attempt has failed.
    pub(crate) fn is_failing(&self) -> bool {
        *self.driver.failing.borrow()
    }

    /// The answer to the last attempt, if it failed.
    pub(crate) fn said(&self) -> Option<String> {
        self.driver.lock_said().clone()
    }

    /// Drops what is not resolved, which is a nack. Nothing holds any more.
    pub(crate) fn abandon(&self) {
        self.abandoned.notify_one();
    }

    /// Takes back what the driver reported in metrics, after its end.
    pub(crate) fn forget(&self) {
        if self.driver.held.swap(false, Ordering::Relaxed) {
            self.driver.metrics.holding.dec();
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "bounded by the pipeline's credit, which charges each batch; a worker must never wait here"
)]
fn unbounded<T>() -> (mpsc::UnboundedSender<T>, mpsc::UnboundedReceiver<T>) {
    mpsc::unbounded_channel()
}

impl std::fmt::Debug for OutputHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OutputHandle")
            .field("name", &self.driver.name)
            .finish_non_exhaustive()
    }
}

impl Driver {
    fn lock_said(&self) -> MutexGuard<'_, Option<String>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Driver {
    /// Something is held back, for this reason.
    fn hold(&self, reason: &str) {
        *self.lock_said() = Some(reason.to_owned());
        self.failing.send_replace(true);
        if !self.held.swap(true, Ordering::Relaxed) {
            self.metrics.holding.inc();
        }
    }
}

impl Observer for Driver {
    fn retrying(&self, cause: RetryCause, reason: &str, delay: Duration) {
        *self.lock_said() = Some(reason.to_owned());
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

    fn waiting(&self, problem: &str, records: usize) {
        self.hold(problem);
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
        self.hold(reason);
        error!(
            pipeline = self.pipeline,
            output = self.name,
            reason,
            next_probe_ms = delay.as_millis() as u64,
            "the server refuses this output; it holds and nothing is skipped: \
             check the endpoint and its credentials"
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
        *self.lock_said() = None;
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
        debug!(
            pipeline = self.pipeline,
            output = self.name,
            bytes = delivered.wire_bytes,
            attempts = delivered.attempts,
            "request delivered"
        );
    }
}
