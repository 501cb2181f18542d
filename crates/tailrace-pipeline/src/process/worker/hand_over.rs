//! Gives the outputs what was made of a batch: all of it at once, or, where that is much, part by part. A batch is acknowledged
//! when every request made of it is resolved.

use std::mem::{replace, take};
use std::sync::Arc;

use super::hold_stage::HoldStage;
use crate::delivery::credit::BATCH_CREDIT_MIN;
use crate::delivery::in_flight::{BatchInFlight, HeldMemory, OpenBatch, Ready};
use crate::delivery::order::Turns;
use crate::input::input_queue::Framed;
use crate::pipeline::Pipeline;
use crate::process::work::{Made, Work};

impl Work {
    /// Gives each output what was made so far; more will follow. It is charged to the credit of the input queue.
    pub(super) fn hand_over_part(&mut self, pipeline: &Arc<Pipeline>) {
        self.part(pipeline, false);
        pipeline.waiting.note_progress();
    }

    /// Gives each output what is left, or all of it.
    pub(super) fn finish(&mut self, pipeline: &Arc<Pipeline>, hold: Option<&HoldStage>) {
        // Chunk buffers are released here; in flight are only payloads and tables.
        (self.framed.buffers, self.framed.searched) = (Vec::new(), None);
        if self.open.is_none() {
            let made = take(&mut self.made);
            let batch = WholeBatch::new(pipeline, &mut self.framed, made);
            return match hold {
                Some(stage) => stage.push(pipeline, batch),
                None => batch.hand_over(pipeline),
            };
        }
        self.part(pipeline, true);
        if let Some(open) = self.open.take() {
            let locations = self.framed.locations.held_bytes() as u64;
            open.shrink_credit(locations.max(BATCH_CREDIT_MIN));
            open.seal(self.made.filtered);
            pipeline.unfinished[self.queue].end();
        }
        pipeline.waiting.note_progress();
    }

    fn part(&mut self, pipeline: &Arc<Pipeline>, is_last: bool) {
        let framed = &mut self.framed;
        let open = self.open.get_or_insert_with(|| {
            pipeline.unfinished[self.queue].begin();
            BatchInFlight::open(
                Arc::clone(&pipeline.tracker),
                pipeline.metrics.outputs.clone(),
                (take(&mut framed.spans), framed.locations.clone()),
                &framed.wanted,
                framed.credit.take(),
            )
        });
        let held = self.made.held_bytes() as u64;
        let credit = Arc::new(pipeline.credit_of(self.queue).take(held));
        let encodings = self.made.requests.len();
        let requests = replace(&mut self.made.requests, vec![Vec::new(); encodings]);
        let crashed = if is_last {
            take(&mut self.made.crashed)
        } else {
            Vec::new()
        };
        let crashed_records = Arc::new(crashed);
        let crashed = usize::from(!crashed_records.is_empty());
        for (output, handle) in pipeline.outputs.iter().enumerate() {
            let mut ready = Vec::new();
            if framed.wanted[output] {
                let shares = pipeline.credit.shares();
                let held = HeldMemory {
                    _credit: Arc::clone(&credit),
                    _share: (!framed.is_catch_up).then(|| shares.hold(output, held)),
                };
                let of_output = &requests[pipeline.plan.encoding_of[output]];
                let count = of_output.len() + crashed;
                let mut tickets = open.tickets(output, count, Some(held)).into_iter();
                if crashed > 0
                    && let Some(ticket) = tickets.next()
                {
                    handle.dead_letter(&crashed_records, ticket);
                }
                ready = of_output.iter().cloned().zip(tickets).collect();
            }
            let submit = |(request, ticket)| handle.submit(request, ticket);
            if is_last {
                framed.turns.submit(output, ready, submit)
            } else {
                framed.turns.submit_some(output, ready, submit)
            }
        }
    }
}

/// All that was made of a batch. The batch is open until it is handed over.
#[derive(Debug)]
pub(super) struct WholeBatch {
    open: OpenBatch,
    made: Made,
    wanted: Vec<bool>,
    turns: Turns<Ready>,
}

impl WholeBatch {
    fn new(pipeline: &Pipeline, framed: &mut Framed, made: Made) -> Self {
        let held = made.held_bytes() + framed.locations.held_bytes();
        let held = (held as u64).max(BATCH_CREDIT_MIN);
        let open = BatchInFlight::open(
            Arc::clone(&pipeline.tracker),
            pipeline.metrics.outputs.clone(),
            (take(&mut framed.spans), take(&mut framed.locations)),
            &framed.wanted,
            framed.credit.take(),
        );
        open.shrink_credit(held);
        if !framed.is_catch_up {
            open.share(pipeline.credit.shares(), held);
        }
        Self {
            open,
            made,
            wanted: framed.wanted.clone(),
            turns: take(&mut framed.turns),
        }
    }

    /// Gives each output its requests; the batch is acknowledged when all are resolved.
    pub(super) fn hand_over(mut self, pipeline: &Pipeline) {
        // Records that could not be processed are one request more, the first.
        let crashed = usize::from(!self.made.crashed.is_empty());
        let crashed_records = Arc::new(take(&mut self.made.crashed));
        for (output, handle) in pipeline.outputs.iter().enumerate() {
            if !self.wanted[output] {
                continue;
            }
            let requests = &self.made.requests[pipeline.plan.encoding_of[output]];
            let tickets = self.open.tickets(output, requests.len() + crashed, None);
            let mut tickets = tickets.into_iter();
            if crashed > 0
                && let Some(ticket) = tickets.next()
            {
                handle.dead_letter(&crashed_records, ticket);
            }
            let requests: Vec<Ready> = requests.iter().cloned().zip(tickets).collect();
            let submit = |(request, ticket)| handle.submit(request, ticket);
            self.turns.submit(output, requests, submit);
        }
        self.open.seal(self.made.filtered);
        pipeline.pass(&mut self.turns);
        pipeline.waiting.note_progress();
    }
}
