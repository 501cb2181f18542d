//! A running pipeline at a glance, for whoever looks at the agent: its parts, how each stands, and what was counted. Counts
//! nothing itself.

use std::time::Instant;

use crate::delivery::outputs::OutputHandle;
use crate::delivery::standing::OutputState;
use crate::ledger::{OutputLedger, PipelineLedger};
use crate::pipeline::Pipeline;

/// A running pipeline.
#[derive(Debug, Clone)]
pub struct PipelineOverview {
    /// Name of the pipeline.
    pub name: String,
    /// The query as it may be shown: with the names of values from outside.
    pub query: String,
    /// Its inputs.
    pub inputs: Vec<InputOverview>,
    /// What became of its bytes and records.
    pub ledger: PipelineLedger,
    /// Bound on the bytes in flight.
    pub queue_capacity_bytes: u64,
    /// Records for which an expression failed.
    pub failed_rows: u64,
    /// Files that are open.
    pub files_open: u64,
    /// Its outputs, in the order of those of the ledger.
    pub outputs: Vec<OutputOverview>,
}

/// One input of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputOverview {
    /// Its type, with a number where several inputs have the same.
    pub name: String,
    /// Its type.
    pub type_name: &'static str,
}

/// One output of a pipeline.
#[derive(Debug, Clone)]
pub struct OutputOverview {
    /// Its type.
    pub type_name: &'static str,
    /// Where it sends to: a URL or a path. `None` where there is only one such place.
    pub endpoint: Option<String>,
    /// Whether it delivers.
    pub state: OutputState,
}

impl PipelineOverview {
    pub(crate) fn of(pipeline: &Pipeline, now: Instant) -> Self {
        let gauge = |n: i64| u64::try_from(n).unwrap_or(0);
        let config = &pipeline.plan.config;
        let ledger = pipeline.ledger();
        let outputs = config.outputs.iter().zip(&pipeline.outputs);
        let outputs = outputs.zip(&ledger.outputs);
        let outputs = outputs.map(|((config, handle), ledger)| OutputOverview {
            type_name: config.kind.type_name(),
            endpoint: config.kind.endpoint(),
            state: state(handle, ledger, now),
        });
        let outputs = outputs.collect();
        let types = config.inputs.iter().map(|input| input.type_name());
        Self {
            name: pipeline.plan.name.clone(),
            query: config.transform.shown.clone(),
            inputs: named(&types.collect::<Vec<_>>()),
            queue_capacity_bytes: gauge(pipeline.metrics.queue_capacity.get()),
            failed_rows: pipeline.metrics.failed_rows.get(),
            files_open: gauge(pipeline.metrics.files_open.get()),
            outputs,
            ledger,
        }
    }
}

/// What is worse is said first.
fn state(handle: &OutputHandle, ledger: &OutputLedger, now: Instant) -> OutputState {
    if ledger.holding {
        OutputState::Holding
    } else if handle.is_failing() || handle.said().is_some() || ledger.compared > 0 {
        OutputState::Retrying
    } else if ledger.detached > 0 {
        OutputState::Detached
    } else if ledger.in_flight_requests == 0 && handle.standing().is_quiet(now) {
        OutputState::Idle
    } else {
        OutputState::Ok
    }
}

/// Inputs have no names: each is named by its type, and numbered where there are several of it.
fn named(types: &[&'static str]) -> Vec<InputOverview> {
    let count = |name: &str, types: &[&str]| types.iter().filter(|other| **other == name).count();
    let name = |(at, &type_name): (usize, &&'static str)| InputOverview {
        name: match count(type_name, types) {
            1 => type_name.to_owned(),
            _ => format!("{type_name} {}", count(type_name, &types[..=at])),
        },
        type_name,
    };
    types.iter().enumerate().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_of_one_type_are_numbered() {
        let named = named(&["file", "stdin", "file"]);
        let names: Vec<&str> = named.iter().map(|input| input.name.as_str()).collect();
        assert_eq!(names, ["file 1", "stdin", "file 2"]);
        assert_eq!(named[2].type_name, "file");
    }
}
