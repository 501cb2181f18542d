//! A client that is replaced: after some age, so that names are looked up again and load spreads over
//! servers that came later, and when a server says that it cannot now, since another one may. Requests
//! under way keep the client they have. It connects to nothing itself.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// A client and how to make another one.
pub(crate) struct Renewed<C> {
    make: Box<dyn Fn() -> C + Send + Sync>,
    age_max: Duration,
    /// Made when it is first asked for.
    current: Mutex<Option<(C, Instant)>>,
}

impl<C: Clone> Renewed<C> {
    pub(crate) fn new(age_max: Duration, make: impl Fn() -> C + Send + Sync + 'static) -> Self {
        Renewed {
            make: Box::new(make),
            age_max,
            current: Mutex::new(None),
        }
    }

    /// A client no older than it may be.
    pub(crate) fn get(&self) -> C {
        let now = Instant::now();
        let mut current = self.lock();
        match &*current {
            Some((client, made)) if now.duration_since(*made) < self.age_max => client.clone(),
            _ => {
                let client = (self.make)();
                *current = Some((client.clone(), now));
                client
            }
        }
    }

    /// The next one asks for a new client.
    pub(crate) fn renew(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<(C, Instant)>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::{Duration, Renewed};

    #[tokio::test(start_paused = true)]
    async fn a_client_is_replaced_when_it_is_old_or_told_to_be() {
        let made = AtomicU32::new(0);
        let clients = Renewed::new(Duration::from_secs(300), move || {
            made.fetch_add(1, Ordering::Relaxed)
        });
        assert_eq!([clients.get(), clients.get()], [0, 0]);
        tokio::time::advance(Duration::from_secs(299)).await;
        assert_eq!(clients.get(), 0);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!([clients.get(), clients.get()], [1, 1]);
        clients.renew();
        assert_eq!(clients.get(), 2);
    }
}
