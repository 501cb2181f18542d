//! Drives an output: takes requests from the workers, keeps at most `concurrency` of them on the
//! wire, and resolves each ticket with what became of it. Never looks into a payload.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tailrace_output::{Delivered, Encoding, Observer, Output, RetryCause};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{JoinHandle, JoinSet};
use tracing::{debug, error, info, warn};

use crate::delivery::Ticket;
use crate::encoding::{EncodedRequest, EncodingPlan, SharedEncoding, recode};
use crate::error::Error;
use crate::metrics::OutputMetrics;
use crate::wake::Readers;

/// The workers' end of an output.
#[derive(Debug)]
pub(crate) struct OutputHandle {
    sender: Mutex<Option<mpsc::Sender<InFlight>>>,
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

/// Requests that may wait for an output. Their bytes are bounded by the pipeline's credit, so a
/// worker never waits here.
const WAITING_MAX: usize = 4096;

impl OutputHandle {
    /// Starts to drive an output; the task ends when the handle is closed and all is resolved.
    pub(crate) fn start(
        pipeline: &str,
        config: &tailrace_config::Output,
        encoding: &EncodingPlan,
        metrics: OutputMetrics,
        waiting: &Arc<Readers>,
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
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let task = runtime.spawn(drive(Arc::new(driver), receiver, concurrency));
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
            if sender.blocking_send(InFlight { request, ticket }).is_err() {
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

async fn drive(driver: Arc<Driver>, mut requests: mpsc::Receiver<InFlight>, concurrency: usize) {
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
        while sending.try_join_next().is_some() {}
    }
    while sending.join_next().await.is_some() {}
}

impl Driver {
    async fn deliver(&self, in_flight: InFlight) {
        let InFlight { request, ticket } = in_flight;
        let payload = request.payload;
        let (first, last) = request.table.record_range();
        let records = payload.records;
        let delivered = self.output.deliver(payload, &recode, self).await;
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

impl Observer for Driver {
    fn retrying(&self, cause: RetryCause, reason: &str, delay: Duration) {
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

    fn holding(&self, reason: &str, delay: Duration) {
        self.metrics.holding.set(1);
        error!(
            pipeline = self.pipeline,
            output = self.name,
            reason,
            next_probe_ms = delay.as_millis() as u64,
            "the server refuses this output; it holds and nothing is skipped: \
             check the endpoint and its credentials"
        );
    }

    fn recoding(&self, from: Encoding, to: Encoding, reason: &str) {
        info!(
            pipeline = self.pipeline,
            output = self.name,
            from = from.as_str(),
            to = to.as_str(),
            reason,
            "the server may not know this compression; trying another"
        );
    }

    fn delivered(&self, delivered: &Delivered) {
        if self.metrics.holding.set(0) == 1 {
            info!(
                pipeline = self.pipeline,
                output = self.name,
                "the server accepts again"
            );
        }
        if delivered.encoding != self.encoding.get() {
            self.encoding.set(delivered.encoding);
        }
        self.metrics.requests.inc();
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
