//! A part of a framed batch as a batch of its own, for a batch that cannot be worked on as a whole. Its spans, credit
//! and counts stay with the whole batch.

use std::ops::Range;
use std::sync::Arc;

use tailrace_frame::{Flags, Frames, SIDE};

use super::{Framed, SourceRun};
use crate::delivery::record_locations::common;

impl Framed {
    /// The bytes of a record.
    pub(crate) fn line(&self, record: usize) -> &[u8] {
        let record = &self.frames.records[record];
        let buffer = usize::from(record.buffer == SIDE);
        &self.buffers[buffer][record.start as usize..record.end as usize]
    }

    /// These records alone.
    pub(crate) fn part(&self, records: Range<u32>) -> Self {
        let mut frames = Frames::default();
        let of_part = &self.frames.records[records.start as usize..records.end as usize];
        frames.records.extend_from_slice(of_part);
        let is_broken = |record: &&tailrace_frame::Record| record.flags.contains(Flags::BROKEN);
        frames.stats.broken = frames.records.iter().filter(is_broken).count() as u64;
        let runs = self.runs.iter().filter_map(|run| {
            let records = common(&run.records, &records)?;
            Some(SourceRun {
                records,
                facts: Arc::clone(&run.facts),
            })
        });
        Self {
            frames,
            buffers: self.buffers.clone(),
            runs: runs.collect(),
            locations: self.locations.part(records.clone()),
            is_catch_up: self.is_catch_up,
            observed_ns: self.observed_ns,
            ..Self::default()
        }
    }
}
