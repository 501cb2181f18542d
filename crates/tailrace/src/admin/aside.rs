//! Answers that may cost seconds, as what a client asks of records: they are produced on threads of their own that give way,
//! few at a time, so that the thread that answers probes never waits for them. They have a share of a core of their own, so
//! that one that costs much delays only the next of them.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::budget::Budget;
use super::cpu;

/// Requests at a time, those included whose thread is still at work for nobody.
const PLACES: usize = 4;
/// The share of one core, and what may be saved up of it.
const CPU_PART: u32 = 20;
const CPU_BURST: Duration = Duration::from_secs(1);
/// Who would wait longer is sent away.
const WAIT_MAX: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Aside {
    places: Arc<Semaphore>,
    budget: Arc<Mutex<Budget>>,
    begin: Instant,
}

/// A request that has a place.
#[derive(Debug, Clone)]
pub(super) struct Place {
    _permit: Arc<OwnedSemaphorePermit>,
    budget: Arc<Mutex<Budget>>,
    begin: Instant,
}

impl Default for Aside {
    fn default() -> Self {
        Self {
            places: Arc::new(Semaphore::new(PLACES)),
            budget: Arc::new(Mutex::new(Budget::new(CPU_PART, CPU_BURST))),
            begin: Instant::now(),
        }
    }
}

impl Aside {
    /// A place, when what the last ones cost is earned; `None` if all are taken, or that takes long.
    pub(super) async fn enter(&self) -> Option<Place> {
        let permit = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let place = Place {
            _permit: Arc::new(permit),
            budget: Arc::clone(&self.budget),
            begin: self.begin,
        };
        let wait = place.charge(Duration::ZERO);
        if wait > WAIT_MAX {
            return None;
        }
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        Some(place)
    }
}

impl Place {
    /// Runs `work` on a thread of its own, and gives its result to whoever still waits for it.
    ///
    /// # Errors
    ///
    /// The system has no thread.
    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<oneshot::Receiver<T>> {
        let (give, given) = oneshot::channel();
        // It keeps the place until the work is done.
        let place = self.clone();
        let run = move || {
            cpu::give_way();
            let (made, taken) = cpu::measured(work);
            place.charge(taken);
            let _ = give.send(made);
        };
        let thread = std::thread::Builder::new().name("tailrace-aside".to_owned());
        thread.spawn(run)?;
        Ok(given)
    }

    /// Charges the time spent. Returns how long to wait before the next.
    fn charge(&self, taken: Duration) -> Duration {
        let mut budget = self.budget.lock().unwrap_or_else(PoisonError::into_inner);
        budget.take(taken, self.begin.elapsed());
        budget.wait()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn work_that_nobody_waits_for_keeps_its_place_until_it_is_done() {
        let aside = Aside::default();
        let place = aside.enter().await.unwrap();
        let (go, gone) = std::sync::mpsc::sync_channel::<()>(0);
        let given = place.run(move || gone.recv().is_err()).unwrap();
        drop(place);
        let others: Vec<Place> = {
            let mut others = Vec::new();
            while let Some(place) = aside.enter().await {
                others.push(place);
            }
            others
        };
        assert_eq!(others.len(), PLACES - 1);
        drop(go);
        assert!(given.await.unwrap());
    }

    #[tokio::test]
    async fn what_cost_much_is_earned_first() {
        let aside = Aside::default();
        let place = aside.enter().await.unwrap();
        place.charge(CPU_BURST + WAIT_MAX / CPU_PART * 2);
        drop(place);
        assert!(aside.enter().await.is_none());
    }
}
