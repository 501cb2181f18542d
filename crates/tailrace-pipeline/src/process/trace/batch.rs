//! A framed batch, traced whatever happens: one that panics, or of which the query makes too much, is traced in halves.

use super::piece::{self, Maker};
use super::{TraceOptions, Traced};
use crate::input::input_queue::Framed;
use crate::plan::PipelinePlan;
use crate::process::contain;

/// Traces framed batches of one input of a plan.
pub(crate) struct BatchTracer {
    input: usize,
    options: TraceOptions,
    maker: Maker,
}

impl BatchTracer {
    /// Of an input of the plan, by its number.
    ///
    /// # Panics
    ///
    /// If the plan has no such input.
    pub(crate) fn new(plan: &PipelinePlan, input: usize, options: TraceOptions) -> Self {
        Self {
            input,
            options,
            maker: Maker::new(plan, input, options),
        }
    }

    /// Traces a batch: calls `each` for every record, ascending, with its number in the batch. The numbers of lines are
    /// left to the caller. The plan is the one that this was made with; the sources have the facts of
    /// [`facts`](super::facts).
    pub(crate) fn trace(
        &mut self,
        plan: &PipelinePlan,
        framed: &Framed,
        each: &mut dyn FnMut(usize, Traced),
    ) {
        // There are fewer than 2^32 records in a batch.
        let all = 0..framed.frames.records.len() as u32;
        let mut left = vec![all.clone()];
        while let Some(records) = left.pop() {
            let part = (records != all).then(|| framed.part(records.clone()));
            let batch = part.as_ref().unwrap_or(framed);
            let first = records.start as usize;
            let made = contain::catch(|| self.maker.make(plan, batch));
            if made.is_err() {
                // What the panic left half done must not be built upon.
                self.maker = Maker::new(plan, self.input, self.options);
            }
            match made {
                Ok(Some(traced)) => {
                    for (at, traced) in (first..).zip(traced) {
                        each(at, traced);
                    }
                }
                Err(panic) if records.len() == 1 => {
                    let reason = format!("{} at {}", panic.text, panic.at);
                    each(first, piece::crashed(framed, first, reason));
                }
                Ok(None) | Err(_) => {
                    let middle = records.start + (records.end - records.start) / 2;
                    left.extend([middle..records.end, records.start..middle]);
                }
            }
        }
    }
}
