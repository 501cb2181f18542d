//! A request of a pipeline as an output sees it: it can be encoded anew and cut, and resolves the
//! ticket of its batch once all of its parts are resolved. Dropping a part resolves nothing, so that
//! the ticket is dropped with the last of them, which is a nack.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tailrace_otlp::Compression;
use tailrace_outputs::delivery::{DeadLetterEntry, Delivered, Payload, Request};
use tracing::{error, warn};

use crate::delivery::dead_letters::Stored;
use crate::delivery::driver::Driver;
use crate::delivery::encoding::{self, EncodedRequest, RequestTable};
use crate::delivery::in_flight::{RecordOutcome, Ticket};
use crate::reasons::ReasonKind;

/// Some of the LogRecords of one request.
pub(crate) struct RequestPart {
    whole: Arc<Whole>,
    /// Which LogRecords of the whole request these are.
    rows: Range<usize>,
    payload: Payload,
    /// Where they end; none while the part is the whole request.
    ends: Option<Vec<u32>>,
}

/// What the parts of a request share.
struct Whole {
    driver: Arc<Driver>,
    table: Arc<RequestTable>,
    number: u64,
    unresolved: AtomicUsize,
    rejected: AtomicU64,
    /// Taken by the part that is resolved last.
    ticket: Mutex<Option<Ticket>>,
}

impl RequestPart {
    /// A whole request.
    pub(crate) fn whole(
        driver: &Arc<Driver>,
        number: u64,
        request: EncodedRequest,
        ticket: Ticket,
    ) -> Self {
        let rows = request.table.len();
        Self {
            whole: Arc::new(Whole {
                driver: Arc::clone(driver),
                table: request.table,
                number,
                unresolved: AtomicUsize::new(rows),
                rejected: AtomicU64::new(0),
                ticket: Mutex::new(Some(ticket)),
            }),
            rows: 0..rows,
            payload: request.payload,
            ends: None,
        }
    }

    fn ends(&self) -> &[u32] {
        self.ends.as_deref().unwrap_or(&self.whole.table.ends)
    }

    /// The record of the batch that a row comes from.
    fn record(&self, row: usize) -> u32 {
        self.whole.table.records.get(row).copied().unwrap_or(0)
    }

    /// Asks the ticket, which is there while a part is unresolved.
    fn ticket<T>(&self, ask: impl FnOnce(&Ticket) -> T) -> Option<T> {
        let ticket = self.whole.ticket.lock();
        ticket
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .map(ask)
    }

    fn note(&self, outcome: RecordOutcome) {
        self.ticket(|ticket| {
            for row in self.rows.clone() {
                ticket.note(self.record(row), outcome);
            }
        });
    }

    /// The rows of this part are resolved.
    fn resolve(&self) {
        let whole = &self.whole;
        let rows = self.rows.len();
        if whole.unresolved.fetch_sub(rows, Ordering::AcqRel) > rows {
            return;
        }
        let ticket = whole.ticket.lock();
        let ticket = ticket.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(ticket) = ticket {
            whole.driver.metrics.in_flight.dec();
            ticket.ack(whole.rejected.load(Ordering::Relaxed));
            whole.driver.waiting.note_progress();
        }
    }

    /// The dead-letter entry of this part, a single record.
    fn entry(&self, reason: &str) -> DeadLetterEntry {
        let location = self.ticket(|ticket| ticket.location(self.record(self.rows.start)));
        let (path, bytes) = location.flatten().unzip();
        DeadLetterEntry {
            time: String::new(),
            output: self.whole.driver.name.clone(),
            reason: reason.to_owned(),
            request: self.whole.number.to_string(),
            path: path.unwrap_or_default().display().to_string(),
            bytes,
            encoding: self.whole.driver.encoding.name().to_owned(),
            payload: encoding::plain(&self.payload),
            crashed: None,
        }
    }
}

/// A nack: the last part was dropped unresolved.
impl Drop for Whole {
    fn drop(&mut self) {
        let ticket = self.ticket.get_mut();
        if let Some(ticket) = ticket.unwrap_or_else(PoisonError::into_inner).take() {
            // First: when no request is in flight, every ticket is resolved.
            drop(ticket);
            self.driver.metrics.in_flight.dec();
        }
    }
}

impl Request for RequestPart {
    fn payload(&self) -> &Payload {
        &self.payload
    }

    fn recompress(&self, compression: Compression) -> Payload {
        // It decompresses and compresses megabytes: not on the thread of all requests.
        tokio::task::block_in_place(|| encoding::recompress(&self.payload, compression))
    }

    fn halves(self) -> (Self, Self) {
        let ends = self.ends();
        let middle = tailrace_otlp::middle(ends);
        let encoding = &*self.whole.driver.encoding;
        let half = |range: Range<usize>| {
            let (payload, ends) = encoding::part(encoding, &self.payload, ends, range.clone());
            Self {
                whole: Arc::clone(&self.whole),
                rows: self.rows.start + range.start..self.rows.start + range.end,
                payload,
                ends: Some(ends),
            }
        };
        tokio::task::block_in_place(|| (half(0..middle), half(middle..ends.len())))
    }

    fn deliver(self, delivered: &Delivered) {
        let driver = &self.whole.driver;
        if delivered.rejected > 0 {
            self.whole
                .rejected
                .fetch_add(delivered.rejected, Ordering::Relaxed);
            let message = delivered.message.as_deref();
            driver.note(
                ReasonKind::Rejected,
                message.unwrap_or("the server does not say why"),
                delivered.rejected,
            );
            warn!(
                pipeline = driver.pipeline,
                output = driver.name,
                rejected = delivered.rejected,
                records = self.payload.records,
                from = self.ticket(Ticket::origin).unwrap_or_default(),
                first = self.record(self.rows.start),
                last = self.record(self.rows.end.saturating_sub(1)),
                error_message = delivered.message.as_deref().unwrap_or(""),
                "the server rejected records for good; they are counted and not sent again"
            );
        } else if let Some(message) = &delivered.message {
            warn!(
                pipeline = driver.pipeline,
                output = driver.name,
                error_message = message,
                "the server says"
            );
        }
        if driver.is_one_to_one {
            let accepted = (self.rows.len() as u64).saturating_sub(delivered.rejected);
            self.ticket(|ticket| ticket.accepted(accepted));
        }
        self.resolve();
    }

    fn reject(&mut self, reason: &str) -> Result<(), String> {
        let driver = &self.whole.driver;
        let entry = self.entry(reason);
        let (path, bytes) = (entry.path.clone(), entry.bytes.unwrap_or_default());
        let added = tokio::task::block_in_place(|| driver.dead_letters.add(entry));
        // Each of the two has a place of its own in the log: the first must not use up what the second may say.
        match added.map_err(|error| error.to_string())? {
            Stored::InFile => {
                driver.note(ReasonKind::Rejected, reason, 1);
                warn!(
                    pipeline = driver.pipeline,
                    output = driver.name,
                    reason,
                    path,
                    start = bytes.0,
                    end = bytes.1,
                    "the server refuses a record and accepts others: it is in the dead-letter file"
                );
                self.note(RecordOutcome::DeadLettered);
            }
            Stored::Dropped => {
                let why = format!("the dead-letter file is full, and the server said: {reason}");
                driver.note(ReasonKind::Dropped, &why, 1);
                warn!(
                    pipeline = driver.pipeline,
                    output = driver.name,
                    reason,
                    path,
                    start = bytes.0,
                    end = bytes.1,
                    "the server refuses a record and accepts others: the dead-letter file is full, so it is dropped"
                );
                self.note(RecordOutcome::DeadLetterFull);
            }
        }
        self.resolve();
        Ok(())
    }

    fn give_up(self, reason: &str) {
        let driver = &self.whole.driver;
        error!(
            pipeline = driver.pipeline,
            output = driver.name,
            reason,
            records = self.payload.records,
            from = self.ticket(Ticket::origin).unwrap_or_default(),
            "the server refuses this output; records are dropped, as on_refused says"
        );
        driver.note(ReasonKind::Dropped, reason, self.payload.records);
        self.note(RecordOutcome::Refused);
        self.resolve();
    }
}
