//! Records that made a worker panic, or the process die: stores them in the dead-letter file, as they were read,
//! and acks them for one output when they are on disk. When the file is full they wait, or are dropped, as the config
//! says; whatever else the output sends goes on meanwhile. Never decides which record is at fault.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tailrace_outputs::delivery::{CrashedRecord, DeadLetterEntry};
use tokio::sync::mpsc::UnboundedReceiver;
use tracing::error;

use crate::delivery::driver::Driver;
use crate::delivery::in_flight::{RecordOutcome, Ticket};
use crate::reasons::ReasonKind;

/// A record that must not be processed again.
#[derive(Debug)]
pub(crate) struct Crashed {
    /// Its number in the batch.
    pub record: u32,
    pub cause: Cause,
    /// What the panic said and where, or how often the process died.
    pub reason: String,
    /// The same for the own log: what a panic says may quote the record.
    pub logged: String,
    pub line: CrashedRecord,
}

/// What happened to the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It panicked.
    Panic,
    /// The process died.
    Abort,
}

/// Such records of one batch, for one output.
pub(crate) struct CrashedBatch {
    driver: Arc<Driver>,
    records: Arc<Vec<Crashed>>,
    /// Taken when all are stored or dropped.
    ticket: Option<Ticket>,
}

/// How often the dead-letter file is tried again.
const RETRY_EVERY: Duration = if cfg!(test) {
    Duration::from_millis(1)
} else {
    Duration::from_secs(1)
};
/// How often it is logged that it cannot be written.
const REPORT_EVERY: Duration = Duration::from_secs(60);
impl Crashed {
    /// How many of these made a worker panic, and at how many the process died.
    pub(crate) fn count(crashed: &[Self]) -> (u64, u64) {
        let aborted = crashed
            .iter()
            .filter(|crashed| crashed.cause == Cause::Abort);
        let aborted = aborted.count() as u64;
        (crashed.len() as u64 - aborted, aborted)
    }

    /// Bytes held in memory.
    pub(crate) fn held_bytes(&self) -> usize {
        self.line.line.len() + self.reason.len() + size_of::<Self>()
    }
}

impl CrashedBatch {
    pub(crate) fn new(driver: &Arc<Driver>, records: &Arc<Vec<Crashed>>, ticket: Ticket) -> Self {
        driver.metrics.in_flight.inc();
        Self {
            driver: Arc::clone(driver),
            records: Arc::clone(records),
            ticket: Some(ticket),
        }
    }

    /// The dead-letter entry of a record.
    fn entry(&self, crashed: &Crashed) -> DeadLetterEntry {
        let location = self
            .ticket
            .as_ref()
            .and_then(|ticket| ticket.location(crashed.record));
        let (path, bytes) = location.unzip();
        DeadLetterEntry {
            output: self.driver.name.clone(),
            reason: crashed.reason.clone(),
            path: path.unwrap_or_default().display().to_string(),
            bytes,
            crashed: Some(crashed.line.clone()),
            ..DeadLetterEntry::default()
        }
    }

    async fn dead_letter(mut self) {
        let entries: Vec<DeadLetterEntry> = self
            .records
            .iter()
            .map(|record| self.entry(record))
            .collect();
        let (mut done, mut in_file) = (0, 0);
        let mut reported_at: Option<Instant> = None;
        while done < entries.len() {
            let left = &entries[done..];
            let added = tokio::task::block_in_place(|| self.driver.dead_letters.add_all(left));
            self.note(done, added.added, RecordOutcome::DeadLettered);
            self.note(
                done + added.added,
                added.dropped,
                RecordOutcome::DeadLetterFull,
            );
            in_file += added.added;
            done += added.added + added.dropped;
            if let Some(error) = added.error {
                if reported_at.is_none_or(|at| at.elapsed() >= REPORT_EVERY) {
                    reported_at = Some(Instant::now());
                    error!(
                        pipeline = self.driver.pipeline,
                        output = self.driver.name,
                        records = entries.len() - done,
                        reason = error.to_string(),
                        "records that made a worker panic cannot be set aside and wait"
                    );
                }
                tokio::time::sleep(RETRY_EVERY).await;
            }
        }
        self.log(&entries, in_file);
        if let Some(ticket) = self.ticket.take() {
            self.driver.metrics.in_flight.dec();
            ticket.ack(0);
            self.driver.waiting.note_progress();
        }
    }

    fn note(&self, first: usize, count: usize, outcome: RecordOutcome) {
        for crashed in &self.records[first..first + count] {
            if let Some(ticket) = &self.ticket {
                ticket.note(crashed.record, outcome);
            }
        }
    }

    /// Says what the first record is, at a limited rate; of records at which the process died, each. So many are in the
    /// file, the others were dropped.
    fn log(&self, entries: &[DeadLetterEntry], in_file: usize) {
        let panics = self
            .records
            .iter()
            .filter(|record| record.cause == Cause::Panic)
            .count();
        let mut due = match panics {
            0 => None,
            _ => self.driver.crash_log.due(panics as u64),
        };
        for (n, (crashed, entry)) in self.records.iter().zip(entries).enumerate() {
            let records = match crashed.cause {
                Cause::Abort => 1,
                Cause::Panic => match due.take() {
                    Some(records) => records,
                    None => continue,
                },
            };
            self.driver
                .note(ReasonKind::Crashed, &crashed.logged, records);
            let (start, end) = entry.bytes.unwrap_or_default();
            let what = if n < in_file {
                "it is in the dead-letter file"
            } else {
                "the dead-letter file is full, so it is dropped"
            };
            error!(
                pipeline = self.driver.pipeline,
                output = self.driver.name,
                path = entry.path,
                start,
                end,
                records,
                reason = crashed.logged,
                "a record could not be processed: this is a bug, please report it; {what}, and the others go on"
            );
        }
    }
}

/// A nack: it was dropped before its records were stored.
impl Drop for CrashedBatch {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            drop(ticket);
            self.driver.metrics.in_flight.dec();
        }
    }
}

/// Sets aside what comes, until nothing will.
pub(crate) async fn run(mut batches: UnboundedReceiver<CrashedBatch>) {
    while let Some(batch) = batches.recv().await {
        batch.dead_letter().await;
    }
}
