//! The input queues of a pipeline, and what its outputs read again of the inputs, as the plan says.

use std::path::Path;
use std::sync::Arc;

use tailrace_config::Input;

use crate::delivery::credit::{Credit, Shares};
use crate::delivery::in_flight::Ready;
use crate::delivery::order::Orders;
use crate::input::catch_up::CatchUp;
use crate::input::facts::FactsConfig;
use crate::input::frame_config::frame_config;
use crate::input::input_queue::{InputQueue, Overflow};
use crate::input::pod_framing::PodFraming;
use crate::input::pods::NodePods;
use crate::input::queues::Queues;
use crate::metrics::PipelineMetrics;
use crate::plan::PipelinePlan;
use crate::watermark::Tracker;

/// What a pipeline may have in flight at least, however many there are.
pub(super) const QUEUE_BYTES_MIN: u64 = 512 * 1024;
/// Which share of what may be in flight unfinished records may take in memory, all inputs together; more is moved to a file.
const UNFINISHED_SHARE: u64 = 4;
const UNFINISHED_BYTES_MIN: u64 = 512 * 1024;

/// Bounds in bytes, of one pipeline.
pub(super) struct Bounds {
    /// What may be in flight.
    pub(super) queue_bytes: u64,
    /// Records of a batch.
    pub(super) batch_bytes_max: u64,
    /// Unfinished records of one input in memory.
    held_bytes_max: usize,
}

impl Bounds {
    /// The bounds of a pipeline with this share of what all may have in flight.
    pub(super) fn of(plan: &PipelinePlan, share: u64) -> Self {
        let queue_bytes = queue_bytes(plan, share);
        let inputs = plan.config.inputs.len() as u64;
        let held = (queue_bytes / UNFINISHED_SHARE / inputs).max(UNFINISHED_BYTES_MIN);
        Self {
            queue_bytes,
            // One batch is filled while another one is in flight.
            batch_bytes_max: plan.config.batch.max_bytes.min(queue_bytes / 2),
            held_bytes_max: usize::try_from(held).unwrap_or(usize::MAX),
        }
    }
}

/// What the queues are made with.
pub(super) struct MakeQueues<'a> {
    pub(super) plan: &'a PipelinePlan,
    pub(super) bounds: &'a Bounds,
    pub(super) metrics: &'a PipelineMetrics,
    pub(super) tracker: &'a Arc<Tracker>,
    /// One for each input.
    pub(super) nodes: &'a [Option<NodePods>],
    pub(super) data_dir: &'a Path,
}

impl MakeQueues<'_> {
    /// The queues; and where there are several outputs, for each of them what it reads again of each input.
    pub(super) fn run(&self, credit: &Credit) -> (Queues, Vec<Vec<Arc<CatchUp>>>) {
        let config = &self.plan.config;
        let (inputs, outputs) = (config.inputs.len(), config.outputs.len());
        let is_ordered = || config.outputs.iter().map(|output| output.kind.is_ordered());
        // One for each input, whoever reads it for an output.
        let orders: Vec<_> = (0..inputs).map(|_| Orders::new(is_ordered())).collect();
        let queue = |input| self.queue(input, &orders[input]);
        let mut queues = Queues::new((0..inputs).map(queue).collect());
        let mut catch_ups = Vec::new();
        for output in (0..outputs).filter(|_| outputs > 1) {
            queues.add_output((0..inputs).map(|input| queue(input).catching_up(output)));
            // What a detached output holds of the credit when it begins to catch up is at most its share.
            // All its inputs have that together.
            let credit = Credit::new(credit.capacity() / outputs as u64, Shares::new(outputs));
            let catch_up = |input| Arc::new(CatchUp::new(input, output, Arc::clone(&credit)));
            catch_ups.push((0..inputs).map(catch_up).collect());
        }
        (queues, catch_ups)
    }

    fn queue(&self, input: usize, orders: &Arc<Orders<Ready>>) -> InputQueue {
        let config = &self.plan.config.inputs[input];
        let frame = frame_config(config, self.plan.config.limits.replay);
        let facts = self.facts(config, self.nodes[input].as_ref(), &frame);
        InputQueue::new(
            frame,
            facts,
            Arc::clone(self.tracker),
            Arc::clone(orders),
            // One may wait for a worker while the reader fills another one.
            self.bounds.batch_bytes_max,
            self.plan.records_max(),
            Overflow::new(self.bounds.held_bytes_max, self.data_dir.to_owned()),
        )
    }

    fn facts(
        &self,
        input: &Input,
        node: Option<&NodePods>,
        frame: &tailrace_frame::Config,
    ) -> FactsConfig {
        let is_framed_by_pods = input.pods().is_some_and(|pods| pods.config.framing);
        let framing = || {
            let invalid = self.metrics.invalid_annotations.clone();
            PodFraming::new(self.plan.name.clone(), frame.clone(), invalid)
        };
        let outputs = self.plan.config.outputs.iter();
        FactsConfig {
            resource: self.plan.resource.clone(),
            encodings: outputs
                .map(|output| output.kind.file_attributes())
                .collect(),
            files: input.files().is_some(),
            pods: node.map(|node| (node.clone(), self.metrics.metadata_missing.clone())),
            framing: is_framed_by_pods.then(|| Arc::new(framing())),
        }
    }
}

/// What a pipeline may have in flight, of its share.
pub(super) fn queue_bytes(plan: &PipelinePlan, share: u64) -> u64 {
    in_flight_max(
        plan.config.queue.max_bytes,
        share,
        plan.config.outputs.len(),
    )
}

/// Half of the share where an output can be detached: what such outputs hold is not charged to the others, and
/// may be as much again.
pub(super) fn in_flight_max(queue_bytes: u64, share: u64, outputs: usize) -> u64 {
    let share = match outputs {
        0 | 1 => share,
        _ => share / 2,
    };
    queue_bytes.min(share.max(QUEUE_BYTES_MIN))
}
