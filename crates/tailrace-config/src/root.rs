//! The whole configuration: the top-level options, and what must hold between pipelines.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::admin_address::{AdminAddress, Listen};
use crate::input::Input;
use crate::name::Name;
use crate::pipeline::Pipeline;
use crate::telemetry::Telemetry;
use crate::test::{self, Test};
use tailrace_schema::kind::{
    AnyText, Boolean, FilePath, GIB, HOUR, Integer, Key, Kind, List, MIB, Map, SecretText, Size,
    Time,
};
use tailrace_schema::node::Node;
use tailrace_schema::reader::Reader;
use tailrace_schema::secret::Secret;
use tailrace_schema::section::{Info, Section, Shape};

section! {
    /// A configuration. Only `pipelines` is required.
    pub struct Config {
        /// The version of the configuration's format.
        version: u64 = Version, default("1");
        /// The directory in which the agent keeps its progress, dead letters and queues. It writes nowhere else, except for outputs of
        /// `type: file`.
        data_dir: PathBuf = FilePath, default("/var/lib/tailrace");
        /// The pipelines, by name. They are independent of each other.
        pipelines: BTreeMap<String, Pipeline> = Map<Name, Pipeline>, required("{app: {input: {type: stdin}, output: {type: stdout}}}");
        /// Health and metrics over HTTP.
        admin: Admin = Admin, nested();
        /// The agent's own logs and metrics, as OTLP.
        telemetry: Telemetry = Telemetry, nested();
        /// Resource attributes of all records, by name. An attribute whose value is an expansion
        /// that is empty is left out.
        resource: BTreeMap<String, String> = Map<AttributeName, AnyText>, default("{}", "{service.namespace: shop, k8s.cluster.name: '${K8S_CLUSTER_NAME:-}'}");
        /// The shutdown of the process.
        shutdown: Shutdown = Shutdown, nested();
        /// Limits of the process.
        limits: Limits = Limits, nested();
        /// The number of threads that scan and encode.
        workers: Option<usize> = Integer<1, 256>, unset("as many as memory and the CPU quota allow", "2");
        /// Tests of the pipelines, which `tailrace test` runs. A running agent ignores them. Tests of several files are put
        /// together.
        tests: Vec<Test> = List<Test, 0>, default("[]", "[{name: errors pass, lines: '{\"level\":\"error\"}', expect: {count: 1}}]");
    }
}

pub(crate) const INFO: Info = <Config as Section>::INFO;

section! {
    /// The admin endpoint: `/metrics` (Prometheus), `/livez`, `/readyz` and `/healthz`.
    pub struct Admin {
        /// Where to listen: an IP address and port, or `unix:/PATH` for a Unix socket with mode 0600, which replaces one that an
        /// earlier agent left there.
        listen: Option<AdminAddress> = Listen, unset("no admin endpoint", "127.0.0.1:9464");
        /// The token that requests from other machines must send as `Authorization: Bearer` for the ledger, the status and
        /// `POST /-/reload`: 16 characters or more, for example from a file, `${file:/run/secrets/admin-token}`. Probes,
        /// metrics and requests from this machine need none.
        token: Option<Secret> = BearerToken, unset("other machines get only probes and metrics", "at-least-16-characters");
        /// Whether the recent reasons show one of the records that they are about: its first 200 characters, to whoever may
        /// see the ledger. They are kept in memory only.
        examples: bool = Boolean, default("false");
    }
}

section! {
    /// What happens on SIGTERM and SIGINT. A second signal ends the process at once.
    pub struct Shutdown {
        /// How long the agent waits for what it has read to be delivered. The rest is sent after the next start.
        grace: Duration = Time<0, { HOUR }>, default("30s");
    }
}

section! {
    /// Limits of the whole process.
    pub struct Limits {
        /// The memory for workers, batches, unfinished records and requests in flight, in addition to the 40 MiB that the
        /// process takes before it reads. It determines the number of workers and the size of buffers. A configuration that
        /// needs more is refused, with the sum that it needs, which is at least 32 MiB.
        memory: Option<u64> = Size<MIB, { 1024 * GIB }>, unset("64MiB, or half the cgroup limit where that is less", "128MiB");
    }
}

section_defaults!(Admin, Shutdown, Limits);

/// The most pipelines: each has its own buffers and threads.
const PIPELINES_MAX: usize = 1000;

/// The version of the format that this build reads.
const VERSION: u64 = 1;

/// The token of the admin endpoint.
struct BearerToken;

/// A shorter one can be guessed.
const TOKEN_CHARS_MIN: usize = 16;

impl Kind for BearerToken {
    type Value = Secret;
    const SECRET: bool = true;

    fn shape() -> Shape {
        SecretText::shape()
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Secret> {
        let token = SecretText::read(node, reader)?;
        let is_visible = token.expose().bytes().all(|byte| byte.is_ascii_graphic());
        if is_visible && token.expose().len() >= TOKEN_CHARS_MIN {
            return Some(token);
        }
        let path = reader.path();
        let message =
            format!("{path}: expected {TOKEN_CHARS_MIN} visible ASCII characters or more");
        let hint =
            "such as `${file:/run/secrets/admin-token}`, with what `openssl rand -hex 32` wrote";
        let diagnostic = node.diagnostic(message).without_snippet();
        reader.report(diagnostic.with_hint(hint.to_owned()));
        None
    }
}

struct Version;

impl Kind for Version {
    type Value = u64;

    fn shape() -> Shape {
        Shape::Integer {
            min: VERSION,
            max: VERSION,
        }
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<u64> {
        let resolved = reader.scalar(node, "a version")?;
        if resolved.text == VERSION.to_string() {
            return Some(VERSION);
        }
        let hint = format!("this build reads version {VERSION}");
        reader.refuse_text(node, &resolved, "a known version", Some(hint));
        None
    }
}

/// Names of attributes: any text.
pub(crate) struct AttributeName;

impl Key for AttributeName {
    const WHAT: &'static str = "attribute";

    fn check(key: &str) -> Result<String, (String, Option<String>)> {
        if key.is_empty() {
            return Err(("an attribute needs a name".to_owned(), None));
        }
        Ok(key.to_owned())
    }
}

/// Reads the merged tree of all files. What must hold between pipelines is checked afterwards.
pub(crate) fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Config> {
    let config: Config = reader.section(node, &[])?;
    let pipelines = node.nearest(&["pipelines"]);
    if config.pipelines.is_empty() {
        let hint =
            "add one, such as `pipelines: {app: {input: {type: stdin}, output: {type: stdout}}}`"
                .to_owned();
        reader.report(pipelines.diagnostic("there is no pipeline").with_hint(hint));
        return None;
    }
    if config.pipelines.len() > PIPELINES_MAX {
        let message = format!(
            "{} pipelines, more than {PIPELINES_MAX}",
            config.pipelines.len()
        );
        let hint = "one pipeline can have many inputs: put together those that do the same";
        reader.report(pipelines.diagnostic(message).with_hint(hint.to_owned()));
        return None;
    }
    test::check(&config, reader).then_some(config)
}

/// Refuses a config in which two inputs read the same pipe: each would get only a part of it. Returns whether it is sound.
pub(crate) fn exclusive_inputs(config: &Config, reader: &mut Reader<'_>) -> bool {
    let inputs = config
        .pipelines
        .values()
        .flat_map(|pipeline| &pipeline.inputs);
    let mut readers: BTreeMap<&'static str, &Input> = BTreeMap::new();
    let mut sound = true;
    for input in inputs {
        let Some(what) = input.exclusive() else {
            continue;
        };
        let Some(first) = readers.get(what) else {
            readers.insert(what, input);
            continue;
        };
        let hint = format!("the first time at {}", first.position);
        let second = Node::empty(&input.position);
        let diagnostic = second.diagnostic(format!("{what} is read twice"));
        reader.report(diagnostic.with_hint(hint));
        sound = false;
    }
    sound
}
