//! What each worker has in hand, on disk, so that the next start knows at which bytes a process died that could not
//! say so: a stack overflow, an allocation that failed, an abort.
//!
//! *Marks.* Before a worker transforms a batch it writes to its file which bytes of which files these are, and after it
//! that it is done: two short writes for a batch, never synced, for the page cache outlives the process. (What a
//! machine's crash takes of it costs nothing but another death.)
//!
//! *Suspects.* What is marked at a start was in hand when the last process died. It may be innocent: it was `kill -9`,
//! or another worker. So suspects are processed one at a time, in parts that get smaller with each death at the same
//! place: the batch; then 256 parts of it, which of most batches are single records; then single records. It is for
//! real each time, so that what dies only in company goes through. The third death names one record; it is not
//! processed again ([`DEATHS_MAX`]). A suspect that is processed without a death is none any more.
//!
//! Works on byte ranges ([`Suspect`]). Never reads a log and never decides what becomes of a record.

mod store;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tailrace_inputs::FileId;
use tracing::warn;

use crate::input::input_queue::Framed;
use crate::plan::PipelinePlan;
use crate::watermark::{Slot, Tracker};

/// After so many deaths at one record it is set aside.
pub(crate) const DEATHS_MAX: u32 = 3;
/// After the first death a batch is processed in at most so many parts, each of which is a request of its own.
const GROUPS_MAX: usize = 256;

/// Bytes of a file at which a process may die, as a pipeline reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Suspect {
    /// The pipeline, its query and the version of the agent: with another one it may well not die.
    scope: u64,
    device: u64,
    inode: u64,
    created_at: u64,
    generation: u32,
    /// How often a process died there.
    deaths: u32,
    /// First byte of the first record.
    start: u64,
    /// Behind the last byte of the last record.
    end: u64,
    /// Of a single record: what identifies it for ever; else 0.
    uid: u128,
}

/// Records of a batch that are processed together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) records: Range<u32>,
    /// How often a process died at them; at [`DEATHS_MAX`] it is a single record.
    pub(crate) deaths: u32,
}

/// What the workers of the agent have in hand.
#[derive(Debug)]
pub(crate) struct InProgress {
    dir: PathBuf,
    suspects: Mutex<Vec<Suspect>>,
    has_suspects: AtomicBool,
    /// Held by the worker that processes a suspect.
    alone: Mutex<()>,
}

/// The marks of one worker.
pub(crate) struct Marks {
    all: Arc<InProgress>,
    file: Option<File>,
    buffer: Vec<u8>,
}

/// What is in hand until this is dropped; a panic that is caught drops it, too.
pub(crate) struct Marked<'a> {
    file: Option<&'a File>,
    _alone: Option<MutexGuard<'a, ()>>,
}

/// Whose places are compared.
pub(crate) fn scope_of(plan: &PipelinePlan) -> u64 {
    let mut hasher = DefaultHasher::new();
    let query = &plan.config.transform.text;
    (&plan.name, query, env!("CARGO_PKG_VERSION")).hash(&mut hasher);
    hasher.finish()
}

impl InProgress {
    /// Looks at what the last process had in hand. Without a directory that can be written a process that dies so
    /// leaves nothing for the next one.
    pub(crate) fn open(data_dir: &Path) -> Arc<Self> {
        let dir = data_dir.join("in-progress");
        let (suspects, written) = store::load(&dir);
        if let Err(error) = written {
            warn!(
                path = %dir.display(),
                %error,
                "what is in progress cannot be kept: a record that ends the process would end each start"
            );
        }
        let count = suspects
            .iter()
            .filter(|suspect| suspect.deaths < DEATHS_MAX)
            .count();
        if count > 0 {
            warn!(
                places = count,
                "the last process ended while it worked on records; they are processed in small parts, in case that \
                 one of them was the reason"
            );
        }
        Arc::new(Self {
            dir,
            has_suspects: AtomicBool::new(!suspects.is_empty()),
            suspects: Mutex::new(suspects),
            alone: Mutex::new(()),
        })
    }

    /// The marks of a worker.
    pub(crate) fn worker(self: &Arc<Self>, number: usize) -> Marks {
        Marks {
            all: Arc::clone(self),
            file: store::create(&self.dir, number).ok(),
            buffer: Vec::new(),
        }
    }

    fn suspects(&self) -> MutexGuard<'_, Vec<Suspect>> {
        self.suspects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The groups of a batch, in order: mostly one of all its records.
    pub(crate) fn groups(&self, scope: u64, framed: &Framed, tracker: &Tracker) -> Vec<Group> {
        // There are fewer than 2^32 records in a batch.
        let records = framed.frames.records.len() as u32;
        let whole = || Group {
            records: 0..records,
            deaths: 0,
        };
        if !self.has_suspects.load(Ordering::Relaxed) {
            return vec![whole()];
        }
        let suspects = self.suspects();
        let mut deaths = vec![0; records as usize];
        for (run, slot, bytes) in framed.locations.runs() {
            let Some(file) = Suspect::of_file(scope, slot, tracker) else {
                continue;
            };
            let overlaps = |suspect: &&Suspect| {
                suspect.is_in_file_of(&file) && suspect.start < bytes.1 && bytes.0 < suspect.end
            };
            let here: Vec<&Suspect> = suspects.iter().filter(overlaps).collect();
            if here.is_empty() {
                continue;
            }
            for record in run {
                let end = framed.locations.of(record).map_or(0, |(_, (_, end))| end);
                let uid = || uid_of(framed, record, tracker);
                let deaths_at = |suspect: &&Suspect| {
                    // Else another record stands there now.
                    let is_same = suspect.deaths < DEATHS_MAX || suspect.uid == uid();
                    suspect
                        .deaths
                        .min(if is_same { DEATHS_MAX } else { DEATHS_MAX - 1 })
                };
                deaths[record as usize] = here
                    .iter()
                    .filter(|suspect| suspect.start < end && end <= suspect.end)
                    .map(deaths_at)
                    .max()
                    .unwrap_or(0);
            }
        }
        drop(suspects);
        groups_of(&deaths)
    }

    /// All records of a batch are processed: suspects that end in it are none any more, except those that were set
    /// aside, which may be read again until that is in the checkpoint.
    pub(crate) fn passed(&self, scope: u64, framed: &Framed, tracker: &Tracker) {
        if !self.has_suspects.load(Ordering::Relaxed) {
            return;
        }
        let mut suspects = self.suspects();
        let before = suspects.len();
        for (_, slot, (start, end)) in framed.locations.runs() {
            if let Some(file) = Suspect::of_file(scope, slot, tracker) {
                suspects.retain(|suspect| {
                    let ends_here =
                        suspect.is_in_file_of(&file) && start < suspect.end && suspect.end <= end;
                    suspect.deaths >= DEATHS_MAX || !ends_here
                });
            }
        }
        if suspects.len() < before {
            self.has_suspects
                .store(!suspects.is_empty(), Ordering::Relaxed);
            // If it cannot be written they are suspects at the next start, if they are read again.
            let _ = store::save(&self.dir, &suspects);
        }
    }
}

/// Consecutive records with as many deaths, in parts of the size that belongs to these.
fn groups_of(deaths: &[u32]) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut start = 0;
    for alike in deaths.chunk_by(|a, b| a == b) {
        let size = match alike[0] {
            0 => alike.len(),
            1 => alike.len().div_ceil(GROUPS_MAX),
            _ => 1,
        };
        for part in alike.chunks(size) {
            let records = start..start + part.len() as u32;
            start = records.end;
            groups.push(Group {
                records,
                deaths: part[0],
            });
        }
    }
    groups
}

/// What identifies a record; 0 where its source is no file.
fn uid_of(framed: &Framed, record: u32, tracker: &Tracker) -> u128 {
    let Some((slot, (_, end))) = framed.locations.of(record) else {
        return 0;
    };
    let uid = |(id, generation): (FileId, u32)| {
        id.record_uid(generation, end, framed.line(record as usize))
    };
    tracker.identity(slot).map_or(0, uid)
}

impl Marks {
    /// The agent's.
    pub(crate) fn all(&self) -> &InProgress {
        &self.all
    }

    /// Marks a group of a batch as in hand; it waits while another suspect is, if it is one itself.
    pub(crate) fn begin(
        &mut self,
        scope: u64,
        (framed, group): (&Framed, &Group),
        tracker: &Tracker,
    ) -> Marked<'_> {
        let alone = (group.deaths > 0).then(|| {
            self.all
                .alone
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        });
        if let Some(file) = &self.file {
            store::begin(&mut self.buffer);
            let is_whole = group.records.len() == framed.frames.records.len();
            let part = (!is_whole).then(|| framed.locations.part(group.records.clone()));
            for (_, slot, (start, end)) in part.as_ref().unwrap_or(&framed.locations).runs() {
                let Some(file) = Suspect::of_file(scope, slot, tracker) else {
                    continue;
                };
                let is_single = group.deaths + 1 >= DEATHS_MAX;
                let suspect = Suspect {
                    deaths: group.deaths,
                    start,
                    end,
                    uid: if is_single {
                        uid_of(framed, group.records.start, tracker)
                    } else {
                        0
                    },
                    ..file
                };
                store::push(&mut self.buffer, &suspect);
            }
            store::finish(&mut self.buffer);
            // What cannot be written is not known after a death.
            let _ = file.write_all_at(&self.buffer, 0);
        }
        Marked {
            file: self.file.as_ref(),
            _alone: alone,
        }
    }
}

impl Drop for Marked<'_> {
    fn drop(&mut self) {
        if let Some(file) = self.file {
            let _ = file.write_all_at(&store::NOTHING, 0);
        }
    }
}

impl Suspect {
    /// All bytes of a file; `None` for what is no file and cannot be read again.
    fn of_file(scope: u64, slot: Slot, tracker: &Tracker) -> Option<Self> {
        let (id, generation) = tracker.identity(slot)?;
        Some(Self {
            scope,
            device: id.device,
            inode: id.inode,
            created_at: id.created_at,
            generation,
            deaths: 0,
            start: 0,
            end: u64::MAX,
            uid: 0,
        })
    }

    fn is_in_file_of(&self, other: &Self) -> bool {
        let file = |suspect: &Self| {
            (
                suspect.scope,
                suspect.device,
                suspect.inode,
                suspect.created_at,
                suspect.generation,
            )
        };
        file(self) == file(other)
    }

    fn holds(&self, other: &Self) -> bool {
        self.is_in_file_of(other) && self.start <= other.start && other.end <= self.end
    }
}
