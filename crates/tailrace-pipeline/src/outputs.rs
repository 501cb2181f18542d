//! Drives an output: takes requests from the workers, keeps at most `concurrency` of them on the
//! wire, and resolves each ticket with what became of it. Never looks into a payload.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tailrace_output::{Delivered, Encoding, Observer, Output, Payload, RetryCause};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{JoinHandle, JoinSet};
use tracing::{debug, error, info, warn};

use crate::delivery::Ticket;
use crate::encoding::{EncodedRequest, EncodingPlan, SharedEncoding, recode};
use crate::error::Error;
use crate::fault::Faults;
use crate::metrics::OutputMetrics;
use crate::wake::Readers;

/// The workers' end of an output.
#[derive(Debug)]
pub(crate) struct OutputHandle {
    sender: Mutex<Option<mpsc::UnboundedSender<InFlight>>>,
    metrics: OutputMetrics,
}

/// A request on its way and the duty to resolve it.
#[derive(Debug)]
struct InFlight {
    request: EncodedRequest,
    ticket: Ticket,
}

/// What all requests of one output share.
struct Driver {
    pipeline: String,
    name: String,
    output: Output,
    encoding: Arc<SharedEncoding>,
    metrics: OutputMetrics,
    waiting: Arc<Readers>,
}

impl OutputHandle {
    /// Starts to drive an output; the task ends when the handle is closed and all is resolved.
    pub(crate) fn start(
        pipeline: &str,
        config: &tailrace_config::Output,
        encoding: &EncodingPlan,
        metrics: OutputMetrics,
        waiting: &Arc<Readers>,
        faults: &Faults,
        runtime: &Handle,
    ) -> Result<(Self, JoinHandle<()>), Error> {
        let (output, concurrency) = crate::output_config::open(pipeline, config, runtime)?;
        let driver = Driver {
            pipeline: pipeline.to_owned(),
            name: config.name.clone(),
            output,
            encoding: Arc::clone(&encoding.compression),
            metrics: metrics.clone(),
            waiting: Arc::clone(waiting),
        };
        #[allow(
            clippy::disallowed_methods,
            reason = "bounded by the pipeline's credit, which charges \
                                                      each batch; a worker must never wait here"
        )]
        let (sender, receiver) = mpsc::unbounded_channel();
        let task = runtime.spawn(drive(
            faults.clone(),
            Arc::new(driver),
            receiver,
            concurrency,
        ));
        Ok((
            Self {
                sender: Mutex::new(Some(sender)),
                metrics,
            },
            task,
        ))
    }

    /// Hands a request over. After [`Self::close`] it is dropped, which is a nack.
    pub(crate) fn submit(&self, request: EncodedRequest, ticket: Ticket) {
        let sender = self
            .sender
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some(sender) = sender {
            self.metrics.in_flight.inc();
            if sender.send(InFlight { request, ticket }).is_err() {
                self.metrics.in_flight.dec();
            }
        }
    }

    /// No request will come any more.
    pub(crate) fn close(&self) {
        self.sender
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }
}

async fn drive(
    faults: Faults,
    driver: Arc<Driver>,
    mut requests: mpsc::UnboundedReceiver<InFlight>,
    concurrency: usize,
) {
    let permits = Arc::new(Semaphore::new(concurrency));
    // Dropped with this task: what is not resolved by then is a nack.
    let mut sending = JoinSet::new();
    while let Some(in_flight) = requests.recv().await {
        let permit = Arc::clone(&permits).acquire_owned().await;
        let driver = Arc::clone(&driver);
        sending.spawn(async move {
            driver.deliver(in_flight).await;
            drop(permit);
        });
        while let Some(ended) = sending.try_join_next() {
            faults.check(ended);
        }
    }
    while let Some(ended) = sending.join_next().await {
        faults.check(ended);
    }
}

impl Driver {
    async fn deliver(&self, in_flight: InFlight) {
        let InFlight { request, ticket } = in_flight;
        let payload = request.payload;
        let (first, last) = request.table.record_range();
        let records = payload.records;
        let watch = Watch {
            driver: self,
            held: AtomicBool::new(false),
        };
        let recode = |payload: &Payload, encoding| {
            // It decompresses and compresses megabytes: not on the thread of all requests.
            tokio::task::block_in_place(|| recode(payload, encoding))
        };
        let delivered = self.output.deliver(payload, &recode, &watch).await;
        if delivered.rejected > 0 {
            warn!(
                pipeline = self.pipeline,
                output = self.name,
                rejected = delivered.rejected,
                records,
                from = %ticket.origin(),
                first,
                last,
                message = delivered.message.as_deref().unwrap_or(""),
                "the server rejected records for good; they are counted and not sent again"
            );
        } else if let Some(message) = &delivered.message {
            warn!(
                pipeline = self.pipeline,
                output = self.name,
                message,
                "the server says"
            );
        }
        self.metrics.in_flight.dec();
        ticket.ack(delivered.rejected);
        self.waiting.settled();
    }
}

/// Watches one request on its way.
struct Watch<'a> {
    driver: &'a Driver,
    /// The server refuses this request.
    held: AtomicBool,
}

impl Observer for Watch<'_> {
    fn retrying(&self, cause: RetryCause, reason: &str, delay: Duration) {
        self.driver.metrics.retried(cause.as_str());
        warn!(
            pipeline = self.driver.pipeline,
            output = self.driver.name,
            cause = cause.as_str(),
            reason,
            delay_ms = delay.as_millis() as u64,
            "a request could not be delivered and will be sent again"
        );
    }

    fn holding(&self, reason: &str, delay: Duration) {
        if !self.held.swap(true, Ordering::Relaxed) {
            self.driver.metrics.holding.inc();
        }
        error!(
            pipeline = self.driver.pipeline,
            output = self.driver.name,
            reason,
            next_probe_ms = delay.as_millis() as u64,
            "the server refuses this output; it holds and nothing is skipped: \
             check the endpoint and its credentials"
        );
    }

    fn recoding(&self, from: Encoding, to: Encoding, reason: &str) {
        info!(
            pipeline = self.driver.pipeline,
            output = self.driver.name,
            from = from.as_str(),
            to = to.as_str(),
            reason,
            "the server may not know this compression; trying another"
        );
    }

    fn delivered(&self, delivered: &Delivered) {
        if self.held.swap(false, Ordering::Relaxed) {
            self.driver.metrics.holding.dec();
            info!(
                pipeline = self.driver.pipeline,
                output = self.driver.name,
                "the server accepts a request that it refused before"
            );
        }
        if delivered.encoding != self.driver.encoding.get() {
            self.driver.encoding.set(delivered.encoding);
        }
        self.driver.metrics.requests.inc();
        self.driver
            .metrics
            .payload_bytes
            .inc_by(delivered.wire_bytes);
        debug!(
            pipeline = self.driver.pipeline,
            output = self.driver.name,
            bytes = delivered.wire_bytes,
            attempts = delivered.attempts,
            "request delivered"
        );
    }
}
