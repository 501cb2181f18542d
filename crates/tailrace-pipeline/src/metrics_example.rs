//! Every metric of the pipelines, with each value of its closed labels: what a page about the metrics lists.

use prometheus_client::registry::Registry;
use tailrace_inputs::{LossReason, SkipReason};
use tailrace_outputs::delivery::RetryCause;

use crate::input::input_queue::{EXCLUDED, OVERSIZE};
use crate::metrics::Metrics;

/// Registers the metrics of an agent with one pipeline and one output. Nothing has happened in them, but each value of a
/// closed label has been there, so that it is encoded.
pub fn example_metrics(registry: &mut Registry) {
    let pipeline = Metrics::register(registry).pipeline("app", &["otlp".to_owned()]);
    for reason in LossReason::ALL {
        pipeline.lost(reason.as_str(), 0);
    }
    for reason in SkipReason::ALL {
        pipeline.skipped(reason.as_str(), 0);
    }
    for reason in [EXCLUDED, OVERSIZE] {
        pipeline.skipped(reason, 0);
    }
    for cause in RetryCause::ALL {
        pipeline.outputs[0].retried(cause.as_str());
    }
}
