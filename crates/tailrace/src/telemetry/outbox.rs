//! The lines of the own log that wait to be sent as OTLP: a bounded buffer that every thread fills and the sending thread
//! empties. Whoever logs never waits for more than its lock. When it is full the oldest line goes, is counted, and the next
//! line that leaves says so. Lines of the sending thread itself never enter. Closed, it takes no line and no memory.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tracing::Level;

use super::counts::{Counts, Reason};
use crate::logging::ring::Line;

/// Lines that wait, at most, those being sent included.
pub(crate) const LINES_MAX: usize = 256;

/// The buffer of this process.
pub(crate) static OUTBOX: Outbox = Outbox::new();

thread_local! {
    /// Whether the lines of this thread are about sending lines.
    static IS_SENDING: Cell<bool> = const { Cell::new(false) };
}

/// From now on nothing that the calling thread logs enters an outbox: each line about sending lines would cause another.
pub(super) fn exclude_this_thread() {
    IS_SENDING.set(true);
}

/// A bounded buffer of lines.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// The rank of the lowest level that is taken; 0 while it is closed.
    rank_max: AtomicU8,
    queue: Mutex<Queue>,
    filled: Notify,
    pub(super) counts: Counts,
}

#[derive(Debug)]
struct Queue {
    lines: VecDeque<Arc<Line>>,
    /// Lines that were lost since the last one that left.
    dropped: u64,
    sending: Option<Sending>,
    /// The number of the last attempt.
    attempt: u64,
}

/// The first lines of the queue are being sent.
#[derive(Debug)]
struct Sending {
    attempt: u64,
    count: usize,
    /// What the first of them says was lost before it.
    dropped: u64,
}

/// Lines to send.
#[derive(Debug)]
pub(super) struct Taken {
    /// Identifies the attempt.
    pub(super) attempt: u64,
    /// The lines, the oldest first.
    pub(super) lines: Vec<Arc<Line>>,
    /// How many were lost before the first of them.
    pub(super) dropped: u64,
}

impl Outbox {
    pub(crate) const fn new() -> Self {
        Self {
            rank_max: AtomicU8::new(0),
            queue: Mutex::new(Queue {
                lines: VecDeque::new(),
                dropped: 0,
                sending: None,
                attempt: 0,
            }),
            filled: Notify::const_new(),
            counts: Counts::new(),
        }
    }

    /// Takes lines of this level and those above it from now on; of `None` no more. What waits stays.
    pub(crate) fn open(&self, lowest: Option<Level>) {
        let rank = lowest.map_or(0, |level| rank(&level));
        self.rank_max.store(rank, Ordering::Relaxed);
    }

    /// Takes a line, if it is open for its level and the calling thread does not send lines itself.
    pub(crate) fn push(&self, line: &Arc<Line>) {
        if rank(&line.level) > self.rank_max.load(Ordering::Relaxed) || IS_SENDING.get() {
            return;
        }
        let mut queue = self.lock();
        if queue.lines.len() >= LINES_MAX {
            // Lines that are being sent may arrive: the oldest behind them goes.
            let sent = queue.sending.as_ref().map_or(0, |sending| sending.count);
            queue.dropped += 1;
            self.counts.dropped(Reason::Full, 1);
            if queue.lines.remove(sent).is_none() {
                return;
            }
        }
        queue.lines.push_back(Arc::clone(line));
        drop(queue);
        self.filled.notify_one();
    }

    /// Waits until there are lines.
    pub(super) async fn filled(&self) {
        loop {
            // One that comes after the check leaves a permit.
            if !self.lock().lines.is_empty() {
                return;
            }
            self.filled.notified().await;
        }
    }

    /// The oldest lines, at most `max` of them, for one attempt. `None` if there is none.
    pub(super) fn begin(&self, max: usize) -> Option<Taken> {
        let mut queue = self.lock();
        queue.give_back();
        let count = queue.lines.len().min(max);
        if count == 0 {
            return None;
        }
        queue.attempt += 1;
        let taken = Taken {
            attempt: queue.attempt,
            lines: queue.lines.iter().take(count).cloned().collect(),
            dropped: std::mem::take(&mut queue.dropped),
        };
        queue.sending = Some(Sending {
            attempt: taken.attempt,
            count,
            dropped: taken.dropped,
        });
        Some(taken)
    }

    /// The first `count` lines of the attempt arrived, but for `rejected` of them.
    pub(super) fn delivered(&self, attempt: u64, count: usize, rejected: u64) {
        let mut queue = self.lock();
        if queue.end(attempt, count).is_none() {
            return;
        }
        let rejected = rejected.min(count as u64);
        queue.dropped += rejected;
        self.counts.dropped(Reason::Refused, rejected);
        self.counts.delivered(count as u64 - rejected);
    }

    /// The attempt failed, and may be repeated.
    pub(super) fn failed(&self, attempt: u64) {
        let mut queue = self.lock();
        if let Some(sending) = queue.end(attempt, 0) {
            queue.dropped += sending.dropped;
        }
    }

    /// The first `count` lines of the attempt will never be accepted.
    pub(super) fn refused(&self, attempt: u64, count: usize) {
        let mut queue = self.lock();
        if let Some(sending) = queue.end(attempt, count) {
            queue.dropped += sending.dropped + count as u64;
            self.counts.dropped(Reason::Refused, count as u64);
        }
    }

    /// Takes no line any more. Drops those that wait, and returns their number.
    pub(crate) fn close(&self) -> usize {
        self.open(None);
        let mut queue = self.lock();
        let lines = std::mem::take(&mut queue.lines).len();
        queue.sending = None;
        queue.dropped = 0;
        self.counts.dropped(Reason::Ended, lines as u64);
        lines
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// Ends an attempt, and removes its first `count` lines. `None` if another one has begun since.
    fn end(&mut self, attempt: u64, count: usize) -> Option<Sending> {
        let sending = self.sending.take_if(|sending| sending.attempt == attempt)?;
        self.lines.drain(..count.min(sending.count));
        Some(sending)
    }

    /// An attempt whose end nobody reported failed.
    fn give_back(&mut self) {
        if let Some(sending) = self.sending.take() {
            self.dropped += sending.dropped;
        }
    }
}

/// 1 for errors, more for lower levels.
fn rank(level: &Level) -> u8 {
    match *level {
        Level::ERROR => 1,
        Level::WARN => 2,
        Level::INFO => 3,
        Level::DEBUG => 4,
        Level::TRACE => 5,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::SystemTime;

    use super::*;

    fn line(level: Level, message: &str) -> Arc<Line> {
        Arc::new(Line {
            at: SystemTime::UNIX_EPOCH,
            level,
            target: "tests",
            message: message.to_owned(),
            fields: serde_json::Map::new(),
        })
    }

    fn open() -> Outbox {
        let outbox = Outbox::new();
        outbox.open(Some(Level::WARN));
        outbox
    }

    fn fill(outbox: &Outbox, numbers: std::ops::Range<usize>) {
        for n in numbers {
            outbox.push(&line(Level::WARN, &n.to_string()));
        }
    }

    fn messages(taken: &Taken) -> Vec<String> {
        taken
            .lines
            .iter()
            .map(|line| line.message.clone())
            .collect()
    }

    #[test]
    fn a_closed_one_takes_nothing_and_no_memory() {
        let outbox = Outbox::new();
        fill(&outbox, 0..10);
        assert!(outbox.begin(LINES_MAX).is_none());
        assert_eq!(outbox.lock().lines.capacity(), 0);
        let outbox = open();
        fill(&outbox, 0..3);
        assert_eq!(outbox.close(), 3);
        fill(&outbox, 0..3);
        assert!(outbox.begin(LINES_MAX).is_none());
        assert_eq!(outbox.counts.dropped_for(Reason::Ended), 3);
    }

    #[test]
    fn lines_below_the_level_and_of_the_sending_thread_stay_out() {
        let outbox = open();
        outbox.push(&line(Level::INFO, "info"));
        outbox.push(&line(Level::ERROR, "error"));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                exclude_this_thread();
                outbox.push(&line(Level::ERROR, "about sending"));
            });
        });
        assert_eq!(messages(&outbox.begin(LINES_MAX).unwrap()), ["error"]);
    }

    #[test]
    fn a_flood_is_bounded_counted_and_announced_by_the_next_line() {
        let outbox = open();
        fill(&outbox, 0..10_000);
        let taken = outbox.begin(LINES_MAX).unwrap();
        assert_eq!(taken.lines.len(), LINES_MAX);
        assert_eq!(taken.dropped, 10_000 - LINES_MAX as u64);
        assert_eq!(messages(&taken)[LINES_MAX - 1], "9999");
        assert_eq!(outbox.counts.dropped_for(Reason::Full), taken.dropped);
        // While all are being sent, new ones have no place.
        fill(&outbox, 0..5);
        outbox.delivered(taken.attempt, LINES_MAX, 0);
        assert!(outbox.begin(LINES_MAX).is_none());
        fill(&outbox, 5..6);
        assert_eq!(outbox.begin(LINES_MAX).unwrap().dropped, 5);
        assert_eq!(outbox.counts.delivered_lines(), LINES_MAX as u64);
    }

    #[test]
    fn what_failed_is_sent_again_and_what_is_refused_is_announced() {
        let outbox = open();
        fill(&outbox, 0..LINES_MAX + 2);
        let first = outbox.begin(2).unwrap();
        assert_eq!(
            (messages(&first), first.dropped),
            (vec!["2".into(), "3".into()], 2)
        );
        // The two lines on their way keep their places.
        fill(&outbox, 300..301);
        outbox.failed(first.attempt);
        let second = outbox.begin(3).unwrap();
        assert_eq!(messages(&second), ["2", "3", "5"]);
        assert_eq!(second.dropped, 3);
        outbox.refused(second.attempt, 1);
        // The end of an attempt that is over changes nothing.
        outbox.delivered(first.attempt, 2, 0);
        let third = outbox.begin(2).unwrap();
        assert_eq!(
            (messages(&third), third.dropped),
            (vec!["3".into(), "5".into()], 4)
        );
        outbox.delivered(third.attempt, 1, 1);
        let fourth = outbox.begin(1).unwrap();
        assert_eq!((messages(&fourth), fourth.dropped), (vec!["5".into()], 1));
        assert_eq!(outbox.counts.dropped_for(Reason::Refused), 2);
        assert_eq!(outbox.counts.delivered_lines(), 0);
    }

    #[tokio::test]
    async fn whoever_waits_is_woken() {
        let outbox = open();
        let push = async {
            tokio::task::yield_now().await;
            fill(&outbox, 0..1);
        };
        tokio::join!(outbox.filled(), push);
        outbox.filled().await;
    }
}
