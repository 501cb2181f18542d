//! The crate against scripted servers: an API server and a kubelet in memory, in time that only passes when
//! nothing is left to do, and once over a real socket with TLS.

mod api;
mod fake;
mod instances;
mod kubelet;
mod network;
mod store;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use crate::attributes::Attribute;
use crate::config::{Config, MetadataSource};
use crate::pods::Pods;
use crate::{Container, Lookup, PodLog};

use fake::Fake;

pub(crate) const NODE: &str = "node-1";

/// The agent's half and the server's half.
struct World {
    pods: Pods,
    server: Fake,
    changed: Arc<Notify>,
}

impl World {
    fn start(config: Config) -> World {
        let (connect, server) = Fake::new();
        let changed = Arc::new(Notify::new());
        let notify = Arc::clone(&changed);
        let on_change = Arc::new(move || notify.notify_one());
        let pods = Pods::start_with(config, &Handle::current(), on_change, connect).unwrap();
        World {
            pods,
            server,
            changed,
        }
    }

    fn api() -> World {
        World::start(api_config())
    }

    /// Waits for change after change until `get` gives something. An hour of test time is never.
    async fn until<T>(&self, mut get: impl FnMut(&Pods) -> Option<T>) -> T {
        let found = async {
            loop {
                if let Some(found) = get(&self.pods) {
                    return found;
                }
                self.changed.notified().await;
            }
        };
        let hour = Duration::from_secs(3600);
        tokio::time::timeout(hour, found).await.unwrap()
    }

    async fn known(&self, log: &PodLog) -> Arc<Container> {
        self.until(|pods| match pods.look_up(log) {
            Lookup::Known(container) => Some(container),
            _ => None,
        })
        .await
    }

    async fn unknown(&self, log: &PodLog) -> Arc<Container> {
        self.until(|pods| match pods.look_up(log) {
            Lookup::Unknown(container) => Some(container),
            _ => None,
        })
        .await
    }
}

fn api_config() -> Config {
    Config {
        node_name: Some(NODE.to_owned()),
        labels: vec!["*".to_owned()],
        ..Config::new(MetadataSource::Api { kubeconfig: None })
    }
}

fn log(pod: &str, container: &str, restart_count: u32) -> PodLog {
    PodLog {
        namespace: "shop".to_owned(),
        pod: pod.to_owned(),
        uid: format!("uid-{pod}"),
        container: container.to_owned(),
        restart_count: Some(restart_count),
    }
}

/// A running pod with one container, `app`, started once.
fn pod(name: &str, version: u32) -> Value {
    json!({
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": format!("uid-{name}"),
            "resourceVersion": version.to_string(),
            "labels": {"app": name},
            "managedFields": [{"manager": "kubelet"}],
        },
        "spec": {"nodeName": NODE, "containers": [{"name": "app", "image": "r.io/app:1.2"}]},
        "status": {
            "phase": "Running",
            "containerStatuses": [{
                "name": "app",
                "restartCount": 0,
                "containerID": format!("containerd://{name}-0"),
                "imageID": "r.io/app@sha256:aa",
                "state": {"running": {"startedAt": "2026-11-21T10:00:00Z"}},
                "lastState": {},
            }],
        },
    })
}

fn list(version: u32, items: &[Value]) -> Value {
    json!({
        "kind": "PodList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": version.to_string()},
        "items": items,
    })
}

fn text<'a>(container: &'a Container, key: &str) -> Option<&'a str> {
    match attribute(container, key)? {
        Attribute::Str(text) => Some(text),
        other => panic!("{key}: {other:?}"),
    }
}

fn attribute<'a>(container: &'a Container, key: &str) -> Option<&'a Attribute> {
    let mut found = container
        .attributes
        .iter()
        .filter(|(known, _)| **known == *key);
    let value = found.next().map(|(_, value)| value);
    assert!(found.next().is_none(), "{key} twice");
    value
}
