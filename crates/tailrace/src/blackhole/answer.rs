//! One request: read it, decode it if asked to, answer it. Everything about
//! OTLP/HTTP and OTLP/gRPC that a server must get right stands here; sockets
//! and totals do not.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::Incoming;
use prost::Message as _;
use tailrace_otlp::Compression;
use tailrace_outputs::otlp::rpc;

use super::State;
use super::count::count_log_records;

/// What an accepted request held.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) wire_bytes: u64,
    pub(super) message_bytes: u64,
    pub(super) records: u64,
}

/// The body of an answer.
type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The method of OTLP's log service.
const GRPC_EXPORT: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";
const GRPC_TYPE: HeaderValue = HeaderValue::from_static("application/grpc");
const PROTOBUF_TYPE: HeaderValue = HeaderValue::from_static("application/x-protobuf");

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// No such path or method.
    Unknown,
    /// `/v1/logs` with another method than POST.
    NotPost,
    /// The body is larger than the limit.
    TooLarge,
    /// The connection broke within the body.
    Broken,
    /// An encoding or a content type that is not ours.
    Unsupported,
    /// Decompression or the message itself failed.
    Undecodable,
}

/// Answers one request and counts it.
pub(super) async fn answer(
    request: Request<Incoming>,
    state: Arc<State>,
) -> Result<Response<Body>, Infallible> {
    let grpc = request
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"));
    let received = match route(&request, grpc) {
        Ok(()) => receive(request, grpc, &state).await,
        Err(refusal) => Err(refusal),
    };
    match &received {
        Ok(received) => state.count(received),
        Err(refusal) => {
            state.count_refused();
            tracing::debug!(?refusal, "blackhole: request refused");
        }
    }
    let outcome = received.map(|_| ());
    Ok(if grpc {
        grpc_response(outcome)
    } else {
        http_response(outcome)
    })
}

fn route(request: &Request<Incoming>, grpc: bool) -> Result<(), Refusal> {
    let path = if grpc { GRPC_EXPORT } else { "/v1/logs" };
    if request.uri().path() != path {
        return Err(Refusal::Unknown);
    }
    if request.method() != Method::POST {
        return Err(Refusal::NotPost);
    }
    Ok(())
}

async fn receive(
    request: Request<Incoming>,
    grpc: bool,
    state: &State,
) -> Result<Received, Refusal> {
    let options = &state.options;
    let (head, mut body) = request.into_parts();
    let mut received = Received::default();
    let mut kept = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Refusal::Broken)?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        received.wire_bytes += data.len() as u64;
        if received.wire_bytes > options.body_bytes_max as u64 {
            return Err(Refusal::TooLarge);
        }
        if options.decode {
            kept.extend_from_slice(&data);
        }
    }
    if options.decode {
        let message = if grpc {
            grpc_message(&head.headers, &kept, options.body_bytes_max)?
        } else {
            http_message(&head.headers, kept, options.body_bytes_max)?
        };
        received.message_bytes = message.len() as u64;
        received.records = count_log_records(&message).ok_or(Refusal::Undecodable)?;
        if let (Some(print), Some(printed)) = (options.print, &state.printed) {
            let lines = print.lines(&message).ok_or(Refusal::Undecodable)?;
            // Nobody prints any more while the endpoint ends.
            let _ = printed.send(lines).await;
        }
    }
    Ok(received)
}

/// The message of an OTLP/HTTP request.
fn http_message(headers: &HeaderMap, body: Vec<u8>, max: usize) -> Result<Vec<u8>, Refusal> {
    let content_type = headers
        .get(CONTENT_TYPE)
        .map(HeaderValue::as_bytes)
        .unwrap_or_default();
    if !content_type.starts_with(b"application/x-protobuf") {
        return Err(Refusal::Unsupported);
    }
    match compression(headers.get(CONTENT_ENCODING))? {
        Compression::None => Ok(body),
        compression => decompress(compression, &body, max),
    }
}

/// The message of a unary gRPC request. Its body is one frame: a byte that says whether the message is
/// compressed, four bytes of its length, and the message.
fn grpc_message(headers: &HeaderMap, body: &[u8], max: usize) -> Result<Vec<u8>, Refusal> {
    let (&[flag, a, b, c, d], message) = body.split_first_chunk().ok_or(Refusal::Undecodable)?;
    if message.len() as u64 != u64::from(u32::from_be_bytes([a, b, c, d])) {
        return Err(Refusal::Undecodable);
    }
    match (flag, compression(headers.get("grpc-encoding"))?) {
        (0, _) => Ok(message.to_vec()),
        (1, Compression::None) | (2.., _) => Err(Refusal::Undecodable),
        (1, compression) => decompress(compression, message, max),
    }
}

fn compression(header: Option<&HeaderValue>) -> Result<Compression, Refusal> {
    let Some(header) = header else {
        return Ok(Compression::None);
    };
    let name = header.to_str().map_err(|_| Refusal::Unsupported)?;
    Compression::from_name(name).ok_or(Refusal::Unsupported)
}

fn decompress(compression: Compression, bytes: &[u8], max: usize) -> Result<Vec<u8>, Refusal> {
    tailrace_otlp::decompress(compression, bytes, max).map_err(|error| match error.is_too_long() {
        true => Refusal::TooLarge,
        false => Refusal::Undecodable,
    })
}

impl Refusal {
    fn message(self) -> &'static str {
        match self {
            Refusal::Unknown => "unknown path: only logs are taken here",
            Refusal::NotPost => "only POST is taken here",
            Refusal::TooLarge => "the body is larger than the limit",
            Refusal::Broken => "the body ended early",
            Refusal::Unsupported => "unsupported content type or encoding",
            Refusal::Undecodable => "the body is not an ExportLogsServiceRequest",
        }
    }

    fn http_status(self) -> StatusCode {
        match self {
            Refusal::Unknown => StatusCode::NOT_FOUND,
            Refusal::NotPost => StatusCode::METHOD_NOT_ALLOWED,
            Refusal::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Refusal::Unsupported => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Refusal::Broken | Refusal::Undecodable => StatusCode::BAD_REQUEST,
        }
    }

    /// The code of `google.rpc.Code`.
    fn grpc_status(self) -> u8 {
        match self {
            Refusal::Unknown | Refusal::NotPost | Refusal::Unsupported => 12, // UNIMPLEMENTED
            Refusal::TooLarge => 8,                                           // RESOURCE_EXHAUSTED
            Refusal::Broken | Refusal::Undecodable => 3,                      // INVALID_ARGUMENT
        }
    }
}

/// An empty `ExportLogsServiceResponse`, or a `google.rpc.Status`.
fn http_response(outcome: Result<(), Refusal>) -> Response<Body> {
    let mut response = match outcome {
        Ok(()) => Response::new(Empty::new().boxed_unsync()),
        Err(refusal) => {
            let status = rpc::Status {
                code: refusal.grpc_status().into(),
                message: refusal.message().to_owned(),
                details: Vec::new(),
            };
            let body = Full::new(Bytes::from(status.encode_to_vec()));
            let mut response = Response::new(body.boxed_unsync());
            *response.status_mut() = refusal.http_status();
            if refusal == Refusal::NotPost {
                response
                    .headers_mut()
                    .insert(ALLOW, HeaderValue::from_static("POST"));
            }
            response
        }
    };
    response.headers_mut().insert(CONTENT_TYPE, PROTOBUF_TYPE);
    response
}

/// Success is one empty message and the status in trailers; a refusal has the
/// status in the headers and no body (gRPC's "Trailers-Only").
fn grpc_response(outcome: Result<(), Refusal>) -> Response<Body> {
    let mut response = match outcome {
        Ok(()) => {
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", HeaderValue::from_static("0"));
            let message = Full::new(Bytes::from_static(&[0, 0, 0, 0, 0]));
            let body = message.with_trailers(std::future::ready(Some(Ok(trailers))));
            Response::new(body.boxed_unsync())
        }
        Err(refusal) => {
            let mut response = Response::new(Empty::new().boxed_unsync());
            let headers = response.headers_mut();
            headers.insert(
                "grpc-status",
                HeaderValue::from(u16::from(refusal.grpc_status())),
            );
            headers.insert("grpc-message", HeaderValue::from_static(refusal.message()));
            response
        }
    };
    response.headers_mut().insert(CONTENT_TYPE, GRPC_TYPE);
    response
}
