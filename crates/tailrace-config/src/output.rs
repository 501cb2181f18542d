//! The `outputs` of a pipeline: where records go. Declarations, their reading, and the checks of one
//! output; never connects to anything.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::endpoint::{BaseEndpoint, Endpoint, default_endpoint};
use crate::otel_env;
use crate::pipeline::Name;
use tailrace_schema::kind::{
    Boolean, FilePath, HOUR, Integer, KIB, Key, Kind, MIB, Map, SECOND, SecretText, Size, Text,
    Time,
};
use tailrace_schema::node::Node;
use tailrace_schema::reader::Reader;
use tailrace_schema::secret::Secret;
use tailrace_schema::section::{Field, Presence, Section, Shape, Tag};
use tailrace_schema::source::Position;

/// One way out.
#[derive(Clone, Debug)]
pub struct Output {
    /// Its name, unique in the pipeline: part of the key under which its progress is kept.
    pub name: String,
    /// Whether files are kept for it until it has them.
    pub required: bool,
    /// Where records go.
    pub kind: OutputKind,
    /// Where it is written down.
    pub position: Position,
}

/// What it means, wherever it is written down.
impl PartialEq for Output {
    fn eq(&self, other: &Output) -> bool {
        let Output {
            name,
            required,
            kind,
            position: _,
        } = self;
        (name, required, kind) == (&other.name, &other.required, &other.kind)
    }
}

impl Output {
    /// The certificates and keys that it reads.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let tls = match &self.kind {
            OutputKind::Otlp(otlp) => Some(&otlp.tls),
            _ => None,
        };
        tls.into_iter()
            .flat_map(|tls| [&tls.ca_file, &tls.cert_file, &tls.key_file])
            .flatten()
    }
}

/// Where records go.
#[derive(Clone, Debug, PartialEq)]
pub enum OutputKind {
    /// An OTLP server: the OpenTelemetry Collector or a backend.
    Otlp(Box<OtlpOutput>),
    /// The standard output of the process.
    Stdout(StdoutOutput),
    /// A file of JSON lines.
    File(FileOutput),
    /// Nowhere; every record counts as delivered.
    Discard,
}

impl OutputKind {
    /// The word after `type:`.
    pub fn type_name(&self) -> &'static str {
        match self {
            OutputKind::Otlp(_) => "otlp",
            OutputKind::Stdout(_) => "stdout",
            OutputKind::File(_) => "file",
            OutputKind::Discard => "discard",
        }
    }
}

section! {
    /// Sends to an OTLP server over HTTP or gRPC, again and again until it accepts. Options left out
    /// are taken from the `OTEL_EXPORTER_OTLP_*` environment variables where those are set.
    pub struct OtlpOutput {
        /// The base URL of the server; `/v1/logs` is added for HTTP. `https://` means TLS.
        endpoint: Option<String> = BaseEndpoint, unset("http://localhost:4318, for gRPC http://localhost:4317", "https://otel.example.com:4318");
        /// The URL that logs are sent to, taken as it is. Instead of `endpoint`.
        logs_endpoint: Option<String> = Endpoint, unset("made from `endpoint`", "https://otel.example.com/ingest/logs");
        /// How requests travel.
        protocol: Protocol = Protocol, default("http/protobuf");
        /// How requests are compressed.
        compression: Compression = Compression, default("auto");
        /// Headers (for gRPC: metadata) of every request. Values are never shown.
        headers: BTreeMap<String, Secret> = Map<HeaderName, SecretText>, default("{}", "{authorization: 'Bearer secret'}");
        /// How long one attempt may take.
        timeout: Duration = Time<{ SECOND / 10 }, { HOUR }>, default("10s");
        /// Requests in flight at once, at most.
        concurrency: usize = Integer<1, 256>, default("4");
        /// The size of a request before compression, at most. A single larger record still goes out alone.
        max_request_bytes: u64 = Size<{ 64 * KIB }, { 64 * MIB }>, default("3584KiB");
        /// What becomes of records while the server refuses everything, such as after its credentials were revoked.
        on_refused: OnRefused = OnRefused, default("hold");
        /// How long a connection is used. A new one looks the server's name up again, so that load spreads.
        max_connection_age: Duration = Time<SECOND, { 24 * HOUR }>, default("5m");
        /// Pauses between attempts. There is no last attempt: the files hold the data.
        retry: Retry = Retry, nested();
        /// Certificates.
        tls: Tls = Tls, nested();
        /// Which columns become fields of the LogRecord. What is left out is found by the usual names.
        fields: Fields = Fields, nested();
        /// Facts about the source that become attributes of every record.
        attributes: Attributes = Attributes, nested();
    }
}

impl OtlpOutput {
    /// The URL that requests go to: `logs_endpoint` as it is, or `endpoint` with `/v1/logs` for HTTP
    /// and as it is for gRPC.
    pub fn url(&self) -> String {
        match (&self.logs_endpoint, &self.endpoint) {
            (Some(url), _) => url.clone(),
            (None, endpoint) => {
                let base = endpoint
                    .as_deref()
                    .unwrap_or(default_endpoint(self.protocol))
                    .trim_end_matches('/');
                match self.protocol {
                    Protocol::HttpProtobuf => format!("{base}/v1/logs"),
                    Protocol::Grpc => base.to_owned(),
                }
            }
        }
    }
}

section! {
    /// Pauses between attempts grow from `initial` to `max`, with jitter. A server's Retry-After counts as well.
    pub struct Retry {
        /// The pause after the first failed attempt.
        initial: Duration = Time<1, { HOUR }>, default("1s");
        /// The longest pause.
        max: Duration = Time<1, { HOUR }>, default("30s");
    }
}

section! {
    /// Certificates, as PEM files. Without them the server is checked against the system's authorities.
    pub struct Tls {
        /// Authorities that may sign the server's certificate, instead of the system's.
        ca_file: Option<PathBuf> = FilePath, unset("the system's authorities", "/etc/tailrace/ca.pem");
        /// The client's certificate, for servers that ask for one. Together with `key_file`.
        cert_file: Option<PathBuf> = FilePath, unset("no client certificate", "/etc/tailrace/client.pem");
        /// The key of the client's certificate.
        key_file: Option<PathBuf> = FilePath, unset("no client certificate", "/etc/tailrace/client.key");
        /// The name that the server's certificate must carry.
        server_name: Option<String> = Text, unset("the host of the endpoint", "otel.example.com");
    }
}

section! {
    /// Columns of the query's result that become fields of the LogRecord, by name. A column that
    /// becomes a field is not an attribute any more.
    pub struct Fields {
        /// The time of the record.
        timestamp: Option<String> = Text, unset("`timestamp`, `@timestamp`, `time`, `ts` or `t`", "ts");
        /// The severity as text; its number follows from it.
        severity: Option<String> = Text, unset("`level`, `severity`, `severity_text`, `lvl`, `log.level`, `loglevel` or `levelname`", "level");
        /// The severity as a number from 1 to 24.
        severity_number: Option<String> = Text, unset("`severity_number`, else from the text", "severity_number");
        /// The body.
        body: Option<String> = Text, unset("`message`, `msg`, `log` or `body`", "msg");
        /// The trace id, 32 hex digits.
        trace_id: Option<String> = Text, unset("`trace_id`, `traceId`, `traceid`, `trace.id` or `otelTraceID`", "trace_id");
        /// The span id, 16 hex digits.
        span_id: Option<String> = Text, unset("`span_id`, `spanId`, `spanid`, `span.id` or `otelSpanID`", "span_id");
        /// The trace flags.
        trace_flags: Option<String> = Text, unset("`trace_flags`, `traceFlags` or `trace.flags`", "trace_flags");
        /// The event name.
        event_name: Option<String> = Text, unset("`event.name` or `otel.event.name`", "event");
    }
}

section! {
    /// Facts about the source of a record.
    pub struct Attributes {
        /// `log.iostream`: `stdout` or `stderr`, for container logs.
        iostream: bool = Boolean, default("true");
        /// `log.file.name`: the name of the file without its directories.
        file_name: bool = Boolean, default("true");
        /// `log.file.path`: the whole path.
        file_path: bool = Boolean, default("false");
        /// `log.record.uid`: a hash of the file's identity, the record's place in it and its bytes. What is sent again
        /// after a crash has the same one, so that a backend can drop duplicates.
        record_uid: bool = Boolean, default("false");
    }
}

section! {
    /// Writes records to the standard output.
    pub struct StdoutOutput {
        /// How records look.
        format: StdoutFormat = StdoutFormat, default("json");
    }
}

section! {
    /// Appends records to a file, one JSON object per line.
    pub struct FileOutput {
        /// The file. It is created where it does not exist, with mode 0640, and its directories with mode 0750.
        path: PathBuf = FilePath, required("/var/tmp/records.ndjson");
    }
}

section! {
    /// Drops records; they count as delivered. For measurements.
    pub(crate) struct DiscardOutput {}
}

section_defaults!(OtlpOutput, Retry, Tls, Fields, Attributes, StdoutOutput);

choice! {
    /// How OTLP travels.
    pub enum Protocol {
        /// Protobuf over HTTP/1.1 or HTTP/2, usually port 4318.
        HttpProtobuf = "http/protobuf",
        /// gRPC, usually port 4317.
        Grpc = "grpc",
    }
}

choice! {
    /// How requests are compressed.
    pub enum Compression {
        /// zstd, and gzip or nothing where the server refuses that.
        Auto = "auto",
        /// zstd, always.
        Zstd = "zstd",
        /// gzip, always.
        Gzip = "gzip",
        /// Not at all.
        None = "none",
    }
}

choice! {
    /// What becomes of records that a server refuses, where nothing shows that they are at fault.
    pub enum OnRefused {
        /// They wait until it accepts them. The files hold the data.
        Hold = "hold",
        /// They are dropped, and counted.
        Drop = "drop",
    }
}

choice! {
    /// How records look on the standard output.
    pub enum StdoutFormat {
        /// One JSON object per line.
        Json = "json",
        /// For people: time, severity and body first, coloured on a terminal.
        Console = "console",
    }
}

/// Names of HTTP headers and gRPC metadata, kept in lower case.
pub(crate) struct HeaderName;

/// Headers that the transport sets.
const HEADERS_TAKEN: [&str; 11] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "grpc-accept-encoding",
    "grpc-encoding",
    "grpc-timeout",
    "host",
    "te",
    "transfer-encoding",
    "upgrade",
];

impl Key for HeaderName {
    const WHAT: &'static str = "header";

    fn check(key: &str) -> Result<String, (String, Option<String>)> {
        let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if key.is_empty() || !key.chars().all(token) {
            let hint = "letters, digits and `-` make a header name".to_owned();
            return Err((format!("`{key}` is not a header name"), Some(hint)));
        }
        let name = key.to_ascii_lowercase();
        if HEADERS_TAKEN.contains(&name.as_str()) {
            return Err((
                format!("the header `{key}` is set by the output itself"),
                None,
            ));
        }
        Ok(name)
    }
}

/// Keys of every output.
static COMMON: [Field; 2] = [
    Field::common::<Name>(
        "name",
        &[
            " The name of the output, unique in its pipeline: part of the key under which its progress is kept, so that it should not change.",
        ],
        Presence::Unset {
            meaning: "the type; a pipeline with several outputs must name each",
            example: "main",
        },
    ),
    Field::common::<Boolean>(
        "required",
        &[
            " Whether deleted files are kept on the disk until this output has them, within `limits.held_bytes`. What one that is not required misses is dropped for it and counted.",
        ],
        Presence::Default {
            text: "true",
            example: None,
        },
    ),
];

const TAGS: &[Tag<OutputKind>] = &[
    Tag {
        name: "otlp",
        info: &<OtlpOutput as Section>::INFO,
        read: |node, reader, common| {
            let output = read_otlp(node, reader, common)?;
            Some(OutputKind::Otlp(Box::new(output)))
        },
    },
    Tag {
        name: "stdout",
        info: &<StdoutOutput as Section>::INFO,
        read: |node, reader, common| reader.section(node, common).map(OutputKind::Stdout),
    },
    Tag {
        name: "file",
        info: &<FileOutput as Section>::INFO,
        read: |node, reader, common| reader.section(node, common).map(OutputKind::File),
    },
    Tag {
        name: "discard",
        info: &<DiscardOutput as Section>::INFO,
        read: |node, reader, common| {
            let read: Option<DiscardOutput> = reader.section(node, common);
            read.map(|DiscardOutput {}| OutputKind::Discard)
        },
    },
];

impl Kind for Output {
    type Value = Output;

    fn shape() -> Shape {
        Tag::shape(&COMMON, TAGS)
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Output> {
        let tag = reader.tag(node, TAGS)?;
        let name = reader.optional::<Name>(node, "name");
        let required = reader.defaulted::<Boolean>(node, "required", "true");
        let kind = (tag.read)(node, reader, &["type", "name", "required"]);
        Some(Output {
            name: name?.unwrap_or_else(|| tag.name.to_owned()),
            required: required?,
            kind: kind?,
            position: node.position.clone(),
        })
    }
}

fn read_otlp(node: &Node, reader: &mut Reader<'_>, common: &[&str]) -> Option<OtlpOutput> {
    let completed = otel_env::complete(node, reader);
    let mut output: OtlpOutput = reader.section(&completed, common)?;
    otel_env::drop_tls_without_use(&mut output, node);
    let sound = check_otlp(&output, node, reader);
    if output.endpoint.is_none() && output.logs_endpoint.is_none() {
        output.endpoint = Some(default_endpoint(output.protocol).to_owned());
    }
    sound.then_some(output)
}

/// What options of one output must be together.
fn check_otlp(output: &OtlpOutput, node: &Node, reader: &mut Reader<'_>) -> bool {
    let mut complaints = Vec::new();
    let mut complain = |path: &[&str], what: String, hint: Option<String>| {
        let key = path.join(".");
        let message = format!("{}: {what}", reader.path_of(&key));
        complaints.push(node.nearest(path).diagnostic(message).with_hint(hint));
    };
    if output.endpoint.is_some() && output.logs_endpoint.is_some() {
        let hint =
            "`endpoint` is a base URL, `logs_endpoint` is taken as it is; keep one".to_owned();
        complain(
            &["logs_endpoint"],
            "`endpoint` is given too".to_owned(),
            Some(hint),
        );
    }
    if output.retry.initial > output.retry.max {
        complain(
            &["retry", "initial"],
            "longer than retry.max".to_owned(),
            None,
        );
    }
    let tls = &output.tls;
    match (&tls.cert_file, &tls.key_file) {
        (Some(_), None) => complain(
            &["tls", "cert_file"],
            "`key_file` is missing".to_owned(),
            None,
        ),
        (None, Some(_)) => complain(
            &["tls", "key_file"],
            "`cert_file` is missing".to_owned(),
            None,
        ),
        _ => {}
    }
    let url = output.url();
    let wants_tls = node.get("tls").is_some_and(|tls| !tls.is_null());
    if wants_tls && url.starts_with("http://") && (tls.ca_file.is_some() || tls.cert_file.is_some())
    {
        let hint = "write `https://`, or remove `tls`".to_owned();
        complain(
            &["tls"],
            "the endpoint does not use TLS: it begins with `http://`".to_owned(),
            Some(hint),
        );
    }
    let sound = complaints.is_empty();
    complaints
        .into_iter()
        .for_each(|complaint| reader.report(complaint));
    sound
}
