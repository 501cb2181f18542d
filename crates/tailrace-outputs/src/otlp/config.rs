//! The options of an OTLP output.

use std::collections::BTreeMap;
use std::time::Duration;

use tailrace_schema::Secret;
use tailrace_schema::kind::{
    Boolean, HOUR, Integer, KIB, MIB, Map, SECOND, SecretText, Size, Text, Time,
};

use crate::Signal;
use crate::delivery::OnRefused;
use crate::http_client::endpoint::{BaseEndpoint, Endpoint};
use crate::http_client::headers::HeaderName;
use crate::http_client::options::{Retry, Tls};

section! {
    /// Sends records to an OTLP server over HTTP or gRPC, and retries until the server accepts them. Options that are not set
    /// are read from the `OTEL_EXPORTER_OTLP_*` environment variables.
    pub struct OtlpOutput {
        /// The base URL of the server; `/v1/logs` is added for HTTP. `https://` means TLS.
        endpoint: Option<String> = BaseEndpoint, unset("http://localhost:4318, for gRPC http://localhost:4317", "https://otel.example.com:4318");
        /// The URL that logs are sent to, used as is. An alternative to `endpoint`.
        logs_endpoint: Option<String> = Endpoint, unset("made from `endpoint`", "https://otel.example.com/ingest/logs");
        /// The transport protocol.
        protocol: Protocol = Protocol, default("http/protobuf");
        /// How requests are compressed.
        compression: RequestCompression = RequestCompression, default("auto");
        /// Headers (for gRPC: metadata) of every request. Values are never shown.
        headers: BTreeMap<String, Secret> = Map<HeaderName, SecretText>, default("{}", "{authorization: 'Bearer secret'}");
        /// How long one attempt may take.
        timeout: Duration = Time<{ SECOND / 10 }, { HOUR }>, default("10s");
        /// The maximum number of requests in flight.
        concurrency: usize = Integer<1, 256>, default("4");
        /// The maximum size of a request before compression. A larger record is sent alone.
        max_request_bytes: u64 = Size<{ 64 * KIB }, { 64 * MIB }>, default("3584KiB");
        /// What happens to records while the server refuses everything, for example after the credentials were revoked.
        on_refused: OnRefused = OnRefused, default("hold");
        /// How long a connection is used. A new connection resolves the server's name again, so that load spreads.
        max_connection_age: Duration = Time<SECOND, { 24 * HOUR }>, default("5m");
        /// The HTTP proxy: `none`, or a URL, perhaps with user and password. By default `HTTPS_PROXY` or `HTTP_PROXY` (by the scheme
        /// of the endpoint), `ALL_PROXY` and `NO_PROXY` of the environment apply, but never to `localhost` and loopback addresses.
        proxy: Option<Secret> = SecretText, unset("the environment's", "http://proxy.example.com:3128");
        /// Pauses between attempts. Retries never end: the data stays in the files.
        retry: Retry = Retry, nested();
        /// Certificates.
        tls: Tls = Tls, nested();
        /// Which columns become fields of the LogRecord. Fields that are not set are found by the usual names.
        fields: Fields = Fields, nested();
        /// Facts about the source that become attributes of every record.
        attributes: Attributes = Attributes, nested();
    }
}

/// The default of the OTLP specification.
pub(super) const fn default_endpoint(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::HttpProtobuf => "http://localhost:4318",
        Protocol::Grpc => "http://localhost:4317",
    }
}

impl OtlpOutput {
    /// The URL that requests go to: `logs_endpoint` as it is, or `endpoint` with `/v1/logs` for HTTP
    /// and as it is for gRPC.
    pub fn url(&self) -> String {
        match &self.logs_endpoint {
            Some(url) => url.clone(),
            None => self.below_base(Signal::Logs),
        }
    }

    /// The URL that a signal goes to. That of metrics cannot be made from `logs_endpoint`, except for gRPC: there the
    /// path says the signal.
    pub(super) fn url_of(&self, signal: Signal) -> Option<String> {
        match (signal, &self.logs_endpoint) {
            (Signal::Logs, _) => Some(self.url()),
            (Signal::Metrics, Some(url)) => (self.protocol == Protocol::Grpc).then(|| url.clone()),
            (Signal::Metrics, None) => Some(self.below_base(signal)),
        }
    }

    fn below_base(&self, signal: Signal) -> String {
        let base = self
            .endpoint
            .as_deref()
            .unwrap_or(default_endpoint(self.protocol))
            .trim_end_matches('/');
        match self.protocol {
            Protocol::HttpProtobuf => format!("{base}/v1/{}", signal.as_str()),
            Protocol::Grpc => base.to_owned(),
        }
    }
}

section! {
    /// Columns of the query's result that become fields of the LogRecord, by name. A column that
    /// becomes a field is no longer an attribute.
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
        /// `log.record.uid`: a hash of the file's identity, the record's position in it and its bytes. A record that is
        /// sent again after a crash has the same one, so that a backend can drop duplicates.
        record_uid: bool = Boolean, default("false");
    }
}

section_defaults!(OtlpOutput, Fields, Attributes);

choice! {
    /// The transport protocol of OTLP.
    pub enum Protocol {
        /// Protobuf over HTTP/1.1 or HTTP/2, usually port 4318.
        HttpProtobuf = "http/protobuf",
        /// gRPC, usually port 4317.
        Grpc = "grpc",
    }
}

choice! {
    /// How requests are compressed.
    pub enum RequestCompression {
        /// zstd; gzip or no compression if the server refuses it.
        Auto = "auto",
        /// zstd, always.
        Zstd = "zstd",
        /// gzip, always.
        Gzip = "gzip",
        /// No compression.
        None = "none",
    }
}
