//! A panic in a thread or task of the agent, but for what a worker contains (`process/worker/contained.rs`). What it held is a nack and stays unacknowledged, but
//! nothing in this process reads it again; so the agent drains what it can and ends, and the next
//! start reads on from the watermarks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinError;
use tracing::error;

/// Reports panics, and what else ends the agent, to the agent.
#[derive(Debug, Clone)]
pub(crate) struct Faults(Arc<watch::Sender<Option<Ending>>>);

/// Why the agent ends by itself; the later one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ending {
    /// The other side of an output has gone: the agent ends as at a signal.
    OutputClosed,
    Fault,
}

impl Faults {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }

    /// Runs something; a panic in it is a fault.
    pub(crate) fn guard(&self, what: &str, run: impl FnOnce()) {
        // Whatever it left half done is not used again: the agent ends.
        if catch_unwind(AssertUnwindSafe(run)).is_err() {
            self.raise(what);
        }
    }

    /// Looks at how a task ended.
    pub(crate) fn check(&self, ended: Result<(), JoinError>) {
        if ended.is_err_and(|error| error.is_panic()) {
            self.raise("a delivery");
        }
    }

    fn raise(&self, what: &str) {
        error!(
            what,
            "a panic: this is a bug, please report it; the agent ends, and its next start goes on \
             from what was delivered"
        );
        self.end_agent();
    }

    /// Has the agent end; whoever calls it has said why.
    pub(crate) fn end_agent(&self) {
        self.0.send_replace(Some(Ending::Fault));
    }

    /// Has the agent end as at a signal: nothing can be written to an output any more.
    pub(crate) fn output_closed(&self) {
        self.0
            .send_modify(|ending| *ending = (*ending).max(Some(Ending::OutputClosed)));
    }

    /// Whether there was a fault.
    pub(crate) fn any(&self) -> bool {
        *self.0.borrow() == Some(Ending::Fault)
    }

    /// Ready at the first fault.
    pub(crate) async fn first(&self) {
        let is_fault = |&ending: &Option<Ending>| ending == Some(Ending::Fault);
        // The sender is ours: it cannot be gone.
        let _ = self.0.subscribe().wait_for(is_fault).await;
    }

    /// Ready when the agent is to end by itself.
    pub(crate) async fn ends(&self) {
        let _ = self.0.subscribe().wait_for(Option::is_some).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_fault_and_nothing_else_is() {
        let faults = Faults::new();
        faults.guard("a test", || {});
        assert!(!faults.any());
        faults.output_closed();
        assert!(!faults.any());
        faults.guard("a test", || panic!("on purpose"));
        faults.output_closed();
        assert!(faults.any());
    }
}
