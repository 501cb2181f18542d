//! The HTTP output: sends lines of JSON, or one JSON array, to any server.

mod json_array;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use http::{HeaderValue, Method};
use reqwest::Url;
use tailrace_otlp::{Compression, Encoding, NdjsonEncoding};
use tailrace_schema::Secret;
use tailrace_schema::kind::{HOUR, Integer, KIB, Kind, MIB, Map, SECOND, SecretText, Size, Time};
use tailrace_schema::node::Node;
use tailrace_schema::reader::Reader;
use tailrace_schema::section::{Section, Shape};

use crate::delivery::{
    Answered, Attempt, CompressionSearch, DriveConfig, OnRefused, Outcome, Payload, RetryPolicy,
    Transport,
};
use crate::http_client::answer::{HttpResponse, failed};
use crate::http_client::endpoint::Endpoint;
use crate::http_client::headers::HeaderName;
use crate::http_client::options::{self, Retry, Tls};
use crate::http_client::target::hinted;
use crate::http_client::{Body, ClientOptions, HttpClient, within};
use crate::{Error, Opened, Output, OutputType};
use json_array::JsonArrayEncoding;

pub(crate) const TYPE: OutputType = OutputType {
    name: "http",
    info: &<HttpOutput as Section>::INFO,
    example: include_str!("http/example.yaml"),
    read: |node, reader, common| {
        let output: HttpOutput = reader.section(node, common)?;
        let (retry, tls, url) = (&output.retry, &output.tls, &output.endpoint);
        let is_sound = options::check(retry, tls, url, node, reader);
        is_sound.then(|| Arc::new(output) as Arc<dyn Output>)
    },
};

section! {
    /// Sends records as JSON to any HTTP server, and retries until the server accepts them. Any 2xx accepts a request, unless
    /// the answer is a web page; the rest of its body is not waited for. A request is retried after 408, 429, 502, 503 and 504, and bisected after 400, 413 and 422 to
    /// find the bad records. After any other status the output holds until the server accepts again.
    pub struct HttpOutput {
        /// The URL that requests are sent to, used as is. `https://` means TLS.
        endpoint: String = Endpoint, required("https://logs.example.com/ingest");
        /// The HTTP method of requests.
        method: Method = RequestMethod, default("POST");
        /// The format of requests.
        encoding: HttpEncoding = HttpEncoding, default("ndjson");
        /// How requests are compressed. A server that does not know a compression may store bytes that it cannot read, so
        /// there is none by default.
        compression: HttpCompression = HttpCompression, default("none");
        /// Headers of every request. Values are never shown.
        headers: BTreeMap<String, Secret> = Map<HeaderName, SecretText>, default("{}", "{authorization: 'Bearer secret'}");
        /// How long one attempt may take.
        timeout: Duration = Time<{ SECOND / 10 }, { HOUR }>, default("10s");
        /// The maximum number of requests in flight. With 1, requests arrive in the order in which they were made.
        concurrency: usize = Integer<1, 256>, default("4");
        /// The maximum size of a request before compression. A larger record is sent alone.
        max_request_bytes: u64 = Size<{ 16 * KIB }, { 64 * MIB }>, default("1MiB");
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
    }
}

choice! {
    /// The format of requests.
    pub enum HttpEncoding {
        /// One JSON object per line, as `application/x-ndjson`.
        Ndjson = "ndjson",
        /// One JSON array of objects, as `application/json`.
        Json = "json",
    }
}

choice! {
    /// How requests are compressed.
    pub enum HttpCompression {
        /// No compression.
        None = "none",
        /// gzip, always.
        Gzip = "gzip",
        /// zstd, always.
        Zstd = "zstd",
    }
}

/// A method of HTTP.
struct RequestMethod;

impl Kind for RequestMethod {
    type Value = Method;

    fn shape() -> Shape {
        Shape::Text("method")
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Method> {
        let expected = "a method with a body, such as `POST`";
        let resolved = reader.scalar(node, expected)?;
        let method = Method::from_bytes(resolved.text.as_bytes()).ok();
        // These have no body (RFC 9110, section 9.3), and servers pass over one.
        let bodiless = ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "TRACE"];
        let is_upper = |method: &Method| method.as_str().bytes().all(|b| !b.is_ascii_lowercase());
        let method =
            method.filter(|method| is_upper(method) && !bodiless.contains(&method.as_str()));
        if method.is_none() {
            let hint = "methods are written in capitals; `POST`, `PUT` and `PATCH` have a body";
            reader.refuse_text(node, &resolved, expected, Some(hint.to_owned()));
        }
        method
    }
}

impl Output for HttpOutput {
    fn type_name(&self) -> &'static str {
        TYPE.name
    }

    fn endpoint(&self) -> Option<String> {
        Some(self.endpoint.clone())
    }

    fn encoding(&self) -> Arc<dyn Encoding> {
        let lines = NdjsonEncoding {
            request_bytes_max: usize::try_from(self.max_request_bytes).unwrap_or(usize::MAX),
        };
        match self.encoding {
            HttpEncoding::Ndjson => Arc::new(lines),
            HttpEncoding::Json => Arc::new(JsonArrayEncoding { lines }),
        }
    }

    fn compression(&self) -> Compression {
        match self.compression {
            HttpCompression::None => Compression::None,
            HttpCompression::Gzip => Compression::Gzip,
            HttpCompression::Zstd => Compression::Zstd,
        }
    }

    fn open(&self) -> Result<Opened, Error> {
        Ok(Opened {
            transport: Arc::new(HttpTransport::new(self)?),
            drive: DriveConfig {
                concurrency: self.concurrency,
                on_refused: self.on_refused,
            },
        })
    }

    fn is_ordered(&self) -> bool {
        self.concurrency == 1
    }

    fn max_request_bytes(&self) -> Option<u64> {
        Some(self.max_request_bytes)
    }

    fn files(&self) -> Vec<&PathBuf> {
        self.tls.files()
    }

    fn becomes(&self, _column: Option<&str>) -> String {
        "a key of the object".to_owned()
    }
}

/// Sends requests to one URL.
struct HttpTransport {
    client: HttpClient,
    compression: CompressionSearch,
    policy: RetryPolicy,
    timeout: Duration,
}

impl HttpTransport {
    fn new(output: &HttpOutput) -> Result<HttpTransport, Error> {
        let url = Url::parse(&output.endpoint);
        let url = url.map_err(|error| Error::value("endpoint", error.to_string()))?;
        let client = HttpClient::new(ClientOptions {
            method: output.method.clone(),
            url,
            content_type: HeaderValue::from_static(match output.encoding {
                HttpEncoding::Ndjson => "application/x-ndjson",
                HttpEncoding::Json => "application/json",
            }),
            headers: &output.headers,
            tls: &output.tls,
            proxy: output.proxy.as_ref(),
            timeout: output.timeout,
            connection_age_max: output.max_connection_age,
        })?;
        Ok(HttpTransport {
            client,
            compression: CompressionSearch::fixed(Output::compression(output)),
            policy: output.retry.policy(),
            timeout: output.timeout,
        })
    }
}

impl Transport for HttpTransport {
    fn attempt<'a>(&'a self, payload: &'a Payload) -> Attempt<'a> {
        let until = Instant::now() + self.timeout;
        let attempt = async move {
            let success = Body::Glance { until };
            match self.client.send(payload, success).await {
                Ok(response) => {
                    let hint = self.client.target().hint(response.status.as_u16(), false);
                    hinted(outcome(&response, SystemTime::now()), hint)
                }
                Err(outcome) => outcome.into(),
            }
        };
        let target = self.client.target();
        Box::pin(within(self.timeout, target, attempt, || {
            self.client.renew()
        }))
    }

    fn compression(&self) -> &CompressionSearch {
        &self.compression
    }

    fn retry_policy(&self) -> &RetryPolicy {
        &self.policy
    }
}

/// A web page comes from something that is no receiver of logs, such as a login. Any other success is one.
fn outcome(response: &HttpResponse, now: SystemTime) -> Answered {
    if !response.status.is_success() {
        return failed(response, &response.text(), now);
    }
    if response.is_page() || response.announces_page() {
        let reason = format!(
            "the server answered {} with a web page ({}): does the endpoint lead to a receiver of logs?",
            response.status,
            response.describe_body()
        );
        return Outcome::Hold { reason }.into();
    }
    let accepted = Outcome::Delivered {
        rejected: 0,
        message: None,
    };
    accepted.into()
}

#[cfg(test)]
mod tests;
