//! What is kept of a pod: no more than its attributes and the rules need. Each pod of the API becomes one
//! record, which also knows the instances of its containers seen before.

use std::collections::BTreeMap;

use crate::image::{container_id, repo_digest};
use crate::rules::Rules;
use crate::wire;

/// The API's uid of a static pod is not the one in its path, which is one of these.
const STATIC_HASHES: [&str; 2] = ["kubernetes.io/config.hash", "kubernetes.io/config.mirror"];

/// A status names the latest instance of a container and the one before; this many are remembered, for
/// logs that are read late.
const INSTANCES_MAX: u32 = 8;

/// A pod. Two that are equal give the same attributes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Facts {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) node_name: String,
    pub(crate) labels: BTreeMap<String, String>,
    /// Only those that [`Rules::keep_annotations`] keeps.
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) owner: Option<Owner>,
    /// The uid in the path of a static pod's logs.
    pub(crate) config_hash: Option<String>,
    containers: BTreeMap<String, Container>,
}

/// Who made the pod and keeps it alive.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Owner {
    pub(crate) kind: String,
    pub(crate) name: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Container {
    image: String,
    /// How often it was restarted by the latest status.
    restart_count: Option<u32>,
    /// By restart count.
    instances: BTreeMap<u32, Instance>,
}

/// One run of a container.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Instance {
    /// Without the name of the runtime.
    pub(crate) id: String,
    pub(crate) repo_digest: Option<String>,
}

impl Facts {
    /// Takes a pod and what was known of it before.
    pub(crate) fn new(mut pod: wire::Pod, before: Option<&Facts>, rules: &Rules) -> Facts {
        let metadata = &mut pod.metadata;
        let config_hash = STATIC_HASHES
            .iter()
            .find_map(|key| metadata.annotations.get(*key).cloned());
        rules.keep_annotations(&mut metadata.annotations);
        let owners = std::mem::take(&mut metadata.owner_references);
        let owner = owners.into_iter().find(|owner| owner.controller);

        let mut containers: BTreeMap<String, Container> = BTreeMap::new();
        let spec = pod.spec;
        let kinds = [
            spec.containers,
            spec.init_containers,
            spec.ephemeral_containers,
        ];
        for container in kinds.into_iter().flatten() {
            let known = before.and_then(|facts| facts.containers.get(&container.name));
            let mut kept = known.cloned().unwrap_or_default();
            kept.image = container.image;
            containers.insert(container.name, kept);
        }
        let status = pod.status;
        let kinds = [
            status.container_statuses,
            status.init_container_statuses,
            status.ephemeral_container_statuses,
        ];
        for status in kinds.into_iter().flatten() {
            let name = status.name.clone();
            containers.entry(name).or_default().update(status);
        }
        Facts {
            namespace: pod.metadata.namespace,
            name: pod.metadata.name,
            uid: pod.metadata.uid,
            node_name: spec.node_name,
            labels: pod.metadata.labels,
            annotations: pod.metadata.annotations,
            owner: owner.map(|owner| Owner {
                kind: owner.kind,
                name: owner.name,
            }),
            config_hash,
            containers,
        }
    }

    /// The reference of the container's image, as the pod's author wrote it.
    pub(crate) fn image(&self, container: &str) -> Option<&str> {
        let image = &self.containers.get(container)?.image;
        (!image.is_empty()).then_some(image)
    }

    pub(crate) fn instance(&self, container: &str, restart_count: u32) -> Option<&Instance> {
        let container = self.containers.get(container)?;
        container.instances.get(&restart_count)
    }

    /// Whether a later status may still name this instance: the kubelet reports a container some time
    /// after it wrote its first lines. Of those before the latest one it never will.
    pub(crate) fn may_name(&self, container: &str, restart_count: u32) -> bool {
        let container = self.containers.get(container);
        let latest = container.and_then(|container| container.restart_count);
        let named =
            container.is_some_and(|container| container.instances.contains_key(&restart_count));
        !named && latest.is_none_or(|latest| restart_count >= latest)
    }
}

impl Container {
    fn update(&mut self, status: wire::ContainerStatus) {
        let latest = status.restart_count;
        self.restart_count = Some(latest);
        let last = container_id(&status.last_state.terminated.container_id);
        let id = container_id(&status.container_id);
        // A container that waits to be restarted is still named by its last run, as is its last state.
        if !last.is_empty() && !id.is_empty() && last != id && latest > 0 {
            let instance = self.instances.entry(latest - 1).or_default();
            last.clone_into(&mut instance.id);
        }
        if !id.is_empty() {
            let instance = Instance {
                id: id.to_owned(),
                repo_digest: repo_digest(&status.image_id).map(str::to_owned),
            };
            self.instances.insert(latest, instance);
        }
        let oldest = latest.saturating_sub(INSTANCES_MAX - 1);
        self.instances.retain(|count, _| *count >= oldest);
    }
}
