//! Contains panics, deaths and size: a batch is processed in the groups that earlier deaths make of it, and a group that
//! panics, or whose query makes too much of it, in halves, until the record at fault is left. Takes a framed batch, gives what it was made into, and the
//! records for the dead-letter file. Never stores them itself.

use std::ops::Range;
use std::sync::Arc;

use super::{Around, Worker, piece_bytes_max};
use crate::delivery::crashed::Crashed;
use crate::delivery::encoding::Compressors;
use crate::pipeline::Pipeline;
use crate::process::contain;
use crate::process::failpoint::Failpoints;
use crate::process::in_progress::{DEATHS_MAX, Group};
use crate::process::work::Work;

/// What of a batch is handed over before the rest of it is made.
const PART_BYTES: usize = 1024 * 1024;

impl Worker {
    /// Processes what is left of a batch, as a whole if nothing speaks against it. False if the rest has to wait until
    /// some of what is in flight is delivered.
    pub(super) fn contained(
        &mut self,
        pipeline: &Arc<Pipeline>,
        work: &mut Work,
        around: &mut Around<'_>,
    ) -> bool {
        let tracker = &pipeline.tracker;
        self.piece_max = self.piece_max.min(work.piece_max);
        while let Some(group) = work.groups.pop_front() {
            if group.deaths >= DEATHS_MAX {
                let crashed = Crashed::aborted(&work.framed, group.records.start);
                work.made.crashed.push(crashed);
                continue;
            }
            let marked = around
                .marks
                .begin(self.scope, (&work.framed, &group), tracker);
            let rest = self.halve(
                pipeline,
                work,
                group.records,
                (around.failpoints, &mut around.compressors),
            );
            drop(marked);
            let is_rest = rest.is_some();
            if let Some(records) = rest {
                work.groups.push_front(Group { records, ..group });
            }
            if is_rest || (!work.groups.is_empty() && self.hands_over_part(pipeline, work)) {
                work.piece_max = self.piece_max;
                return false;
            }
        }
        let framed = &work.framed;
        around.marks.all().passed(self.scope, framed, tracker);
        if !framed.is_catch_up {
            let (panicked, aborted) = Crashed::count(&work.made.crashed);
            pipeline.metrics.crashed(panicked, aborted);
        }
        true
    }

    /// Processes some records of a batch; those that panic in halves, until one is left. Gives those that have to wait.
    fn halve(
        &mut self,
        pipeline: &Arc<Pipeline>,
        work: &mut Work,
        records: Range<u32>,
        (failpoints, compressors): (&Failpoints, &mut Compressors),
    ) -> Option<Range<u32>> {
        let last = records.end;
        let mut left = vec![records];
        while let Some(records) = left.pop() {
            let end = records
                .start
                .saturating_add(self.piece_max)
                .min(records.end);
            if end < records.end {
                left.push(end..records.end);
            }
            let records = records.start..end;
            let framed = &work.framed;
            let is_whole = records.len() == framed.frames.records.len();
            let part = (!is_whole).then(|| framed.part(records.clone()));
            let batch = part.as_ref().unwrap_or(framed);
            let made = contain::catch(|| {
                failpoints.look_at(batch);
                self.make(pipeline, batch, work.look_at_all, compressors)
            });
            let middle = records.start + (records.end - records.start) / 2;
            match made {
                Ok(Some(made)) => {
                    // What the next records are made into may be smaller.
                    if made.held_bytes() < piece_bytes_max(batch) / 2 {
                        self.piece_max = self.piece_max.saturating_mul(2);
                    }
                    work.made.add(made, records.start);
                    if records.end < last && self.hands_over_part(pipeline, work) {
                        return Some(records.end..last);
                    }
                }
                // Of a single record nothing is too large.
                Ok(None) => {
                    self.piece_max = (middle - records.start).max(1);
                    left.extend([middle..records.end, records.start..middle]);
                }
                Err(panic) => {
                    // What the panic left half done must not be built upon.
                    *self = Self::new(&pipeline.plan, self.input);
                    *compressors = Compressors::default();
                    if middle == records.start {
                        let crashed = Crashed::panicked(framed, records.start, &panic);
                        work.made.crashed.push(crashed);
                    } else {
                        left.extend([middle..records.end, records.start..middle]);
                    }
                }
            }
        }
        None
    }

    /// Hands over what was made of a batch so far, if that is much. Whether the rest has to wait.
    fn hands_over_part(&self, pipeline: &Arc<Pipeline>, work: &mut Work) -> bool {
        if work.made.held_bytes() < PART_BYTES {
            return false;
        }
        work.hand_over_part(pipeline);
        pipeline.credit_of(work.queue).exceeded().parts
    }
}
