//! The token of the admin endpoint, shared by the endpoint and the reloads that change it.

use std::sync::{Arc, Mutex, PoisonError};

use tailrace_config::Secret;

/// The token of the config in use, shared between threads. A reload replaces it.
#[derive(Clone, Default)]
pub(crate) struct Token(Arc<Mutex<Option<Secret>>>);

impl Token {
    pub(crate) fn new(secret: Option<Secret>) -> Self {
        Self(Arc::new(Mutex::new(secret)))
    }

    /// Replaces the token.
    pub(crate) fn set(&self, secret: Option<Secret>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = secret;
    }

    /// The token, if the config has one.
    pub(crate) fn get(&self) -> Option<Secret> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
