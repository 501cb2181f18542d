//! The pods of one node, and what the agent says of a container's log.
//!
//! [`Pods::look_up`] returns the attributes of the container whose log has a given path ([`PodLog`]): from
//! the path alone, or with what the API server (one watch) or the kubelet (polled) says of the pod. Asking
//! never blocks: an answer is there, or it is awaited, or it will not come; [`Pods::version`] says when
//! to ask again. A deleted pod is remembered, because its log is read on.
//!
//! It never opens a log, never reads a record, and never asks for the pods of another node.

mod api;
mod asked;
mod attempts;
mod attributes;
mod config;
mod connect;
mod container;
mod error;
mod facts;
mod framing;
mod health;
mod image;
mod kubelet;
mod pod_log;
mod pods;
mod rules;
mod selection;
mod selector;
mod store;
#[cfg(test)]
mod tests;
mod wire;

pub use attributes::{Attribute, path_attributes};
pub use config::{Config, MetadataSource};
pub use container::Container;
pub use error::Error;
pub use framing::{FramingAnnotations, Said};
pub use pod_log::PodLog;
pub use pods::{Pods, Status};
pub use selection::{Globs, Selection, SelectionConfig};
pub use store::Lookup;
