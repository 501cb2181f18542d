//! The pods of this node, from the configured source. [`Pods`] is a handle that answers at once; its
//! tasks end when the last handle is dropped.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::config::{Config, MetadataSource};
use crate::connect::{Connect, Elsewhere, connector};
use crate::container::Container;
use crate::error::{Error, Kind};
use crate::health::Health;
use crate::pod_log::PodLog;
use crate::rules::Rules;
use crate::store::{Lookup, OnChange, Store};
use crate::{api, kubelet};

/// How it goes, for metrics and the admin page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Whether all pods were listed once.
    pub synced: bool,
    /// Pods of this moment.
    pub tracked: usize,
    /// Pods that are gone and remembered.
    pub deleted: usize,
    /// Logs whose metadata is awaited.
    pub awaited: usize,
    /// Lists asked for.
    pub lists: u64,
    /// Watches asked for.
    pub watches: u64,
    /// Attempts that failed.
    pub errors: u64,
    /// Pods that could not be read and are therefore unknown.
    pub unreadable: u64,
    /// What is wrong now, and what to do about it. None while all is well.
    pub last_error: Option<String>,
}

/// The pods of this node, kept up to date. Cheap to clone.
#[derive(Clone)]
pub struct Pods(Arc<Inner>);

struct Inner {
    /// None: paths only.
    store: Option<Arc<Store>>,
    node_name: Option<String>,
    health: Arc<Health>,
    tasks: Vec<JoinHandle<()>>,
}

impl Pods {
    /// Starts to follow the pods on `runtime`. `on_change` is called, from there, whenever
    /// [`Pods::version`] moved. Fails when the configuration is wrong or no credentials are there; a server
    /// that does not answer is no failure.
    pub fn start(config: Config, runtime: &Handle, on_change: OnChange) -> Result<Pods, Error> {
        let connect = match &config.source {
            MetadataSource::Api { kubeconfig } => connector(kubeconfig.as_deref(), None)?,
            MetadataSource::Kubelet {
                url,
                kubeconfig,
                skip_verify,
            } => {
                let elsewhere = Elsewhere {
                    url: kubelet_url(url)?,
                    skip_verify: *skip_verify,
                };
                connector(kubeconfig.as_deref(), Some(elsewhere))?
            }
            MetadataSource::Path => {
                Rules::new(&config)?;
                return Ok(Pods(Arc::new(Inner {
                    store: None,
                    node_name: config.node_name,
                    health: Arc::default(),
                    tasks: Vec::new(),
                })));
            }
        };
        Pods::start_with(config, runtime, on_change, connect)
    }

    pub(crate) fn start_with(
        config: Config,
        runtime: &Handle,
        on_change: OnChange,
        connect: Connect,
    ) -> Result<Pods, Error> {
        let rules = Rules::new(&config)?;
        let node_name = config.node_name.clone();
        let store = Arc::new(Store::new(
            rules,
            config.metadata_wait,
            config.remember_deleted,
            on_change,
        ));
        let health = Arc::new(Health::default());
        let source = {
            let (store, health) = (Arc::clone(&store), Arc::clone(&health));
            if matches!(config.source, MetadataSource::Api { .. }) {
                let node_name = checked_node_name(config.node_name)?;
                runtime.spawn(async move {
                    match api::follow(&store, &health, &connect, &node_name).await {}
                })
            } else {
                runtime
                    .spawn(async move { match kubelet::poll(&store, &health, &connect).await {} })
            }
        };
        let time = {
            let store = Arc::clone(&store);
            runtime.spawn(async move { store.keep_time().await })
        };
        Ok(Pods(Arc::new(Inner {
            store: Some(store),
            node_name,
            health,
            tasks: vec![source, time],
        })))
    }

    /// What is said of the log's container. Never waits for anyone.
    pub fn look_up(&self, log: &PodLog) -> Lookup {
        match &self.0.store {
            Some(store) => store.look_up(log),
            None => Lookup::Known(Container::of_path(log, self.0.node_name.as_deref())),
        }
    }

    /// Moves whenever an answer of [`Pods::look_up`] may have changed; to be compared once per
    /// batch. Take it before asking: then no change between the two is missed.
    pub fn version(&self) -> u64 {
        self.0.store.as_ref().map_or(0, |store| store.version())
    }

    /// How it goes.
    pub fn status(&self) -> Status {
        let Some(store) = &self.0.store else {
            return Status {
                synced: true,
                ..Status::default()
            };
        };
        let (counts, health) = (store.counts(), &self.0.health);
        Status {
            synced: health.synced.load(Ordering::Acquire),
            tracked: counts.tracked,
            deleted: counts.deleted,
            awaited: counts.awaited,
            lists: health.lists.load(Ordering::Relaxed),
            watches: health.watches.load(Ordering::Relaxed),
            errors: health.errors.load(Ordering::Relaxed),
            unreadable: health.unreadable.load(Ordering::Relaxed),
            last_error: health.last_error(),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// The name goes into a field selector, where a comma would widen what is asked for.
fn checked_node_name(name: Option<String>) -> Result<String, Kind> {
    let name = name.unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(Kind::NodeName { name });
    }
    Ok(name)
}

fn kubelet_url(url: &str) -> Result<http::Uri, Kind> {
    let fault = || Kind::Url {
        url: url.to_owned(),
    };
    let uri: http::Uri = url.parse().map_err(|_| fault())?;
    match (uri.scheme_str(), uri.host(), uri.path()) {
        (Some("http" | "https"), Some(_), "" | "/") => Ok(uri),
        _ => Err(fault()),
    }
}
