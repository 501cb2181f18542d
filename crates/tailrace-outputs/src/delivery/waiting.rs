//! Rejected records that wait for the dead-letter file, because it or its disk is full.
//!
//! Writing them is retried until it succeeds. They are not sent again: the evidence against them is complete, and there may
//! be no other request left to compare them with. So they do not delay other records, and all of them are written soon
//! after there is space.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::delivery::request::Request;

/// The time between two attempts.
const EVERY: Duration = Duration::from_secs(1);
/// An attempt ends after this many failures. The next one begins with other records, which may be smaller.
const FAILURES_MAX: usize = 4;
/// The most records written in one attempt. Each is synced to disk, and the delivery loop waits.
const RECORDS_MAX: usize = 64;

/// Records that wait for the dead-letter file.
pub(super) struct Waiting<R> {
    /// Each with the reason of its rejection.
    records: VecDeque<(R, String)>,
    due: Option<Instant>,
}

impl<R: Request> Waiting<R> {
    pub(super) fn new() -> Self {
        Self {
            records: VecDeque::new(),
            due: None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// The time of the next attempt; `None` if nothing waits.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Adds a record that could not be written just now.
    pub(super) fn push(&mut self, record: R, reason: String, now: Instant) {
        self.records.push_back((record, reason));
        self.due.get_or_insert(now + EVERY);
    }

    /// Makes an attempt if one is due. Returns the last failure, if there was one.
    pub(super) fn retry(&mut self, now: Instant) -> Option<String> {
        if self.due.is_none_or(|due| now < due) {
            return None;
        }
        let (mut failures, mut problem) = (0, None);
        for _ in 0..self.records.len().min(RECORDS_MAX) {
            let (mut record, reason) = self.records.pop_front()?;
            if let Err(why) = record.reject(&reason) {
                self.records.push_back((record, reason));
                problem = Some(why);
                failures += 1;
            }
            if failures == FAILURES_MAX {
                break;
            }
        }
        self.due = if self.records.is_empty() {
            None
        } else if failures > 0 {
            Some(now + EVERY)
        } else {
            Some(now)
        };
        problem
    }
}
