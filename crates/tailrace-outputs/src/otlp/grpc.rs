//! One attempt over gRPC: a unary call of `Export` of the `LogsService`, or the `MetricsService`. tonic's channel is the transport; the
//! five-byte frame, `grpc-encoding` and the trailers are written and read here, because the payload is
//! compressed already. It never compresses, and keeps no time (its caller cuts it off).

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Request, Uri, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use reqwest::Url;
use tailrace_otlp::Compression;
use tonic::transport::{Channel, Endpoint};
use tower::ServiceExt;
use tower::util::BoxCloneSyncService;

use super::classify::{self, GrpcResponse};
use super::config::OtlpOutput;
use crate::delivery::{Answered, Outcome, Payload, RetryCause};
use crate::http_client::answer::RESPONSE_BYTES_MAX;
use crate::http_client::proxy::{self, Proxy};
use crate::http_client::renewed::Renewed;
use crate::http_client::target::Target;
use crate::http_client::{USER_AGENT, check_proxy, headers, tls};
use crate::{Error, Signal};

/// The path of the call that takes a signal.
const fn export(signal: Signal) -> &'static str {
    match signal {
        Signal::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
        Signal::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Addresses = std::vec::IntoIter<std::net::SocketAddr>;
type Resolver = BoxCloneSyncService<Name, Addresses, std::io::Error>;
type Tcp = HttpConnector<Resolver>;

/// How a connection is made.
#[derive(Clone)]
enum Connector {
    Direct(HttpsConnector<Tcp>),
    /// Through a tunnel of a proxy, also without TLS.
    Proxied(HttpsConnector<Tunnel<Tcp>>),
}

/// One channel to one server.
pub(super) struct Grpc {
    signal: Signal,
    headers: HeaderMap,
    /// Made at an attempt, because making one needs the runtime.
    channels: Renewed<Channel>,
    target: Target,
}

impl Grpc {
    pub(super) fn new(mut url: Url, signal: Signal, config: &OtlpOutput) -> Result<Grpc, Error> {
        let proxy = proxy::proxy_for(&url, config.proxy.as_ref(), proxy::environment)?;
        check_proxy(proxy.as_ref(), &config.tls)?;
        let target = Target::new(&url, true, &config.headers, &config.tls, proxy.as_ref());
        let tls = tls::client_config(&config.tls, url.scheme() == "https")?;
        let host = url.host_str().unwrap_or("").to_owned();
        let host = host.trim_matches(['[', ']']).to_owned();
        if let Some(name) = &config.tls.server_name {
            let taken = url.set_host(Some(name));
            taken.map_err(|error| Error::value("tls.server_name", error.to_string()))?;
        }
        let origin = Uri::try_from(url.as_str().trim_end_matches('/'))
            .map_err(|error| Error::value("endpoint", error.to_string()))?;
        let mut headers = headers::headers(&config.headers)?;
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/grpc"),
        );
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        headers.insert("grpc-timeout", grpc_timeout(config.timeout));
        let connector = connector(host, proxy.as_ref(), tls, config.timeout);
        let dialled = match url.port_or_known_default() {
            // The port says where a tunnel leads.
            Some(port) => Uri::try_from(format!(
                "{}://{}:{port}",
                url.scheme(),
                url.host_str().unwrap_or_default()
            ))
            .map_err(|error| Error::value("endpoint", error.to_string()))?,
            None => origin.clone(),
        };
        Ok(Grpc {
            signal,
            headers,
            channels: Renewed::new(config.max_connection_age, move || {
                connect(&connector, &dialled, &origin)
            }),
            target,
        })
    }

    /// The server, as messages name it.
    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    /// The next request makes a new connection: another server may do better.
    pub(super) fn renew(&self) {
        self.channels.renew();
    }

    pub(super) async fn attempt(&self, payload: &Payload) -> Answered {
        let request = match self.request(payload) {
            Ok(request) => request,
            Err(reason) => return Outcome::Hold { reason }.into(),
        };
        let channel = self.channels.get();
        let response = match channel.oneshot(request).await {
            Ok(response) => response,
            Err(error) => return self.failure(&error).into(),
        };
        let (head, mut frames) = response.into_parts();
        let mut body = Vec::new();
        let mut trailers = None;
        while let Some(frame) = frames.frame().await {
            let frame = match frame {
                Ok(frame) => frame,
                // With its status in the headers the answer is complete without a body.
                Err(_) if head.headers.contains_key("grpc-status") => break,
                Err(error) => return self.failure(&error).into(),
            };
            match frame.into_data() {
                Ok(data) if body.len() + data.len() > RESPONSE_BYTES_MAX => {
                    let reason = format!("an answer of more than {RESPONSE_BYTES_MAX} bytes");
                    return Outcome::Hold { reason }.into();
                }
                Ok(data) => body.extend_from_slice(&data),
                Err(frame) => trailers = frame.into_trailers().ok(),
            }
        }
        self.target.secrets().mask(&mut body);
        let response = GrpcResponse {
            status: head.status,
            headers: &head.headers,
            body: &body,
            trailers: trailers.as_ref(),
            secrets: self.target.secrets(),
            signal: self.signal,
        };
        classify::grpc(&response, payload.records)
    }

    fn failure(&self, error: &(dyn std::error::Error + 'static)) -> Outcome {
        let mut cause = RetryCause::Transport;
        let mut source = Some(error);
        while let Some(error) = source {
            if error.is::<tonic::ConnectError>() {
                cause = RetryCause::Connect;
            }
            // The channel reads our own grpc-timeout and may be a moment ahead of the caller.
            if error.is::<tonic::TimeoutExpired>() {
                cause = RetryCause::Timeout;
            }
            source = error.source();
        }
        let reason = self.target.explain(error);
        Outcome::Retry {
            cause,
            reason,
            after: None,
        }
    }

    fn request(&self, payload: &Payload) -> Result<Request<tonic::body::Body>, String> {
        let length = u32::try_from(payload.bytes.len())
            .map_err(|_| "a request of more than 4 GiB cannot be sent over gRPC".to_owned())?;
        let compressed = payload.compression != Compression::None;
        let mut frame = BytesMut::with_capacity(5);
        frame.put_u8(u8::from(compressed));
        frame.put_u32(length);
        let body = tonic::body::Body::new(Framed {
            frame: frame.freeze(),
            message: payload.bytes.clone(),
        });
        let mut request = Request::new(body);
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = Uri::from_static(export(self.signal));
        *request.headers_mut() = self.headers.clone();
        if compressed {
            let compression = HeaderValue::from_static(payload.compression.name());
            request.headers_mut().insert("grpc-encoding", compression);
        }
        Ok(request)
    }
}

/// A channel that connects to `dialled` when it is used; `origin` is the scheme and authority of requests.
fn connect(connector: &Connector, dialled: &Uri, origin: &Uri) -> Channel {
    let (connector, target) = (connector.clone(), dialled.clone());
    // The channel's own idea of TLS is left out: it always dials "http", the connector knows better.
    let dial = tower::service_fn(move |_: Uri| {
        let (connector, target) = (connector.clone(), target.clone());
        async move {
            match connector {
                Connector::Direct(direct) => direct.oneshot(target).await as Result<_, BoxError>,
                Connector::Proxied(proxied) => proxied.oneshot(target).await,
            }
        }
    });
    Endpoint::from(Uri::from_static("http://channel"))
        .origin(origin.clone())
        .connect_with_connector_lazy(dial)
}

/// Connects over TCP, and TLS for `https`, to the addresses of `host`, whatever name is asked for; or to those of the proxy,
/// which resolves the name itself.
fn connector(
    host: String,
    proxy: Option<&Proxy>,
    tls: rustls::ClientConfig,
    timeout: Duration,
) -> Connector {
    let host = proxy.map_or(host, |proxy| {
        proxy.host().trim_matches(['[', ']']).to_owned()
    });
    let resolver = tower::service_fn(move |_: Name| {
        let host = host.clone();
        async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok::<Addresses, std::io::Error>(found.collect::<Vec<_>>().into_iter())
        }
    });
    let mut tcp = HttpConnector::new_with_resolver(BoxCloneSyncService::new(resolver));
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(timeout));
    // A peer that vanished without a word is found out within half a minute.
    tcp.set_keepalive(Some(Duration::from_secs(15)));
    tcp.set_keepalive_interval(Some(Duration::from_secs(15)));
    tcp.set_keepalive_retries(Some(3));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(Duration::from_secs(30)));
    let https = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_http2();
    let Some(proxy) = proxy else {
        return Connector::Direct(https.wrap_connector(tcp));
    };
    let mut tunnel = Tunnel::new(proxy.uri.clone(), tcp);
    if let Some(authorization) = &proxy.authorization {
        tunnel = tunnel.with_auth(authorization.clone());
    }
    Connector::Proxied(https.wrap_connector(tunnel))
}

/// `grpc-timeout` holds at most eight digits and a unit.
fn grpc_timeout(timeout: Duration) -> HeaderValue {
    let value = match timeout.as_millis() {
        milliseconds @ 0..=99_999_999 => format!("{milliseconds}m"),
        milliseconds => format!("{}S", (milliseconds / 1000).min(99_999_999)),
    };
    HeaderValue::try_from(value).expect("digits and a letter are a header value")
}

/// A frame's five bytes, then the message, without copying it.
struct Framed {
    frame: Bytes,
    message: Bytes,
}

impl Body for Framed {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let mut next = std::mem::take(&mut self.frame);
        if next.is_empty() {
            next = std::mem::take(&mut self.message);
        }
        Poll::Ready((!next.is_empty()).then(|| Ok(Frame::data(next))))
    }

    fn is_end_stream(&self) -> bool {
        self.frame.is_empty() && self.message.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact((self.frame.len() + self.message.len()) as u64)
    }
}
