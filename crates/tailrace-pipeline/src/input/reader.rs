//! The reader thread of one input: fills chunk buffers from the follower, reserves in-flight
//! credit for them, and hands them to the workers. It pauses a source whose unacknowledged bytes reach
//! `limits.replay`, and itself while there is no credit. Never looks inside a line.

mod detach;
mod quiet;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tailrace_input::{FileEvent, HandedOver, Input, SourceId};
use tracing::{info, warn};

use detach::{end_of, keeps_deleted, unacked_bytes};
use quiet::Quiet;

use crate::clock::now_ns;
use crate::delivery::credit::{BATCH_CREDIT_MIN, Credit, Reserved};
use crate::input::batch::{RawBatch, SourceEvent};
use crate::input::catch_up::CatchUp;
use crate::input::pods::Awaiting;
use crate::input::pool::{Buffer, Pool};
use crate::input::resume::ResumeTable;
use crate::shared::Shared;
use crate::watermark::{Opening, Slot};

/// One reader.
pub(crate) struct Reader {
    pub(crate) shared: Arc<Shared>,
    pub(crate) input_index: usize,
    /// By output, where there are several: what it reads again of this input.
    catch_ups: Vec<Arc<CatchUp>>,
    pub(crate) input: Box<dyn Input>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) resume: ResumeTable,
    /// The sources that wait for the metadata of their pods.
    awaiting: Option<Awaiting>,
    slots: HashMap<SourceId, Slot>,
    /// Slots of sources that were opened again before their first byte, by what replaced them.
    replaced: HashMap<SourceId, Slot>,
    paused: HashSet<SourceId>,
    /// Sources that ended and are not acknowledged yet.
    finished: Vec<(SourceId, Slot)>,
    gauges: Gauges,
    quiet: Quiet,
    /// When dormant sources are looked at again.
    next_rest: Instant,
    /// A detached output cannot read again what was read now: it has to rejoin first.
    must_rejoin: bool,
    /// The threads of outputs that catch up, by output.
    catching_up: HashMap<usize, JoinHandle<()>>,
}

/// The gauges that walk all files, and when they are set again.
struct Gauges {
    next: Instant,
    /// The last reported error with the metadata of pods.
    metadata_error: Option<String>,
    /// How many attempts to get it have failed so far.
    metadata_errors: u64,
}

/// Events for which memory is kept.
const EVENTS_KEPT: usize = 256;

/// How often the gauges that walk all files are set.
const GAUGES_EVERY: Duration = Duration::from_secs(1);

/// How many events make a full batch, however few bytes come with them: a node may have a hundred thousand small files.
const EVENTS_MAX: usize = 4096;
/// How often dormant sources are looked at: each look takes two locks.
const REST_EVERY: Duration = Duration::from_millis(200);
/// How long a reader sleeps when nothing happens; whatever happens wakes it earlier.
const IDLE_WAIT: Duration = Duration::from_secs(1);

impl Reader {
    /// A reader of one input of a pipeline.
    pub(crate) fn new(
        shared: Arc<Shared>,
        input_index: usize,
        catch_ups: Vec<Arc<CatchUp>>,
        (input, awaiting): (Box<dyn Input>, Option<Awaiting>),
        pool: Arc<Pool>,
        resume: ResumeTable,
    ) -> Self {
        let multiline = shared.plan.config.inputs[input_index].records().multiline;
        Self {
            quiet: Quiet::new(multiline.map(|multiline| multiline.timeout)),
            shared,
            input_index,
            catch_ups,
            input,
            awaiting,
            pool,
            resume,
            slots: HashMap::new(),
            replaced: HashMap::new(),
            paused: HashSet::new(),
            finished: Vec::new(),
            gauges: Gauges {
                next: Instant::now(),
                metadata_error: None,
                metadata_errors: 0,
            },
            next_rest: Instant::now(),
            must_rejoin: false,
            catching_up: HashMap::new(),
        }
    }

    /// Reads until the pipeline stops or the input ends. Gives the files that it held open.
    pub(crate) fn run(mut self) -> HandedOver {
        let mut events = Vec::new();
        while !self.shared.stopping.load(Ordering::Relaxed) {
            self.look_after_sources();
            let mut buffer = self.pool.take();
            let ended = self.fill(&mut buffer, &mut events);
            self.submit(buffer, &mut events);
            if ended {
                break;
            }
        }
        self.input.close(&mut events);
        for event in events {
            self.source_event(event);
        }
        for (_, thread) in self.catching_up.drain() {
            end_of(thread);
        }
        self.input.hand_over()
    }

    /// Fills the buffer until the batch is full, old enough, or there is reason to stop. True if
    /// the input has ended.
    fn fill(&mut self, buffer: &mut Buffer, events: &mut Vec<FileEvent>) -> bool {
        let bytes_max = self.shared.batch_bytes_max();
        let mut deadline = None;
        loop {
            let room = bytes_max.saturating_sub(buffer.len());
            let first_event = events.len();
            let more = self.input.read(buffer.bytes_mut(), room, events);
            self.note(&events[first_event..]);
            let is_full = buffer.len() >= bytes_max || events.len() >= EVENTS_MAX;
            if is_full || self.shared.stopping.load(Ordering::Relaxed) {
                return false;
            }
            if self.input.has_ended() {
                return true;
            }
            if more {
                continue;
            }
            if events.is_empty() {
                let until_quiet = self.quiet.next(Instant::now());
                if until_quiet == Some(Duration::ZERO) {
                    return false;
                }
                self.input
                    .wait(until_quiet.map_or(IDLE_WAIT, |quiet| quiet.min(IDLE_WAIT)));
                self.look_after_sources();
                continue;
            }
            let now = Instant::now();
            let due = *deadline.get_or_insert(now + self.shared.batch_wait_max);
            if now >= due || buffer.len() == 0 {
                return false;
            }
            self.input.wait(due - now);
        }
    }

    /// Gives new sources their slots, counts chunks, and pauses sources that are too far ahead of
    /// their outputs.
    fn note(&mut self, events: &[FileEvent]) {
        for event in events {
            match event {
                FileEvent::Opened { source, path, .. } => {
                    let slot = self.open(event);
                    self.slots.insert(*source, slot);
                    if let Some(awaiting) = &mut self.awaiting
                        && !awaiting.begins(*source, path)
                    {
                        self.input.resume(*source);
                    }
                }
                FileEvent::Chunk {
                    source,
                    offset,
                    start,
                    end,
                    id,
                } => {
                    let bytes = (end - start) as u64;
                    let slot = self.slots[source];
                    self.shared.metrics.read_bytes.inc_by(bytes);
                    self.shared.tracker.read(slot, offset + bytes);
                    if self.input.is_identified() {
                        self.shared.tracker.identify(slot, *id);
                    }
                    self.note_missed(*source, slot);
                    self.quiet.read(*source, Instant::now());
                    if self.unacked_bytes(slot) >= self.shared.replay_bytes_max
                        && self.input.pause(*source)
                    {
                        self.paused.insert(*source);
                        self.shared.waiting.request_wake();
                    }
                }
                FileEvent::Continues {
                    source, earlier, ..
                } => {
                    let slots = (self.slots.get(source), self.slots.get(earlier));
                    if let (Some(&slot), Some(&earlier)) = slots {
                        self.shared.tracker.continues(slot, earlier);
                    }
                    // What the earlier source holds of a record waits in this one from now on.
                    self.quiet.forget(*earlier);
                    self.quiet.read(*source, Instant::now());
                }
                // Here and not later: the inode may be used again in the same read.
                FileEvent::Forgotten { id, generation, .. } => {
                    self.resume.forget(*id, *generation);
                    self.shared.tracker.gone(*id, *generation);
                }
                _ => {}
            }
        }
    }

    fn open(&mut self, event: &FileEvent) -> Slot {
        let FileEvent::Opened {
            source,
            id,
            generation,
            path,
            offset,
            size,
            ..
        } = event
        else {
            unreachable!("only called for Opened");
        };
        // Reported again before its first chunk: the later one stands for the earlier one.
        let inherited = self.slots.remove(source).and_then(|slot| {
            self.replaced.insert(*source, slot);
            let rests = self.shared.tracker.rests(slot);
            Some((self.shared.tracker.forget(slot)?, rests))
        });
        let resumed = self.resume.take(*id, *generation, *offset);
        let (resume, replay_to, rests) = match (resumed, inherited) {
            (Some(resumed), _) => (resumed.outputs, resumed.read_to, resumed.rests),
            (None, Some((earlier, rests))) => (earlier.resume, earlier.replay_to, rests),
            (None, None) => (Vec::new(), 0, Vec::new()),
        };
        info!(
            pipeline = self.shared.plan.name,
            path = %path.display(),
            offset,
            size,
            "following file"
        );
        let is_kept = self.input.is_kept();
        let slot = self.shared.tracker.open(Opening {
            id: is_kept.then_some(*id),
            generation: *generation,
            path: path.clone(),
            offset: *offset,
            size: *size,
            replay_to,
            resume,
        });
        self.shared.tracker.resume_rests(slot, rests);
        slot
    }

    /// Hands a batch on. Waits for credit; without (the agent stops) it goes on all the same: it
    /// is one batch, and the drain has its own time.
    fn submit(&mut self, buffer: Buffer, events: &mut Vec<FileEvent>) {
        // However long the batch waits below, it was read now.
        let (observed_ns, read_at) = (now_ns(), Instant::now());
        let mut source_events: Vec<SourceEvent> = events
            .drain(..)
            .filter_map(|event| self.source_event(event))
            .collect();
        // At the start there is one for each file.
        events.shrink_to(EVENTS_KEPT);
        let input = &self.input;
        let is_read_to_end = |quiet| input.is_read_to_end(quiet);
        let quiet = self.quiet.take(Instant::now(), is_read_to_end);
        let slots = quiet.iter().filter_map(|source| self.slots.get(source));
        source_events.extend(slots.map(|&slot| SourceEvent::Quiet { slot }));
        if source_events.is_empty() {
            return;
        }
        self.detach_laggards();
        self.wait_for_rejoin();
        let shared = Arc::clone(&self.shared);
        let batches = &shared.queues[self.input_index].batches;
        // First that of the pipeline, which may take long.
        let [credit, room] = [&shared.credit, &batches.room].map(|credit| match buffer.len() {
            0 => None,
            bytes => self.reserve(credit, bytes as u64),
        });
        batches.push(RawBatch {
            bytes: buffer.share(),
            events: source_events,
            credit,
            room,
            observed_ns,
            read_at,
        });
        self.shared.push_job(self.input_index);
    }

    /// Waits for credit. `None`: the agent stops.
    fn reserve(&mut self, credit: &Arc<Credit>, bytes: u64) -> Option<Reserved> {
        let shared = Arc::clone(&self.shared);
        credit.reserve(bytes.max(BATCH_CREDIT_MIN), || {
            self.hold();
            self.detach_laggards();
            let awaiting = self.awaiting.as_ref();
            self.gauges
                .set(&shared, self.input_index, &mut *self.input, awaiting);
        })
    }

    /// What a worker must know of an event; the rest is counted or reported here.
    fn source_event(&mut self, event: FileEvent) -> Option<SourceEvent> {
        let tracker = &self.shared.tracker;
        match event {
            FileEvent::Opened {
                source,
                path,
                offset,
                mid_line,
                ..
            } => {
                let slot = self.slots[&source];
                let replaces = self.replaced.remove(&source);
                let replay_to = tracker.replay_to(slot);
                Some(SourceEvent::Opened {
                    slot,
                    replaces,
                    path,
                    offset,
                    mid_line,
                    replay_to,
                })
            }
            FileEvent::Chunk {
                source, start, end, ..
            } => Some(SourceEvent::Chunk {
                slot: self.slots[&source],
                start,
                end,
            }),
            FileEvent::Continues {
                source,
                earlier,
                head,
            } => Some(SourceEvent::Continues {
                slot: *self.slots.get(&source)?,
                earlier: *self.slots.get(&earlier)?,
                head,
            }),
            FileEvent::Finished { source } => {
                self.quiet.forget(source);
                if let Some(awaiting) = &mut self.awaiting {
                    awaiting.ended(source);
                }
                let slot = self.slots.remove(&source)?;
                self.finished.push((source, slot));
                Some(SourceEvent::Finished { slot })
            }
            FileEvent::Identified { source, id } => {
                self.with_slot(source, |slot| tracker.identify(slot, id))
            }
            FileEvent::Renamed { source, path } => {
                self.with_slot(source, |slot| tracker.rename(slot, path))
            }
            FileEvent::Grown { source, size } => {
                self.with_slot(source, |slot| tracker.resize(slot, size))
            }
            FileEvent::Skipped { bytes, reason, .. } => {
                self.shared.metrics.skipped(reason.as_str(), bytes);
                None
            }
            FileEvent::Lost {
                path,
                bytes,
                reason,
                ..
            } => {
                self.report_loss(&path, bytes, reason.as_str());
                None
            }
            FileEvent::Truncated {
                path,
                unseen,
                bytes_max,
            } => {
                self.report_truncation(&path, unseen, bytes_max);
                None
            }
            FileEvent::Forgotten { .. } => None,
            FileEvent::Problem { path, message } => {
                self.report_problem(path, &message);
                None
            }
        }
    }

    fn with_slot(&self, source: SourceId, change: impl FnOnce(Slot)) -> Option<SourceEvent> {
        if let Some(&slot) = self.slots.get(&source) {
            change(slot);
        }
        None
    }

    fn report_loss(&self, path: &Path, bytes: u64, reason: &'static str) {
        self.shared.metrics.lost(reason, bytes);
        let pipeline = &self.shared.plan.name;
        let path = path.display();
        match bytes {
            0 => {
                warn!(pipeline, %path, reason, "a file is lost, and nobody knows how much it held")
            }
            _ => warn!(pipeline, %path, bytes, reason, "bytes were lost before they could be read"),
        }
    }

    fn report_truncation(&self, path: &Path, unseen: Option<Duration>, bytes_max: Option<u64>) {
        self.shared.metrics.truncation(bytes_max);
        info!(
            pipeline = self.shared.plan.name,
            path = %path.display(),
            unseen_ms = unseen.map(|unseen| u64::try_from(unseen.as_millis()).unwrap_or(u64::MAX)),
            unread_bytes_max = bytes_max,
            "file was truncated; what was written to it in the last moment before that could not be seen"
        );
    }

    fn report_problem(&self, path: PathBuf, message: &str) {
        warn!(pipeline = self.shared.plan.name, path = %path.display(), "{message}");
    }

    /// Resumes sources that have room again, and forgets those that ended and are acknowledged.
    fn look_after_sources(&mut self) {
        if !self.paused.is_empty() {
            // Before looking, so that what is acknowledged meanwhile wakes us.
            self.shared.waiting.request_wake();
        }
        self.detach_laggards();
        if !self.input.is_kept() {
            return;
        }
        for source in self.awaiting.iter_mut().flat_map(Awaiting::answered) {
            self.input.resume(source);
        }
        let shared = &self.shared;
        let slots = &self.slots;
        let input = &mut self.input;
        let attached = shared.queues[self.input_index].attached();
        self.paused.retain(|paused| {
            let unacked = slots
                .get(paused)
                .map_or(0, |slot| unacked_bytes(shared, &attached, *slot));
            let waits = unacked >= shared.replay_bytes_max;
            if !waits {
                input.resume(*paused);
            }
            waits
        });
        if input.wants_acknowledged() {
            // What is acknowledged makes room.
            shared.waiting.request_wake();
            for (&open, &slot) in slots {
                input.acknowledge(open, unacked_bytes(shared, &attached, slot));
            }
        }
        self.finished
            .retain(|(ended, slot)| match shared.tracker.take_done(*slot) {
                Some(end) => {
                    input.finish(*ended, end);
                    false
                }
                None => {
                    if !keeps_deleted(shared, *slot) {
                        input.let_go(*ended);
                    }
                    true
                }
            });
        if self.next_rest <= Instant::now() {
            self.next_rest = Instant::now() + REST_EVERY;
            // What is dormant takes no memory here, nor in the tracker or the input queue.
            let queue = &shared.queues[self.input_index];
            let is_at_rest =
                |slot| shared.tracker.is_all_acknowledged(slot) && queue.is_between_records(slot);
            for dormant in input.take_dormant() {
                match slots.get(&dormant) {
                    Some(&slot) if is_at_rest(slot) => input.put_to_rest(dormant),
                    Some(_) => input.stays_dormant(dormant),
                    None => {} // It has ended.
                }
            }
        }
        self.gauges.set(
            shared,
            self.input_index,
            &mut **input,
            self.awaiting.as_ref(),
        );
    }
}

impl Gauges {
    /// Sets them, if it is time.
    fn set(
        &mut self,
        shared: &Shared,
        input: usize,
        reading: &mut dyn Input,
        awaiting: Option<&Awaiting>,
    ) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.next = now + GAUGES_EVERY;
        let gauge = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let metrics = &shared.metrics;
        metrics.queue_size.set(gauge(shared.credit.used()));
        let gauges = reading.gauges(now);
        if let Some(open) = gauges.open_files {
            metrics.files_open.set(gauge(open));
        }
        if let Some(denied) = gauges.denied {
            let denied = shared.health.set_denied(input, denied);
            metrics.denied_paths.set(gauge(denied as u64));
        }
        if let Some(unread) = gauges.unread_bytes {
            metrics.unread_bytes.set(gauge(unread));
        }
        let seconds = gauges.oldest_unread.unwrap_or_default().as_secs();
        metrics.oldest_unread.set(gauge(seconds));
        if let Some(awaiting) = awaiting {
            self.report_metadata(shared, awaiting);
        }
    }

    /// How the metadata of pods comes in; each error is reported once.
    fn report_metadata(&mut self, shared: &Shared, awaiting: &Awaiting) {
        let status = awaiting.node().status();
        let gauge = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let metrics = &shared.metrics;
        metrics.pods.set(gauge(status.tracked));
        metrics.pods_awaited.set(gauge(status.awaited));
        let new = status.errors.saturating_sub(self.metadata_errors);
        metrics.metadata_errors.inc_by(new);
        self.metadata_errors = status.errors;
        if status.last_error != self.metadata_error {
            match &status.last_error {
                Some(error) => {
                    warn!(
                        pipeline = shared.plan.name,
                        "metadata of pods cannot be had: {error}"
                    );
                }
                None => info!(pipeline = shared.plan.name, "metadata of pods comes in"),
            }
            self.metadata_error = status.last_error;
        }
    }
}
