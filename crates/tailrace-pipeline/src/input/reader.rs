//! The reader thread of one input: fills chunk buffers from the follower, reserves in-flight
//! credit for them, and hands them to the workers. It pauses a source whose unacknowledged bytes reach
//! `limits.replay`, and itself while there is no credit. Never looks inside a line.

mod detach;
mod events;
mod gauges;
mod quiet;
mod sources;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tailrace_inputs::{FileEvent, HandedOver, Input, SourceId};

use detach::end_of;
use gauges::Gauges;
use quiet::Quiet;

use crate::clock::now_ns;
use crate::delivery::credit::BATCH_CREDIT_MIN;
use crate::input::batch::{RawBatch, SourceEvent};
use crate::input::catch_up::CatchUp;
use crate::input::pod_framing::join_timeout;
use crate::input::pods::Awaiting;
use crate::input::pool::{Buffer, Pool};
use crate::input::problem_log::ProblemLog;
use crate::input::resume::ResumeTable;
use crate::shared::Shared;
use crate::watermark::Slot;

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
    /// What the own log said of files that may not be read, and of those that cannot.
    problems: [ProblemLog; 2],
    quiet: Quiet,
    /// What happened while no batch could be handed on.
    meanwhile: Vec<SourceEvent>,
    /// When dormant sources are looked at again.
    next_rest: Instant,
    /// A detached output cannot read again what was read now: it has to rejoin first.
    must_rejoin: bool,
    /// The threads of outputs that catch up, by output.
    catching_up: HashMap<usize, JoinHandle<()>>,
}

/// Events for which memory is kept.
const EVENTS_KEPT: usize = 256;

/// How many events make a full batch, however few bytes come with them: a node may have a hundred thousand small files.
const EVENTS_MAX: usize = 4096;
/// How long a reader sleeps when nothing happens; whatever happens wakes it earlier.
const IDLE_WAIT: Duration = Duration::from_secs(1);
/// How often a reader that has ended looks at what came.
const HOLD_EVERY: Duration = Duration::from_millis(10);

/// How a reader ends, as it tells and is told by channels that carry nothing: their other ends are dropped.
pub(crate) struct End {
    /// Dropped when all that was read is handed on.
    pub(crate) has_read: SyncSender<()>,
    /// The files may be let go.
    pub(crate) released: Receiver<()>,
}

/// The thread of a reader.
pub(crate) struct ReaderThread {
    pub(crate) thread: JoinHandle<HandedOver>,
    has_read: Receiver<()>,
    released: SyncSender<()>,
}

impl ReaderThread {
    /// Starts it; `start` gets what the reader needs of its end.
    pub(crate) fn start<E>(
        start: impl FnOnce(End) -> Result<JoinHandle<HandedOver>, E>,
    ) -> Result<ReaderThread, E> {
        let (has_read, handed_on) = sync_channel(0);
        let (released, let_go) = sync_channel(0);
        let end = End {
            has_read,
            released: let_go,
        };
        Ok(ReaderThread {
            thread: start(end)?,
            has_read: handed_on,
            released,
        })
    }

    /// Waits until all that was read is handed on. A reader that panicked hands on nothing more.
    pub(crate) fn wait_read(&self) {
        let _ = self.has_read.recv();
    }

    /// Has it let its files go. The thread ends then, if it was told to stop.
    pub(crate) fn release(self) -> JoinHandle<HandedOver> {
        drop(self.released);
        self.thread
    }
}

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
        let quiet_after = join_timeout(&shared.plan.config.inputs[input_index]);
        Self {
            quiet: Quiet::new(quiet_after),
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
            problems: Default::default(),
            meanwhile: Vec::new(),
            next_rest: Instant::now(),
            must_rejoin: false,
            catching_up: HashMap::new(),
        }
    }

    /// At a first start, before anything is read: opens what is left out, so that the first checkpoint has all of it.
    pub(crate) fn open_skipped(&mut self) {
        loop {
            let mut events = Vec::new();
            let more = self.input.open_skipped(&mut events);
            self.keep(events);
            if !more {
                break;
            }
        }
    }

    /// Acts on events without chunks. What a worker must know of them comes with the next batch.
    fn keep(&mut self, events: Vec<FileEvent>) {
        self.note(&events);
        for event in events {
            let event = self.source_event(event);
            self.meanwhile.extend(event);
        }
    }

    /// Reads until the pipeline stops or the input ends. Gives the files that it held open.
    pub(crate) fn run(mut self, end: End) -> HandedOver {
        let mut events = Vec::new();
        let mut has_ended = false;
        while !has_ended && !self.shared.stopping.load(Ordering::Relaxed) {
            self.look_after_sources();
            let mut buffer = self.pool.take();
            has_ended = self.fill(&mut buffer, &mut events);
            self.submit(buffer, &mut events);
        }
        if !has_ended && !self.input.is_kept() {
            self.end_streams();
        }
        if !self.meanwhile.is_empty() {
            let nothing = self.pool.take();
            self.submit(nothing, &mut events);
        }
        for (_, thread) in self.catching_up.drain() {
            end_of(thread);
        }
        drop(end.has_read);
        if !has_ended {
            self.hold_until(&end.released);
        }
        self.input.close(&mut events);
        for event in events {
            self.source_event(event);
        }
        self.shared.add_stored(self.input.stored());
        self.input.hand_over()
    }

    /// Reading ends before a stream does, which nobody can read again: what is held of its last record is given out, and marked,
    /// for its rest may still have come.
    fn end_streams(&mut self) {
        let sources: Vec<_> = self.slots.keys().copied().collect();
        for source in sources {
            let ended = FileEvent::Finished {
                source,
                is_cut: true,
            };
            let event = self.source_event(ended);
            self.meanwhile.extend(event);
        }
    }

    /// Opens what comes, until whoever reads on is about to begin: a file that is deleted meanwhile is handed over, and one that
    /// could not be opened is counted.
    fn hold_until(&mut self, released: &Receiver<()>) {
        let mut is_held = false;
        while let Err(RecvTimeoutError::Timeout) = released.recv_timeout(HOLD_EVERY) {
            is_held = true;
            self.hold_to_hand_over();
        }
        if is_held {
            self.hold_to_hand_over();
        }
    }

    fn hold_to_hand_over(&mut self) {
        let mut events = Vec::new();
        self.input.hold(&mut events);
        let resume = &mut self.resume;
        events.retain(|event| match event {
            // It was handed over, and is read on.
            FileEvent::Forgotten { id, generation, .. } => {
                resume.forget(*id, *generation);
                false
            }
            // By what is not read.
            FileEvent::Grown { .. } => false,
            _ => true,
        });
        self.note(&events);
        for event in events {
            self.source_event(event);
        }
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
            if events.is_empty() && self.meanwhile.is_empty() {
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

    /// Hands a batch on. Waits for credit, unless the agent stops: it is one batch, and the drain has its own time.
    fn submit(&mut self, buffer: Buffer, events: &mut Vec<FileEvent>) {
        // However long the batch waits below, it was read now.
        let (observed_ns, read_at) = (now_ns(), Instant::now());
        let mut source_events = std::mem::take(&mut self.meanwhile);
        for event in events.drain(..) {
            source_events.extend(self.source_event(event));
        }
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
        let bytes = (buffer.len() as u64).max(BATCH_CREDIT_MIN);
        let (credit, room) = if buffer.len() == 0 {
            // It may be the end of a record that was read before.
            (shared.credit.take(bytes), None)
        } else {
            let credit = (shared.credit).reserve_or_take(bytes, || self.look_after_others());
            let room = batches.room.reserve(bytes, || self.look_after_others());
            (credit, room)
        };
        batches.push(RawBatch {
            bytes: buffer.share(),
            events: source_events,
            credit: Some(credit),
            room,
            observed_ns,
            read_at,
            cuts: 0,
        });
        self.shared.push_job(self.input_index);
    }

    /// While it waits for credit.
    fn look_after_others(&mut self) {
        let shared = Arc::clone(&self.shared);
        self.hold();
        self.detach_laggards();
        let awaiting = self.awaiting.as_ref();
        self.gauges
            .set(&shared, self.input_index, &mut *self.input, awaiting);
    }
}
