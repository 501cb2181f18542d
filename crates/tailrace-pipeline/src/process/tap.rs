//! Samples of the records that workers frame, for whoever watches a running agent.
//!
//! Nobody watches: a worker pays one relaxed load for each batch. Somebody does: it copies a few records of the batch into
//! a bounded queue of each subscription. It never waits. If another worker is sampling, or nobody takes what is queued, the
//! batch passes without a sample and is counted. `budget` bounds what is copied in a second, `choose` spreads it over the
//! sources of a batch. What becomes of a sampled record is found out by its reader, on another thread (`reader`).

mod budget;
mod choose;
mod reader;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use bytes::Bytes;
use tailrace_frame::Record;
use tokio::sync::mpsc;

use self::budget::{Budgets, Room};
use crate::input::facts::Facts;
use crate::input::input_queue::Framed;
use crate::pipeline_id::PipelineId;
pub(crate) use reader::open;
pub use reader::{TAP_CONDITION_BYTES_MAX, TapError, TapRequest, TapTracer, Tapped};

/// Samples that wait for the reader of a subscription, and their bytes, but for the last one.
const QUEUED_MAX: usize = 64;
const QUEUED_BYTES_MAX: usize = 512 * 1024;
/// Readers at a time.
const SUBSCRIPTIONS_MAX: usize = 16;
/// A longer record is not sampled.
const RECORD_BYTES_MAX: usize = 1024 * 1024;

/// Where workers leave samples and readers subscribe to them. All pipelines of an agent share one.
#[derive(Debug)]
pub(crate) struct Tap {
    /// Subscriptions that want samples now.
    open: AtomicUsize,
    /// Records of batches that passed while another worker was sampling.
    missed: AtomicU64,
    state: Mutex<State>,
    begin: Instant,
}

#[derive(Debug, Default)]
struct State {
    subscribers: Vec<Subscriber>,
    budgets: Budgets,
    /// How many batches were looked at: others are chosen each time.
    turn: u64,
    next_id: u64,
}

#[derive(Debug)]
struct Subscriber {
    id: u64,
    /// The name of the pipeline that it wants; `None` is all.
    pipeline: Option<String>,
    is_paused: bool,
    sender: mpsc::Sender<Arc<Sample>>,
    counts: Arc<Counts>,
}

/// What a subscriber and its reader share.
#[derive(Debug, Default)]
struct Counts {
    /// Records that passed without being sampled.
    not_sampled: AtomicU64,
    queued_bytes: AtomicUsize,
}

/// Some records of one batch, as they were framed.
#[derive(Debug)]
pub struct Sample {
    pipeline: PipelineId,
    input: usize,
    observed_ns: i64,
    /// The bytes of the records, one after the other.
    bytes: Bytes,
    /// Ranges of these bytes.
    records: Vec<Record>,
    /// Which of the records are of which source, ascending.
    sources: Vec<(Range<u32>, Arc<Facts>)>,
}

/// The samples of some pipelines from now on. Dropping it ends the sampling for it.
#[derive(Debug)]
pub struct Subscription {
    tap: Arc<Tap>,
    id: u64,
    samples: mpsc::Receiver<Arc<Sample>>,
    counts: Arc<Counts>,
}

impl Default for Tap {
    fn default() -> Self {
        Self {
            open: AtomicUsize::new(0),
            missed: AtomicU64::new(0),
            state: Mutex::default(),
            begin: Instant::now(),
        }
    }
}

impl Tap {
    /// Samples a framed batch of an input, by its number, if anybody wants it.
    pub(crate) fn sample(&self, pipeline: (PipelineId, &str), input: usize, framed: &Framed) {
        if self.open.load(Ordering::Relaxed) > 0 {
            self.sample_now(pipeline, input, framed);
        }
    }

    #[cold]
    fn sample_now(&self, (id, name): (PipelineId, &str), input: usize, framed: &Framed) {
        let records = framed.frames.records.len() as u64;
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                self.missed.fetch_add(records, Ordering::Relaxed);
                return;
            }
        };
        let passed = records + self.missed.swap(0, Ordering::Relaxed);
        let State {
            subscribers,
            budgets,
            turn,
            ..
        } = &mut *state;
        let wants = |subscriber: &&Subscriber| subscriber.wants(name);
        let mut sample = None;
        if subscribers.iter().filter(wants).any(Subscriber::has_room) {
            let room = budgets.room(id, self.begin.elapsed());
            *turn += 1;
            sample = Sample::of((id, input), framed, room, *turn).map(Arc::new);
        }
        if let Some(sample) = &sample {
            budgets.take(id, sample.records.len(), sample.bytes.len());
        }
        for subscriber in subscribers.iter().filter(wants) {
            subscriber.give(passed, sample.as_ref());
        }
    }

    /// Subscribes to the samples of a pipeline, or of all; `None` if there are too many subscriptions.
    fn subscribe(self: &Arc<Self>, pipeline: Option<String>) -> Option<Subscription> {
        let (sender, samples) = mpsc::channel(QUEUED_MAX);
        let counts = Arc::new(Counts::default());
        let mut state = self.lock();
        if state.subscribers.len() >= SUBSCRIPTIONS_MAX {
            return None;
        }
        let id = state.next_id;
        state.next_id += 1;
        state.subscribers.push(Subscriber {
            id,
            pipeline,
            is_paused: false,
            sender,
            counts: Arc::clone(&counts),
        });
        self.count_open(&state);
        Some(Subscription {
            tap: Arc::clone(self),
            id,
            samples,
            counts,
        })
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        self.count_open(&state);
    }

    fn count_open(&self, state: &State) {
        let open = state.subscribers.iter().filter(|it| !it.is_paused).count();
        self.open.store(open, Ordering::Relaxed);
    }

    /// For readers only: a worker never waits for it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscriber {
    fn wants(&self, pipeline: &str) -> bool {
        !self.is_paused && self.pipeline.as_deref().is_none_or(|it| it == pipeline)
    }

    fn has_room(&self) -> bool {
        let queued = self.counts.queued_bytes.load(Ordering::Relaxed);
        self.sender.capacity() > 0 && queued < QUEUED_BYTES_MAX
    }

    /// So many records passed, of which these were sampled.
    fn give(&self, passed: u64, sample: Option<&Arc<Sample>>) {
        let mut sampled = 0;
        if let Some(sample) = sample.filter(|_| self.has_room()) {
            let queued = &self.counts.queued_bytes;
            queued.fetch_add(sample.bytes.len(), Ordering::Relaxed);
            match self.sender.try_send(Arc::clone(sample)) {
                Ok(()) => sampled = sample.records.len() as u64,
                Err(_) => {
                    queued.fetch_sub(sample.bytes.len(), Ordering::Relaxed);
                }
            }
        }
        let not_sampled = passed.saturating_sub(sampled);
        let counts = &self.counts;
        counts.not_sampled.fetch_add(not_sampled, Ordering::Relaxed);
    }
}

impl Sample {
    /// Some records of a batch; `None` if there is no room for any.
    fn of(from: (PipelineId, usize), framed: &Framed, room: Room, turn: u64) -> Option<Self> {
        if room.records == 0 {
            return None;
        }
        let runs: Vec<Range<u32>> = framed.runs.iter().map(|run| run.records.clone()).collect();
        let mut bytes = Vec::new();
        let mut records = Vec::new();
        let mut sources: Vec<(Range<u32>, Arc<Facts>)> = Vec::new();
        for (run, number) in choose::choose(&runs, room.records, turn) {
            let line = framed.line(number as usize);
            if line.len() > RECORD_BYTES_MAX {
                continue;
            }
            if bytes.len() >= room.bytes {
                break;
            }
            // A few records of 1 MiB: far below 4 GiB.
            let (at, start) = (records.len() as u32, bytes.len() as u32);
            bytes.extend_from_slice(line);
            records.push(Record {
                buffer: 0,
                start,
                end: bytes.len() as u32,
                ..framed.frames.records[number as usize]
            });
            let facts = &framed.runs[run].facts;
            match sources.last_mut().filter(|(_, it)| Arc::ptr_eq(it, facts)) {
                Some((records, _)) => records.end = at + 1,
                None => sources.push((at..at + 1, Arc::clone(facts))),
            }
        }
        let (pipeline, input) = from;
        (!records.is_empty()).then(|| Self {
            pipeline,
            input,
            observed_ns: framed.observed_ns,
            bytes: bytes.into(),
            records,
            sources,
        })
    }

    /// How many records it has; at least one.
    #[must_use]
    pub fn records(&self) -> usize {
        self.records.len()
    }
}

impl Subscription {
    /// Waits for the next sample.
    pub async fn next(&mut self) -> Arc<Sample> {
        match self.samples.recv().await {
            Some(sample) => {
                let queued = &self.counts.queued_bytes;
                queued.fetch_sub(sample.bytes.len(), Ordering::Relaxed);
                sample
            }
            // The sender is dropped with this subscription only.
            None => std::future::pending().await,
        }
    }

    /// How many records passed without being sampled since this was asked last, while it was not paused.
    #[must_use]
    pub fn take_not_sampled(&self) -> u64 {
        self.counts.not_sampled.swap(0, Ordering::Relaxed)
    }

    /// Nothing is sampled for it until [`resume`](Self::resume).
    pub fn pause(&self) {
        self.set_paused(true);
    }

    /// Goes on after a pause.
    pub fn resume(&self) {
        self.set_paused(false);
    }

    fn set_paused(&self, is_paused: bool) {
        self.tap.change(|state| {
            let mut subscribers = state.subscribers.iter_mut();
            if let Some(found) = subscribers.find(|it| it.id == self.id) {
                found.is_paused = is_paused;
            }
        });
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.tap
            .change(|state| state.subscribers.retain(|it| it.id != self.id));
    }
}

#[cfg(test)]
mod tests;
