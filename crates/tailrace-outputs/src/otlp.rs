//! The OTLP output: requests to one endpoint over HTTP or gRPC.

mod answer;
mod classify;
mod config;
mod environment;
mod grpc;
mod read;
pub mod rpc;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{HeaderValue, Method};
use reqwest::Url;
use tailrace_otlp::{Compression, Encoding, Mapping, OtlpEncoding};
use tailrace_schema::section::Section;

pub use config::{Attributes, Fields, OtlpOutput, Protocol, RequestCompression};

use crate::delivery::{
    Answered, Attempt, CompressionSearch, DriveConfig, Payload, RetryPolicy, Transport,
};
use crate::http_client::target::hinted;
use crate::http_client::{Body, ClientOptions, HttpClient, within};
use crate::{Error, FileAttributes, Opened, Output, OutputType, Signal, SignalUrl};

pub(crate) const TYPE: OutputType = OutputType {
    name: "otlp",
    info: &<OtlpOutput as Section>::INFO,
    example: include_str!("otlp/example.yaml"),
    read: |node, reader, common| {
        let output = read::read(node, reader, common)?;
        Some(Arc::new(output))
    },
};

impl Output for OtlpOutput {
    fn type_name(&self) -> &'static str {
        TYPE.name
    }

    fn endpoint(&self) -> Option<String> {
        Some(self.url())
    }

    fn encoding(&self) -> Arc<dyn Encoding> {
        Arc::new(OtlpEncoding {
            mapping: Output::mapping(self),
            request_bytes_max: usize::try_from(self.max_request_bytes).unwrap_or(usize::MAX),
            scope_version: env!("CARGO_PKG_VERSION").to_owned(),
            iostream: self.attributes.iostream,
            record_uid: self.attributes.record_uid,
        })
    }

    fn compression(&self) -> Compression {
        match self.compression {
            RequestCompression::Auto | RequestCompression::Zstd => Compression::Zstd,
            RequestCompression::Gzip => Compression::Gzip,
            RequestCompression::None => Compression::None,
        }
    }

    fn open(&self) -> Result<Opened, Error> {
        Ok(Opened {
            transport: Arc::new(OtlpTransport::new(self)?),
            drive: DriveConfig {
                concurrency: self.concurrency,
                on_refused: self.on_refused,
            },
        })
    }

    fn max_request_bytes(&self) -> Option<u64> {
        Some(self.max_request_bytes)
    }

    fn files(&self) -> Vec<&PathBuf> {
        self.tls.files()
    }

    fn signal_url(&self, signal: Signal) -> SignalUrl {
        match self.url_of(signal) {
            Some(url) => SignalUrl::Known(url),
            None => SignalUrl::Unknown,
        }
    }

    fn open_signal(&self, signal: Signal, url: &str) -> Result<Arc<dyn Transport>, Error> {
        Ok(Arc::new(OtlpTransport::to(self, signal, url)?))
    }

    fn mapping(&self) -> Mapping {
        let fields = &self.fields;
        Mapping {
            timestamp: fields.timestamp.clone(),
            severity: fields.severity.clone(),
            severity_number: fields.severity_number.clone(),
            body: fields.body.clone(),
            trace_id: fields.trace_id.clone(),
            span_id: fields.span_id.clone(),
            trace_flags: fields.trace_flags.clone(),
            event_name: fields.event_name.clone(),
            offset_s: 0,
        }
    }

    fn file_attributes(&self) -> FileAttributes {
        FileAttributes {
            name: self.attributes.file_name,
            path: self.attributes.file_path,
        }
    }

    fn becomes(&self, column: Option<&str>) -> String {
        let Some(column) = column else {
            return "the LogRecord field its name stands for, else an attribute".to_owned();
        };
        match Output::mapping(self).field_of(column) {
            Some(field) => field.name().to_owned(),
            None => format!("attribute {column}"),
        }
    }
}

/// Sends requests to one endpoint. Deliveries may run side by side; they share connections and what
/// was learnt about compression.
pub struct OtlpTransport {
    wire: Wire,
    compression: CompressionSearch,
    policy: RetryPolicy,
    timeout: Duration,
}

enum Wire {
    Http(HttpClient),
    Grpc(grpc::Grpc),
}

impl OtlpTransport {
    /// Reads the TLS files. Nothing is connected, and no runtime is needed, before the first attempt.
    ///
    /// # Errors
    ///
    /// An option or a file that it names cannot be used.
    pub fn new(config: &OtlpOutput) -> Result<OtlpTransport, Error> {
        OtlpTransport::to(config, Signal::Logs, &config.url())
    }

    /// The same for a signal that goes to `url`.
    fn to(config: &OtlpOutput, signal: Signal, url: &str) -> Result<OtlpTransport, Error> {
        let url = Url::parse(url).map_err(|error| Error::value("endpoint", error.to_string()))?;
        let wire = match config.protocol {
            Protocol::HttpProtobuf => Wire::Http(HttpClient::new(ClientOptions {
                method: Method::POST,
                url,
                content_type: HeaderValue::from_static("application/x-protobuf"),
                headers: &config.headers,
                tls: &config.tls,
                proxy: config.proxy.as_ref(),
                timeout: config.timeout,
                connection_age_max: config.max_connection_age,
            })?),
            Protocol::Grpc => Wire::Grpc(grpc::Grpc::new(url, signal, config)?),
        };
        let compression = match config.compression {
            RequestCompression::Auto => CompressionSearch::auto(),
            _ => CompressionSearch::fixed(Output::compression(config)),
        };
        Ok(OtlpTransport {
            wire,
            compression,
            policy: config.retry.policy(),
            timeout: config.timeout,
        })
    }

    /// The same with another policy, such as one for tests.
    #[must_use]
    pub fn with_retry_policy(mut self, policy: RetryPolicy) -> OtlpTransport {
        self.policy = policy;
        self
    }

    async fn answer(&self, payload: &Payload) -> Answered {
        match &self.wire {
            Wire::Http(client) => match client.send(payload, Body::Whole).await {
                Ok(response) => {
                    let hint = client.target().hint(response.status.as_u16(), true);
                    let answered = classify::http(&response, payload.records, SystemTime::now());
                    hinted(answered, hint)
                }
                Err(outcome) => outcome.into(),
            },
            Wire::Grpc(grpc) => grpc.attempt(payload).await,
        }
    }
}

impl Transport for OtlpTransport {
    fn attempt<'a>(&'a self, payload: &'a Payload) -> Attempt<'a> {
        let renew = || match &self.wire {
            Wire::Http(client) => client.renew(),
            Wire::Grpc(grpc) => grpc.renew(),
        };
        let target = match &self.wire {
            Wire::Http(client) => client.target(),
            Wire::Grpc(grpc) => grpc.target(),
        };
        Box::pin(within(self.timeout, target, self.answer(payload), renew))
    }

    fn compression(&self) -> &CompressionSearch {
        &self.compression
    }

    fn retry_policy(&self) -> &RetryPolicy {
        &self.policy
    }
}
