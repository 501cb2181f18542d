//! What an OTLP output can be told, and how unset values are filled from the environment variables of
//! the OTLP exporter specification. Plain data; it opens no file and no connection.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The configuration of an OTLP output. `None` means unset: the environment, then the default, says.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OtlpConfig {
    /// The base URL; `/v1/logs` is added to its path. Default `http://localhost:4318`, for gRPC
    /// `http://localhost:4317`.
    pub endpoint: Option<String>,
    /// The URL for logs as it is, in place of `endpoint`.
    pub logs_endpoint: Option<String>,
    /// Default `http/protobuf`.
    pub protocol: Option<Protocol>,
    /// Default `auto`.
    pub compression: Option<Compression>,
    /// Sent with each request. Values are never shown in logs or errors.
    pub headers: Vec<(String, String)>,
    /// The time for one attempt: connect, send and read the answer. Default 10 s.
    pub timeout: Option<Duration>,
    /// For `https` endpoints.
    pub tls: TlsConfig,
    /// Whether a gRPC endpoint given as `host:port`, without a scheme, is not encrypted. Default
    /// false. A scheme in the endpoint wins.
    pub insecure: Option<bool>,
    /// When to try again.
    pub retry: RetryConfig,
    /// How long a connection is used for new requests. Default 5 min.
    pub max_connection_age: Option<Duration>,
}

/// How requests travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// `http/protobuf`: POST over HTTP/1.1, or HTTP/2 where TLS agrees on it.
    HttpProtobuf,
    /// `grpc`: unary calls over HTTP/2.
    Grpc,
}

/// How requests are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// zstd, unless the endpoint turns out to take only gzip or nothing.
    Auto,
    /// Always zstd.
    Zstd,
    /// Always gzip.
    Gzip,
    /// Never.
    None,
}

/// Files and names for TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsConfig {
    /// PEM file of the authorities to trust in place of the machine's.
    pub ca_file: Option<PathBuf>,
    /// PEM file of the client's certificate chain; goes with `key_file`.
    pub cert_file: Option<PathBuf>,
    /// PEM file of the client's key; goes with `cert_file`.
    pub key_file: Option<PathBuf>,
    /// The name the server is asked for (SNI, HTTP host) and must prove, while the connection still
    /// goes to the endpoint's host.
    pub server_name: Option<String>,
}

/// When to try again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryConfig {
    /// The shortest delay after a failed attempt.
    pub initial: Duration,
    /// The longest delay, unless the server asks for a longer one.
    pub max: Duration,
    /// The longest delay the server can ask for.
    pub after_max: Duration,
    /// The time between two probes with a request that was refused.
    pub hold: Duration,
}

impl Default for RetryConfig {
    fn default() -> RetryConfig {
        RetryConfig {
            initial: Duration::from_secs(1),
            max: Duration::from_secs(30),
            after_max: Duration::from_secs(300),
            hold: Duration::from_secs(30),
        }
    }
}

/// Where a setting comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The configuration.
    Config,
    /// This environment variable.
    Env(&'static str),
    /// Neither.
    Default,
}

/// One setting that the environment can fill, and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The key in the configuration.
    pub field: &'static str,
    /// Who won.
    pub origin: Origin,
}

impl OtlpConfig {
    pub(super) fn protocol(&self) -> Protocol {
        self.protocol.unwrap_or(Protocol::HttpProtobuf)
    }

    pub(super) fn max_connection_age(&self) -> Duration {
        self.max_connection_age.unwrap_or(Duration::from_secs(300))
    }

    pub(super) fn timeout(&self) -> Duration {
        self.timeout.unwrap_or(Duration::from_secs(10))
    }
}

impl fmt::Debug for OtlpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("OtlpConfig")
            .field("endpoint", &self.endpoint)
            .field("logs_endpoint", &self.logs_endpoint)
            .field("protocol", &self.protocol)
            .field("compression", &self.compression)
            .field("headers", &names)
            .field("timeout", &self.timeout)
            .field("tls", &self.tls)
            .field("insecure", &self.insecure)
            .field("retry", &self.retry)
            .field("max_connection_age", &self.max_connection_age)
            .finish()
    }
}
