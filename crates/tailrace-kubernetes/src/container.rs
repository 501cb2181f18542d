//! The answer to a question about a log's container.

use std::sync::Arc;

use crate::attributes::{Attribute, path_attributes};
use crate::framing::FramingAnnotations;
use crate::pod_log::PodLog;

/// What is said of a container's log.
#[derive(Debug, PartialEq)]
pub struct Container {
    /// Resource attributes, each key once.
    pub attributes: Vec<(Box<str>, Attribute)>,
    /// The rule by which the log is not to be read, if there is one.
    pub excluded: Option<&'static str>,
    /// How its lines are to be read, if that was wanted.
    pub framing: FramingAnnotations,
    /// Another one for other content. Zero for what is known from the path alone.
    pub revision: u64,
}

impl Container {
    pub(crate) fn of_path(log: &PodLog, node_name: Option<&str>) -> Arc<Container> {
        Arc::new(Container {
            attributes: path_attributes(log, node_name),
            excluded: None,
            framing: FramingAnnotations::default(),
            revision: 0,
        })
    }
}
