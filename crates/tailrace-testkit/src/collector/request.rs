//! One request as the collector saw it: headers, compression and the decoded records. It is parsed
//! from complete bytes, or the reason is kept why they are not OTLP.

use std::io::Read;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;

/// More than this is no test data but a bomb.
const DECODED_BYTES_MAX: u64 = 256 << 20;

/// How a request came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// POST of a protobuf body.
    Http,
    /// A unary gRPC call.
    Grpc,
}

/// A request the collector has seen, whatever it answered.
#[derive(Clone, Debug)]
pub struct Request {
    /// HTTP or gRPC.
    pub protocol: Protocol,
    /// The path of the URL.
    pub path: String,
    /// The version on the wire: `HTTP/1.1` or `HTTP/2.0`.
    pub version: String,
    /// Names in lower case, in the order of arrival.
    pub headers: Vec<(String, String)>,
    /// `zstd`, `gzip` or `identity`, as the headers say.
    pub compression: String,
    /// The size of the encoded body, without gRPC's five bytes.
    pub wire_bytes: usize,
    /// How many log records it holds; 0 when it does not decode.
    pub records: usize,
    /// Why it does not decode, if so. It is refused then, whatever the script says.
    pub error: Option<String>,
    /// Counts the connections of the collector from 1.
    pub connection: usize,
}

impl Request {
    /// The first header of that name (in lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(key, _)| key == name)?;
        Some(value)
    }
}

/// A log record that was accepted, with what stands around it.
#[derive(Clone, Debug)]
pub struct Record {
    /// The record itself.
    pub log: LogRecord,
    /// Its resource.
    pub resource: Arc<Resource>,
    /// Its scope.
    pub scope: Arc<InstrumentationScope>,
    /// The index of its request in [`crate::Collector::requests`].
    pub request: usize,
}

/// What a request holds.
pub(crate) enum Content {
    /// Log records; none if it does not decode.
    Records(Vec<Record>),
    /// Metrics.
    Metrics(ExportMetricsServiceRequest),
}

/// Reads the request, and what it holds if it decodes.
pub(crate) fn read(parts: &Parts, body: &Bytes, connection: usize) -> (Request, Content) {
    let headers: Vec<(String, String)> = parts
        .headers
        .iter()
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_owned(), value)
        })
        .collect();
    let find = |name: &str| headers.iter().find(|(key, _)| key == name);
    let grpc = find("content-type").is_some_and(|(_, value)| value.starts_with("application/grpc"));
    let (protocol, compression_header) = if grpc {
        (Protocol::Grpc, "grpc-encoding")
    } else {
        (Protocol::Http, "content-encoding")
    };
    let compression = find(compression_header).map_or("identity", |(_, value)| value.as_str());

    let content = match protocol {
        Protocol::Http => Ok((compression, body.clone())),
        Protocol::Grpc => unframe(compression, body),
    };
    let wire_bytes = content.as_ref().map_or(body.len(), |(_, body)| body.len());
    let plain = content.and_then(|(compression, body)| decompress(compression, &body));
    let content = plain.and_then(|plain| {
        if is_metrics(parts) {
            let decoded = ExportMetricsServiceRequest::decode(&*plain);
            return decoded.map(Content::Metrics).map_err(|e| e.to_string());
        }
        let decoded = ExportLogsServiceRequest::decode(&*plain);
        let records = decoded.map(|request| Content::Records(flatten(request)));
        records.map_err(|e| e.to_string())
    });
    let (content, error) = match content {
        Ok(content) => (content, None),
        Err(error) => (Content::Records(Vec::new()), Some(error)),
    };
    let records = match &content {
        Content::Records(records) => records.len(),
        Content::Metrics(_) => 0,
    };
    let request = Request {
        protocol,
        path: parts.uri.path().to_owned(),
        version: format!("{:?}", parts.version),
        compression: compression.to_owned(),
        headers,
        wire_bytes,
        records,
        error,
        connection,
    };
    (request, content)
}

/// Whether a request is for metrics, by its path.
pub(crate) fn is_metrics(parts: &Parts) -> bool {
    let grpc = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";
    matches!(parts.uri.path(), path if path == "/v1/metrics" || path == grpc)
}

/// Removes the five bytes before a gRPC message: a flag (compressed) and the length.
fn unframe<'a>(compression: &'a str, body: &Bytes) -> Result<(&'a str, Bytes), String> {
    let (head, _) = body
        .split_first_chunk::<5>()
        .ok_or("a gRPC body shorter than its frame")?;
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    if body.len() != 5 + length {
        return Err(format!(
            "a gRPC frame of {length} bytes in a body of {}",
            body.len()
        ));
    }
    let compression = match (head[0], compression) {
        (0, _) => "identity",
        (1, "identity") => return Err("compressed flag without grpc-encoding".to_owned()),
        (1, compression) => compression,
        (flag, _) => return Err(format!("compressed flag {flag}")),
    };
    Ok((compression, body.slice(5..)))
}

/// The records of an uncompressed request.
///
/// # Errors
///
/// Why it is no request.
pub fn records_of(body: &[u8]) -> Result<Vec<Record>, String> {
    decode("identity", body).map(flatten)
}

fn decode(compression: &str, body: &[u8]) -> Result<ExportLogsServiceRequest, String> {
    let plain = decompress(compression, body)?;
    ExportLogsServiceRequest::decode(plain.as_slice()).map_err(|e| e.to_string())
}

/// The message of a body in `zstd`, `gzip` or `identity`.
pub(crate) fn decompress(compression: &str, body: &[u8]) -> Result<Vec<u8>, String> {
    let mut plain = Vec::new();
    match compression {
        "identity" => plain.extend_from_slice(body),
        "gzip" => {
            let mut reader = flate2::read::MultiGzDecoder::new(body).take(DECODED_BYTES_MAX);
            reader.read_to_end(&mut plain).map_err(|e| e.to_string())?;
        }
        "zstd" => {
            let reader = zstd::Decoder::new(body).map_err(|e| e.to_string())?;
            let mut reader = reader.take(DECODED_BYTES_MAX);
            reader.read_to_end(&mut plain).map_err(|e| e.to_string())?;
        }
        other => return Err(format!("unknown compression {other}")),
    }
    Ok(plain)
}

fn flatten(request: ExportLogsServiceRequest) -> Vec<Record> {
    let mut records = Vec::new();
    for group in request.resource_logs {
        let resource = Arc::new(group.resource.unwrap_or_default());
        for logs in group.scope_logs {
            let scope = Arc::new(logs.scope.unwrap_or_default());
            records.extend(logs.log_records.into_iter().map(|log| Record {
                log,
                resource: Arc::clone(&resource),
                scope: Arc::clone(&scope),
                request: 0,
            }));
        }
    }
    records
}
