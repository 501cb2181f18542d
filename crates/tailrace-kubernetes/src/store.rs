//! The pods that are known, and the answers made of them. It is updated as pods appear, change and go, and
//! answers every question at once. Never does I/O.
//!
//! Why a log is not sent without its labels though they could be had:
//! - a pod that was never seen is awaited ([`Lookup::Awaited`]) until `metadata_wait` after it was first asked
//!   for; every end of such a wait moves [`Store::version`], as does every change of a pod, so that a reader
//!   that asks again whenever it moved never misses an answer;
//! - a pod that is gone is kept for `remember_deleted`, and longer while a reader holds its [`Container`]. At
//!   most [`pods::DELETED_MAX`] are: beyond that the oldest goes.
//!
//! An answer changes only if what it says changed: a status that only moves a condition gives the same `Arc`.

pub(crate) mod pods;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::asked::Asked;
use crate::container::Container;
use crate::pod_log::PodLog;
use crate::rules::Rules;
use crate::wire;

use pods::KnownPods;

/// What is known of a log's container now.
#[derive(Clone, Debug)]
pub enum Lookup {
    /// All that can be known.
    Known(Arc<Container>),
    /// The answer may still come: read this log later.
    Awaited,
    /// The answer did not come in time. What the path says is here; more may still come.
    Unknown(Arc<Container>),
}

pub(crate) type OnChange = Arc<dyn Fn() + Send + Sync>;

pub(crate) struct Store {
    pub(crate) rules: Rules,
    state: Mutex<State>,
    version: AtomicU64,
    on_change: OnChange,
    /// There is a new end of a wait: see [`Store::keep_time`].
    due_changed: Notify,
    /// A log is awaited: see [`Store::wanted`].
    wanted: Notify,
}

struct State {
    pods: KnownPods,
    asked: Asked,
}

/// Numbers of a [`Store`].
pub(crate) struct Counts {
    pub(crate) tracked: usize,
    pub(crate) deleted: usize,
    pub(crate) awaited: usize,
}

impl Store {
    pub(crate) fn new(
        rules: Rules,
        metadata_wait: Duration,
        remember_deleted: Duration,
        on_change: OnChange,
    ) -> Store {
        let state = State {
            pods: KnownPods::new(remember_deleted),
            asked: Asked::new(metadata_wait),
        };
        Store {
            rules,
            state: Mutex::new(state),
            version: AtomicU64::new(0),
            on_change,
            due_changed: Notify::new(),
            wanted: Notify::new(),
        }
    }

    pub(crate) fn look_up(&self, log: &PodLog) -> Lookup {
        let now = Instant::now();
        let mut state = self.state();
        let State { pods, asked } = &mut *state;
        let found = pods.find(log);
        let complete = found.is_some_and(|pod| pod.is_complete_for(log));
        if complete {
            asked.answered(log);
        } else if asked.awaits(log, now) {
            drop(state);
            self.due_changed.notify_one();
            self.wanted.notify_one();
            return Lookup::Awaited;
        }
        match pods.container(log, &self.rules) {
            Some(container) => Lookup::Known(container),
            None => Lookup::Unknown(Container::of_path(log, self.rules.node_name.as_deref())),
        }
    }

    /// A pod appeared or changed.
    pub(crate) fn apply(&self, pod: wire::Pod) {
        let changed = self.state().pods.apply(pod, &self.rules);
        self.changed(changed);
    }

    /// A pod is gone; this is the last that is said of it.
    pub(crate) fn remove(&self, pod: wire::Pod) {
        let uid = pod.metadata.uid.clone();
        let mut state = self.state();
        let mut changed = state.pods.apply(pod, &self.rules);
        changed |= state.pods.remove(&uid, Instant::now());
        drop(state);
        self.due_changed.notify_one();
        self.changed(changed);
    }

    /// These are all the pods there are.
    pub(crate) fn replace(&self, pods: Vec<wire::Pod>) {
        let mut state = self.state();
        let changed = state.pods.replace(pods, &self.rules, Instant::now());
        drop(state);
        self.due_changed.notify_one();
        self.changed(changed);
    }

    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(crate) fn counts(&self) -> Counts {
        let state = self.state();
        let deleted = state.pods.deleted();
        Counts {
            tracked: state.pods.len() - deleted,
            deleted,
            awaited: state.asked.len(),
        }
    }

    /// Ends waits and forgets deleted pods when their time is over. Never returns.
    pub(crate) async fn keep_time(&self) {
        loop {
            let next = {
                let state = self.state();
                let ends = [state.asked.next(), state.pods.next_to_forget()];
                ends.into_iter().flatten().min()
            };
            let due = async {
                match next {
                    Some(next) => tokio::time::sleep_until(next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = due => {}
                () = self.due_changed.notified() => {}
            }
            let now = Instant::now();
            let mut state = self.state();
            let ended = state.asked.expire(now);
            // Nobody holds what is forgotten, so nobody need ask again.
            state.pods.forget(now);
            drop(state);
            self.changed(ended);
        }
    }

    /// Waits until a log is awaited.
    pub(crate) async fn wanted(&self) {
        while self.state().asked.len() == 0 {
            self.wanted.notified().await;
        }
    }

    fn changed(&self, changed: bool) {
        if changed {
            self.version.fetch_add(1, Ordering::Release);
            (self.on_change)();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
