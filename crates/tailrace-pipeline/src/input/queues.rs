//! The input queues of a pipeline, and which of them is whose.

use std::ops::Index;

use crate::input::input_queue::InputQueue;

/// One queue for each input; then, where there are several outputs, for each output one for each input, for what the
/// output reads again of it.
#[derive(Debug)]
pub(crate) struct Queues {
    inputs: usize,
    queues: Vec<InputQueue>,
}

impl Queues {
    /// The queues of the inputs.
    pub(crate) fn new(of_inputs: Vec<InputQueue>) -> Self {
        Self {
            inputs: of_inputs.len(),
            queues: of_inputs,
        }
    }

    /// Adds those of the next output, one for each input.
    pub(crate) fn add_output(&mut self, queues: impl Iterator<Item = InputQueue>) {
        self.queues.extend(queues);
    }

    /// The index of the queue for what an output reads again of an input.
    pub(crate) fn catch_up(&self, input: usize, output: usize) -> usize {
        self.inputs * (1 + output) + input
    }

    /// The input that a queue is for.
    pub(crate) fn input_of(&self, queue: usize) -> usize {
        queue % self.inputs
    }

    /// The output that a queue is for alone, if it is one for what an output reads again.
    pub(crate) fn output_of(&self, queue: usize) -> Option<usize> {
        (queue / self.inputs).checked_sub(1)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &InputQueue> {
        self.queues.iter()
    }
}

impl Index<usize> for Queues {
    type Output = InputQueue;

    fn index(&self, queue: usize) -> &InputQueue {
        &self.queues[queue]
    }
}
