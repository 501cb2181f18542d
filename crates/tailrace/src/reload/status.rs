//! What the status page and the metrics report of the config and its reloads. It records outcomes and decides
//! nothing.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use serde_json::{Value, json};

/// The state of the config, for other threads.
#[derive(Debug, Clone)]
pub(crate) struct Status(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    successful: Gauge,
    hash: Gauge,
    at: Gauge<f64, AtomicU64>,
    reloads: Family<Labels, Counter>,
}

#[derive(Debug, Default)]
struct State {
    /// Why the last reload failed, if it did.
    error: Option<String>,
    needs_restart: Vec<&'static str>,
    succeeded: u64,
    failed: u64,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Labels {
    result: &'static str,
}

impl Status {
    /// The config that the agent starts with is in use.
    pub(crate) fn register(registry: &mut Registry, hash: u64) -> Self {
        let inner = Inner {
            state: Mutex::default(),
            successful: Gauge::default(),
            hash: Gauge::default(),
            at: Gauge::default(),
            reloads: Family::default(),
        };
        let r = registry.sub_registry_with_prefix("tailrace");
        r.register(
            "config_last_reload_successful",
            "1 unless the last reload of the config failed",
            inner.successful.clone(),
        );
        r.register_with_unit(
            "config_last_reload_timestamp",
            "when the config in use was taken into use, since the Unix epoch",
            Unit::Seconds,
            inner.at.clone(),
        );
        r.register(
            "config_hash",
            "hash of the configuration files in use, without secrets",
            inner.hash.clone(),
        );
        r.register(
            "config_reloads",
            "reloads of the config, by what came of them",
            inner.reloads.clone(),
        );
        for result in [SUCCESS, FAILURE] {
            drop(inner.reloads.get_or_create(&Labels { result }));
        }
        let status = Self(Arc::new(inner));
        status.in_use(hash);
        status
    }

    /// A reload was taken into use.
    pub(super) fn succeeded(&self, hash: u64, needs_restart: Vec<&'static str>) {
        self.in_use(hash);
        self.count(SUCCESS);
        let mut state = self.state();
        state.succeeded += 1;
        state.error = None;
        state.needs_restart = needs_restart;
    }

    /// A config was taken into use, but not all of it.
    pub(super) fn incomplete(&self, hash: u64, needs_restart: Vec<&'static str>, error: String) {
        self.in_use(hash);
        self.state().needs_restart = needs_restart;
        self.failed(error);
    }

    /// A reload failed.
    pub(super) fn failed(&self, error: String) {
        self.0.successful.set(0);
        self.count(FAILURE);
        let mut state = self.state();
        state.failed += 1;
        state.error = Some(error);
    }

    /// For the status page.
    pub(crate) fn report(&self) -> Value {
        let state = self.state();
        let since_unix_s = self.0.at.get();
        json!({
            "hash": self.0.hash.get(),
            "in_use_since_unix_s": since_unix_s,
            // Deprecated: the former name of the same time. The next version is without it.
            "in_use_since_seconds": since_unix_s,
            "reloads": {"succeeded": state.succeeded, "failed": state.failed},
            "error": state.error,
            "needs_restart": state.needs_restart,
        })
    }

    fn in_use(&self, hash: u64) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        self.0.at.set(since.unwrap_or_default().as_secs_f64());
        self.0.hash.set(i64::try_from(hash).unwrap_or(i64::MAX));
        self.0.successful.set(1);
    }

    fn count(&self, result: &'static str) {
        self.0.reloads.get_or_create(&Labels { result }).inc();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const SUCCESS: &str = "success";
const FAILURE: &str = "failure";
