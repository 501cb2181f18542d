//! An HTTP client for outputs: it sends a payload and reads the answer. It follows no redirect, and has no timeout of its own
//! (the caller has). [`answer`] classifies answers, [`target`] explains failures to get one.

pub(crate) mod answer;
pub(crate) mod endpoint;
pub(crate) mod headers;
pub(crate) mod options;
pub(crate) mod proxy;
pub(crate) mod renewed;
pub(crate) mod secrets;
pub(crate) mod target;
pub(crate) mod tls;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue, Method, header};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, Url, redirect};
use tailrace_otlp::Compression;
use tailrace_schema::Secret;

use crate::Error;
use crate::delivery::{Answered, Doubt, Outcome, Payload, RetryCause};
use crate::error::Kind;
use answer::{HttpResponse, RESPONSE_BYTES_MAX};
use options::Tls;
use renewed::Renewed;
use target::Target;

/// The `User-Agent` of outputs.
pub(crate) const USER_AGENT: &str = concat!("Tailrace/", env!("CARGO_PKG_VERSION"));

/// The options of a client.
pub(crate) struct ClientOptions<'a> {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) content_type: HeaderValue,
    pub(crate) headers: &'a BTreeMap<String, Secret>,
    pub(crate) tls: &'a Tls,
    /// `none`, or the URL of a proxy; without it, that of the environment.
    pub(crate) proxy: Option<&'a Secret>,
    /// The time for one attempt.
    pub(crate) timeout: Duration,
    pub(crate) connection_age_max: Duration,
}

/// A pooled client for one URL.
pub(crate) struct HttpClient {
    clients: Renewed<Client>,
    method: Method,
    url: Url,
    headers: HeaderMap,
    target: Target,
}

impl HttpClient {
    /// Reads the TLS files; connects to nothing.
    pub(crate) fn new(options: ClientOptions<'_>) -> Result<HttpClient, Error> {
        let mut url = options.url;
        let proxy = proxy::proxy_for(&url, options.proxy, proxy::environment)?;
        check_proxy(proxy.as_ref(), options.tls)?;
        let target = Target::new(&url, false, options.headers, options.tls, proxy.as_ref());
        let mut tls = tls::client_config(options.tls, url.scheme() == "https")?;
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let mut resolver = None;
        if let (Some(name), Some(host)) = (&options.tls.server_name, url.host_str()) {
            let host = host.trim_matches(['[', ']']).to_owned();
            resolver = Some(Arc::new(Always { host }));
            let taken = url.set_host(Some(name));
            taken.map_err(|error| Error::value("tls.server_name", error.to_string()))?;
        }
        let timeout = options.timeout;
        let make = move || {
            let mut builder = Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .redirect(redirect::Policy::none())
                .referer(false)
                .no_proxy()
                .user_agent(USER_AGENT)
                .connect_timeout(timeout);
            if let Some(proxy) = &proxy {
                let mut through = reqwest::Proxy::all(proxy.uri.to_string())
                    .expect("the URL of a proxy was checked before");
                if let Some(authorization) = &proxy.authorization {
                    through = through.custom_http_auth(authorization.clone());
                }
                builder = builder.proxy(through);
            }
            match resolver.clone() {
                Some(resolver) => builder.dns_resolver(resolver),
                None => builder,
            }
        };
        // A builder can be used once, and is not cloned: what it is made of is.
        make().build().map_err(|source| Kind::Client {
            source: source.without_url(),
        })?;
        let mut headers = headers::headers(options.headers)?;
        headers.insert(header::CONTENT_TYPE, options.content_type);
        let clients = Renewed::new(options.connection_age_max, move || {
            make().build().expect("a client was made of this before")
        });
        Ok(HttpClient {
            clients,
            method: options.method,
            url,
            headers,
            target,
        })
    }

    /// The server, as messages name it.
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// Sends a payload and reads the answer, no more of it than [`RESPONSE_BYTES_MAX`]. `success` is how much of the body matters
    /// where the status is that of a success.
    ///
    /// # Errors
    ///
    /// The outcome of an attempt without an answer.
    pub(crate) async fn send(
        &self,
        payload: &Payload,
        success: Body,
    ) -> Result<HttpResponse, Outcome> {
        let mut headers = self.headers.clone();
        if payload.compression != Compression::None {
            let compression = HeaderValue::from_static(payload.compression.name());
            headers.insert(header::CONTENT_ENCODING, compression);
        }
        let client = self.clients.get();
        let request = client.request(self.method.clone(), self.url.clone());
        let request = request.headers(headers).body(payload.bytes.clone());
        let mut response = request.send().await.map_err(|error| self.failure(error))?;
        let mut body = Vec::new();
        let read = match success {
            Body::Glance { until } if response.status().is_success() => {
                // Well before that, so that an answer that has come is never taken for none.
                let longest = GLANCE.min(until.saturating_duration_since(Instant::now()) / 2);
                let glance = read(&mut response, GLANCE_BYTES_MAX, &mut body);
                let read = tokio::time::timeout(longest, glance).await;
                read.map_or(Read::Broken, |read| read.unwrap_or(Read::Broken))
            }
            _ => match read(&mut response, RESPONSE_BYTES_MAX, &mut body).await {
                Ok(read) => read,
                // The status of a failure says enough; a success needs its body.
                Err(_) if !response.status().is_success() => Read::Broken,
                Err(error) => return Err(self.failure(error)),
            },
        };
        self.target.secrets().mask(&mut body);
        Ok(HttpResponse {
            status: response.status(),
            headers: std::mem::take(response.headers_mut()),
            body,
            overlong: read == Read::Overlong,
            is_whole: read == Read::Whole,
        })
    }

    fn failure(&self, error: reqwest::Error) -> Outcome {
        let cause = if error.is_connect() {
            RetryCause::Connect
        } else if error.is_timeout() {
            RetryCause::Timeout
        } else {
            RetryCause::Transport
        };
        Outcome::Retry {
            cause,
            reason: self.target.explain(&error.without_url()),
            after: None,
        }
    }

    /// Makes the next request open a new connection, perhaps to another server.
    pub(crate) fn renew(&self) {
        self.clients.renew();
    }
}

/// How much of the body of a success matters.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    /// All of it: it may reject records.
    Whole,
    /// Its beginning, which shows whether a web page answers. What does not come soon is not waited for, nor is an error in it one.
    Glance {
        /// When the attempt is over.
        until: Instant,
    },
}

/// So much of a body is enough to see what it is. The rest is read and let go, so that the connection can be used again.
const GLANCE_BYTES_MAX: usize = 64 << 10;
/// As long is waited for it: it is there at once, or matters to nobody.
const GLANCE: Duration = Duration::from_millis(500);

/// How reading of a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Read {
    /// At its end.
    Whole,
    /// At [`RESPONSE_BYTES_MAX`].
    Overlong,
    /// Nothing more came in time, or an error.
    Broken,
}

/// Reads a body, and keeps as much of it.
async fn read(
    response: &mut reqwest::Response,
    kept_bytes_max: usize,
    body: &mut Vec<u8>,
) -> Result<Read, reqwest::Error> {
    let mut read = 0;
    while let Some(chunk) = response.chunk().await? {
        let room = kept_bytes_max - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        read += chunk.len();
        if read > RESPONSE_BYTES_MAX {
            return Ok(Read::Overlong);
        }
    }
    Ok(Read::Whole)
}

/// With `tls.server_name` the URL has that name, and a proxy would connect to it instead of the server.
pub(crate) fn check_proxy(proxy: Option<&proxy::Proxy>, tls: &Tls) -> Result<(), Error> {
    match proxy {
        Some(proxy) if tls.server_name.is_some() => {
            let message = format!(
                "is not possible through a proxy ({}): add the server to NO_PROXY or set proxy: none",
                proxy.address()
            );
            Err(Error::value("tls.server_name", message))
        }
        _ => Ok(()),
    }
}

/// Awaits one attempt to reach `target`, at most `timeout`. After a failure of the other side it calls `renew`: the next connection may lead
/// to a healthy server.
pub(crate) async fn within(
    timeout: Duration,
    target: &Target,
    attempt: impl Future<Output = Answered>,
    renew: impl FnOnce(),
) -> Answered {
    let answered = match tokio::time::timeout(timeout, attempt).await {
        Ok(answered) => answered,
        Err(_) => Outcome::timeout(timeout).into(),
    };
    let is_broken =
        matches!(answered.outcome, Outcome::Retry { cause, .. } if cause != RetryCause::Throttled);
    // Servers of gRPC in C remember for the connection that they did not understand its headers.
    if is_broken || answered.doubt == Doubt::Named {
        renew();
    }
    target.named(answered)
}

/// Resolves every name to the addresses of one host: the name in the URL is the one the certificate
/// must prove.
struct Always {
    host: String,
}

impl Resolve for Always {
    fn resolve(&self, _name: Name) -> Resolving {
        let host = self.host.clone();
        Box::pin(async move {
            // The port 0 stands for the one of the URL.
            let found = tokio::net::lookup_host((host, 0)).await?;
            let found: Vec<SocketAddr> = found.collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests;
