//! The server of an output, as messages name it, and what a failure to reach it means: from the error of the transport
//! to a sentence that says what to do. Pure. No message repeats a credential or the query of a URL.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;

use reqwest::Url;
use rustls::{AlertDescription, CertificateError};
use tailrace_schema::Secret;

use super::options::Tls;
use super::proxy::Proxy;
use super::secrets::Secrets;
use crate::delivery::{Answered, Outcome};
use crate::http_client::answer::join;
use crate::text::chain;

/// What to do about a server that has no place for metrics.
pub(crate) const METRICS_OFF: &str =
    "if the server takes logs alone, set `telemetry.metrics_interval: off`";

/// The server of an output.
#[derive(Clone)]
pub(crate) struct Target {
    /// The URL without its query.
    shown: String,
    /// The port as well if it is the scheme's.
    address: String,
    path: String,
    port: u16,
    is_tls: bool,
    is_grpc: bool,
    has_ca_file: bool,
    has_client_certificate: bool,
    has_authorization: bool,
    /// The host and port of the proxy.
    proxy: Option<String>,
    secrets: Secrets,
}

impl Target {
    /// The server at `url`, reached through `proxy`.
    pub(crate) fn new(
        url: &Url,
        is_grpc: bool,
        headers: &BTreeMap<String, Secret>,
        tls: &Tls,
        proxy: Option<&Proxy>,
    ) -> Target {
        let mut shown = url.clone();
        shown.set_query(None);
        // Neither can fail for a URL that has a host; such a URL has no credentials, as `endpoint.rs` checks.
        let _ = (shown.set_username(""), shown.set_password(None));
        let port = url.port_or_known_default().unwrap_or(0);
        Target {
            shown: shown.as_str().trim_end_matches('/').to_owned(),
            address: format!("{}:{port}", url.host_str().unwrap_or_default()),
            path: url.path().to_owned(),
            port,
            is_tls: url.scheme() == "https",
            is_grpc,
            has_ca_file: tls.ca_file.is_some(),
            has_client_certificate: tls.cert_file.is_some(),
            has_authorization: headers.contains_key("authorization"),
            proxy: proxy.map(Proxy::address),
            secrets: Secrets::of(headers, url, proxy),
        }
    }

    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// The same answer; its texts name the server, and repeat no secret.
    pub(crate) fn named(&self, mut answered: Answered) -> Answered {
        let masked = |text: &mut Option<String>| {
            *text = text.take().map(|text| self.secrets.masked(&text));
        };
        match &mut answered.outcome {
            Outcome::Delivered { message, .. } => masked(message),
            Outcome::Retry { reason, .. }
            | Outcome::TooLarge { reason }
            | Outcome::Refused { reason }
            | Outcome::Hold { reason }
            | Outcome::Closed { reason } => {
                *reason = format!("{}: {}", self.shown, self.secrets.masked(reason));
            }
        }
        masked(&mut answered.oddity);
        answered
    }

    /// What a status of HTTP suggests, beyond what the answer's classification says; empty if nothing.
    pub(crate) fn hint(&self, status: u16, is_otlp: bool) -> &'static str {
        let is_at_logs = self.path.ends_with("/v1/logs");
        let is_at_metrics = self.path.ends_with("/v1/metrics");
        match status {
            401 if !self.has_authorization => "no `authorization` is set in headers",
            404 | 405 if is_otlp && is_at_metrics => METRICS_OFF,
            404 | 405 if is_otlp && !is_at_logs => "OTLP servers take logs at /v1/logs",
            404 | 405 if is_otlp && self.port == 4317 => GRPC_PORT,
            _ => "",
        }
    }

    /// What a failure without an answer means, and what to do.
    pub(crate) fn explain(&self, error: &(dyn Error + 'static)) -> String {
        let causes = causes(error);
        let tls = causes.iter().find_map(|cause| cause.downcast_ref());
        let io = causes.iter().find_map(|cause| cause.downcast_ref());
        let texts = chain(error);
        match (tls, io) {
            (Some(tls), _) => self.tls(tls),
            _ if texts.contains("dns error") => self.unknown_name(&texts),
            (None, Some(io)) if texts.contains("tunnel error") && is_connect(io) => {
                self.connection(io)
            }
            _ if texts.contains("tunnel error") => self.tunnel(&texts),
            // HTTP/2 hands on the text alone.
            _ if texts.contains(ALERT) => {
                self.alert(texts.rsplit(ALERT).next().unwrap_or_default())
            }
            _ if texts.contains("invalid HTTP version") => self.no_http(),
            _ if texts.contains("frame with invalid size") => self.no_http2(),
            (None, Some(io)) => self.connection(io),
            (None, None) if texts.contains("connection closed") => self.closed(&texts),
            (None, None) => texts,
        }
    }

    /// The server that is connected to: the proxy, if there is one.
    fn first_hop(&self) -> String {
        match &self.proxy {
            Some(proxy) => format!("the proxy {proxy}"),
            None => self.address.clone(),
        }
    }

    fn connection(&self, error: &io::Error) -> String {
        let hop = self.first_hop();
        match error.kind() {
            io::ErrorKind::ConnectionRefused => {
                format!(
                    "nothing listens at {hop} (connection refused): is the server up, and the port right?"
                )
            }
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
                format!("there is no route to {hop} ({error}): check the network and the address")
            }
            io::ErrorKind::TimedOut => {
                format!(
                    "{hop} does not answer (timed out): is it up, and does a firewall drop the packets?"
                )
            }
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => self.closed(&error.to_string()),
            _ => format!("the connection to {hop} failed: {error}"),
        }
    }

    /// The connection ended before there was an answer.
    fn closed(&self, detail: &str) -> String {
        let hint = match (self.is_tls, self.is_grpc) {
            (true, _) => {
                "if this repeats, the server may not speak TLS (http://), or require a client certificate (tls.cert_file)"
            }
            (false, true) => {
                "if this repeats, the server may expect TLS (https://), or speak OTLP over HTTP (protocol: http/protobuf)"
            }
            (false, false) => {
                "if this repeats, the server may expect TLS (https://), or speak gRPC (protocol: grpc)"
            }
        };
        format!("the server closed the connection before it answered ({detail}): {hint}")
    }

    fn unknown_name(&self, texts: &str) -> String {
        let detail = texts.rsplit("dns error: ").next().unwrap_or_default();
        let hop = self.first_hop();
        format!(
            "the name of {hop} cannot be resolved ({detail}): check its spelling and this machine's DNS"
        )
    }

    /// The proxy did not connect us.
    fn tunnel(&self, texts: &str) -> String {
        let proxy = self.proxy.as_deref().unwrap_or("between");
        if texts.contains("authorization required") {
            return format!(
                "the proxy {proxy} requires credentials (407): write http://USER:PASSWORD@{proxy} where the proxy is set"
            );
        }
        let detail = texts.rsplit("tunnel error: ").next().unwrap_or_default();
        format!(
            "the proxy {proxy} did not connect to {} ({detail}): does it allow CONNECT to this host and port? If none is \
             needed, add the host to NO_PROXY or set proxy: none",
            self.address
        )
    }

    fn no_http(&self) -> String {
        let hint = match (self.port, self.is_tls) {
            (4317, _) => GRPC_PORT,
            (_, false) => "the server may expect TLS (https://), or speak gRPC (protocol: grpc)",
            (_, true) => "does the endpoint speak gRPC (protocol: grpc, often port 4317)?",
        };
        format!("the answer is no HTTP/1.1: {hint}")
    }

    fn no_http2(&self) -> String {
        let hint = match (self.port, self.is_tls) {
            (4318, _) => HTTP_PORT,
            (_, false) => {
                "the server may speak OTLP over HTTP (protocol: http/protobuf, often port 4318), or expect TLS (https://)"
            }
            (_, true) => "is the endpoint one for protocol: http/protobuf (often port 4318)?",
        };
        format!("the answer is no HTTP/2, which gRPC needs: {hint}")
    }

    fn tls(&self, error: &rustls::Error) -> String {
        match error {
            rustls::Error::InvalidMessage(_) => {
                format!(
                    "the server at {} does not speak TLS: write http:// if that is meant",
                    self.address
                )
            }
            rustls::Error::InvalidCertificate(error) => self.certificate(error),
            rustls::Error::AlertReceived(alert @ AlertDescription::ProtocolVersion) => format!(
                "the server refuses the TLS connection (alert {alert:?}): it takes neither TLS 1.2 nor 1.3"
            ),
            rustls::Error::AlertReceived(alert) => self.alert(&format!("{alert:?}")),
            rustls::Error::NoApplicationProtocol => {
                "the server speaks TLS, but not the protocol of this output: \
                 is the endpoint's port the one for it (gRPC often 4317, HTTP often 4318)?"
                    .to_owned()
            }
            _ => format!("TLS failed: {error}"),
        }
    }

    /// The server ended the TLS connection with this alert.
    fn alert(&self, alert: &str) -> String {
        let hint = if self.has_client_certificate {
            "does it trust the client certificate in tls.cert_file?"
        } else {
            "does it require a client certificate (tls.cert_file and tls.key_file)?"
        };
        format!("the server refuses the TLS connection (alert {alert}): {hint}")
    }

    fn certificate(&self, error: &CertificateError) -> String {
        let shown =
            |error: &CertificateError| rustls::Error::InvalidCertificate(error.clone()).to_string();
        match error {
            CertificateError::UnknownIssuer | CertificateError::BadSignature
                if self.has_ca_file =>
            {
                format!(
                    "{}; none of the authorities in tls.ca_file signed it, or the server does not send the certificates between",
                    shown(error)
                )
            }
            CertificateError::UnknownIssuer | CertificateError::BadSignature => format!(
                "{}: this machine does not trust the authority that signed it; name a file with the authority's \
                 certificate in tls.ca_file",
                shown(error)
            ),
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                format!(
                    "{}; use a name of the certificate in the endpoint, or set tls.server_name to one",
                    shown(error)
                )
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => format!(
                "{}; renew the server's certificate, and check the clock of this machine",
                shown(error)
            ),
            _ if shown(error).contains("CaUsedAsEndEntity") => format!(
                "{}: the server shows the certificate of an authority as its own, as many that signed themselves are; give \
                 it one for a server (basicConstraints CA:FALSE)",
                shown(error)
            ),
            _ => shown(error),
        }
    }
}

const ALERT: &str = "received fatal alert: ";
const GRPC_PORT: &str = "port 4317 is usually for gRPC: set protocol: grpc, or use port 4318";
const HTTP_PORT: &str =
    "port 4318 is usually for OTLP over HTTP: set protocol: http/protobuf, or use port 4317";

/// Whether the connection itself failed, and not what came over it.
fn is_connect(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::TimedOut
    )
}

/// The error and everything behind it, also what an I/O error wraps, which is not its source.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> Vec<&'a (dyn Error + 'static)> {
    let mut all = vec![error];
    let mut next = Some(error);
    while let Some(error) = next {
        let wrapped = error.downcast_ref().and_then(io::Error::get_ref);
        next = match wrapped {
            Some(wrapped) => Some(wrapped as &(dyn Error + 'static)),
            None => error.source(),
        };
        all.extend(next);
    }
    all
}

/// The same answer with more said about a failure.
pub(crate) fn hinted(mut answered: Answered, hint: &str) -> Answered {
    match &mut answered.outcome {
        Outcome::Delivered { .. } => {}
        Outcome::Retry { reason, .. }
        | Outcome::TooLarge { reason }
        | Outcome::Refused { reason }
        | Outcome::Hold { reason }
        | Outcome::Closed { reason } => *reason = join(reason, hint),
    }
    answered
}
