//! Detached outputs: one that falls behind the shared reading of an input lets the others go on, and
//! reads what it missed by itself.
//!
//! *Detaching* happens between two batches. What was framed for the output before stays in flight and
//! is acknowledged as ever; what comes later is not for it. So nothing is dropped or sent twice, and its view in
//! the [`Tracker`](crate::watermark::Tracker) ends where the catch-up has to begin. A file with bytes that
//! it has not seen is held by a handle of its own, so that it may be renamed and deleted.
//!
//! *Catching up* begins when all that was in flight is acknowledged, which shows that the output is well. A
//! thread reads the files from the output's own heads to where the shared reading is framed, never
//! beyond; workers frame, transform and send it like every batch, for this output only.
//!
//! *Rejoining* happens under the lock of the shared framing, when for every source both readings are
//! framed to the same byte with the same unfinished line.
//!
//! Nothing here marks a byte as safe: what is not acknowledged for the output stays above its watermark, and the
//! next start reads it again. Only what no longer exists is given up, counted and reported.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tailrace_inputs::Reread;
use tracing::{info, warn};

use crate::clock::now_ns;
use crate::delivery::credit::{BATCH_CREDIT_MIN, Credit};
use crate::delivery::metrics::Miss;
use crate::health::Stage;
use crate::input::batch::{RawBatch, SourceEvent};
use crate::input::pool::{Buffer, Pool};
use crate::reasons::{Met, ReasonKind};
use crate::shared::Shared;
use crate::watermark::{Behind, Slot};

/// The longest time between two looks; whatever is acknowledged or framed ends it earlier.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How often deleted files are looked for.
const STAT_EVERY: Duration = Duration::from_secs(1);

/// One output and one input of a pipeline: what is to be read again, while it is detached.
#[derive(Debug)]
pub(crate) struct CatchUp {
    pub(crate) input: usize,
    pub(crate) output: usize,
    /// Bounds what is in flight of it.
    pub(crate) credit: Arc<Credit>,
    /// Sources with bytes that the output has not seen.
    files: Mutex<BTreeMap<Slot, Missed>>,
    /// Sources with something in flight from before the output was detached.
    in_flight: Mutex<Vec<Slot>>,
}

/// A source with bytes that an output has not seen.
#[derive(Debug)]
struct Missed {
    /// None if it cannot be read again.
    file: Option<Reread>,
    /// How far it was handed to the input queue.
    read_to: u64,
    /// How far it was handed to the input queue when that got the report that nothing more came for a while.
    quiet_at: Option<u64>,
    /// The input queue knows it.
    is_open: bool,
    /// The input queue knows its end.
    is_finished: bool,
}

/// In which order files are read again where a log was rotated: a record may begin in one and end in the next.
struct ReadOrder {
    /// Not read to where the shared reading is.
    unread: BTreeSet<Slot>,
    /// Their records may go on in a file that is to be read.
    continued: BTreeSet<Slot>,
}

impl ReadOrder {
    fn of(files: &BTreeMap<Slot, Missed>, behind: impl Fn(Slot) -> Option<Behind>) -> Self {
        let (mut unread, mut continued) = (BTreeSet::new(), BTreeSet::new());
        for (&slot, missed) in files {
            let Some(behind) = behind(slot).filter(|behind| !behind.level) else {
                continue;
            };
            if missed.file.is_some() && !missed.is_at(behind.shared_to) {
                unread.insert(slot);
            }
            if let Some(earlier) = behind.continues.filter(|_| !missed.is_open) {
                continued.insert(earlier);
            }
        }
        Self { unread, continued }
    }

    fn has_to_wait(&self, missed: &Missed, behind: &Behind) -> bool {
        let earlier = behind.continues.filter(|_| !missed.is_open);
        earlier.is_some_and(|earlier| self.unread.contains(&earlier))
    }

    fn goes_on(&self, slot: Slot) -> bool {
        self.continued.contains(&slot)
    }
}

impl Missed {
    /// The end must be reported.
    fn ends(&self, behind: &Behind) -> bool {
        behind.finished && !self.is_finished && self.is_at(behind.shared_to)
    }

    /// All up to there is with the input queue.
    fn is_at(&self, shared_to: u64) -> bool {
        let offset = self.file.as_ref().map_or(0, Reread::offset);
        self.is_open && offset >= shared_to
    }
}

impl CatchUp {
    pub(crate) fn new(input: usize, output: usize, credit: Arc<Credit>) -> Self {
        Self {
            input,
            output,
            credit,
            files: Mutex::default(),
            in_flight: Mutex::default(),
        }
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<Slot, Missed>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a source is noted.
    pub(crate) fn knows(&self, slot: Slot) -> bool {
        self.files().contains_key(&slot)
    }

    /// How many sources are noted.
    pub(crate) fn len(&self) -> usize {
        self.files().len()
    }

    /// The output misses bytes of a source from now on.
    pub(crate) fn note(&self, slot: Slot, file: Option<Reread>) {
        let missed = || Missed {
            file,
            read_to: 0,
            quiet_at: None,
            is_open: false,
            is_finished: false,
        };
        self.files().entry(slot).or_insert_with(missed);
    }

    /// A source that was noted is not missed after all.
    pub(crate) fn forget(&self, slot: Slot) {
        self.files().remove(&slot);
    }

    /// Forgets all sources.
    pub(crate) fn clear(&self) {
        self.files().clear();
    }

    /// Catches up and rejoins; ends then, or when the agent stops.
    pub(crate) fn run(&self, shared: &Shared, pool: &Arc<Pool>) {
        let mut is_well = false;
        let mut next_stat = Instant::now();
        while !shared.stopping.load(Ordering::Relaxed) {
            // Before looking, so that what is acknowledged or framed meanwhile ends the wait.
            let seen = shared.waiting.seen();
            if Instant::now() >= next_stat {
                next_stat = Instant::now() + STAT_EVERY;
                self.limit_held(shared);
                self.give_up_lost(shared);
            }
            is_well = is_well || self.is_drained(shared);
            let read = is_well && self.read(shared, pool);
            if is_well && self.rejoin(shared) {
                return;
            }
            if !read {
                shared.waiting.wait_for_progress(seen, LOOK_EVERY);
            }
        }
    }

    /// These sources have something in flight from before the output was detached.
    pub(crate) fn wait_for(&self, slots: Vec<Slot>) {
        *self
            .in_flight
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = slots;
    }

    /// All that was in flight when the output was detached is acknowledged.
    fn is_drained(&self, shared: &Shared) -> bool {
        let mut slots = self
            .in_flight
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        slots.retain(|slot| {
            let behind = shared.tracker.behind(self.output, *slot);
            behind.is_some_and(|behind| !behind.drained)
        });
        slots.is_empty()
    }

    /// Reads one batch; false if there was nothing.
    fn read(&self, shared: &Shared, pool: &Arc<Pool>) -> bool {
        let mut buffer = pool.take();
        let mut events = Vec::new();
        let mut files = self.files();
        let order = ReadOrder::of(&files, |slot| shared.tracker.behind(self.output, slot));
        for (&slot, missed) in &mut *files {
            let Some(behind) = shared.tracker.behind(self.output, slot) else {
                continue;
            };
            if order.has_to_wait(missed, &behind) {
                continue;
            }
            if missed.file.is_none() {
                if behind.drained {
                    self.give_up(shared, slot, missed, &behind);
                }
            } else if !self.read_file(shared, (slot, missed), &behind, &mut buffer, &mut events) {
                missed.file = None;
            } else if missed.ends(&behind) && !order.goes_on(slot) {
                missed.is_finished = true;
                events.push(SourceEvent::Finished {
                    slot,
                    is_cut: false,
                });
            }
            if buffer.len() >= shared.batch_bytes_max() {
                break;
            }
        }
        // A reader that notes a source must not wait for credit.
        drop(files);
        if events.is_empty() {
            return false;
        }
        let bytes = (buffer.len() as u64).max(BATCH_CREDIT_MIN);
        let queue = shared.queues.catch_up(self.input, self.output);
        let batches = &shared.queues[queue].batches;
        batches.push(RawBatch {
            observed_ns: now_ns(),
            read_at: Instant::now(),
            cuts: 0,
            // First that of the pipeline, which may take long.
            credit: Some((self.credit).reserve_or_take(bytes, || self.limit_held(shared))),
            room: batches.room.reserve(bytes, || self.limit_held(shared)),
            bytes: buffer.share(),
            events,
        });
        shared.push_job(queue);
        true
    }

    /// Reads what the buffer has room for. False if the file is not what it was.
    fn read_file(
        &self,
        shared: &Shared,
        (slot, missed): (Slot, &mut Missed),
        behind: &Behind,
        buffer: &mut Buffer,
        events: &mut Vec<SourceEvent>,
    ) -> bool {
        let Missed {
            file: Some(file),
            read_to,
            quiet_at,
            is_open,
            ..
        } = missed
        else {
            return true;
        };
        if !*is_open {
            if behind.level || !behind.drained {
                return true;
            }
            let Ok(Some(mid_line)) = file.seek(behind.offset) else {
                return false;
            };
            let again = shared.tracker.begin_catch_up(self.output, slot);
            shared.metrics.outputs[self.output].sent_again.inc_by(again);
            (*is_open, *read_to) = (true, behind.offset);
            events.push(SourceEvent::Opened {
                slot,
                replaces: None,
                path: behind.path.as_path().into(),
                offset: behind.offset,
                mid_line,
                replay_to: 0,
            });
            if let Some(earlier) = behind.continues {
                let head = file.head().unwrap_or_default();
                events.push(SourceEvent::Continues {
                    slot,
                    earlier,
                    head,
                });
            }
        }
        let room = shared.batch_bytes_max().saturating_sub(buffer.len());
        let unread = behind.shared_to.saturating_sub(file.offset());
        let want = usize::try_from(unread).unwrap_or(usize::MAX).min(room);
        if want > 0 {
            let start = buffer.len();
            let Ok(Some(bytes)) = file.read(buffer.bytes_mut(), want) else {
                return false;
            };
            events.push(SourceEvent::Chunk {
                slot,
                start,
                end: start + bytes,
            });
            *read_to = file.offset();
        }
        if behind.holds_more && *read_to == behind.framed_to && *quiet_at != Some(*read_to) {
            *quiet_at = Some(*read_to);
            events.push(SourceEvent::Quiet { slot });
        }
        true
    }

    /// Gives up the sources that an output which is not required cannot read again, whether it is well or not. For one that
    /// is required that waits until nothing of them is in flight: if the agent ended before, the next start would count
    /// them once more.
    fn give_up_lost(&self, shared: &Shared) {
        if shared.is_required(self.output) {
            return;
        }
        for (&slot, missed) in &mut *self.files() {
            // What was begun may come from who frames it.
            if missed.file.is_some() || missed.is_open {
                continue;
            }
            if let Some(behind) = shared.tracker.behind(self.output, slot) {
                self.give_up(shared, slot, missed, &behind);
            }
        }
    }

    /// A source that cannot be read again is missed, once all that was read of it is framed. What of that is in flight
    /// may still be delivered.
    fn give_up(&self, shared: &Shared, slot: Slot, missed: &mut Missed, behind: &Behind) {
        let is_framed = !missed.is_open || behind.framed_to == missed.read_to;
        if behind.level || !is_framed || missed.is_finished {
            return;
        }
        missed.is_open = false;
        let records = shared.tracker.give_up(self.output, slot);
        let is_required = shared.is_required(self.output);
        let miss = if is_required {
            Miss::Gone
        } else {
            Miss::NotRequired
        };
        let output = &shared.metrics.outputs[self.output];
        output.missed(miss, records);
        let reason = format!(
            "output {} was behind and the file is gone or was truncated",
            output.name
        );
        shared.reasons.note(Met {
            pipeline: &shared.plan.name,
            stage: Stage::Input,
            kind: ReasonKind::Dropped,
            subject: &behind.path.to_string_lossy(),
            reason: &reason,
            count: records,
        });
        if is_required {
            warn!(
                pipeline = shared.plan.name,
                output = shared.metrics.outputs[self.output].name,
                path = %behind.path.display(),
                records,
                "an output was behind and the file is gone or was truncated: these records are dropped for it"
            );
        }
    }

    /// Lets deleted files go: all of them if the output is not required, else the largest as long as they
    /// hold more than they may.
    fn limit_held(&self, shared: &Shared) {
        let mut files = self.files();
        let held = |missed: &Missed| missed.file.as_ref()?.held_bytes().ok()?;
        let mut held: Vec<(u64, Slot)> = files
            .iter()
            .filter_map(|(slot, missed)| Some((held(missed)?, *slot)))
            .filter(|(bytes, _)| *bytes > 0)
            .collect();
        held.sort_unstable();
        let max = if shared.is_required(self.output) {
            shared.plan.config.limits.held_bytes
        } else {
            0
        };
        let mut sum: u64 = held.iter().map(|(bytes, _)| bytes).sum();
        while let Some((bytes, slot)) = held.pop().filter(|_| sum > max) {
            sum -= bytes;
            if let Some(missed) = files.get_mut(&slot) {
                missed.file = None;
            }
        }
    }

    /// Takes part in the shared reading again if level with it in every source.
    fn rejoin(&self, shared: &Shared) -> bool {
        let is_level = |slot| {
            let behind = shared.tracker.behind(self.output, slot);
            behind.is_none_or(|behind| behind.level)
        };
        if !self.files().keys().all(|slot| is_level(*slot)) {
            return false;
        }
        // What the reader noted since is not framed yet; what it notes from here on it forgets, for then it finds the output
        // attached.
        let agreed = || {
            let mut files = self.files();
            let agreed = files.keys().all(|slot| is_level(*slot));
            if agreed {
                files.clear();
            }
            agreed
        };
        let rejoined = shared.queues[self.input].attach(self.output, true, agreed);
        if rejoined {
            // Else a record that it held would go on in the next detachment.
            let queue = shared.queues.catch_up(self.input, self.output);
            shared.queues[queue].forget_sources();
            shared.credit.shares().rejoin(self.output);
            shared.waiting.wake();
            info!(
                pipeline = shared.plan.name,
                output = shared.metrics.outputs[self.output].name,
                "the output has caught up and takes part in the shared reading again"
            );
        }
        rejoined
    }
}
