//! Which pods' metadata is asked for, where, and what becomes of it: the plain structs a caller fills in.

use std::path::PathBuf;
use std::time::Duration;

/// Who is asked for metadata.
#[derive(Clone, Debug)]
pub enum MetadataSource {
    /// The API server: one watch of the pods of [`Config::node_name`].
    Api {
        /// Access other than the pod's service account.
        kubeconfig: Option<PathBuf>,
    },
    /// This node's kubelet, polled.
    Kubelet {
        /// Such as `https://10.0.0.1:10250`.
        url: String,
        /// Access other than the pod's service account.
        kubeconfig: Option<PathBuf>,
        /// Takes any certificate: many kubelets sign their own. The token is shown to whoever answers.
        skip_verify: bool,
    },
    /// Nobody: what the path says is all.
    Path,
}

/// Which pods' metadata is taken from where, and what becomes of it.
#[derive(Clone, Debug)]
pub struct Config {
    /// Who is asked.
    pub source: MetadataSource,
    /// The node the agent runs on. [`MetadataSource::Api`] needs it.
    pub node_name: Option<String>,
    /// Globs of labels that become `k8s.pod.label.KEY`.
    pub labels: Vec<String>,
    /// Globs of annotations that become `k8s.pod.annotation.KEY`.
    pub annotations: Vec<String>,
    /// Whether `app.kubernetes.io/*` labels name the service.
    pub service_from_labels: bool,
    /// Whether [`Container::framing`](crate::Container::framing) is wanted.
    pub framing: bool,
    /// Only pods with such labels are read: `a=b,c!=d,e in (x,y),!f`. Empty: all.
    pub pod_selector: String,
    /// How long an answer is awaited at most.
    pub metadata_wait: Duration,
    /// How long a deleted pod is remembered.
    pub remember_deleted: Duration,
}

impl Config {
    /// The defaults.
    pub fn new(source: MetadataSource) -> Config {
        Config {
            source,
            node_name: None,
            labels: Vec::new(),
            annotations: Vec::new(),
            service_from_labels: false,
            framing: false,
            pod_selector: String::new(),
            metadata_wait: Duration::from_secs(5),
            remember_deleted: Duration::from_secs(600),
        }
    }
}
