//! `log.record.uid`: what identifies each record of a batch for ever, from where it was read.
//!
//! Takes a framed batch, gives one number for each record. Made only where an output asks for it.

use tailrace_frame::SIDE;

use crate::input::input_queue::Framed;
use crate::plan::PipelinePlan;
use crate::watermark::Tracker;

/// Whether an output of the pipeline wants them.
pub(crate) fn are_wanted(plan: &PipelinePlan) -> bool {
    plan.encodings
        .iter()
        .any(|plan| plan.encoding.has_record_uid())
}

/// One per record of the batch; 0 for records of inputs that are no files.
pub(crate) fn of_batch(framed: &Framed, tracker: &Tracker) -> Vec<u128> {
    let mut uids = Vec::with_capacity(framed.frames.records.len());
    for (slot, ends) in framed.locations.ends() {
        let identity = tracker.identity(slot);
        for end in ends {
            let record = &framed.frames.records[uids.len()];
            let buffer = if record.buffer == SIDE { 1 } else { 0 };
            let bytes = &framed.buffers[buffer][record.start as usize..record.end as usize];
            let uid = |(id, generation): (tailrace_inputs::FileId, u32)| {
                id.record_uid(generation, end, bytes)
            };
            uids.push(identity.map_or(0, uid));
        }
    }
    uids
}
