//! What triggers a reload, and the queue of triggers.

use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};

use tailrace_pipeline::Reloaded;
use tokio::sync::oneshot;

/// Why the config is checked again.
pub(crate) enum Trigger {
    /// SIGHUP.
    Signal,
    /// A file may have changed.
    Files,
    /// A client asked for a reload and waits for the answer.
    Asked(oneshot::Sender<Answer>),
}

/// The result of a reload: the pipelines, or the error as text.
pub(crate) type Answer = Result<Reloaded, String>;

/// The most triggers that wait. Further ones are covered by these.
const TRIGGERS_MAX: usize = 16;

/// Creates the queue of triggers.
pub(crate) fn triggers() -> (SyncSender<Trigger>, Receiver<Trigger>) {
    mpsc::sync_channel(TRIGGERS_MAX)
}

/// Requests a reload. Returns false if the queue is full or closed, so that nobody would answer.
pub(crate) fn pull(triggers: &SyncSender<Trigger>, trigger: Trigger) -> bool {
    match triggers.try_send(trigger) {
        // One that waits will see all that this one would.
        Ok(()) | Err(TrySendError::Full(Trigger::Signal | Trigger::Files)) => true,
        Err(TrySendError::Full(Trigger::Asked(_)) | TrySendError::Disconnected(_)) => false,
    }
}
