//! How it goes with the API server or the kubelet. Counts failures and successes and, while something is
//! wrong, has a text that says what to do about it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::connect::ConnectError;
use crate::error::chain;

#[derive(Default)]
pub(crate) struct Health {
    pub(crate) synced: AtomicBool,
    pub(crate) lists: AtomicU64,
    pub(crate) watches: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) unreadable: AtomicU64,
    problem: Mutex<Option<String>>,
}

/// Why an attempt failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Request(#[from] kube::Error),
    #[error("no answer within {0} s")]
    Slow(u64),
    #[error("the answer is not a list of pods")]
    NoList(#[source] serde_json::Error),
    #[error("the watch ended as soon as it began")]
    Closed,
    #[error("cannot make the request")]
    Build(#[source] kube::core::request::Error),
    #[error("cannot make the request")]
    Http(#[source] http::Error),
}

impl Failure {
    /// The version asked for is too old: only a new list helps.
    pub(crate) fn is_gone(&self) -> bool {
        self.code() == Some(410)
    }

    fn code(&self) -> Option<u16> {
        match self {
            Failure::Request(kube::Error::Api(status)) => Some(status.code),
            _ => None,
        }
    }
}

/// What a server said: something else than Kubernetes answers with nothing, or with a page.
fn said(message: &str, code: u16) -> &str {
    let message = message.trim();
    if !message.is_empty() && !message.starts_with('<') {
        return message;
    }
    let status = http::StatusCode::from_u16(code).ok();
    let reason = status.and_then(|status| status.canonical_reason());
    reason.unwrap_or("the server refused")
}

impl Health {
    pub(crate) fn failed(&self, what: &str, permission: &str, failure: &Failure) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        let cause = match failure {
            Failure::Request(kube::Error::Api(status)) => {
                format!("{} ({})", said(&status.message, status.code), status.code)
            }
            other => chain(other),
        };
        let hint = match failure.code() {
            Some(401) => "; the credentials were refused: check the service account's token",
            Some(403) => permission,
            Some(404) => "; is this the address of a Kubernetes API server or a kubelet?",
            _ => "",
        };
        *self.problem() = Some(format!("{what}: {cause}{hint}"));
    }

    pub(crate) fn succeeded(&self) {
        *self.problem() = None;
    }

    pub(crate) fn last_error(&self) -> Option<String> {
        self.problem().clone()
    }

    fn problem(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
