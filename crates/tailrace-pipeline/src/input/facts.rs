//! What the agent says of a source besides its records: resource attributes from the config and from its pod, and
//! `log.*` attributes from the file's path. Computed once per source and change of its pod, never per record.

use std::path::Path;
use std::sync::Arc;

use prometheus_client::metrics::counter::Counter;
use tailrace_kubernetes::{Container, PodLog};
use tailrace_otlp::{SourceFacts, Value};
use tailrace_outputs::FileAttributes;

use crate::input::pod_framing::PodFraming;
use crate::input::pods::{NodePods, Said};

/// Which facts are attached to records.
#[derive(Debug, Clone)]
pub(crate) struct FactsConfig {
    /// Resource attributes of every record.
    pub resource: Vec<(String, Value)>,
    /// The attributes that each encoding wants.
    pub encodings: Vec<FileAttributes>,
    /// Whether the input's sources are files: if not there is no `log.file.*`.
    pub files: bool,
    /// The pods whose logs they are, and the count of those whose metadata did not come.
    pub pods: Option<(NodePods, Counter)>,
    /// What becomes of what they say of their lines, if they may.
    pub framing: Option<Arc<PodFraming>>,
}

/// What is known of a source and the same for all its records.
#[derive(Debug)]
pub(crate) struct Facts {
    /// Ready to be copied into requests, one for each encoding.
    pub encoded: Vec<SourceFacts>,
    /// `log.file.name`; `None` where the source is not a file.
    pub file_name: Option<String>,
    /// `log.file.path`; `None` where the source is not a file.
    pub file_path: Option<String>,
    /// What is known of its pod.
    pub pod: Vec<(String, Value)>,
}

/// The facts of a source as they are now.
#[derive(Debug)]
pub(crate) struct CurrentFacts {
    pub facts: Arc<Facts>,
    /// The rule of its pod by which it is not read.
    pub excluded: Option<&'static str>,
    /// How its pod wants it to be framed; `None`: as the input says.
    pub framing: Option<Arc<tailrace_frame::Config>>,
    /// Whose log it is: by the path at its opening, whatever the file is renamed to.
    log: Option<Box<PodLog>>,
    path: Box<Path>,
    /// What was asked last.
    version: u64,
    revision: u64,
    is_missing: bool,
    /// Keeps what is known of a pod that is gone until its log is read.
    container: Option<Arc<Container>>,
}

impl Facts {
    /// What is known of its pod under this name, as text.
    pub(crate) fn of_pod(&self, name: &str) -> Option<String> {
        let (_, value) = self.pod.iter().find(|(key, _)| key == name)?;
        Some(match value {
            Value::Str(text) => text.clone(),
            Value::Int(number) => number.to_string(),
            Value::Double(number) => number.to_string(),
            Value::Bool(truth) => truth.to_string(),
            Value::StrArray(texts) => texts.join(","),
        })
    }
}

impl FactsConfig {
    /// The facts of a source with this path.
    pub(crate) fn of(&self, path: &Path) -> CurrentFacts {
        let pods = self.pods.as_ref();
        let log = pods.and_then(|(node, _)| node.log(path)).map(Box::new);
        let mut current = CurrentFacts {
            facts: Arc::new(self.build(path, Vec::new())),
            excluded: None,
            framing: None,
            log,
            path: path.into(),
            version: 0,
            revision: 0,
            is_missing: false,
            container: None,
        };
        if let (Some((node, missing)), Some(log)) = (pods, &current.log) {
            current.version = node.version();
            let said = node.said(log);
            self.take(&mut current, said, missing);
        }
        current
    }

    /// The facts of a source with this path, of whose pod this is known.
    pub(crate) fn described(&self, path: &Path, pod: Vec<(String, Value)>) -> Arc<Facts> {
        Arc::new(self.build(path, pod))
    }

    /// Asks again if an answer may have changed. Costs one load if not.
    pub(crate) fn refresh(&self, current: &mut CurrentFacts) {
        let (Some((node, missing)), Some(log)) = (&self.pods, &current.log) else {
            return;
        };
        let version = node.version();
        if version == current.version {
            return;
        }
        current.version = version;
        let said = node.said(log);
        if said.container.is_none() && current.container.is_some() {
            // What was said stands until there is another answer.
            return;
        }
        if (said.revision, said.is_missing) != (current.revision, current.is_missing) {
            self.take(current, said, missing);
        }
    }

    fn take(&self, current: &mut CurrentFacts, said: Said, missing: &Counter) {
        missing.inc_by(u64::from(said.is_missing && !current.is_missing));
        current.excluded = said.excluded;
        (current.revision, current.is_missing) = (said.revision, said.is_missing);
        let framing = self.framing(&said, current.log.as_deref());
        if framing != current.framing {
            current.framing = framing;
        }
        current.container = said.container;
        current.facts = Arc::new(self.build(&current.path, said.attributes));
    }

    /// How a log is framed by what its pod says.
    fn framing(&self, said: &Said, log: Option<&PodLog>) -> Option<Arc<tailrace_frame::Config>> {
        let (framing, container) = (self.framing.as_ref()?, said.container.as_ref()?);
        framing.of(&container.framing, log?)
    }

    fn build(&self, path: &Path, pod: Vec<(String, Value)>) -> Facts {
        let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
        let file_path = self.files.then(|| text(path.as_os_str()));
        let file_name = path.file_name().filter(|_| self.files).map(text);
        // Of one name the first counts: what is configured.
        let resource = [&self.resource[..], &pod[..]].concat();
        let encode = |wanted: &FileAttributes| {
            let facts = [
                ("log.file.name", wanted.name, &file_name),
                ("log.file.path", wanted.path, &file_path),
            ];
            let attributes: Vec<(String, Value)> = facts
                .into_iter()
                .filter(|(_, wanted, _)| *wanted)
                .filter_map(|(key, _, value)| Some((key.to_owned(), Value::Str(value.clone()?))))
                .collect();
            SourceFacts::new(&resource, &attributes)
        };
        Facts {
            encoded: self.encodings.iter().map(encode).collect(),
            file_name,
            file_path,
            pod,
        }
    }
}
