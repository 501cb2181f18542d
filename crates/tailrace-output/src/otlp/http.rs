//! One attempt over HTTP: POST the payload, read the answer. Takes a payload, gives [`Answered`]; it
//! follows no redirect, uses no proxy, and keeps no time (its caller cuts it off).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use http::{HeaderMap, HeaderValue, header};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, Url, redirect};

use super::classify::{self, HttpResponse, RESPONSE_BYTES_MAX};
use super::client::Renewed;
use super::config::OtlpConfig;
use super::{USER_AGENT, headers, tls};
use crate::error::Kind;
use crate::outcome::{Answered, Outcome, RetryCause};
use crate::text::chain;
use crate::{Encoding, Error, Payload};

/// A pooled client for one URL.
pub(super) struct Http {
    pub(super) clients: Renewed<Client>,
    url: Url,
    headers: HeaderMap,
}

impl Http {
    pub(super) fn new(mut url: Url, config: &OtlpConfig) -> Result<Http, Error> {
        let mut tls = tls::client_config(&config.tls, url.scheme() == "https")?;
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let mut resolver = None;
        if let (Some(name), Some(host)) = (&config.tls.server_name, url.host_str()) {
            let host = host.trim_matches(['[', ']']).to_owned();
            resolver = Some(Arc::new(Always { host }));
            let taken = url.set_host(Some(name));
            taken.map_err(|error| Error::value("tls.server_name", error.to_string()))?;
        }
        let timeout = config.timeout();
        let make = move || {
            let builder = Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .redirect(redirect::Policy::none())
                .referer(false)
                .no_proxy()
                .user_agent(USER_AGENT)
                .connect_timeout(timeout);
            match resolver.clone() {
                Some(resolver) => builder.dns_resolver(resolver),
                None => builder,
            }
        };
        // A builder can be used once, and is not cloned: what it is made of is.
        make().build().map_err(|source| Kind::Client {
            source: source.without_url(),
        })?;
        let mut headers = headers::check(&config.headers)?;
        let protobuf = HeaderValue::from_static("application/x-protobuf");
        headers.insert(header::CONTENT_TYPE, protobuf);
        let clients = Renewed::new(config.max_connection_age(), move || {
            make().build().expect("a client was made of this before")
        });
        Ok(Http {
            clients,
            url,
            headers,
        })
    }

    pub(super) async fn attempt(&self, payload: &Payload) -> Answered {
        let mut headers = self.headers.clone();
        if payload.encoding != Encoding::Identity {
            let encoding = HeaderValue::from_static(payload.encoding.as_str());
            headers.insert(header::CONTENT_ENCODING, encoding);
        }
        let request = self.clients.get().post(self.url.clone()).headers(headers);
        let mut response = match request.body(payload.bytes.clone()).send().await {
            Ok(response) => response,
            Err(error) => return failure(error).into(),
        };
        let mut body = Vec::new();
        let mut overlong = false;
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if body.len() + chunk.len() > RESPONSE_BYTES_MAX => {
                    overlong = true;
                    break;
                }
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => break,
                // The status of a failure says enough; a success needs its body.
                Err(_) if !response.status().is_success() => break,
                Err(error) => return failure(error).into(),
            }
        }
        let response = HttpResponse {
            status: response.status(),
            headers: response.headers(),
            body: &body,
            overlong,
        };
        classify::http(&response, payload.records, SystemTime::now())
    }
}

fn failure(error: reqwest::Error) -> Outcome {
    let cause = if error.is_connect() {
        RetryCause::Connect
    } else if error.is_timeout() {
        RetryCause::Timeout
    } else {
        RetryCause::Transport
    };
    let mut reason = chain(&error.without_url());
    if reason.contains("invalid HTTP version") {
        reason.push_str(": does the endpoint speak gRPC (protocol grpc, often port 4317)?");
    }
    Outcome::Retry {
        cause,
        reason,
        after: None,
    }
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
