//! Answers that cost more than a few microseconds are produced one after the other, within a bounded share of one core, so
//! that frequent requests take no time from the pipelines.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::budget::Budget;
use super::cpu;

/// The share of one core, and what may be saved up of it.
const CPU_PART: u32 = 100;
const CPU_BURST: Duration = Duration::from_secs(1);
/// The most requests that wait. Further ones are refused.
const WAITING_MAX: usize = 8;

#[derive(Debug)]
pub(super) struct Pace {
    turn: Semaphore,
    waiting: AtomicUsize,
    budget: Mutex<Budget>,
    begin: Instant,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            turn: Semaphore::new(1),
            waiting: AtomicUsize::new(0),
            budget: Mutex::new(Budget::new(CPU_PART, CPU_BURST)),
            begin: Instant::now(),
        }
    }
}

impl Pace {
    /// Runs `make` when it is its turn, and returns its result; `None` if too many wait.
    pub(super) async fn run<T>(&self, make: impl FnOnce() -> T) -> Option<T> {
        let _waiting = Waiting::enter(&self.waiting)?;
        let _turn = self.turn.acquire().await.ok()?;
        let wait = self.account(Duration::ZERO);
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        // On a busy machine an answer waits for a processor. That is no cost, and must not make the next one wait as well.
        let (made, taken) = cpu::measured(make);
        self.account(taken);
        Some(made)
    }

    /// Charges the time spent. Returns how long to wait before the next answer.
    fn account(&self, taken: Duration) -> Duration {
        let mut budget = self.budget.lock().unwrap_or_else(PoisonError::into_inner);
        budget.take(taken, self.begin.elapsed());
        budget.wait()
    }
}

/// One that waits, or whose answer is being made; who goes away counts no more.
struct Waiting<'p>(&'p AtomicUsize);

impl<'p> Waiting<'p> {
    fn enter(waiting: &'p AtomicUsize) -> Option<Self> {
        let entered = Self(waiting);
        (waiting.fetch_add(1, Ordering::Relaxed) < WAITING_MAX).then_some(entered)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn too_many_are_sent_away_and_the_others_get_their_turn() {
        let pace = Pace::default();
        let turn = pace.turn.acquire().await;
        let mut waiting: Vec<_> = (0..WAITING_MAX)
            .map(|n| Box::pin(pace.run(move || n)))
            .collect();
        for one in &mut waiting {
            assert!(futures_pending(one).await);
        }
        assert_eq!(pace.run(|| 99).await, None);
        drop(turn);
        // One that goes away makes room.
        drop(waiting.pop());
        for (n, one) in waiting.into_iter().enumerate() {
            assert_eq!(one.await, Some(n));
        }
        assert_eq!(pace.run(|| 99).await, Some(99));
    }

    #[tokio::test]
    async fn an_answer_that_waits_for_a_processor_has_not_used_it() {
        let pace = Pace::default();
        pace.account(CPU_BURST);
        let waited = Duration::from_millis(200);
        pace.run(|| std::thread::sleep(waited)).await;
        // What the kernel counts at a tick is far less.
        assert!(pace.account(Duration::ZERO) < waited * CPU_PART / 2);
    }

    /// Polls once; true if it is not done.
    async fn futures_pending<F: Future + Unpin>(future: &mut F) -> bool {
        std::future::poll_fn(|context| {
            let polled = std::pin::Pin::new(&mut *future).poll(context);
            std::task::Poll::Ready(polled.is_pending())
        })
        .await
    }
}
