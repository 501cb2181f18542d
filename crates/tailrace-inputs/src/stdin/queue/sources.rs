//! The segments of a queue in order, as the sources of a pipeline.
//!
//! Takes a segment from the store, gives the events of the stream that it belongs to: a segment that does not continue where
//! the one before it ended ends that source and begins another. A segment that was deleted, or that does not check, gives
//! none of its bytes, and is reported and counted as lost.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::segment::{self, Content, End, SegmentId};
use super::store::Segment;
use super::{Kept, Open, QueueReader, forgotten, id_of, length, lost};
use crate::event::{FileEvent, LossReason, ProblemKind, SourceId};
use crate::identity::ends_in_line;

impl QueueReader {
    /// Takes the next segment in hand. False if there is none now.
    pub(super) fn next_segment(&mut self, events: &mut Vec<FileEvent>) -> bool {
        let Some(segment) = self.store.next() else {
            if self.store.has_ended() {
                self.finish(None, events);
            }
            return false;
        };
        let SegmentId { stream, offset } = segment.id;
        let goes_on = |open: &Open| (open.stream, open.offset) == (stream, offset);
        if !self.open.as_ref().is_some_and(goes_on) {
            self.finish(Some(segment.id), events);
        }
        let resume = self.resume.get(&stream).map_or(0, |entry| entry.offset);
        if self.open.is_none() && segment.end() <= resume {
            self.store.remove(&segment);
            return true;
        }
        let content = match self.store.load(&segment) {
            Ok(content) => content,
            Err(damage) if damage.is_gone() => {
                self.vanished(&segment, events);
                return true;
            }
            Err(damage) => {
                self.quarantine(&segment, &damage, events);
                return true;
            }
        };
        let at = match &self.open {
            Some(_) => 0,
            None => usize::try_from(resume.saturating_sub(offset)).unwrap_or(0),
        };
        let source = match &mut self.open {
            Some(open) => {
                (open.bytes, open.at, open.since) = (content.bytes, 0, segment.since);
                open.end = content.around.end;
                open.source
            }
            None => self.begin(&segment, at, content, events),
        };
        self.kept.push_back(Kept {
            source,
            segment,
            is_acked: false,
        });
        true
    }

    fn begin(
        &mut self,
        segment: &Segment,
        at: usize,
        Content { bytes, around }: Content,
        events: &mut Vec<FileEvent>,
    ) -> SourceId {
        let source = SourceId(self.next_source);
        self.next_source += 1;
        let offset = segment.id.offset + at as u64;
        events.push(FileEvent::Opened {
            source,
            id: id_of(segment.id.stream),
            generation: 0,
            path: Path::new("stdin").into(),
            origin: None,
            offset,
            mid_line: ends_in_line(&bytes[..at], around.mid_line),
            size: segment.end(),
        });
        self.open = Some(Open {
            source,
            stream: segment.id.stream,
            offset,
            bytes,
            at,
            since: segment.since,
            end: around.end,
        });
        source
    }

    /// Ends the source that is open: its stream has ended, or the run that read it, or `next` does not go on where it stands.
    fn finish(&mut self, next: Option<SegmentId>, events: &mut Vec<FileEvent>) {
        let Some(open) = self.open.take() else { return };
        let Open { source, stream, .. } = open;
        let next = next.filter(|next| next.stream == stream);
        // Its last record may go on in what was lost, or in what no agent read.
        let is_before_gap = next.is_some_and(|next| next.offset > open.offset);
        let is_cut = is_before_gap || open.end == End::GoesOn;
        events.push(FileEvent::Finished { source, is_cut });
        let Some(next) = next else {
            events.push(forgotten(id_of(stream)));
            return;
        };
        let from = SegmentId {
            stream,
            offset: open.offset,
        };
        if next.offset > from.offset && !self.store.is_quarantined(from) {
            events.push(FileEvent::Lost {
                source: Some(source),
                path: PathBuf::from("stdin"),
                bytes: next.offset - from.offset,
                reason: LossReason::Vanished,
            });
        }
    }

    /// Somebody deleted a segment before it was read.
    fn vanished(&mut self, segment: &Segment, events: &mut Vec<FileEvent>) {
        self.store.remove(segment);
        if segment.bytes() == 0 {
            // It only said that the stream ends there.
            return;
        }
        self.finish(Some(segment.id), events);
        events.push(FileEvent::Problem {
            kind: ProblemKind::Read,
            path: PathBuf::from("stdin"),
            message: format!(
                "segment {} of the queue was deleted: its records are lost, and the rest goes on",
                segment.id.name()
            ),
        });
        events.push(lost(length(&self.owed(*segment)), LossReason::Vanished));
    }

    fn quarantine(
        &mut self,
        segment: &Segment,
        damage: &segment::Damage,
        events: &mut Vec<FileEvent>,
    ) {
        let id = segment.id;
        // Its own size may be what is wrong; where the next one begins says what it had.
        let next = self.store.peek().map(|next| next.id);
        let next = next.filter(|next| next.stream == id.stream);
        let had = next.map_or(0, |next| next.offset - id.offset);
        let cause = std::error::Error::source(damage).map_or(String::new(), |e| format!(": {e}"));
        let kept = match self.store.quarantine(segment) {
            Ok(()) => format!("it is kept as {}", id.quarantined_name()),
            Err(error) => format!("it cannot be renamed: {error}"),
        };
        self.finish(Some(id), events);
        events.push(FileEvent::Problem {
            kind: ProblemKind::Read,
            path: PathBuf::from("stdin"),
            message: format!(
                "segment {} of the queue {damage}{cause}; its records are lost, {kept}, and the rest goes on",
                id.name()
            ),
        });
        events.push(lost(segment.bytes().max(had), LossReason::Corrupt));
    }

    /// The bytes of a segment that earlier runs did not deliver.
    pub(super) fn owed(&self, segment: Segment) -> Range<u64> {
        let SegmentId { stream, offset } = segment.id;
        let resumed = self.resume.get(&stream).map_or(0, |entry| entry.offset);
        offset.max(resumed).min(segment.end())..segment.end()
    }
}
