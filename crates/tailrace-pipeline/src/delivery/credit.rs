//! In-flight credit: a bound in bytes on what a pipeline holds between the file and the answer
//! of its outputs, and a smaller one on what waits for a worker. The reader reserves before it hands a
//! batch on, and pauses when there is none: the data waits in the file. Never blocks a worker.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use prometheus_client::metrics::gauge::Gauge;

/// What a batch is charged at least: tickets and tables of a small one cost more than its bytes,
/// and the number of batches in flight must be bounded as well.
pub(crate) const BATCH_CREDIT_MIN: u64 = 4 * 1024;

/// How often the one who waits looks after other things.
const MEANWHILE_EVERY: Duration = Duration::from_millis(100);

/// A bound in bytes, shared by a reader and the batches that it handed on.
#[derive(Debug)]
pub(crate) struct Credit {
    capacity: AtomicU64,
    shares: Arc<Shares>,
    state: Mutex<State>,
    freed: Condvar,
    /// Shows what is reserved. Two pipelines may have it for a moment: the one that ends, and the one that takes its place.
    size: Gauge,
}

#[derive(Debug, Default)]
struct State {
    used: u64,
    closed: bool,
}

/// What each output of a pipeline holds of the credit. What a detached one holds is not charged to the
/// others: they go on with the whole credit.
#[derive(Debug)]
pub(crate) struct Shares {
    held: Vec<AtomicU64>,
    /// In how many inputs the output is detached.
    detached: Vec<AtomicU32>,
}

/// Bytes in flight for one output; they are its share until this is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    shares: Arc<Shares>,
    output: usize,
    bytes: u64,
}

impl Shares {
    /// For so many outputs.
    pub(crate) fn new(outputs: usize) -> Arc<Self> {
        Arc::new(Self {
            held: (0..outputs).map(|_| AtomicU64::new(0)).collect(),
            detached: (0..outputs).map(|_| AtomicU32::new(0)).collect(),
        })
    }

    /// Bytes that an output holds.
    pub(crate) fn held(&self, output: usize) -> u64 {
        self.held[output].load(Ordering::Relaxed)
    }

    /// An output holds so many bytes more.
    pub(crate) fn hold(self: &Arc<Self>, output: usize, bytes: u64) -> Share {
        self.held[output].fetch_add(bytes, Ordering::Relaxed);
        Share {
            shares: Arc::clone(self),
            output,
            bytes,
        }
    }

    /// An output is detached from one more input.
    pub(crate) fn detach(&self, output: usize) {
        self.detached[output].fetch_add(1, Ordering::Relaxed);
    }

    /// An output takes part in the reading of an input again.
    pub(crate) fn rejoin(&self, output: usize) {
        self.detached[output].fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether an output is detached anywhere.
    pub(crate) fn is_detached(&self, output: usize) -> bool {
        self.detached[output].load(Ordering::Relaxed) > 0
    }

    /// Bytes that detached outputs hold.
    fn forgiven(&self) -> u64 {
        let detached = (0..self.held.len()).filter(|&output| self.is_detached(output));
        detached.map(|output| self.held(output)).sum()
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shares.held[self.output].fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// What has to wait where more is reserved than may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exceeded {
    /// The next part of a batch.
    pub(crate) parts: bool,
    /// The next batch.
    pub(crate) batches: bool,
}

/// Reserved bytes; they return when this is dropped.
#[derive(Debug)]
pub(crate) struct Reserved {
    credit: Arc<Credit>,
    bytes: u64,
}

impl Credit {
    /// A credit of so many bytes, for outputs with these shares.
    pub(crate) fn new(capacity: u64, shares: Arc<Shares>) -> Arc<Self> {
        Self::shown(capacity, shares, Gauge::default())
    }

    /// The same, where `size` shows what is reserved.
    pub(crate) fn shown(capacity: u64, shares: Arc<Shares>, size: Gauge) -> Arc<Self> {
        Arc::new(Self {
            capacity: AtomicU64::new(capacity),
            shares,
            state: Mutex::default(),
            freed: Condvar::new(),
            size,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for so many bytes (more than the whole capacity counts as the capacity, so that one
    /// batch always fits). `None` once the credit is closed. While it waits, `meanwhile` is done ten times
    /// a second.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        bytes: u64,
        mut meanwhile: impl FnMut(),
    ) -> Option<Reserved> {
        let mut state = self.lock();
        // The bound may be another one while it waits.
        let fits = |state: &State| {
            let used = state.used + bytes.min(self.capacity());
            used <= self.capacity() + self.shares.forgiven()
        };
        let mut due = Instant::now() + MEANWHILE_EVERY;
        while !state.closed && !fits(&state) {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                drop(state);
                meanwhile();
                due = Instant::now() + MEANWHILE_EVERY;
                state = self.lock();
            } else {
                let waited = self.freed.wait_timeout(state, left);
                (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            }
        }
        if state.closed {
            return None;
        }
        let bytes = bytes.min(self.capacity());
        self.charge(&mut state, bytes);
        Some(Reserved {
            credit: Arc::clone(self),
            bytes,
        })
    }

    /// The same for what goes on in any case: once the credit is closed it does not wait, and is charged.
    pub(crate) fn reserve_or_take(
        self: &Arc<Self>,
        bytes: u64,
        meanwhile: impl FnMut(),
    ) -> Reserved {
        let reserved = self.reserve(bytes, meanwhile);
        reserved.unwrap_or_else(|| self.take(bytes.min(self.capacity())))
    }

    /// Reserves without waiting, whether or not there is room: it exists already. Whoever reserves next waits.
    pub(crate) fn take(self: &Arc<Self>, bytes: u64) -> Reserved {
        self.charge(&mut self.lock(), bytes);
        Reserved {
            credit: Arc::clone(self),
            bytes,
        }
    }

    fn charge(&self, state: &mut State, bytes: u64) {
        state.used += bytes;
        self.size.inc_by(gauge(bytes));
    }

    /// What has to wait because of what is reserved, where batches are handed over in parts: half of the capacity may be, for
    /// the next part comes on top. What detached outputs hold counts beyond it: up to the capacity for the next part, which
    /// may be for them too; and half as much again for a batch that begins and is not for them.
    pub(crate) fn exceeded(&self) -> Exceeded {
        let (capacity, forgiven) = (self.capacity(), self.shares.forgiven());
        let used = self.used();
        let bound = |beyond: u64| capacity / 2 + forgiven.min(beyond);
        Exceeded {
            parts: used > bound(capacity),
            batches: used > bound(capacity + capacity / 2),
        }
    }

    /// Wakes all who wait; nobody waits any more.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.freed.notify_all();
    }

    /// The shares of the outputs.
    pub(crate) const fn shares(&self) -> &Arc<Shares> {
        &self.shares
    }

    /// Bytes reserved now.
    pub(crate) fn used(&self) -> u64 {
        self.lock().used
    }

    /// The bound in bytes.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity.load(Ordering::Relaxed)
    }

    /// Another bound from now on; what is reserved beyond it stays reserved.
    pub(crate) fn resize(&self, capacity: u64) {
        let _state = self.lock();
        self.capacity.store(capacity, Ordering::Relaxed);
        self.freed.notify_all();
    }
}

impl Reserved {
    /// Reserves what a batch holds from now on. It was reserved at its raw size and is kept compressed, with its tables;
    /// where that is more, nothing waits, but whoever reserves next does.
    pub(crate) fn adjust_to(&mut self, bytes: u64) {
        let more = bytes.saturating_sub(self.bytes);
        if more > 0 {
            self.bytes += more;
            self.credit.charge(&mut self.credit.lock(), more);
        }
        let back = self.bytes.saturating_sub(bytes);
        self.release(back);
    }

    /// Splits off so many bytes, or as many as there are.
    pub(crate) fn split(&mut self, bytes: u64) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self {
            credit: Arc::clone(&self.credit),
            bytes,
        }
    }

    fn release(&mut self, bytes: u64) {
        if bytes > 0 {
            self.bytes -= bytes;
            self.credit.lock().used -= bytes;
            self.credit.size.dec_by(gauge(bytes));
            self.credit.freed.notify_all();
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.release(self.bytes);
    }
}

fn gauge(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn a_full_credit_blocks_until_bytes_return() {
        let credit = Credit::new(100, Shares::new(1));
        let mut first = credit.reserve(80, || ()).expect("open");
        let (sender, receiver) = mpsc::sync_channel(100);
        let other = Arc::clone(&credit);
        let waiter = thread::spawn(move || {
            let looked = || {
                sender
                    .send("looks after other things")
                    .expect("the test waits")
            };
            let reserved = other.reserve(50, looked).expect("open");
            sender.send("has it").expect("the test waits");
            drop(reserved);
        });
        assert_eq!(receiver.recv(), Ok("looks after other things"));
        first.adjust_to(30);
        assert!(receiver.iter().any(|said| said == "has it"));
        waiter.join().expect("no panic");
        assert_eq!(credit.used(), 30);
        // What it holds may be more than what it was reserved for.
        first.adjust_to(500);
        assert_eq!(credit.used(), 500);
        drop(first);
        assert_eq!(credit.used(), 0);
    }

    #[test]
    fn more_than_the_capacity_still_fits_alone() {
        let credit = Credit::new(10, Shares::new(1));
        let reserved = credit.reserve(1_000, || ()).expect("open");
        assert_eq!(credit.used(), 10);
        drop(reserved);
        assert_eq!(credit.used(), 0);
    }

    #[test]
    fn a_smaller_credit_still_takes_one_batch_and_a_larger_one_more() {
        let credit = Credit::new(100, Shares::new(1));
        let held = credit.reserve(90, || ()).expect("open");
        let other = Arc::clone(&credit);
        let (sender, receiver) = mpsc::sync_channel(100);
        let waiter = thread::spawn(move || {
            let looked = || sender.send("waits").expect("the test waits");
            // Dropped at once: what it was charged is what it returns.
            drop(other.reserve(80, looked).expect("open"));
        });
        assert_eq!(receiver.recv(), Ok("waits"));
        credit.resize(10);
        drop(held);
        waiter.join().expect("no panic");
        assert_eq!((credit.used(), credit.capacity()), (0, 10));
        let _first = credit.reserve(10, || ()).expect("open");
        let other = Arc::clone(&credit);
        let waiter = thread::spawn(move || other.reserve(10, || ()).is_some());
        credit.resize(20);
        assert!(waiter.join().expect("no panic"));
    }

    #[test]
    fn who_is_woken_for_nothing_still_looks_after_other_things() {
        let credit = Credit::new(10, Shares::new(1));
        let held = credit.reserve(10, || ()).expect("open");
        let other = Arc::clone(&credit);
        let (sender, receiver) = mpsc::sync_channel(100);
        let waiter = thread::spawn(move || {
            let looked = || sender.send(()).expect("the test waits");
            drop(other.reserve(10, looked).expect("open"));
        });
        let until = Instant::now() + Duration::from_secs(30);
        while receiver.try_recv().is_err() {
            assert!(Instant::now() < until, "nothing is looked after");
            credit.freed.notify_all();
            thread::yield_now();
        }
        drop(held);
        waiter.join().expect("no panic");
    }

    #[test]
    fn what_a_detached_output_holds_holds_batches_back_later_than_parts() {
        let shares = Shares::new(2);
        let credit = Credit::new(100, Arc::clone(&shares));
        let all = |held: u64| {
            let held = (
                credit.take(held),
                shares.hold(0, held),
                shares.hold(1, held),
            );
            let exceeded = credit.exceeded();
            drop(held);
            (exceeded.parts, exceeded.batches)
        };
        assert_eq!((all(50), all(51)), ((false, false), (true, true)));
        shares.detach(0);
        assert_eq!((all(150), all(151)), ((false, false), (true, false)));
        assert_eq!((all(200), all(201)), ((true, false), (true, true)));
        // It holds the same bytes as the other one, not more.
        shares.detach(1);
        assert_eq!((all(200), all(201)), ((true, false), (true, true)));
    }

    #[test]
    fn closing_wakes_the_waiter() {
        let credit = Credit::new(10, Shares::new(1));
        let _all = credit.reserve(10, || ()).expect("open");
        let other = Arc::clone(&credit);
        let waiter = thread::spawn(move || other.reserve(1, || ()).is_none());
        credit.close();
        assert!(waiter.join().expect("no panic"));
    }

    #[test]
    fn what_goes_on_in_any_case_is_charged_when_it_is_closed_too() {
        let size = Gauge::default();
        let credit = Credit::shown(10, Shares::new(1), size.clone());
        let all = credit.reserve(10, || ());
        let other = Arc::clone(&credit);
        let waiter = thread::spawn(move || other.reserve_or_take(1, || ()));
        credit.close();
        let mut last = waiter.join().expect("no panic");
        assert_eq!((credit.used(), size.get()), (11, 11));
        last.adjust_to(5);
        assert_eq!((credit.used(), size.get()), (15, 15));
        drop((all, last));
        assert_eq!((credit.used(), size.get()), (0, 0));
    }
}
