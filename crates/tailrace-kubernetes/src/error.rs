//! Why the pods of this node cannot be followed with this configuration. What goes wrong afterwards is no
//! error: it is retried, counted and reported by [`crate::Status`].

use std::path::PathBuf;

/// The configuration is wrong, or the access it names is not there.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] Kind);

impl Error {
    /// The key of the configuration that is at fault, such as `node_name`.
    pub fn field(&self) -> &str {
        match &self.0 {
            Kind::Glob { field, .. } => field,
            Kind::Selector { .. } => "pod_selector",
            Kind::NodeName { .. } => "node_name",
            Kind::Url { .. } => "url",
            Kind::Kubeconfig { .. } => "kubeconfig",
            Kind::InCluster { .. } => "source",
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Kind {
    #[error("{field}: `{glob}` is not a glob")]
    Glob {
        field: &'static str,
        glob: String,
        source: globset::Error,
    },
    #[error("pod_selector: {message} at character {position} of `{text}`")]
    Selector {
        text: String,
        /// Counted from 1.
        position: usize,
        message: &'static str,
    },
    #[error(
        "node_name: `{name}` is not the name of a node: set it from the downward API (spec.nodeName)"
    )]
    NodeName { name: String },
    #[error("url: `{url}` is not the address of a kubelet, such as https://10.0.0.1:10250")]
    Url { url: String },
    #[error("kubeconfig: cannot use {}", path.display())]
    Kubeconfig {
        path: PathBuf,
        source: kube::config::KubeconfigError,
    },
    #[error(
        "no service account is mounted here: set automountServiceAccountToken, name a kubeconfig, or \
         take the attributes from paths only"
    )]
    InCluster {
        source: kube::config::InClusterError,
    },
}

/// An error and its causes on one line, each text once.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}
