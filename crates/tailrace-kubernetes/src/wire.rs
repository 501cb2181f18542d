//! The part of the API's pods that the facts need. Everything may be absent or null: what an API server
//! says is data, never a fault of ours. What is not named here is not kept, not even for a moment.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A list of pods, each still text, so that one that cannot be read does not take the others with it.
#[derive(Deserialize)]
pub(crate) struct List<'a> {
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) metadata: ListMetadata,
    #[serde(default, borrow, deserialize_with = "nullable")]
    pub(crate) items: Vec<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ListMetadata {
    #[serde(deserialize_with = "nullable")]
    pub(crate) resource_version: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Pod {
    #[serde(deserialize_with = "nullable")]
    pub(crate) metadata: Metadata,
    #[serde(deserialize_with = "nullable")]
    pub(crate) spec: Spec,
    #[serde(deserialize_with = "nullable")]
    pub(crate) status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Metadata {
    #[serde(deserialize_with = "nullable")]
    pub(crate) name: String,
    #[serde(deserialize_with = "nullable")]
    pub(crate) namespace: String,
    #[serde(deserialize_with = "nullable")]
    pub(crate) uid: String,
    #[serde(deserialize_with = "nullable")]
    pub(crate) labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable")]
    pub(crate) annotations: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable")]
    pub(crate) owner_references: Vec<OwnerReference>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct OwnerReference {
    #[serde(deserialize_with = "nullable")]
    pub(crate) kind: String,
    #[serde(deserialize_with = "nullable")]
    pub(crate) name: String,
    #[serde(deserialize_with = "nullable")]
    pub(crate) controller: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Spec {
    #[serde(deserialize_with = "nullable")]
    pub(crate) node_name: String,
    #[serde(deserialize_with = "nullable")]
    pub(crate) containers: Vec<Container>,
    #[serde(deserialize_with = "nullable")]
    pub(crate) init_containers: Vec<Container>,
    #[serde(deserialize_with = "nullable")]
    pub(crate) ephemeral_containers: Vec<Container>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Container {
    #[serde(deserialize_with = "nullable")]
    pub(crate) name: String,
    #[serde(deserialize_with = "nullable")]
    pub(crate) image: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Status {
    #[serde(deserialize_with = "nullable")]
    pub(crate) container_statuses: Vec<ContainerStatus>,
    #[serde(deserialize_with = "nullable")]
    pub(crate) init_container_statuses: Vec<ContainerStatus>,
    #[serde(deserialize_with = "nullable")]
    pub(crate) ephemeral_container_statuses: Vec<ContainerStatus>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ContainerStatus {
    #[serde(deserialize_with = "nullable")]
    pub(crate) name: String,
    #[serde(deserialize_with = "nullable")]
    pub(crate) restart_count: u32,
    #[serde(rename = "containerID", deserialize_with = "nullable")]
    pub(crate) container_id: String,
    #[serde(rename = "imageID", deserialize_with = "nullable")]
    pub(crate) image_id: String,
    #[serde(deserialize_with = "nullable")]
    pub(crate) last_state: LastState,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LastState {
    #[serde(deserialize_with = "nullable")]
    pub(crate) terminated: Terminated,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Terminated {
    #[serde(rename = "containerID", deserialize_with = "nullable")]
    pub(crate) container_id: String,
}

/// A null is an absent value: Go writes an empty list so.
fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}
