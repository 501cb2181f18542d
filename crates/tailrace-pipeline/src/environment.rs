//! What only the machine can report about a config: whether certificates, credentials and logs are there and may be read.
//!
//! Takes plans, opens what the start would open, in the same way, and closes it again; gives what is wrong, where it is
//! written down. Sends nothing to an output and reads no log.

use std::error::Error as _;

use tailrace_config::{Diagnostic, Position};
use tailrace_inputs::Denied;
use tokio::runtime::Handle;

use crate::error::Error;
use crate::pipeline::check_nodes;
use crate::plan::PipelinePlan;

/// Everything that would keep `run` from starting this pipeline here, and what it could not read.
pub fn check_environment(plan: &PipelinePlan, runtime: &Handle) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    if let Err(error) = check_nodes(plan, runtime) {
        let inputs = plan.config.inputs.iter();
        let asks = inputs.map(|input| &input.position).next();
        diagnostics.extend(asks.map(|position| at(position, &error)));
    }
    for output in &plan.config.outputs {
        if let Err(error) = crate::delivery::output_config::open(&plan.name, output, runtime) {
            diagnostics.push(at(&output.position, &error));
        }
    }
    for input in &plan.config.inputs {
        if let Err(error) = input.claims() {
            let message = format!("input: {error}");
            diagnostics.push(Diagnostic::new(&input.position, 1, message));
        }
    }
    for (position, (path, message)) in unreadable(plan) {
        let message = format!("input: {} {message}", path.display());
        diagnostics.push(Diagnostic::new(position, 1, message));
    }
    diagnostics
}

/// What the inputs of a pipeline may not read, each with the place of its input in the config.
pub fn unreadable(plan: &PipelinePlan) -> Vec<(&Position, Denied)> {
    let mut all = Vec::new();
    for input in &plan.config.inputs {
        // A glob that cannot be read names nothing.
        let denied = input
            .files()
            .and_then(|files| tailrace_inputs::denied(&files).ok());
        let denied = denied.into_iter().flatten();
        all.extend(denied.map(|denied| (&input.position, denied)));
    }
    all
}

fn at(position: &Position, error: &Error) -> Diagnostic {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let text = next.to_string();
        // Some errors report their cause themselves.
        if !message.ends_with(&text) {
            message = format!("{message}: {text}");
        }
        cause = next.source();
    }
    Diagnostic::new(position, 1, message)
}
