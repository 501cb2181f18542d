//! The pods of the benchmark: what the API server says of them, where the kubelet keeps their logs, and what an agent
//! should say of each of their records.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// How many pods the node has, of one container each.
pub(super) const PODS: u64 = 100;
pub(super) const NODE: &str = "node-1";

/// A pod of a deployment.
pub(super) struct Pod {
    number: u64,
}

pub(super) fn all() -> Vec<Pod> {
    (0..PODS).map(|number| Pod { number }).collect()
}

/// Pods of ten namespaces, ten in each.
const NAMESPACES: u64 = 10;
const CONTAINER: &str = "server";

impl Pod {
    fn namespace(&self) -> String {
        format!("team-{}", self.number % NAMESPACES)
    }

    fn app(&self) -> String {
        format!("service-{}", self.number / NAMESPACES)
    }

    /// The name of the replica set's pod.
    fn name(&self) -> String {
        format!("{}-{HASH}-x{:04x}", self.app(), self.number)
    }

    fn uid(&self) -> String {
        format!("6a1fc4b2-9d3e-4c57-8b1a-{:012x}", self.number)
    }

    fn container_id(&self) -> String {
        format!("{:064x}", self.number)
    }

    /// The log below a directory.
    pub(super) fn log(&self, dir: &Path) -> PathBuf {
        let pod = format!("{}_{}_{}", self.namespace(), self.name(), self.uid());
        dir.join(pod).join(CONTAINER).join("0.log")
    }

    /// `{"pod": ..., "attributes": ...}`: as the API server tells of it, and as each record should.
    pub(super) fn expected(&self) -> Value {
        json!({"pod": self.object(), "attributes": self.attributes()})
    }

    fn attributes(&self) -> Value {
        json!({
            "k8s.namespace.name": self.namespace(),
            "k8s.pod.name": self.name(),
            "k8s.pod.uid": self.uid(),
            "k8s.container.name": CONTAINER,
            "k8s.node.name": NODE,
            "k8s.deployment.name": self.app(),
            "k8s.pod.label.app": self.app(),
            "k8s.pod.label.version": VERSION,
            "container.id": self.container_id(),
            "container.image.name": IMAGE,
        })
    }

    fn object(&self) -> Value {
        let image = format!("{IMAGE}:{VERSION}");
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "namespace": self.namespace(),
                "name": self.name(),
                "uid": self.uid(),
                "creationTimestamp": "2026-01-02T03:04:05Z",
                "labels": {"app": self.app(), "version": VERSION, "pod-template-hash": HASH},
                "annotations": {"example.com/checksum": self.container_id()},
                "ownerReferences": [{
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": format!("{}-{HASH}", self.app()),
                    "uid": self.uid().replace("6a1fc4b2", "5b2ed1a0"),
                    "controller": true,
                }],
            },
            "spec": {"nodeName": NODE, "containers": [{"name": CONTAINER, "image": image}]},
            "status": {
                "phase": "Running",
                "startTime": "2026-01-02T03:04:05Z",
                "podIP": format!("10.1.0.{}", self.number + 1),
                "containerStatuses": [{
                    "name": CONTAINER,
                    "ready": true,
                    "restartCount": 0,
                    "containerID": format!("containerd://{}", self.container_id()),
                    "image": image,
                    "imageID": format!("{IMAGE}@sha256:{}", self.container_id()),
                    "state": {"running": {"startedAt": "2026-01-02T03:04:06Z"}},
                }],
            },
        })
    }
}

const HASH: &str = "7c9d8f6b5d";
const IMAGE: &str = "registry.example/team/service";
const VERSION: &str = "1.4.2";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_differ_and_say_alike_what_they_are() {
        let dir = Path::new("pods");
        let mut logs: Vec<PathBuf> = all().iter().map(|pod| pod.log(dir)).collect();
        logs.sort();
        logs.dedup();
        assert_eq!(logs.len() as u64, PODS);
        let pod = &all()[11];
        let log = "pods/team-1_service-1-7c9d8f6b5d-x000b_6a1fc4b2-9d3e-4c57-8b1a-00000000000b/server/0.log";
        assert_eq!(pod.log(dir), Path::new(log));
        let expected = pod.expected();
        for key in ["namespace", "name", "uid"] {
            let attribute = match key {
                "namespace" => "k8s.namespace.name".to_owned(),
                key => format!("k8s.pod.{key}"),
            };
            assert_eq!(
                expected["pod"]["metadata"][key],
                expected["attributes"][attribute]
            );
        }
    }
}
