//! Contains panics, deaths and size: a batch is processed in the groups that earlier deaths make of it, and a group that
//! panics, or whose query makes too much of it, in halves, until the record at fault is left. Takes a framed batch, gives what it was made into, and the
//! records that are to be set aside. Never sets them aside itself.

use std::ops::Range;

use super::{Around, Worker};
use crate::contain;
use crate::crashed::Crashed;
use crate::encoding::EncodedRequest;
use crate::failpoint::Failpoints;
use crate::in_progress::DEATHS_MAX;
use crate::lane::Framed;
use crate::pipeline::Pipeline;

/// What a batch was made into, or a part of it.
#[derive(Debug, Default)]
pub(super) struct Made {
    /// Records that the query removed.
    pub(super) filtered: u64,
    /// By encoding.
    pub(super) requests: Vec<Vec<EncodedRequest>>,
    /// Records that could not be processed.
    pub(super) crashed: Vec<Crashed>,
}

impl Worker {
    /// Processes a batch, as a whole if nothing speaks against it.
    pub(super) fn contained(
        &mut self,
        pipeline: &Pipeline,
        framed: &Framed,
        look_at_all: bool,
        around: &mut Around<'_>,
    ) -> Made {
        let tracker = &pipeline.tracker;
        let mut all = Made {
            requests: vec![Vec::new(); self.encodings.len()],
            ..Made::default()
        };
        for group in around.marks.all().groups(self.scope, framed, tracker) {
            if group.deaths >= DEATHS_MAX {
                all.crashed
                    .push(Crashed::aborted(framed, group.records.start));
                continue;
            }
            let _marked = around.marks.begin(self.scope, (framed, &group), tracker);
            self.halve(
                pipeline,
                framed,
                group.records,
                look_at_all,
                around.failpoints,
                &mut all,
            );
        }
        around.marks.all().passed(self.scope, framed, tracker);
        if !framed.is_catch_up {
            pipeline.metrics.crashed(&all.crashed);
        }
        all
    }

    /// Processes some records of a batch; those that panic in halves, until one is left.
    fn halve(
        &mut self,
        pipeline: &Pipeline,
        framed: &Framed,
        records: Range<u32>,
        look_at_all: bool,
        failpoints: &Failpoints,
        all: &mut Made,
    ) {
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
            let is_whole = records.len() == framed.frames.records.len();
            let part = (!is_whole).then(|| framed.part(records.clone()));
            let batch = part.as_ref().unwrap_or(framed);
            let made = contain::catch(|| {
                failpoints.look_at(batch);
                self.make(pipeline, batch, look_at_all)
            });
            let middle = records.start + (records.end - records.start) / 2;
            match made {
                Ok(Some(made)) => {
                    all.add(made, records.start);
                    // What the next records are made into may be smaller.
                    self.piece_max = self.piece_max.saturating_mul(2);
                }
                // Of a single record nothing is too large.
                Ok(None) => {
                    self.piece_max = (middle - records.start).max(1);
                    left.extend([middle..records.end, records.start..middle]);
                }
                Err(panic) => {
                    // What the panic left half done must not be built upon.
                    *self = Self::new(&pipeline.plan, self.input);
                    if middle == records.start {
                        all.crashed
                            .push(Crashed::panicked(framed, records.start, &panic));
                    } else {
                        left.extend([middle..records.end, records.start..middle]);
                    }
                }
            }
        }
    }
}

impl Made {
    /// Adds what was made of the part of the batch that begins with this record.
    fn add(&mut self, part: Self, first: u32) {
        self.filtered += part.filtered;
        for (all, requests) in self.requests.iter_mut().zip(part.requests) {
            all.extend(
                requests
                    .into_iter()
                    .map(|request| request.counted_from(first)),
            );
        }
    }

    /// Bytes held in memory.
    pub(super) fn held_bytes(&self) -> usize {
        let requests = self.requests.iter().flatten();
        let requests: usize = requests.map(EncodedRequest::held_bytes).sum();
        requests + self.crashed.iter().map(Crashed::held_bytes).sum::<usize>()
    }
}
