//! A panic in a thread or task of the agent, but for what a worker contains (`process/worker/contained.rs`). What it held is a nack and stays unacknowledged, but
//! nothing in this process reads it again; so the agent drains what it can and ends, and the next
//! start reads on from the watermarks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinError;
use tracing::error;

/// Reports panics to the agent.
#[derive(Debug, Clone)]
pub(crate) struct Faults(Arc<watch::Sender<bool>>);

impl Faults {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
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
        self.0.send_replace(true);
    }

    /// Whether there was one.
    pub(crate) fn any(&self) -> bool {
        *self.0.borrow()
    }

    /// Ready at the first one.
    pub(crate) async fn first(&self) {
        // The sender is ours: it cannot be gone.
        let _ = self.0.subscribe().wait_for(|&fault| fault).await;
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
        faults.guard("a test", || panic!("on purpose"));
        assert!(faults.any());
    }
}
