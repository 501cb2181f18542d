//! Classifies answers over HTTP as the OTLP specification does (Failures and Retry), which other servers of logs follow, too.
//! It maps status, headers and body to [`Answered`]. It uses no socket, and the caller passes the time.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode, header};

use crate::delivery::{Answered, Doubt, Outcome, RetryCause};
use crate::text::excerpt;

/// More of a response than this is not read (OTLP exporter specification).
pub(crate) const RESPONSE_BYTES_MAX: usize = 4 << 20;

/// A response, read as far as [`RESPONSE_BYTES_MAX`].
pub(crate) struct HttpResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// The body is longer than what may be read.
    pub(crate) overlong: bool,
    /// The body came to its end.
    pub(crate) is_whole: bool,
}

/// The outcome of a request that was not accepted; `said` is what the body says, see [`HttpResponse::text`].
pub(crate) fn failed(response: &HttpResponse, said: &str, now: SystemTime) -> Answered {
    let reason = join(&format!("the server answered {}", response.status), said);
    let cause = match response.status.as_u16() {
        429 => RetryCause::Throttled,
        408 | 502..=504 => RetryCause::Unavailable,
        _ => return refused(response, &reason, said),
    };
    let after = response.headers.get(header::RETRY_AFTER);
    let after = after.and_then(|value| retry_after(value.as_bytes(), now));
    let outcome = Outcome::Retry {
        cause,
        reason,
        after,
    };
    outcome.into()
}

fn refused(response: &HttpResponse, reason: &str, said: &str) -> Answered {
    let status = response.status;
    if status == StatusCode::BAD_REQUEST && response.expects_tls() {
        let reason = join(
            reason,
            "the server expects TLS: write https:// in the endpoint",
        );
        return Outcome::Hold { reason }.into();
    }
    let hint = match status.as_u16() {
        300..=399 => match location(&response.headers) {
            Some(location) => format!("redirects are not followed; it points to {location}"),
            None => "redirects are not followed".to_owned(),
        },
        401 | 403 => "check the credentials in headers or tls".to_owned(),
        404 | 405 => "check the path of the endpoint".to_owned(),
        407 => {
            "the proxy requires credentials: write http://USER:PASSWORD@HOST:PORT where it is set"
                .to_owned()
        }
        415 => "set compression to gzip or none if the server does not know this one".to_owned(),
        _ => String::new(),
    };
    let doubt = if status.as_u16() == 415 || names_compression(said) {
        Doubt::Named
    } else if matches!(status.as_u16(), 400 | 500) {
        Doubt::Possible
    } else {
        Doubt::None
    };
    let reason = join(reason, &hint);
    let outcome = match status.as_u16() {
        413 => Outcome::TooLarge { reason },
        400 if names_size(said) => Outcome::TooLarge { reason },
        400 | 422 => Outcome::Refused { reason },
        _ => Outcome::Hold { reason },
    };
    doubted(outcome, doubt)
}

impl HttpResponse {
    /// The text in the body of a failure, on one line.
    pub(crate) fn text(&self) -> String {
        if self.is_html() {
            return "(an HTML page)".to_owned();
        }
        // A few characters of up to four bytes each, perhaps cut in the last.
        let head = &self.body[..self.body.len().min(4096)];
        excerpt(&String::from_utf8_lossy(head))
    }

    /// Whether the body is a web page: it is called HTML and has a tag, or is compressed, which nobody asked for; or it begins as pages
    /// do. Receivers of a few lines call each answer HTML, one without a body and `ok`, too.
    pub(crate) fn is_page(&self) -> bool {
        let text = self.beginning();
        let head = text[..text.len().min(1024)].to_ascii_lowercase();
        let begins = head.starts_with(b"<") && head.windows(5).any(|five| five == b"<html");
        let is_compressed = self.headers.contains_key(header::CONTENT_ENCODING);
        let has_page = self.body.contains(&b'<') || (is_compressed && !self.body.is_empty());
        begins || head.starts_with(b"<!doctype html") || (self.is_html() && has_page)
    }

    /// The body without a byte order mark and spaces before it.
    pub(crate) fn beginning(&self) -> &[u8] {
        let body = self.body.trim_ascii_start();
        body.strip_prefix(b"\xEF\xBB\xBF")
            .unwrap_or(body)
            .trim_ascii_start()
    }

    /// Whether it says that a page follows, of which not all came.
    pub(crate) fn announces_page(&self) -> bool {
        self.is_html() && !self.is_whole
    }

    fn is_html(&self) -> bool {
        self.content_type().contains("html")
    }

    /// Whether the server says that it got plain HTTP where it expects TLS, as Go's and nginx do.
    fn expects_tls(&self) -> bool {
        let head = &self.body[..self.body.len().min(4096)];
        let said = String::from_utf8_lossy(head).to_ascii_lowercase();
        [
            "http request to an https server",
            "plain http request was sent to https port",
        ]
        .iter()
        .any(|words| said.contains(words))
    }

    /// Describes the size and type of the body.
    pub(crate) fn describe_body(&self) -> String {
        let size = match (self.overlong, self.is_whole) {
            (true, _) => format!("more than {RESPONSE_BYTES_MAX} bytes"),
            (false, true) => format!("{} bytes", self.body.len()),
            (false, false) => format!("{} bytes so far", self.body.len()),
        };
        match &*self.content_type() {
            "" => size,
            content_type => format!("{size} of {}", excerpt(content_type)),
        }
    }

    /// The type of the body in small letters: it is the same in any (RFC 9110, 8.3.1).
    pub(crate) fn content_type(&self) -> String {
        let value = self.headers.get(header::CONTENT_TYPE);
        let text = value.and_then(|value| value.to_str().ok());
        text.unwrap_or_default().to_ascii_lowercase()
    }
}

/// A redirect's target without what may be secret in it.
fn location(headers: &HeaderMap) -> Option<String> {
    let location = headers.get(header::LOCATION)?.to_str().ok()?;
    let location = location.split(['?', '#']).next().unwrap_or("");
    (!location.contains('@')).then(|| excerpt(location))
}

/// `Retry-After`: seconds, or an HTTP-date (then the time left until it, none if it is past). `None`
/// for anything else. Not capped.
pub(crate) fn retry_after(value: &[u8], now: SystemTime) -> Option<Duration> {
    let text = std::str::from_utf8(value).ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(
            text.parse().unwrap_or(u64::from(u32::MAX)),
        ));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or(Duration::ZERO))
}

pub(crate) fn doubted(outcome: Outcome, doubt: Doubt) -> Answered {
    Answered {
        doubt,
        ..outcome.into()
    }
}

/// Whether a server's text is about the compression of the request.
pub(crate) fn names_compression(said: &str) -> bool {
    let said = said.to_ascii_lowercase();
    [
        "content-encoding",
        "content encoding",
        "grpc-encoding",
        "zstd",
        "zstandard",
        "gzip",
        "compress",
    ]
    .iter()
    .any(|word| said.contains(word))
}

/// Whether a server's text is about the size of the request.
pub(crate) fn names_size(said: &str) -> bool {
    let said = said.to_ascii_lowercase();
    [
        "too large",
        "too big",
        "larger than max",
        "larger than the max",
        "exceeds maximum",
        "exceeds the maximum",
        "exceeds max",
        "exceeds the limit",
    ]
    .iter()
    .any(|words| said.contains(words))
}

pub(crate) fn join(text: &str, more: &str) -> String {
    match more {
        "" => text.to_owned(),
        more => format!("{text}: {more}"),
    }
}
