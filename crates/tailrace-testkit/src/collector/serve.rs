//! Speaks HTTP/1.1, HTTP/2 and gRPC for the collector: accepts connections, reads whole requests,
//! writes what the [`Answer`] says. It never decides what to answer.

use std::io::{self, Write as _};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::{BufMut, Bytes, BytesMut};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use http_body_util::BodyExt;
use http_body_util::channel::Channel;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use opentelemetry_proto::tonic::collector::logs::v1::{
    ExportLogsPartialSuccess, ExportLogsServiceResponse,
};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

use super::answer::{Answer, Code, End};
use super::judge::Judge;
use super::request::{self, Content, Protocol};
use super::state::{Decider, Shared};
use crate::status::Status;

type Body = Channel<Bytes, io::Error>;

/// Accepts until the task is dropped.
pub(crate) async fn run(listener: TcpListener, tls: Option<TlsAcceptor>, shared: Arc<Shared>) {
    loop {
        // An accept fails when the client is gone already: the next one may do better.
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let connection = Arc::new(Connection {
            number: shared.connected(),
            cut: Notify::new(),
            reset: AtomicBool::new(false),
        });
        let wire = Wire {
            stream,
            connection: Arc::clone(&connection),
        };
        let shared = Arc::clone(&shared);
        match tls.clone() {
            None => {
                tokio::spawn(serve(wire, connection, shared));
            }
            Some(tls) => {
                tokio::spawn(async move {
                    if let Ok(stream) = tls.accept(wire).await {
                        serve(stream, connection, shared).await;
                    }
                });
            }
        }
    }
}

/// One connection: its number, and how a request on it can end it.
struct Connection {
    number: usize,
    cut: Notify,
    reset: AtomicBool,
}

async fn serve<S>(stream: S, connection: Arc<Connection>, shared: Arc<Shared>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request| {
        let (connection, shared) = (Arc::clone(&connection), Arc::clone(&shared));
        async move { Ok::<_, io::Error>(respond(request, &connection, &shared).await) }
    });
    let builder = auto::Builder::new(TokioExecutor::new());
    tokio::select! {
        // How the client left is its own affair.
        _ = builder.serve_connection(TokioIo::new(stream), service) => {}
        () = connection.cut.notified() => {}
    }
}

async fn respond(
    request: http::Request<Incoming>,
    connection: &Connection,
    shared: &Shared,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let Some(body) = collect(body, shared).await else {
        // The client broke off: there is nobody to answer.
        return std::future::pending().await;
    };
    let answer = match shared.decider() {
        Decider::Script => return scripted(&parts, &body, connection, shared).await,
        Decider::Judge(judge) => judged(&**judge, &parts, &body, connection.number),
        Decider::Counter(_) if parts.uri.path() != "/v1/logs" => Answer::status(404),
        Decider::Counter(answer) => answer(&parts.headers, &body),
    };
    finish(answer, Protocol::Http, "identity", connection).await
}

/// Answers as the script says, and keeps what is accepted.
async fn scripted(
    parts: &Parts,
    body: &Bytes,
    connection: &Connection,
    shared: &Shared,
) -> Response<Body> {
    let (request, content) = request::read(parts, body, connection.number);
    let protocol = request.protocol;
    let compression = request.compression.clone();
    let records = match content {
        Content::Records(records) => records,
        Content::Metrics(metrics) => {
            let answer = shared.seen_metrics(request);
            if answer.accepts() {
                shared.accepted_metrics(metrics);
            }
            return finish(answer, protocol, &compression, connection).await;
        }
    };
    let (index, answer) = shared.seen(request, &records);
    if let Some(gate) = &answer.gate {
        gate.passed().await;
    }
    if answer.accepts() {
        shared.accepted(index, records, &answer);
    }
    finish(answer, protocol, &compression, connection).await
}

/// The whole body, no faster than the judge says. `None` if the client broke off.
async fn collect(mut body: Incoming, shared: &Shared) -> Option<Bytes> {
    let Decider::Judge(judge) = shared.decider() else {
        return Some(body.collect().await.ok()?.to_bytes());
    };
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.ok()?.into_data() else {
            continue;
        };
        let wait = judge.pause(data.len());
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        whole.extend_from_slice(&data);
    }
    Some(whole.freeze())
}

/// What a judge says to a request; decoded only if it wants to see it.
fn judged(judge: &dyn Judge, parts: &Parts, body: &Bytes, connection: usize) -> Answer {
    if let Some(answer) = judge.refuses() {
        return answer;
    }
    let (request, content) = request::read(parts, body, connection);
    match (request.error, content) {
        (Some(error), _) => Answer::status(400).message(&error),
        (None, Content::Records(records)) if request.path == "/v1/logs" => judge.accept(&records),
        (None, _) => Answer::status(404),
    }
}

async fn finish(
    answer: Answer,
    protocol: Protocol,
    compression: &str,
    connection: &Connection,
) -> Response<Body> {
    if !answer.delay.is_zero() {
        tokio::time::sleep(answer.delay).await;
    }
    if matches!(answer.end, End::Close | End::Reset) {
        let reset = answer.end == End::Reset;
        connection.reset.store(reset, Ordering::Relaxed);
        connection.cut.notify_one();
        return std::future::pending().await;
    }
    match protocol {
        Protocol::Http => http_response(answer),
        Protocol::Grpc => grpc_response(answer, compression),
    }
}

fn http_response(answer: Answer) -> Response<Body> {
    let status = match answer.code {
        Code::Http(status) => status,
        Code::Grpc(_) => 500,
    };
    let body = answer.body.clone().unwrap_or_else(|| {
        Bytes::from(if answer.accepts() {
            success(&answer)
        } else {
            failure(&answer, 0)
        })
    });
    let mut headers = HeaderMap::new();
    let protobuf = HeaderValue::from_static("application/x-protobuf");
    headers.insert(http::header::CONTENT_TYPE, protobuf);
    let promised = match answer.end {
        End::Cut => body.len() + 100,
        _ => body.len(),
    };
    headers.insert(http::header::CONTENT_LENGTH, HeaderValue::from(promised));
    response(status, headers, answer, body, None)
}

/// Compresses a success as the request was compressed, as grpc-go does.
fn grpc_response(answer: Answer, compression: &str) -> Response<Body> {
    let mut headers = HeaderMap::new();
    let code = match answer.code {
        Code::Http(200) => 0,
        Code::Http(status) => {
            let body = answer.body.clone().unwrap_or_default();
            return response(status, headers, answer, body, None);
        }
        Code::Grpc(code) => code,
    };
    let grpc = HeaderValue::from_static("application/grpc");
    headers.insert(http::header::CONTENT_TYPE, grpc);
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(code));
    if !answer.message.is_empty() {
        let message = percent_encode(&answer.message);
        trailers.insert("grpc-message", HeaderValue::from_str(&message).unwrap());
    }
    if !answer.details.is_empty() {
        let details = STANDARD_NO_PAD.encode(failure(&answer, code));
        let details = HeaderValue::from_str(&details).unwrap();
        trailers.insert("grpc-status-details-bin", details);
    }
    if answer.trailers_only {
        headers.extend(trailers);
        return response(200, headers, answer, Bytes::new(), None);
    }
    let body = match (&answer.body, code) {
        (Some(body), _) => body.clone(),
        (None, 0) => {
            let plain = success(&answer);
            let message = compress(compression, &plain);
            let compressed = compression != "identity";
            let compression = HeaderValue::from_str(compression).unwrap();
            headers.insert("grpc-encoding", compression);
            let mut frame = BytesMut::with_capacity(5 + message.len());
            frame.put_u8(u8::from(compressed));
            frame.put_u32(u32::try_from(message.len()).unwrap());
            frame.put_slice(&message);
            frame.freeze()
        }
        (None, _) => Bytes::new(),
    };
    response(200, headers, answer, body, Some(trailers))
}

fn compress(compression: &str, plain: &[u8]) -> Vec<u8> {
    match compression {
        "zstd" => zstd::encode_all(plain, 1).unwrap(),
        "gzip" => {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(plain).unwrap();
            gzip.finish().unwrap()
        }
        _ => plain.to_vec(),
    }
}

/// Puts the head together and lets a task write the rest as the answer wants it.
fn response(
    status: u16,
    mut headers: HeaderMap,
    answer: Answer,
    body: Bytes,
    trailers: Option<HeaderMap>,
) -> Response<Body> {
    for (name, value) in &answer.headers {
        let name = HeaderName::try_from(name.as_str()).unwrap();
        headers.insert(name, HeaderValue::from_str(value).unwrap());
    }
    let (mut sender, channel) = Body::new(4);
    tokio::spawn(async move {
        if let Some(gate) = &answer.body_gate {
            gate.passed().await;
        }
        // A client that went away needs no rest.
        if !body.is_empty() && sender.send_data(body).await.is_err() {
            return;
        }
        if answer.end == End::Cut {
            sender.abort(io::Error::other("cut by the script"));
            return;
        }
        if let Some(trailers) = trailers {
            let _ = sender.send_trailers(trailers).await;
        }
    });
    let mut response = Response::new(channel);
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
    *response.headers_mut() = headers;
    response
}

fn success(answer: &Answer) -> Vec<u8> {
    let partial_success =
        answer
            .partial
            .clone()
            .map(|(rejected, message)| ExportLogsPartialSuccess {
                rejected_log_records: rejected,
                error_message: message,
            });
    ExportLogsServiceResponse { partial_success }.encode_to_vec()
}

fn failure(answer: &Answer, code: i32) -> Vec<u8> {
    let status = Status {
        code,
        message: answer.message.clone(),
        details: answer.details.clone(),
    };
    status.encode_to_vec()
}

/// As the gRPC protocol wants it: every byte outside printable ASCII, and `%`.
fn percent_encode(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// A TCP stream that resets its connection when it is dropped, if it is configured to.
struct Wire {
    stream: TcpStream,
    connection: Arc<Connection>,
}

impl Drop for Wire {
    fn drop(&mut self) {
        if self.connection.reset.load(Ordering::Relaxed) {
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
