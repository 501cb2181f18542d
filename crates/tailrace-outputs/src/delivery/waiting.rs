//! Single records that the other side will never take, and that cannot be set aside yet: the dead-letter file is full, or
//! its disk is.
//!
//! Takes them one by one, and tries again until each is set aside. They are not sent again: what is known of them needs no
//! more evidence, and there may be nothing left to compare them with. So they hold nobody up, and all of them are gone
//! soon after there is room.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::delivery::Request;

/// How often it is tried.
const EVERY: Duration = Duration::from_secs(1);
/// How many fail before it is left for the next time; then it is the turn of others, which may be smaller.
const FAILURES_MAX: usize = 4;
/// How many are set aside, each synced to disk, before something else gets its turn.
const RECORDS_MAX: usize = 64;

/// Records to be set aside.
pub(super) struct Waiting<R> {
    /// Each with what the other side said of it.
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

    /// When it is to be tried again; `None` if there is nothing to try.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// One more, which could not be set aside just now.
    pub(super) fn push(&mut self, record: R, reason: String, now: Instant) {
        self.records.push_back((record, reason));
        self.due.get_or_insert(now + EVERY);
    }

    /// Tries, if it is time to. Gives why it failed, if it did.
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
        self.due = match self.records.is_empty() {
            true => None,
            false if failures > 0 => Some(now + EVERY),
            false => Some(now),
        };
        problem
    }
}
