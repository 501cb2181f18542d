//! The kubernetes input: which files it follows, whose metadata it asks for, and which sources wait for it.
//!
//! Takes the input's configuration, gives a follower's configuration and a handle to the pods of the node. Never
//! opens a log and never decides what is said of a pod: that is tailrace-kubernetes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tailrace_config::{KubernetesInput, Metadata};
use tailrace_input::{FileConfig, SourceId};
use tailrace_kubernetes::{
    Attribute, Container, Lookup, MetadataSource, PodLog, Pods, path_attributes,
};
use tailrace_otlp::Value;
use tokio::runtime::Handle;

/// Many containers write a line now and then, and the kubelet never truncates a log: fewer and larger reads cost less
/// (docs/decisions/0014).
const COALESCE: Duration = Duration::from_millis(100);

/// The attribute of what was sent without its pod's metadata, because that did not come in time.
const METADATA_MISSING: &str = "tailrace.metadata_missing";

/// The pods of the node and where their logs are.
#[derive(Clone)]
pub(crate) struct NodePods {
    pods: Pods,
    logs_dir: PathBuf,
    node_name: Option<String>,
}

impl std::fmt::Debug for NodePods {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("NodePods")
            .field("logs_dir", &self.logs_dir)
            .finish_non_exhaustive()
    }
}

/// What is said of a source, as far as it is known now.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) attributes: Vec<(String, Value)>,
    /// The rule by which the source is not read.
    pub(crate) excluded: Option<&'static str>,
    /// The metadata did not come in time.
    pub(crate) is_missing: bool,
    /// Another one for other content.
    pub(crate) revision: u64,
    /// Where it is from; a pod that is gone is remembered as long as somebody has this. None while it is awaited.
    pub(crate) container: Option<Arc<Container>>,
}

/// Where an input asks for metadata, as `tailrace_kubernetes` wants it.
pub(crate) fn pods_config(input: &KubernetesInput) -> tailrace_kubernetes::Config {
    let kubeconfig = input.kubeconfig.clone();
    let source = match input.metadata {
        Metadata::Api => MetadataSource::Api { kubeconfig },
        Metadata::Kubelet => MetadataSource::Kubelet {
            url: input.kubelet.clone().unwrap_or_else(kubelet_of_node),
            kubeconfig,
            skip_verify: input.kubelet_skip_verify,
        },
        Metadata::Path => MetadataSource::Path,
    };
    tailrace_kubernetes::Config {
        node_name: node_name(input),
        labels: input.labels.clone(),
        annotations: input.annotations.clone(),
        service_from_labels: input.service_from_labels,
        pod_selector: input.pod_selector.clone().unwrap_or_default(),
        metadata_wait: input.metadata_wait,
        ..tailrace_kubernetes::Config::new(source)
    }
}

fn node_name(input: &KubernetesInput) -> Option<String> {
    input.node_name.clone().or_else(|| env("K8S_NODE_NAME"))
}

fn kubelet_of_node() -> String {
    let host = env("K8S_NODE_IP").unwrap_or_else(|| "127.0.0.1".to_owned());
    let is_v6 = host.contains(':');
    let host = if is_v6 { format!("[{host}]") } else { host };
    format!("https://{host}:10250")
}

fn env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The files of an input: `NAMESPACE_POD_UID/CONTAINER/N.log` below the directory of logs. Neither a namespace nor a
/// pod's name has a `_`.
pub(crate) fn file_config(input: &KubernetesInput) -> FileConfig {
    let dir = literal(&input.logs_dir);
    let [namespaces, pods, containers] = [
        &input.include.namespaces,
        &input.include.pods,
        &input.include.containers,
    ]
    .map(|names| any_of(names));
    let exclude = &input.exclude;
    let mut excluded: Vec<String> = Vec::new();
    let mut leave_out = |names: &[String], path: fn(&str, &str) -> String| {
        excluded.extend(names.iter().map(|name| path(&dir, name)));
    };
    leave_out(&exclude.namespaces, |dir, name| format!("{dir}/{name}_*_*"));
    leave_out(&exclude.pods, |dir, name| format!("{dir}/*_{name}_*"));
    leave_out(&exclude.containers, |dir, name| format!("{dir}/*/{name}"));
    if input.exclude_self {
        excluded.extend(own_pod().map(|own| format!("{dir}/{own}")));
    }
    FileConfig {
        include: vec![format!("{dir}/{namespaces}_{pods}_*/{containers}/*.log")],
        exclude: excluded,
        follow_roots: input.follow_roots.clone(),
        start_at: match input.start_at {
            tailrace_config::StartAt::Beginning => tailrace_input::StartAt::Beginning,
            tailrace_config::StartAt::End => tailrace_input::StartAt::End,
        },
        ignore_older: input.ignore_older,
        scan_interval: input.discover_interval,
        coalesce: COALESCE,
        opens_paused: true,
        ..FileConfig::default()
    }
}

/// The directory of the agent's own pod.
fn own_pod() -> Option<String> {
    if let Some(uid) = env("K8S_POD_UID") {
        return Some(format!("*_*_{uid}"));
    }
    let (namespace, pod) = (env("K8S_NAMESPACE_NAME")?, env("K8S_POD_NAME")?);
    Some(format!("{namespace}_{pod}_*"))
}

fn any_of(names: &[String]) -> String {
    match names {
        [] => "*".to_owned(),
        [name] => name.clone(),
        names => format!("{{{}}}", names.join(",")),
    }
}

/// A glob that means the path itself.
fn literal(path: &Path) -> String {
    let mut glob = String::new();
    for c in path.to_string_lossy().trim_end_matches('/').chars() {
        match c {
            '*' | '?' | '[' | '{' | '}' | '\\' => glob.extend(['[', c, ']']),
            c => glob.push(c),
        }
    }
    glob
}

impl NodePods {
    /// Begins to follow the pods. `on_change` is called when an answer may have changed.
    pub(crate) fn start(
        input: &KubernetesInput,
        runtime: &Handle,
        on_change: Arc<dyn Fn() + Send + Sync>,
    ) -> Result<Self, tailrace_kubernetes::Error> {
        Ok(Self {
            pods: Pods::start(pods_config(input), runtime, on_change)?,
            logs_dir: input.logs_dir.clone(),
            node_name: node_name(input),
        })
    }

    /// Which pod's log a path is.
    pub(crate) fn log(&self, path: &Path) -> Option<PodLog> {
        PodLog::from_path(path, &self.logs_dir)
    }

    /// Changes whenever an answer may have changed.
    pub(crate) fn version(&self) -> u64 {
        self.pods.version()
    }

    pub(crate) fn status(&self) -> tailrace_kubernetes::Status {
        self.pods.status()
    }

    /// The answer; `None` if it may still come.
    fn answer(&self, log: &PodLog) -> Option<Arc<Container>> {
        match self.pods.look_up(log) {
            Lookup::Known(container) | Lookup::Unknown(container) => Some(container),
            Lookup::Awaited => None,
        }
    }

    /// What is said of a log now. While the answer is awaited nothing of the log is read.
    pub(crate) fn said(&self, log: &PodLog) -> Said {
        match self.pods.look_up(log) {
            Lookup::Known(container) => said(container, false),
            Lookup::Unknown(container) => said(container, true),
            Lookup::Awaited => Said {
                attributes: values(&path_attributes(log, self.node_name.as_deref())),
                excluded: None,
                is_missing: false,
                revision: u64::MAX,
                container: None,
            },
        }
    }
}

fn said(container: Arc<Container>, is_missing: bool) -> Said {
    let mut attributes = values(&container.attributes);
    if is_missing {
        attributes.push((METADATA_MISSING.to_owned(), Value::Bool(true)));
    }
    Said {
        attributes,
        excluded: container.excluded,
        is_missing,
        revision: container.revision,
        container: Some(container),
    }
}

fn values(attributes: &[(Box<str>, Attribute)]) -> Vec<(String, Value)> {
    let value = |attribute: &Attribute| match attribute {
        Attribute::Str(text) => Value::Str(text.to_string()),
        Attribute::Int(number) => Value::Int(*number),
        Attribute::List(texts) => {
            Value::StrArray(texts.iter().map(|text| text.to_string()).collect())
        }
    };
    let attributes = attributes.iter();
    attributes
        .map(|(key, attribute)| (key.to_string(), value(attribute)))
        .collect()
}

/// The sources of which nothing is read yet, because the metadata of their pods is awaited.
#[derive(Debug)]
pub(crate) struct Awaiting {
    node: NodePods,
    seen: u64,
    sources: HashMap<SourceId, PodLog>,
    /// What was said of sources that have not ended: their pods are remembered until all of them is framed.
    answers: HashMap<SourceId, (PodLog, Arc<Container>)>,
}

impl Awaiting {
    pub(crate) fn new(node: NodePods) -> Self {
        Self {
            seen: node.version(),
            node,
            sources: HashMap::new(),
            answers: HashMap::new(),
        }
    }

    pub(crate) fn node(&self) -> &NodePods {
        &self.node
    }

    /// Whether a source that begins has to wait.
    pub(crate) fn begins(&mut self, source: SourceId, path: &Path) -> bool {
        let Some(log) = self.node.log(path) else {
            return false;
        };
        match self.node.answer(&log) {
            Some(answer) => {
                self.answers.insert(source, (log, answer));
                false
            }
            None => {
                self.sources.insert(source, log);
                true
            }
        }
    }

    pub(crate) fn ended(&mut self, source: SourceId) {
        self.sources.remove(&source);
        self.answers.remove(&source);
    }

    /// The sources that need not wait any more.
    pub(crate) fn answered(&mut self) -> Vec<SourceId> {
        let version = self.node.version();
        if version == self.seen {
            return Vec::new();
        }
        self.seen = version;
        for (log, answer) in self.answers.values_mut() {
            if let Some(now) = self.node.answer(log) {
                *answer = now;
            }
        }
        let mut answered = Vec::new();
        for (&source, log) in &self.sources {
            if let Some(answer) = self.node.answer(log) {
                self.answers.insert(source, (log.clone(), answer));
                answered.push(source);
            }
        }
        for source in &answered {
            self.sources.remove(source);
        }
        answered
    }
}

#[cfg(test)]
#[path = "kubernetes/tests.rs"]
mod tests;
