//! A framed batch on its way through a worker, and what it was made into so far. Decides nothing.

use std::collections::VecDeque;

use crate::delivery::crashed::Crashed;
use crate::delivery::encoding::EncodedRequest;
use crate::delivery::in_flight::OpenBatch;
use crate::input::input_queue::Framed;
use crate::process::in_progress::Group;
use crate::process::unfinished::InParts;

/// A framed batch, and what is done of it.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) queue: usize,
    pub(crate) framed: Framed,
    pub(crate) look_at_all: bool,
    /// What is left to be processed.
    pub(crate) groups: VecDeque<Group>,
    /// What is to be handed over.
    pub(crate) made: Made,
    /// Some of it was handed over.
    pub(crate) open: Option<OpenBatch>,
    /// As the last worker left it.
    pub(crate) piece_max: u32,
}

impl InParts for Work {
    fn is_drained(&self) -> bool {
        self.open.as_ref().is_none_or(OpenBatch::is_drained)
    }
}

/// What a batch was made into, or a part of it.
#[derive(Debug, Default)]
pub(crate) struct Made {
    /// Records that the query removed.
    pub(crate) filtered: u64,
    /// By encoding.
    pub(crate) requests: Vec<Vec<EncodedRequest>>,
    /// Records that could not be processed.
    pub(crate) crashed: Vec<Crashed>,
}

impl Made {
    /// Adds what was made of the part of the batch that begins with this record.
    pub(crate) fn add(&mut self, part: Self, first: u32) {
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
    pub(crate) fn held_bytes(&self) -> usize {
        let requests = self.requests.iter().flatten();
        let requests: usize = requests.map(EncodedRequest::held_bytes).sum();
        requests + self.crashed.iter().map(Crashed::held_bytes).sum::<usize>()
    }
}
