//! The `kubernetes` input: the logs of the containers of this node, and whose they are.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tailrace_kubernetes::MetadataSource;
use tailrace_schema::Diagnostic;
use tailrace_schema::kind::{
    Boolean, DAY, FilePath, HOUR, KIB, List, MIB, NameGlob, SECOND, Size, Text, Time,
};
use tailrace_schema::node::Node;
use tailrace_schema::reader::Reader;
use tailrace_schema::section::Section;

use crate::Error;
use crate::file::config::{FileConfig, check_globs};
use crate::file::{claims, open};
use crate::input::{Claims, Input, InputOptions, InputType, OpenContext, Pods};
use crate::options::{Framing, Multiline, Records, StartAt, Timezone};

pub(crate) const TYPE: InputType = InputType {
    name: "kubernetes",
    info: &<KubernetesInput as Section>::INFO,
    example: include_str!("kubernetes/example.yaml"),
    read: |node, reader, common| {
        let input: KubernetesInput = reader.section(node, common)?;
        check(&input, node, reader).then(|| Arc::new(input) as Arc<dyn InputOptions>)
    },
};

/// Many containers write a line now and then, and the kubelet never truncates a log: fewer and larger reads cost less
/// (docs/decisions/0014).
const COALESCE: Duration = Duration::from_millis(100);

section! {
    /// Follows the logs of the containers on this Kubernetes node, and adds the metadata of their pods.
    pub struct KubernetesInput {
        /// Where the kubelet keeps the logs: `NAMESPACE_POD_UID/CONTAINER/N.log` below it.
        logs_dir: PathBuf = FilePath, default("/var/log/pods");
        /// Which containers to read. Each list that is not empty must have a match.
        include: ContainerNames = ContainerNames, nested();
        /// Which containers to leave out although `include` names them.
        exclude: ContainerNames = ContainerNames, nested();
        /// Only pods with such labels. Pods can opt out by themselves: annotation `tailrace.io/exclude: "true"`.
        /// Needs their metadata: refused with `metadata: path`.
        pod_selector: Option<String> = Text, unset("pods with any labels", "'app=web,tier!=cache'");
        /// Leave out the agent's own pod, which `K8S_POD_UID` or `K8S_NAMESPACE_NAME` and `K8S_POD_NAME` name.
        exclude_self: bool = Boolean, default("true");
        /// Where metadata of pods comes from.
        metadata: Metadata = Metadata, default("api");
        /// How long the first record of a container waits for the metadata of its pod. Then it goes on with what
        /// the path says, marked `tailrace.metadata_missing` and counted.
        metadata_wait: Duration = Time<0, { HOUR }>, default("5s");
        /// The node whose pods are asked for.
        node_name: Option<String> = Text, unset("`K8S_NODE_NAME` of the environment", "node-1");
        /// The kubelet, for `metadata: kubelet`.
        kubelet: Option<String> = Text, unset("https://`K8S_NODE_IP`:10250", "https://10.0.0.1:10250");
        /// Take any certificate of the kubelet: many sign their own. The token is shown to whoever answers.
        kubelet_skip_verify: bool = Boolean, default("false");
        /// Access to the API server or the kubelet.
        kubeconfig: Option<PathBuf> = FilePath, unset("the service account of the agent's pod, else `KUBECONFIG`", "/etc/tailrace/kubeconfig");
        /// Labels of pods that become resource attributes `k8s.pod.label.NAME`: names or globs.
        labels: Vec<String> = List<NameGlob, 0>, default("[]", "[app, 'app.kubernetes.io/*']");
        /// Annotations of pods that become resource attributes `k8s.pod.annotation.NAME`: names or globs.
        annotations: Vec<String> = List<NameGlob, 0>, default("[]", "['example.com/*']");
        /// Whether `app.kubernetes.io/instance`, `/name` and `/version` labels name the service, before the names of
        /// its owners. Annotations `resource.opentelemetry.io/*` always do.
        service_from_labels: bool = Boolean, default("false");
        /// Whether pods say how their lines are read: annotations `tailrace.io/format` (`auto`, `json` or `raw`, behind the
        /// envelope of the runtime) and `tailrace.io/multiline` (presets such as `java` or `java,go`, `none`, or `start:` and an
        /// expression of at most 256 bytes); with `.CONTAINER` behind the name for one container. What is invalid is logged,
        /// counted and left out. Needs their metadata: refused with `metadata: path`.
        framing_from_annotations: bool = Boolean, default("false");
        /// How the bytes of a file are cut into records.
        format: ContainerFormat = ContainerFormat, default("auto");
        /// Joins lines of plain text into one record, such as those of a stack trace.
        multiline: Option<Multiline> = Multiline, unset("each line is a record", "{preset: [java, python], timeout: 1s}");
        /// Directories that links may lead into, besides `logs_dir`.
        follow_roots: Vec<PathBuf> = List<FilePath, 0>, default("[/var/lib/docker/containers]");
        /// Where to begin in files that are there when the pipeline first starts.
        start_at: StartAt = StartAt, default("beginning");
        /// At the first start, skip files that were not written to for this long. The bytes skipped are counted.
        ignore_older: Option<Duration> = Time<{ SECOND }, { 3650 * DAY }>, unset("read them all", "1d");
        /// The longest record. A longer one is cut there and flagged `truncated`; the file goes on.
        max_record_bytes: u64 = Size<{ KIB }, { 64 * MIB }>, default("1MiB");
        /// The offset of timestamps that name no zone. Daylight saving is not followed.
        timezone: Timezone = Timezone, default("UTC", "+02:00");
        /// How often the directories are searched for files that no notification announced; without inotify, up to four times a second.
        discover_interval: Duration = Time<100, { HOUR }>, default("5s");
    }
}

section! {
    /// Containers by name: names or globs (`*`, `?`, `[a-z]`, `{a,b}`). An empty list has no effect.
    pub struct ContainerNames {
        /// Namespaces.
        namespaces: Vec<String> = List<NameGlob, 0>, default("[]", "[shop, 'team-*']");
        /// Pods.
        pods: Vec<String> = List<NameGlob, 0>, default("[]", "['web-*']");
        /// Containers.
        containers: Vec<String> = List<NameGlob, 0>, default("[]", "[app]");
    }
}

section_defaults!(KubernetesInput, ContainerNames);

choice! {
    /// Where metadata of pods comes from.
    pub enum Metadata {
        /// The API server: one watch of the pods of this node. Needs `get`, `list` and `watch` of pods.
        Api = "api",
        /// The kubelet of this node, polled. Needs `get` of `nodes/pods` (before Kubernetes 1.33 `nodes/proxy`).
        Kubelet = "kubelet",
        /// The path of the log alone: namespace, pod, container. Needs no access.
        Path = "path",
    }
}

choice! {
    /// How a container's log becomes records.
    pub enum ContainerFormat {
        /// Decided for each file by its first line that is `cri` or `docker`.
        Auto = "auto",
        /// Lines of containerd or CRI-O. Partial lines are joined.
        Cri = "cri",
        /// Lines of Docker's json-file driver. Pieces are joined until the text ends in a line end.
        Docker = "docker",
    }
}

impl InputOptions for KubernetesInput {
    fn type_name(&self) -> &'static str {
        TYPE.name
    }

    fn records(&self) -> Records<'_> {
        Records {
            framing: match self.format {
                ContainerFormat::Auto => Framing::Container,
                ContainerFormat::Cri => Framing::Cri,
                ContainerFormat::Docker => Framing::Docker,
            },
            max_record_bytes: self.max_record_bytes,
            multiline: self.multiline.as_ref(),
            timezone: self.timezone,
        }
    }

    fn files(&self) -> Option<FileConfig> {
        Some(file_config(self))
    }

    fn skips_at_first(&self) -> bool {
        self.start_at == StartAt::End || self.ignore_older.is_some()
    }

    fn pods(&self) -> Option<Pods> {
        Some(Pods {
            logs_dir: self.logs_dir.clone(),
            config: pods_config(self),
        })
    }

    fn claims(&self) -> Result<Claims, Error> {
        claims(self)
    }

    fn open(&self, context: OpenContext<'_>) -> Result<Box<dyn Input>, Error> {
        open(self, context)
    }
}

/// Whether its options go together; complains if not.
fn check(input: &KubernetesInput, node: &Node, reader: &mut Reader<'_>) -> bool {
    let needs_metadata = if input.metadata != Metadata::Path {
        None
    } else if input.pod_selector.is_some() {
        Some(("pod_selector", "does not tell the labels of a pod"))
    } else if input.framing_from_annotations {
        let what = "does not tell the annotations of a pod";
        Some(("framing_from_annotations", what))
    } else {
        None
    };
    let Some((key, what)) = needs_metadata else {
        if let Err(error) = pods_config(input).check() {
            reader.report(Diagnostic::new(&node.position, 1, error.to_string()));
            return false;
        }
        return check_globs(&file_config(input), node, reader);
    };
    let message = format!(
        "{}: a path {what}, and `metadata` is `path`",
        reader.path_of(key)
    );
    let hint = match key {
        "pod_selector" => {
            "set `metadata` to `api` or `kubelet`, or choose by name with `include` and `exclude`"
        }
        _ => "set `metadata` to `api` or `kubelet`, or leave the option out",
    };
    let diagnostic = node.nearest(&[key]).diagnostic(message);
    reader.report(diagnostic.with_hint(hint.to_owned()));
    false
}

/// Where an input asks for metadata, as `tailrace_kubernetes` wants it.
fn pods_config(input: &KubernetesInput) -> tailrace_kubernetes::Config {
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
        framing: input.framing_from_annotations,
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
fn file_config(input: &KubernetesInput) -> FileConfig {
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
        start_at: input.start_at,
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
