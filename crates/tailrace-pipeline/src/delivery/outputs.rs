//! Starts an output and hands it the requests of the workers. Never looks into a payload.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tailrace_outputs::Opened;
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinHandle, JoinSet};

use crate::delivery::crashed::{self, Crashed, CrashedBatch};
use crate::delivery::dead_letters::DeadLetterQueue;
use crate::delivery::driver::Driver;
use crate::delivery::encoding::{EncodedRequest, EncodingPlan};
use crate::delivery::in_flight::Ticket;
use crate::delivery::metrics::OutputMetrics;
use crate::delivery::request::RequestPart;
use crate::delivery::standing::Standing;
use crate::fault::Faults;
use crate::reasons::Reasons;
use crate::wake::Readers;

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

impl OutputHandle {
    /// Starts to drive an output, whose requests are encoded so, and have one row for each record or not; the task ends when the handle is closed and all is resolved, or it is
    /// abandoned.
    pub(crate) fn start(
        pipeline: &str,
        (name, open): (String, Opened),
        encoding: (&EncodingPlan, bool),
        metrics: OutputMetrics,
        waiting: &Arc<Readers>,
        (dead_letters, reasons): (&Arc<DeadLetterQueue>, &Arc<Reasons>),
        (runtime, faults): (&Handle, &Faults),
    ) -> (Self, JoinHandle<()>) {
        let Opened { transport, drive } = open;
        let driver = Arc::new(Driver::new(
            (pipeline.to_owned(), name),
            encoding,
            metrics,
            waiting,
            dead_letters,
            reasons,
        ));
        let (requests, receiver) = unbounded();
        let (crashed, of_crashed) = unbounded();
        let (faults, watch, of_task) = (faults.clone(), Arc::clone(&driver), Arc::clone(&driver));
        let abandoned = Arc::new(Notify::new());
        let abandon = Arc::clone(&abandoned);
        let task = runtime.spawn(async move {
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
                    () = of_task.closed.notified() => {
                        faults.output_closed();
                        driving.shutdown().await;
                    }
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
        self.driver.fails().await;
    }

    /// Whether the last attempt has failed.
    pub(crate) fn is_failing(&self) -> bool {
        self.driver.is_failing()
    }

    /// The answer to the last attempt, if it failed.
    pub(crate) fn said(&self) -> Option<String> {
        self.driver.standing.said()
    }

    /// How it stands.
    pub(crate) fn standing(&self) -> &Standing {
        &self.driver.standing
    }

    /// Drops what is not resolved, which is a nack. Nothing holds any more.
    pub(crate) fn abandon(&self) {
        self.abandoned.notify_one();
    }

    /// Takes back what the driver reported in metrics, after its end.
    pub(crate) fn forget(&self) {
        self.driver.forget();
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
