//! The pods whose logs an input reads: what is said of them, and which sources wait for it. Never opens a log and never
//! decides what is said of a pod: that is tailrace-kubernetes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tailrace_inputs::SourceId;
use tailrace_kubernetes::{Attribute, Container, Lookup, PodLog, Pods, path_attributes};
use tailrace_otlp::Value;
use tokio::runtime::Handle;

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

impl NodePods {
    /// Begins to follow the pods. `on_change` is called when an answer may have changed.
    pub(crate) fn start(
        input: tailrace_inputs::Pods,
        runtime: &Handle,
        on_change: Arc<dyn Fn() + Send + Sync>,
    ) -> Result<Self, tailrace_kubernetes::Error> {
        Ok(Self {
            node_name: input.config.node_name.clone(),
            pods: Pods::start(input.config, runtime, on_change)?,
            logs_dir: input.logs_dir,
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
mod tests;
