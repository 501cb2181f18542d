//! What a reader does with an event of its input: slots, counts, reports, and what a worker must know of it.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tailrace_inputs::{FileEvent, LossReason, ProblemKind, SourceId};
use tracing::{info, warn};

use super::Reader;
use crate::health::Stage;
use crate::input::batch::SourceEvent;
use crate::reasons::{Met, ReasonKind};
use crate::watermark::{Opening, Slot};

impl Reader {
    /// Gives new sources their slots, counts chunks, and pauses sources that are too far ahead of
    /// their outputs.
    pub(super) fn note(&mut self, events: &[FileEvent]) {
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
                FileEvent::Unseen {
                    id,
                    generation,
                    is_unseen,
                } => self.shared.tracker.unseen(*id, *generation, *is_unseen),
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
            origin,
            offset,
            size,
            ..
        } = event
        else {
            unreachable!("only called for Opened");
        };
        // Reported again before its first chunk: the later one stands for the earlier one.
        let inherited = self.slots.remove(source).and_then(|slot| {
            // Where that happens twice, the first one is the one that is known behind the reader.
            self.replaced.entry(*source).or_insert(slot);
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
            origin: origin.clone(),
            offset: *offset,
            size: *size,
            replay_to,
            resume,
        });
        self.shared.tracker.resume_rests(slot, rests);
        slot
    }

    /// What a worker must know of an event; the rest is counted or reported here.
    pub(super) fn source_event(&mut self, event: FileEvent) -> Option<SourceEvent> {
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
            FileEvent::Finished { source, is_cut } => {
                self.quiet.forget(source);
                if let Some(awaiting) = &mut self.awaiting {
                    awaiting.ended(source);
                }
                let slot = self.slots.remove(&source)?;
                self.finished.push((source, slot));
                Some(SourceEvent::Finished { slot, is_cut })
            }
            FileEvent::Identified { source, id } => {
                self.with_slot(source, |slot| tracker.identify(slot, id))
            }
            FileEvent::Renamed {
                source,
                path,
                origin,
            } => self.with_slot(source, |slot| tracker.rename(slot, path, origin)),
            FileEvent::Linked { source, target } => {
                self.with_slot(source, |slot| tracker.linked(slot, target))
            }
            FileEvent::Grown { source, size } => {
                self.with_slot(source, |slot| tracker.resize(slot, size))
            }
            FileEvent::Skipped { bytes, reason, .. } => {
                self.shared.metrics.skipped(reason.as_str(), bytes);
                None
            }
            FileEvent::Lost {
                source,
                path,
                bytes,
                reason,
            } => {
                self.report_loss(&path, bytes, reason);
                self.with_slot(source?, |slot| tracker.lost(slot, bytes))
            }
            FileEvent::Truncated {
                path,
                unseen,
                bytes_max,
            } => {
                self.report_truncation(&path, unseen, bytes_max);
                None
            }
            FileEvent::Forgotten { .. } | FileEvent::Unseen { .. } => None,
            FileEvent::Problem {
                kind,
                path,
                message,
            } => {
                self.report_problem(kind, &path, &message);
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

    fn report_loss(&self, path: &Path, bytes: u64, reason: LossReason) {
        let explained = reason.explained();
        self.note_reason(ReasonKind::Lost, path, explained);
        let reason = reason.as_str();
        self.shared.metrics.lost(reason, bytes);
        let pipeline = &self.shared.plan.name;
        let path = path.display();
        match bytes {
            0 => {
                warn!(pipeline, %path, reason, "bytes of a file are lost, and nobody knows how many")
            }
            _ => warn!(pipeline, %path, bytes, reason, "bytes were lost before they could be read"),
        }
    }

    fn report_truncation(&self, path: &Path, unseen: Option<Duration>, bytes_max: Option<u64>) {
        self.shared.metrics.truncation(bytes_max);
        let reason =
            "truncated or replaced in place; what was written to it right before that was not seen";
        self.note_reason(ReasonKind::FileTruncated, path, reason);
        info!(
            pipeline = self.shared.plan.name,
            path = %path.display(),
            unseen_ms = unseen.map(|unseen| u64::try_from(unseen.as_millis()).unwrap_or(u64::MAX)),
            unread_bytes_max = bytes_max,
            "file was truncated; what was written to it in the last moment before that could not be seen"
        );
    }

    fn report_problem(&mut self, kind: ProblemKind, path: &Path, message: &str) {
        let metrics = &self.shared.metrics;
        let now = Instant::now();
        let others = match kind {
            ProblemKind::Permission => {
                metrics.permission_errors.inc();
                self.note_reason(ReasonKind::Denied, path, message);
                self.problems[0].due(now)
            }
            ProblemKind::Read | ProblemKind::Broken => {
                if kind == ProblemKind::Broken {
                    self.shared.broken.store(true, Ordering::Relaxed);
                }
                metrics.read_errors.inc();
                self.note_reason(ReasonKind::ReadError, path, message);
                self.problems[1].due(now)
            }
            ProblemKind::Notice => Some(0),
        };
        let Some(others) = others else {
            return;
        };
        warn!(
            pipeline = self.shared.plan.name,
            path = %path.display(),
            others_since_last = (others > 0).then_some(others),
            "{message}"
        );
    }

    /// Notes a reason about one file.
    fn note_reason(&self, kind: ReasonKind, path: &Path, reason: &str) {
        self.shared.reasons.note(Met {
            pipeline: &self.shared.plan.name,
            stage: Stage::Input,
            kind,
            subject: &path.to_string_lossy(),
            reason,
            count: 1,
        });
    }
}
